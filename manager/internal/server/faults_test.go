package server

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"opensource.internal/manager/internal/api"
	"opensource.internal/manager/internal/auth"
	"opensource.internal/manager/internal/config"
	"opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/metrics"
	"opensource.internal/manager/internal/store"
	"opensource.internal/manager/internal/store/storetest"
)

// under is a manager that misbehaving clients are let loose on.
type under struct {
	*Server
	database store.Database
	key      string
	log      *bytes.Buffer
	quiet    int // goroutines while nobody is connected
}

func underLoad(t *testing.T) *under {
	t.Helper()
	database := storetest.Database(t)
	c := config.Config{
		StateDirectory: t.TempDir(), Database: database.Path, DatabaseURL: config.Secret(database.URL), Listen: "127.0.0.1:0",
	}
	u := &under{database: database, log: &bytes.Buffer{}}
	var err error
	if u.Server, err = Start(t.Context(), c, "test", slog.New(slog.NewTextHandler(u.log, nil))); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if u.Server != nil {
			_ = u.Stop() // after a failure
		}
	})
	if _, err := u.Store.CreateSite(t.Context(), inventory.Site{Name: "lab"}); err != nil {
		t.Fatal(err)
	}
	if u.key, _, err = auth.CreateKey(t.Context(), u.Store, auth.NewKey{Name: "k", Role: auth.RoleAdmin}); err != nil {
		t.Fatal(err)
	}
	u.checkIn(t, u.URL(), 0, "")
	u.quiet = runtime.NumGoroutine()
	return u
}

// checkIn is a good one; its answer is the tag.
func (u *under) checkIn(t *testing.T, url string, agent int, etag string) string {
	t.Helper()
	body := fmt.Sprintf(`{"siteId":1,"hostname":"agent%d","currentTime":1,"ipv4Address":null,"services":{}}`, agent)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/api/v1/agents", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header = http.Header{"Content-Type": {"application/json"}, "X-Api-Key": {u.key}, "If-None-Match": {etag}}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 20 * time.Second}
	answer, err := client.Do(request)
	if err != nil {
		t.Error(err)
		return ""
	}
	defer answer.Body.Close()
	if _, err := io.ReadAll(answer.Body); err != nil || answer.StatusCode != 200 && answer.StatusCode != 304 {
		t.Errorf("a good check-in: %d %v", answer.StatusCode, err)
	}
	return answer.Header.Get("Etag")
}

// calm waits until no more goroutines run than before anybody was connected.
func (u *under) calm(t *testing.T) {
	t.Helper()
	const idle = 8 // of the pools of the database, which come and go
	eventually(t, func() bool { return runtime.NumGoroutine() <= u.quiet+idle }, func() string {
		stacks := make([]byte, 1<<20)
		return fmt.Sprintf("%d goroutines, %d before\n%s", runtime.NumGoroutine(), u.quiet, stacks[:runtime.Stack(stacks, true)])
	})
}

// end stops the manager. Nothing that was done to it is a fault of its own.
func (u *under) end(t *testing.T) {
	t.Helper()
	if err := u.Stop(); err != nil {
		t.Error(err)
	}
	if strings.Contains(u.log.String(), "level=ERROR") {
		t.Errorf("faults are logged:\n%s", u.log)
	}
	u.Server = nil
}

func eventually(t *testing.T, is func() bool, otherwise func() string) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(otherwise())
		}
	}
}

func dial(t *testing.T, url, send string) net.Conn {
	t.Helper()
	connection, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	if _, err := io.WriteString(connection, send); err != nil {
		t.Fatal(err)
	}
	return connection
}

// requests that are not complete, by what is missing.
func (u *under) unfinished() map[string]string {
	head := func(line, more string) string {
		return line + " HTTP/1.1\r\nHost: m\r\nX-Api-Key: " + u.key + "\r\n" + more
	}
	of := func(length int, body string) string {
		return fmt.Sprintf("Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", length, body)
	}
	return map[string]string{
		"nothing":            "",
		"half a line":        "POST /api/v1/ag",
		"half a head":        head("GET /api/v1/sites", "Accept: "),
		"check-in":           head("POST /api/v1/agents", of(4000, `{"siteId":1,`)),
		"check-in, chunked":  head("POST /api/v1/agents", "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"sit"),
		"stranger's":         "POST /api/v1/agents HTTP/1.1\r\nHost: m\r\n" + of(4000, `{"siteId":1,`),
		"new site":           head("POST /api/v1/sites", of(4000, `{"name":"half",`)),
		"changed site":       head("PATCH /api/v1/sites/1", of(4000, `{"name":"half",`)),
		"manifest":           head("PUT /api/v1/sites/1/manifest", of(4000, `{"version":1,"site":{"name":"half"},`)),
		"sign-in of the API": "POST /api/v1/session HTTP/1.1\r\nHost: m\r\n" + of(4000, `{"name":"a",`),
		"sign-in page":       "POST /sign-in HTTP/1.1\r\nHost: m\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 4000\r\n\r\nname=a",
	}
}

// TestTwoThousandConnections holds as many open that say nothing, or half of
// something. Agents do not notice, and when the manager stops all are gone.
func TestTwoThousandConnections(t *testing.T) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur < 5000 {
		t.Skipf("SKIPPED: only %d files may be open (%v)", limit.Cur, err)
	}
	u := underLoad(t)
	var open []net.Conn
	for len(open) < 2000 {
		open = append(open, dial(t, u.URL(), ""))
		for _, request := range u.unfinished() {
			open = append(open, dial(t, u.URL(), request))
		}
	}
	eventually(t, func() bool { return runtime.NumGoroutine() > len(open) }, func() string { return "not all were accepted" })
	var agents sync.WaitGroup
	for agent := range 20 {
		agents.Go(func() {
			for etag, n := "", 0; n < 10; n++ {
				etag = u.checkIn(t, u.URL(), agent, etag)
			}
		})
	}
	agents.Wait()
	u.end(t)
	for _, connection := range open {
		if _, err := io.Copy(io.Discard, connection); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal("a connection outlived the manager")
		}
	}
	s := storetest.OpenAt(t, u.database)
	if _, found, err := s.ListAgents(t.Context(), store.AgentFilter{}, store.ListOptions{}); err != nil || found != 20 {
		t.Errorf("%d agents are stored, %v", found, err)
	}
	nothingOfIt(t, s)
}

// nothingOfIt: no request that was not complete has changed anything.
func nothingOfIt(t *testing.T, s *store.Store) {
	t.Helper()
	sites, _, err := s.ListSites(t.Context(), store.SiteFilter{}, store.ListOptions{})
	if err != nil || len(sites) != 1 || sites[0].Name != "lab" {
		t.Errorf("sites %+v, %v", sites, err)
	}
}

// impatient serves the same manager at another address, with its limits a
// fraction as long.
func (u *under) impatient(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := limited(u.http.Handler, u.Server.log)
	for _, limit := range []*time.Duration{&s.ReadHeaderTimeout, &s.ReadTimeout, &s.WriteTimeout, &s.IdleTimeout} {
		if *limit == 0 {
			t.Fatal("something has no limit")
		}
		*limit /= 40
	}
	go func() { _ = s.Serve(listener) }()
	t.Cleanup(func() { s.Close() })
	return "http://" + listener.Addr().String()
}

// TestSlowClientsLoseTheirConnection: bytes that come one by one, and answers
// that nobody fetches. Nobody else waits, and nothing is left of them.
func TestSlowClientsLoseTheirConnection(t *testing.T) {
	u := underLoad(t)
	u.large(t)
	url := u.impatient(t)
	var slow sync.WaitGroup
	cut := func(name string, connection net.Conn, drip string) {
		slow.Go(func() {
			if err := untilCut(connection, drip); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	for range 10 {
		requests := u.unfinished()
		delete(requests, "manifest") // has more time than this test
		for name, request := range requests {
			cut(name, dial(t, url, request), "a")
		}
		cut("used and then idle", dial(t, url, "GET /api/v1/health/live HTTP/1.1\r\nHost: m\r\n\r\n"), "")
	}
	for range 3 { // and never read: more than the buffers of both sides hold
		snapshot := "GET /api/v1/sites/1/snapshot HTTP/1.1\r\nHost: m\r\nX-Api-Key: " + u.key + "\r\n\r\n"
		cut("reads nothing", unread{dial(t, url, strings.Repeat(snapshot, 20))}, "")
	}
	stop := make(chan struct{})
	var agents sync.WaitGroup
	for agent := range 5 {
		agents.Go(func() {
			for etag := ""; ; {
				etag = u.checkIn(t, url, agent, etag)
				select {
				case <-stop:
					return
				case <-time.After(10 * time.Millisecond):
				}
			}
		})
	}
	slow.Wait()
	close(stop)
	agents.Wait()
	u.calm(t)
	nothingOfIt(t, u.Store)
	u.end(t)
}

// unread is a connection whose client reads nothing.
type unread struct{ net.Conn }

func (unread) Read([]byte) (int, error) { return 0, os.ErrDeadlineExceeded }

// untilCut sends byte by byte until the other side has ended the connection.
func untilCut(connection net.Conn, drip string) error {
	_, silent := connection.(unread)
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
		if drip != "" || silent {
			if _, err := io.WriteString(connection, " "+drip); err != nil {
				return nil
			}
		}
		_ = connection.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
		if _, err := io.Copy(io.Discard, connection); !errors.Is(err, os.ErrDeadlineExceeded) {
			return nil
		}
		if silent {
			time.Sleep(20 * time.Millisecond)
		}
	}
	return errors.New("is still connected")
}

// large makes the site one of 10,000 containers.
func (u *under) large(t *testing.T) {
	t.Helper()
	if _, err := u.Store.CreateNode(t.Context(), 1, inventory.Node{Name: "pve1"}); err != nil {
		t.Fatal(err)
	}
	if _, err := storetest.Raw(t, u.database).Exec(`
		INSERT INTO containers (site_id, node_id, hostname, owner, ipv4_address, created_at, updated_at)
		WITH RECURSIVE numbers(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < 9999)
		SELECT nodes.site_id, nodes.id, 'c' || n, 'alice', '10.2.' || (n / 250) || '.' || (n % 250 + 1), nodes.created_at, nodes.created_at FROM numbers, nodes`); err != nil {
		t.Fatal(err)
	}
}

// TestClientsThatGoAway: in the middle of their requests, politely and not.
func TestClientsThatGoAway(t *testing.T) {
	u := underLoad(t)
	for range 20 {
		for _, request := range u.unfinished() {
			for _, reset := range []bool{false, true} {
				connection := dial(t, u.URL(), request)
				if reset {
					_ = connection.(*net.TCPConn).SetLinger(0)
				}
				connection.Close()
			}
		}
	}
	u.calm(t)
	u.checkIn(t, u.URL(), 0, "")
	nothingOfIt(t, u.Store)
	u.end(t)
}

// TestPanickingHandlers: one is answered like every fault, and if half of its
// answer is sent, that does not look like a whole one. Whoever held the
// database has let go of it.
func TestPanickingHandlers(t *testing.T) {
	s := storetest.Open(t)
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	a := auth.New(auth.Options{Store: s, Log: logger})
	engine := newEngine(api.Panicked)
	engine.POST("/api/v1/at-once", func(c *gin.Context) {
		_ = s.Atomically(c.Request.Context(), func(ctx context.Context) error {
			_, err := s.CreateSite(ctx, inventory.Site{Name: "unfinished"})
			panic(fmt.Sprint("secret ", err))
		})
	})
	engine.POST("/api/v1/half-way", func(c *gin.Context) {
		_, _ = c.Writer.WriteString(`{"data":[1,`)
		c.Writer.Flush()
		panic("secret")
	})
	measured := metrics.New(metrics.Options{Store: s, Log: logger})
	server := httptest.NewServer(described(a, measured, logger, engine))
	defer server.Close()

	answer, err := http.Post(server.URL+"/api/v1/at-once", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(answer.Body)
	answer.Body.Close()
	if err != nil || answer.StatusCode != 500 || !strings.Contains(string(body), "internal_error") || strings.Contains(string(body), "secret") {
		t.Errorf("%d %s %v", answer.StatusCode, body, err)
	}
	if answer, err = http.Post(server.URL+"/api/v1/half-way", "", nil); err == nil {
		body, err = io.ReadAll(answer.Body)
		answer.Body.Close()
	}
	if err == nil {
		t.Errorf("half an answer looks whole: %d %s", answer.StatusCode, body)
	}
	if _, err := s.CreateSite(t.Context(), inventory.Site{Name: "other"}); err != nil {
		t.Errorf("the database is not free: %v", err)
	}
	if sites, _, err := s.ListSites(t.Context(), store.SiteFilter{}, store.ListOptions{}); err != nil || len(sites) != 1 {
		t.Errorf("what was not finished is stored: %+v, %v", sites, err)
	}
	server.Close()
	scrape := httptest.NewRecorder()
	measured.Handler().ServeHTTP(scrape, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for _, route := range []string{"at-once", "half-way"} {
		if !strings.Contains(scrape.Body.String(), `route="/api/v1/`+route+`",status="500"} 1`) {
			t.Errorf("%s is not counted", route)
		}
	}
	if got := log.String(); strings.Count(got, "handler panicked") != 2 || !strings.Contains(got, "faults_test.go") {
		t.Errorf("log: %s", got)
	}
}

// A client that stops amid a body is told so, in a form it understands, long
// before the server gives up its connection.
func TestSlowBodiesAreAnswered(t *testing.T) {
	u := underLoad(t)
	requests := u.unfinished()
	var waiting sync.WaitGroup
	for name, want := range map[string]string{
		"check-in": "request_timeout", "check-in, chunked": "request_timeout", "new site": "request_timeout", "sign-in page": "The form could not be read",
	} {
		connection := dial(t, u.URL(), requests[name])
		waiting.Go(func() {
			defer connection.Close()
			_ = connection.SetReadDeadline(time.Now().Add(20 * time.Second))
			answer, err := http.ReadResponse(bufio.NewReader(connection), nil)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				return
			}
			defer answer.Body.Close()
			if body, err := io.ReadAll(answer.Body); answer.StatusCode != http.StatusRequestTimeout || !strings.Contains(string(body), want) {
				t.Errorf("%s: %d %s, %v", name, answer.StatusCode, body, err)
			}
		})
	}
	waiting.Wait()
}
