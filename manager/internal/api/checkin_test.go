package api_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/api"
	"opensource.internal/manager/internal/auth"
	"opensource.internal/manager/internal/snapshot"
	"opensource.internal/manager/internal/store"
	"opensource.internal/manager/internal/store/storetest"
)

// checkIns is a check-in handler on a real database, with the credentials
// "site-N" for one site and "admin" for all; the test's own host may come
// without, for site 1.
type checkIns struct {
	*storetest.World
	store    *store.Store
	database store.Database
	handler  http.Handler
	log      *bytes.Buffer
	now      time.Time
}

func newCheckIns(t testing.TB) *checkIns {
	t.Helper()
	database := storetest.Database(t)
	c := &checkIns{store: storetest.OpenAt(t, database), database: database, log: &bytes.Buffer{}, now: time.Unix(1771234560, 0)}
	world := storetest.NewWorld(t, c.store, 1)
	c.World = &world
	c.restart()
	return c
}

// restart puts a new handler with an empty memory in front of the database.
func (c *checkIns) restart() {
	c.handler = api.NewCheckIn(api.CheckInOptions{
		Store: c.store, Snapshots: snapshot.NewCache(c.store), Authorize: authorize,
		Log: slog.New(slog.NewTextHandler(c.log, nil)), Now: func() time.Time { return c.now },
	})
}

// reopen closes the database, which writes what is still in memory, and goes on
// with it as a new manager.
func (c *checkIns) reopen(t testing.TB) {
	t.Helper()
	if err := c.store.Close(); err != nil {
		t.Fatal(err)
	}
	c.store = storetest.OpenAt(t, c.database)
	c.restart()
}

func authorize(r *http.Request, as auth.CheckIn, _ *store.Versions) error {
	switch key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "); {
	case key == "admin", key == fmt.Sprintf("site-%d", as.SiteID), key == "" && as.SiteID == 1 && auth.Peer(r).IsLoopback():
		return nil
	case strings.HasPrefix(key, "site-"):
		return auth.ErrForbidden
	}
	return auth.ErrUnauthorized
}

// post sends a body as an agent of this host would.
func (c *checkIns) post(body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/api/v1/agents", strings.NewReader(body))
	r.RemoteAddr = "127.0.0.1:5555"
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		if header[i] == "peer" {
			r.RemoteAddr = header[i+1]
			continue
		}
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	c.handler.ServeHTTP(w, r)
	return w
}

// settle reports the world's volume and returns the tag to go on with.
func (c *checkIns) settle(t testing.TB) (etag string) {
	t.Helper()
	w := c.post(fmt.Sprintf(`{"siteId":1,"hostname":"agent","volumes":{"%d":{"applied":true}}}`, c.Volume.ID))
	if w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	return w.Header().Get("ETag")
}

func (c *checkIns) agents(t testing.TB) []store.Agent {
	t.Helper()
	agents, _, err := c.store.ListAgents(t.Context(), store.AgentFilter{}, store.ListOptions{Limit: store.All})
	if err != nil {
		t.Fatal(err)
	}
	return agents
}

const plain = `{"siteId":1,"hostname":"agent","currentTime":1771234560,"ipv4Address":"172.17.0.2",
	"services":{"nginx":{"state":"active","lastApply":"success"},"dnsmasq":{"state":"active","lastApply":"failure","message":"bad option at line 12"}}}`

func TestCheckInAnswersSnapshotThenNotModified(t *testing.T) {
	c := newCheckIns(t)
	etag := c.settle(t)
	w := c.post(plain)
	if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/json" || w.Header().Get("ETag") != etag {
		t.Fatalf("%d %v", w.Code, w.Header())
	}
	var body struct{ Data json.RawMessage }
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
		t.Fatal(err)
	}
	if checkin.ETag(body.Data) != etag {
		t.Error("the tag is not that of the exact bytes")
	}
	w = c.post(plain, "If-None-Match", etag)
	if w.Code != http.StatusNotModified || w.Body.Len() != 0 || w.Header().Get("ETag") != etag {
		t.Errorf("%d %q %v", w.Code, w.Body, w.Header())
	}
	agent := c.agents(t)[0]
	if agent.Report.Services["dnsmasq"].Message != "bad option at line 12" || agent.Report.IPv4Address != "172.17.0.2" || agent.PeerAddress != "127.0.0.1" {
		t.Errorf("%+v", agent)
	}
}

func TestCheckInIfNoneMatch(t *testing.T) {
	c := newCheckIns(t)
	etag := c.settle(t)
	for value, want := range map[string]int{
		etag: 304, "W/" + etag: 304, `"zzz", W/` + etag: 304, etag + `,"zzz"`: 304, "  " + etag + " ": 304,
		"*": 200, "": 200, strings.Trim(etag, `"`): 200, `"zzz"`: 200, strings.ToUpper(etag): 200,
		strings.Repeat("x", 8<<10): 200, `"` + strings.Repeat(`",`, 100): 200, "\x00\xff": 200,
	} {
		if w := c.post(plain, "If-None-Match", value); w.Code != want {
			t.Errorf("%.80q: %d", value, w.Code)
		}
	}
}

func TestCheckInAuthorization(t *testing.T) {
	c := newCheckIns(t)
	second := storetest.NewWorld(t, c.store, 2)
	site := func(id int64) string { return fmt.Sprintf(`{"siteId":%d,"hostname":"agent"}`, id) }
	remote := "198.51.100.7:5555"
	tests := []struct {
		name, key, peer, body string
		status                int
	}{
		{"loopback", "", "127.0.0.1:1", site(1), 200},
		{"loopback, other site", "", "127.0.0.1:1", site(second.Site.ID), 401},
		{"remote without key", "", remote, site(1), 401},
		{"remote without key, junk", "", remote, "junk", 401},
		{"loopback, junk", "", "127.0.0.1:1", "junk", 400},
		{"bad key, junk", "wrong", remote, "junk", 401},
		{"bad key", "wrong", remote, site(1), 401},
		{"own site", "site-1", remote, site(1), 200},
		{"own key, junk", "site-1", remote, "junk", 400},
		{"other site", "site-1", remote, site(second.Site.ID), 403},
		{"admin", "admin", remote, site(second.Site.ID), 200},
		{"admin, unknown site", "admin", remote, site(99), 404},
		{"admin over loopback, unknown site", "admin", "127.0.0.1:1", site(99), 404},
	}
	for _, test := range tests {
		header := []string{"peer", test.peer}
		if test.key != "" {
			header = append(header, "Authorization", "Bearer "+test.key)
		}
		w := c.post(test.body, header...)
		if w.Code != test.status {
			t.Errorf("%s: %d %s", test.name, w.Code, w.Body)
		}
		if test.status == 404 && !strings.Contains(w.Body.String(), `"site_not_found"`) {
			t.Errorf("%s: %s", test.name, w.Body)
		}
	}
}

func TestCheckInBootstrap(t *testing.T) {
	s := storetest.Open(t)
	handler := api.NewCheckIn(api.CheckInOptions{Store: s, Snapshots: snapshot.NewCache(s), Authorize: authorize, Log: slog.New(slog.DiscardHandler)})
	c := &checkIns{store: s, handler: handler}
	w := c.post(plain)
	want := `{"data":{"site":null,"nginx":{"httpServices":[],"streamServices":[],"externalDomains":[]}}}`
	if w.Code != http.StatusOK || w.Body.String() != want || !checkin.ValidETag(w.Header().Get("ETag")) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if len(c.agents(t)) != 0 {
		t.Error("the bootstrap answer was recorded")
	}
	storetest.NewWorld(t, s, 1)
	if w := c.post(plain, "If-None-Match", w.Header().Get("ETag")); w.Code != http.StatusOK || strings.Contains(w.Body.String(), `"site":null`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestCheckInContract lets the agents' own client talk to the handler.
func TestCheckInContract(t *testing.T) {
	c := newCheckIns(t)
	server := httptest.NewServer(c.handler)
	defer server.Close()
	base, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	client := checkin.Client{URL: base, Key: "site-1", UserAgent: "opensource-agent/test"}
	request := checkin.Request{SiteID: 1, Hostname: "agent", CurrentTime: time.Now().Unix(), Services: map[string]checkin.ServiceReport{
		"nginx": {State: "active", LastApply: checkin.ApplySuccess},
	}}
	answer, err := client.CheckIn(t.Context(), request, "")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(c.Volume.HostPath, answer.Snapshot.Site.Volumes[0].HostPath); diff != "" || answer.ETag != checkin.ETag(answer.Data) {
		t.Error(diff, answer.ETag)
	}
	request.Volumes = map[string]checkin.VolumeReport{fmt.Sprint(c.Volume.ID): {Applied: true}}
	answer, err = client.CheckIn(t.Context(), request, answer.ETag)
	if err != nil || !answer.NotModified {
		t.Errorf("%+v, %v", answer, err)
	}
	for status, change := range map[int]func(*checkin.Request, *checkin.Client){
		403: func(r *checkin.Request, _ *checkin.Client) { r.SiteID = 2 },
		401: func(_ *checkin.Request, c *checkin.Client) { c.Key = "wrong" },
		404: func(r *checkin.Request, c *checkin.Client) { r.SiteID, c.Key = 2, "admin" },
		422: func(r *checkin.Request, _ *checkin.Client) { r.Hostname = "-" },
	} {
		request, client := request, client
		change(&request, &client)
		_, err := client.CheckIn(t.Context(), request, "")
		var refused *checkin.RefusedError
		if !errors.As(err, &refused) || refused.Status != status || refused.Code == "" {
			t.Errorf("%d: %+v", status, err)
		}
	}
}
