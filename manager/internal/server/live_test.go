package server_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/auth"
	"opensource.internal/manager/internal/server"
	"opensource.internal/manager/internal/store"
	"opensource.internal/manager/servertest"
)

// liveStream reads server-sent events.
type liveStream struct {
	t      *testing.T
	answer *http.Response
	lines  chan string // closed at the end
	lastID string
}

// openLive opens a stream at a manager or a proxy in front of it.
func openLive(t *testing.T, client *http.Client, url string, header http.Header) *liveStream {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(ctx, "GET", url+"/api/v1/live", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header = header
	endless := *client
	endless.Timeout = 0
	answer, err := endless.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	s := &liveStream{t: t, answer: answer, lines: make(chan string, 10000)}
	if answer.StatusCode != 200 || answer.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("live stream: %d %v", answer.StatusCode, answer.Header)
	}
	body, err := decoded(answer)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(s.lines)
		for scanner := bufio.NewScanner(body); scanner.Scan(); {
			s.lines <- scanner.Text()
		}
	}()
	t.Cleanup(func() { cancel(); <-done; answer.Body.Close() })
	return s
}

// next is the next event but those of the timeline, as "kind data", or "end".
func (s *liveStream) next() string {
	s.t.Helper()
	for {
		if got := s.any(); !strings.HasPrefix(got, "event ") {
			return got
		}
	}
}

// any is the next event.
func (s *liveStream) any() string {
	s.t.Helper()
	kind, patience := "", time.After(20*time.Second)
	for {
		select {
		case line, open := <-s.lines:
			name, value, _ := strings.Cut(line, ": ")
			switch {
			case !open:
				return "end"
			case name == "id":
				s.lastID = value
			case name == "event":
				kind = value
			case name == "data":
				return kind + " " + value
			}
		case <-patience:
			s.t.Fatal("nothing comes")
		}
	}
}

func (s *liveStream) expect(want string) {
	s.t.Helper()
	if got := s.next(); got != want {
		s.t.Fatalf("got %q, want %q", got, want)
	}
}

// idle waits until lines have come for a while, and no event among them.
func (s *liveStream) idle(long time.Duration) {
	s.t.Helper()
	for end := time.After(long); ; {
		select {
		case line, open := <-s.lines:
			if !open || strings.HasPrefix(line, "data: ") && !strings.Contains(line, `"kind":`) {
				s.t.Fatalf("got %q, open: %v", line, open)
			}
		case <-end:
			return
		}
	}
}

func withKey(key string, more ...string) http.Header {
	header := http.Header{"X-Api-Key": {key}}
	for i := 0; i < len(more); i += 2 {
		header.Set(more[i], more[i+1])
	}
	return header
}

func checkInAs(t *testing.T, s *servertest.Server, site int64, hostname, message string) {
	t.Helper()
	answer := s.Call(t, "POST", "/agents", checkin.Request{
		SiteID: site, Hostname: hostname, CurrentTime: time.Now().Unix(),
		Services: map[string]checkin.ServiceReport{"nginx": {State: "active", LastApply: checkin.ApplySuccess, Message: message}},
	})
	if answer.Status != 200 {
		t.Fatalf("check in: %d %s", answer.Status, answer.Body)
	}
}

func siteETag(t *testing.T, s *servertest.Server, site int64) string {
	t.Helper()
	tag := s.Call(t, "GET", fmt.Sprintf("/sites/%d/snapshot", site), nil).Header.Get("ETag")
	return strings.ReplaceAll(tag, `"`, `\"`)
}

func TestLiveStreamTellsWhatChanges(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	live := openLive(t, http.DefaultClient, s.URL, withKey(s.AdminKey))
	if h := live.answer.Header; h.Get("X-Accel-Buffering") != "no" || h.Get("Cache-Control") != "no-cache" {
		t.Errorf("%v", h)
	}
	live.expect("reset {}")
	site := s.Create(t, "/sites", object{"name": "lab"})
	live.expect(fmt.Sprintf(`site {"id":%d,"etag":"%s"}`, site, siteETag(t, s, site)))
	checkInAs(t, s, site, "a", "")
	live.expect(fmt.Sprintf(`agent {"id":1,"siteId":%d}`, site))
	if got, want := live.any(), fmt.Sprintf(`event {"id":1,"siteId":%d,"agentId":1,"kind":"first_seen"}`, site); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	checkInAs(t, s, site, "a", "") // a heartbeat
	checkInAs(t, s, site, "b", "")
	live.expect(fmt.Sprintf(`agent {"id":2,"siteId":%d}`, site))
	checkInAs(t, s, site, "a", "something new")
	live.expect(fmt.Sprintf(`agent {"id":1,"siteId":%d}`, site))
	if got := s.Call(t, "DELETE", "/agents/2", nil); got.Status != 204 {
		t.Fatal(got)
	}
	live.expect(fmt.Sprintf(`agent {"id":2,"siteId":%d}`, site))

	// Another process, as the command line is one.
	other, err := store.Open(t.Context(), server.DatabaseOf(s.Config), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := other.DeleteSite(t.Context(), site, true); err != nil {
		t.Fatal(err)
	}
	for got := live.next(); got != fmt.Sprintf(`site {"id":%d,"etag":null}`, site); got = live.next() {
		if got != fmt.Sprintf(`agent {"id":1,"siteId":%d}`, site) { // forgotten with its site
			t.Fatalf("got %q", got)
		}
	}
}

func TestLiveStreamResumes(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	site := s.Create(t, "/sites", object{"name": "lab"})
	first := openLive(t, http.DefaultClient, s.URL, withKey(s.AdminKey))
	first.expect("reset {}")
	checkInAs(t, s, site, "a", "")
	first.expect(fmt.Sprintf(`agent {"id":1,"siteId":%d}`, site))
	second := openLive(t, http.DefaultClient, s.URL, withKey(s.AdminKey)) // says when the next one is known
	second.expect("reset {}")
	first.answer.Body.Close()
	checkInAs(t, s, site, "b", "")
	second.expect(fmt.Sprintf(`agent {"id":2,"siteId":%d}`, site))
	back := openLive(t, http.DefaultClient, s.URL, withKey(s.AdminKey, "Last-Event-ID", first.lastID))
	back.expect(fmt.Sprintf(`agent {"id":2,"siteId":%d}`, site))
	checkInAs(t, s, site, "c", "")
	back.expect(fmt.Sprintf(`agent {"id":3,"siteId":%d}`, site))
}

func TestLiveStreamNeedsALastingRightToRead(t *testing.T) {
	s := start(t, nil)
	for header, status := range map[string]int{"": 401, "nonsense": 401, s.Key(t, auth.NewKey{Name: "a", Role: auth.RoleAgent, SiteID: s.Create(t, "/sites", object{"name": "lab"})}): 403} {
		h := http.Header{}
		if header != "" {
			h = withKey(header)
		}
		if got := s.Do(t, "GET", "/api/v1/live", nil, h); got.Status != status {
			t.Errorf("%q: %d, want %d", header, got.Status, status)
		}
	}
	if got := s.Do(t, "HEAD", "/api/v1/live", nil, withKey(s.AdminKey)); got.Status != 405 {
		t.Errorf("HEAD: %d", got.Status)
	}

	key := s.Key(t, auth.NewKey{Name: "viewer", Role: auth.RoleViewer})
	cookie := signedIn(t, s, nil)
	streams := []*liveStream{openLive(t, http.DefaultClient, s.URL, withKey(key)), openLive(t, http.DefaultClient, s.URL, withCookie(cookie)), openLive(t, http.DefaultClient, s.URL, withKey(s.AdminKey))}
	for _, stream := range streams {
		stream.expect("reset {}")
	}
	keys, _, err := s.Store.ListAPIKeys(t.Context(), store.APIKeyFilter{}, store.ListOptions{Limit: store.All})
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Call(t, "DELETE", fmt.Sprintf("/api-keys/%d", keys[len(keys)-1].ID), nil); got.Status != 204 {
		t.Fatal(got)
	}
	streams[0].expect("end")
	if got := s.Do(t, "DELETE", "/api/v1/session", nil, withCookie(cookie)); got.Status != 204 {
		t.Fatal(got)
	}
	streams[1].expect("end")
	s.Create(t, "/sites", object{"name": "another"})
	if got := streams[2].next(); !strings.HasPrefix(got, "site ") {
		t.Errorf("the key that is still good: %q", got)
	}
}

// A stop waits for requests that are being answered: not for streams, and not
// for clients that stopped reading or have not sent all.
func TestStopsWithStreamsAndSlowClientsOpen(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	var streams []*liveStream
	for range 20 {
		streams = append(streams, openLive(t, http.DefaultClient, s.URL, withKey(s.AdminKey)))
	}
	address := strings.TrimPrefix(s.URL, "http://")
	for _, sent := range []string{
		"GET /api/v1/live HTTP/1.1\r\nHost: x\r\nX-Api-Key: " + s.AdminKey + "\r\n\r\n", // reads nothing
		"POST /api/v1/sites HTTP/1.1\r\nHost: x\r\nX-Api-Key: " + s.AdminKey + "\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{",
		"GET /api/v1/he",
	} {
		connection, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer connection.Close()
		if _, err := connection.Write([]byte(sent)); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	s.Stop(t)
	if took := time.Since(began); took > time.Second {
		t.Errorf("stopping took %s", took)
	}
	for _, stream := range streams {
		for stream.next() != "end" {
		}
	}
}
