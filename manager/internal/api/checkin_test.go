package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/api"
	"opensource.internal/manager/internal/auth"
	inv "opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/snapshot"
	"opensource.internal/manager/internal/store"
	"opensource.internal/manager/internal/store/storetest"
)

// checkIns is a check-in handler on a real database, with the credentials
// "site-N" for one site and "admin" for all; the test's own host may come
// without, for site 1.
type checkIns struct {
	*storetest.World
	store   *store.Store
	path    string
	handler http.Handler
	log     *bytes.Buffer
	now     time.Time
}

func newCheckIns(t testing.TB) *checkIns {
	t.Helper()
	path := filepath.Join(t.TempDir(), "manager.db")
	c := &checkIns{store: storetest.OpenAt(t, path), path: path, log: &bytes.Buffer{}, now: time.Unix(1771234560, 0)}
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

func authorize(r *http.Request, siteID int64, _ *store.Versions) error {
	switch key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "); {
	case key == "admin", key == fmt.Sprintf("site-%d", siteID), key == "" && siteID == 1 && auth.Peer(r).IsLoopback():
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

func TestCheckInHostileBodies(t *testing.T) {
	c := newCheckIns(t)
	before := len(c.agents(t))
	with := func(field, value string) string {
		return fmt.Sprintf(`{"siteId":1,"hostname":"evil","currentTime":1,"ipv4Address":null,"services":{},%q:%s}`, field, value)
	}
	many := func(n int, entry string) string {
		entries := make([]string, n)
		for i := range entries {
			entries[i] = fmt.Sprintf(`"%d":%s`, i+1, entry)
		}
		return "{" + strings.Join(entries, ",") + "}"
	}
	tests := []struct {
		name, body string
		status     int
		field      string
	}{
		{"empty", "", 400, ""},
		{"cut", `{"siteId":1,`, 400, ""},
		{"two values", plain + plain, 400, ""},
		{"no object", `[1]`, 422, "body"},
		{"null", `null`, 422, "siteId"},
		{"deep", strings.Repeat("[", 20000), 400, ""},
		{"form", "siteId=1&hostname=evil", 400, ""},
		{"site as text", with("siteId", `"1"`), 422, "siteId"},
		{"site as bool", with("siteId", `true`), 422, "siteId"},
		{"site null", `{"siteId":null,"hostname":"evil"}`, 422, "siteId"},
		{"site missing", `{"hostname":"evil"}`, 422, "siteId"},
		{"site zero", with("siteId", `0`), 422, "siteId"},
		{"site fraction", with("siteId", `1.5`), 422, "siteId"},
		{"site huge", with("siteId", `99999999999999999999`), 422, "siteId"},
		{"host missing", `{"siteId":1}`, 422, "hostname"},
		{"host markup", with("hostname", `"<img src=x onerror=alert(1)>"`), 422, "hostname"},
		{"host number", with("hostname", `7`), 422, "hostname"},
		{"host long", with("hostname", `"`+strings.Repeat("x", 90_000)+`"`), 422, "hostname"},
		{"host newline", with("hostname", `"a\nb"`), 422, "hostname"},
		{"host is an address", with("hostname", `"192.0.2.1"`), 422, "hostname"},
		{"address scheme", with("ipv4Address", `"javascript:1"`), 422, "ipv4Address"},
		{"address prefix", with("ipv4Address", `"10.0.0.5/24"`), 422, "ipv4Address"},
		{"clock as text", with("currentTime", `"1"`), 422, "currentTime"},
		{"clock as object", with("currentTime", `{}`), 422, "currentTime"},
		{"services list", with("services", `[]`), 422, "services"},
		{"service text", with("services", `{"nginx":"active"}`), 422, "services"},
		{"service state", with("services", `{"nginx":{"state":1}}`), 422, "services.state"},
		{"service name", with("services", `{"\"><script>":{}}`), 422, "services"},
		{"service apply", with("services", `{"nginx":{"lastApply":"great"}}`), 422, "services.nginx"},
		{"many services", with("services", many(10_000, "{}")), 422, "services"},
		{"volume key", with("volumes", `{"1; DROP":{"applied":true}}`), 422, "volumes"},
		{"volume key zeros", with("volumes", `{"01":{"applied":true}}`), 422, "volumes"},
		{"volume text", with("volumes", `{"1":{"applied":"yes"}}`), 422, ""},
		{"volume empty", with("volumes", `{"1":{}}`), 422, "volumes.1"},
		{"many volumes", with("volumes", many(10_001, `{"applied":true}`)), 422, "volumes"},
		{"bad time", with("running", `{"etag":"x","since":"yesterday"}`), 422, "body"},
		{"too large", with("x", `"`+strings.Repeat("x", 1<<20)+`"`), 413, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := c.post(test.body)
			var answer struct {
				Error struct {
					Code, Message string
					Fields        map[string]string
				}
			}
			if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
				t.Fatalf("%d, not JSON: %s", w.Code, w.Body)
			}
			if w.Code != test.status || answer.Error.Code == "" || answer.Error.Message == "" {
				t.Fatalf("%d %s", w.Code, w.Body)
			}
			if test.field != "" && answer.Error.Fields[test.field] == "" {
				t.Errorf("%s is not named: %v", test.field, answer.Error.Fields)
			}
		})
	}
	if agents := c.agents(t); len(agents) != before {
		t.Errorf("refused requests left %v", agents)
	}
	for _, contentType := range []string{"application/x-www-form-urlencoded", "text/plain", "multipart/form-data; boundary=x", ";"} {
		if w := c.post(plain, "Content-Type", contentType); w.Code != http.StatusUnsupportedMediaType {
			t.Errorf("%s: %d", contentType, w.Code)
		}
	}
}

func TestCheckInChunkedBodyTooLarge(t *testing.T) {
	c := newCheckIns(t)
	r := httptest.NewRequest(http.MethodPost, "/api/v1/agents", io.MultiReader(strings.NewReader(strings.Repeat(" ", 2<<20)), strings.NewReader(plain)))
	r.RemoteAddr = "127.0.0.1:5555"
	r.ContentLength = -1
	w := httptest.NewRecorder()
	c.handler.ServeHTTP(w, r)
	if w.Code != http.StatusRequestEntityTooLarge {
		t.Error(w.Code, w.Body)
	}
}

func TestCheckInOtherGenerations(t *testing.T) {
	c := newCheckIns(t)
	for name, body := range map[string]string{
		"older, nulls":    `{"siteId":1,"hostname":"old","currentTime":1771234560,"ipv4Address":null,"services":{"nginx":{"state":"active","lastApply":"unknown","message":null}},"volumes":null}`,
		"older, bare":     `{"siteId":1,"hostname":"old","currentTime":1771234560,"services":{}}`,
		"newer":           `{"siteId":1,"hostname":"new","future":{"a":[1]},"services":{"nginx":{"state":"active","lastApply":"success","more":1,"outcome":"dreamt_of"},"caddy":{"state":"reloading","lastApply":"success"}},"volumes":{"7":null}}`,
		"null service":    `{"siteId":1,"hostname":"new","services":{"nginx":null}}`,
		"full host name":  `{"siteId":1,"hostname":"Agent.Example.Test.","services":{}}`,
		"optional fields": `{"siteId":1,"hostname":"full","agent":{"version":"1","templates":[],"pass":{"startedAt":"2026-02-16T09:36:00Z","durationMs":5,"rounds":1}},"host":{"os":"Debian","nginx":{"version":"1.22.1","http3":false,"stream":true},"dnsmasq":null,"ipv6":true,"userNamespace":false,"diskFreeBytes":1},"running":{"etag":"\"x\"","since":"2026-02-16T09:36:00Z"},"certificates":{"example.com":{"state":"ok","notAfter":"2027-02-16T09:36:00Z","fallback":false}},"guard":{"removed":1,"total":2},"services":{}}`,
	} {
		if w := c.post(body); w.Code != http.StatusOK {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
	hosts := map[string]bool{}
	for _, agent := range c.agents(t) {
		hosts[agent.Hostname] = true
	}
	if diff := cmp.Diff(map[string]bool{"old": true, "new": true, "agent.example.test": true, "full": true}, hosts); diff != "" {
		t.Error(diff)
	}
}

// TestCheckInExamples posts the example bodies of the contract.
func TestCheckInExamples(t *testing.T) {
	c := newCheckIns(t)
	files, err := filepath.Glob("../../../agent/checkin/testdata/request*.json")
	if err != nil || len(files) == 0 {
		t.Fatal("no examples", err)
	}
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var sent checkin.Request
		if err := json.Unmarshal(body, &sent); err != nil {
			t.Fatal(err)
		}
		w := c.post(string(body))
		if w.Code != http.StatusOK {
			t.Errorf("%s: %d %s", file, w.Code, w.Body)
			continue
		}
		agent, err := c.store.FindAgent(t.Context(), sent.SiteID, sent.Hostname)
		if err != nil {
			t.Fatal(err)
		}
		sent.Volumes = nil // kept with the volumes
		if diff := cmp.Diff(sent, agent.Report); diff != "" {
			t.Errorf("%s is not kept as it was sent:\n%s", file, diff)
		}
	}
}

func FuzzCheckIn(f *testing.F) {
	c := newCheckIns(f)
	for _, seed := range []string{plain, "", "null", "{}", `{"siteId":1,"hostname":"a","volumes":{"1":null}}`, `{"siteId":1e0}`, `{"currentTime":1e400}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		w := c.post(body)
		if w.Code != http.StatusOK && w.Code/100 != 4 || w.Body.Len() == 0 || !json.Valid(w.Body.Bytes()) {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	})
}

func TestCheckInClock(t *testing.T) {
	c := newCheckIns(t)
	for value, want := range map[string]*int64{
		"1771234560": ms(0), "1771234559": ms(0), "1771234558": ms(-1000), "1771234560.9": ms(0),
		"1771245360": ms(3 * 3600 * 1000), "1771223760": ms(-3*3600*1000 + 1000),
		"0": nil, "-1": nil, "1e18": nil, "1e400": nil, "null": nil, "9223372036854775807": nil, "99999999999999999999": nil,
	} {
		w := c.post(fmt.Sprintf(`{"siteId":1,"hostname":"agent","currentTime":%s}`, value))
		if w.Code != http.StatusOK {
			t.Errorf("%s: %d %s", value, w.Code, w.Body)
			continue
		}
		agent := c.agents(t)[0]
		if diff := cmp.Diff(want, agent.ClockSkewMS); diff != "" || !agent.LastSeenAt.Equal(c.now) {
			t.Errorf("%s: seen %v, skew %s", value, agent.LastSeenAt, diff)
		}
	}
	if w := c.post(`{"siteId":1,"hostname":"agent"}`); w.Code != http.StatusOK {
		t.Errorf("missing: %d", w.Code)
	}
	// The manager's clock is set back: the agent was seen then, not in the future.
	c.now = c.now.Add(-time.Hour)
	c.post(`{"siteId":1,"hostname":"agent"}`)
	if err := c.store.FlushHeartbeats(); err != nil {
		t.Fatal(err)
	}
	if agent := c.agents(t)[0]; !agent.LastSeenAt.Equal(c.now) || agent.Age(c.now) != 0 {
		t.Errorf("last seen %v at %v", agent.LastSeenAt, c.now)
	}
}

func ms(n int64) *int64 { return &n }

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

func TestCheckInVolumes(t *testing.T) {
	c := newCheckIns(t)
	second := storetest.NewWorld(t, c.store, 2)
	first := c.post(plain)
	etag := first.Header().Get("ETag")
	volumes := func(content string) string {
		return `{"siteId":1,"hostname":"agent","volumes":{` + content + `}}`
	}
	status := func(id int64) store.Volume {
		t.Helper()
		v, err := c.store.GetVolume(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for _, body := range []string{
		plain,
		volumes(fmt.Sprintf(`"%d":{"applied":true}`, second.Volume.ID)),
		volumes(fmt.Sprintf(`"%d":null`, c.Volume.ID)),
	} {
		if w := c.post(body, "If-None-Match", etag); w.Code != http.StatusOK {
			t.Errorf("a volume is pending, and the answer to %s is %d", body, w.Code)
		}
	}
	if v := status(second.Volume.ID); v.Status != store.VolumePending {
		t.Errorf("the other site's volume is %s", v.Status)
	}
	if !strings.Contains(c.log.String(), "not of the agent's site") {
		t.Error("the foreign result is not logged")
	}
	failed := volumes(fmt.Sprintf(`"%d":{"applied":false,"message":"mkdir: \u001b[31mno"}`, c.Volume.ID))
	if w := c.post(failed, "If-None-Match", etag); w.Code != http.StatusNotModified {
		t.Errorf("answer to the result is %d", w.Code)
	}
	if v := status(c.Volume.ID); v.Status != store.VolumeFailed || v.StatusMessage != `mkdir: \x1b[31mno` {
		t.Errorf("%+v", v)
	}
	reported := status(c.Volume.ID).ReportedAt
	c.now = c.now.Add(time.Minute)
	c.post(failed, "If-None-Match", etag)
	if again := status(c.Volume.ID).ReportedAt; !again.Equal(*reported) {
		t.Error("the same result was written again")
	}
	c.settle(t)
	if v := status(c.Volume.ID); v.Status != store.VolumeReady || v.StatusMessage != "" {
		t.Errorf("%+v", v)
	}
	_, err := c.store.UpdateVolume(t.Context(), c.Volume.ID, func(v *inv.Volume) error { v.Mode = "ro"; return nil })
	if err != nil {
		t.Fatal(err)
	}
	changed := c.post(plain, "If-None-Match", etag)
	if again := c.post(plain, "If-None-Match", changed.Header().Get("ETag")); again.Code != http.StatusOK {
		t.Errorf("pending again, but %d", again.Code)
	}
}

func TestCheckInWritesOnlyNews(t *testing.T) {
	c := newCheckIns(t)
	etag := c.settle(t)
	c.post(plain, "If-None-Match", etag)
	stored := func() store.Agent { // as another process sees it
		other := storetest.OpenAt(t, c.path)
		agent, err := other.FindAgent(t.Context(), 1, "agent")
		if err != nil {
			t.Fatal(err)
		}
		return agent
	}
	first := stored()
	for i := range 5 {
		c.now = c.now.Add(30 * time.Second)
		same := strings.Replace(plain, "1771234560", fmt.Sprint(1771234560+30*(i+1)), 1)
		if w := c.post(same, "If-None-Match", etag); w.Code != http.StatusNotModified {
			t.Fatal(w.Code)
		}
	}
	if diff := cmp.Diff(first, stored()); diff != "" {
		t.Errorf("a check-in without news was written at once:\n%s", diff)
	}
	if seen := c.agents(t)[0].LastSeenAt; !seen.Equal(c.now) {
		t.Errorf("the list says %v instead of %v", seen, c.now)
	}
	if err := c.store.FlushHeartbeats(); err != nil {
		t.Fatal(err)
	}
	if after := stored(); !after.LastSeenAt.Equal(c.now) || !after.ChangedAt.Equal(first.ChangedAt) || after.Report.CurrentTime != 1771234560+150 {
		t.Errorf("%+v", after)
	}

	// After a restart of the manager, the database says what is no news.
	c.restart()
	c.now = c.now.Add(30 * time.Second)
	c.post(plain, "If-None-Match", etag)
	if after := stored(); !after.LastSeenAt.Equal(c.now.Add(-30 * time.Second)) {
		t.Error("the first check-in after a restart was written although it said nothing new")
	}
	c.post(strings.Replace(plain, "bad option", "worse option", 1), "If-None-Match", etag)
	if after := stored(); !after.ChangedAt.Equal(c.now) || after.Report.Services["dnsmasq"].Message != "worse option at line 12" {
		t.Errorf("news was not written at once: %+v", after)
	}
	if agent := c.agents(t)[0]; agent.Report.Services["dnsmasq"].Message != "worse option at line 12" {
		t.Errorf("an older heartbeat hides it: %+v", agent)
	}
}

func TestCheckInSeesOtherProcesses(t *testing.T) {
	c := newCheckIns(t)
	etag := c.settle(t)
	other := storetest.OpenAt(t, c.path)
	if w := c.post(plain, "If-None-Match", etag); w.Code != http.StatusNotModified {
		t.Fatal(w.Code)
	}
	if _, err := other.UpdateContainer(t.Context(), c.Container.ID, func(ct *inv.Container) error { ct.Hostname = "renamed"; return nil }); err != nil {
		t.Fatal(err)
	}
	w := c.post(plain, "If-None-Match", etag)
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"renamed"`) {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	etag = w.Header().Get("ETag")
	if _, err := other.UpdateContainer(t.Context(), c.Container.ID, func(ct *inv.Container) error { ct.Owner = "nobody-sees-this"; return nil }); err != nil {
		t.Fatal(err)
	}
	if w := c.post(plain, "If-None-Match", etag); w.Code != http.StatusNotModified {
		t.Errorf("an invisible change gave %d", w.Code)
	}
	if err := other.DeleteAgent(t.Context(), c.agents(t)[0].ID); err != nil {
		t.Fatal(err)
	}
	if w := c.post(plain, "If-None-Match", etag); w.Code != http.StatusNotModified || len(c.agents(t)) != 1 {
		t.Errorf("%d, %d agents after a deletion", w.Code, len(c.agents(t)))
	}
	if err := other.DeleteSite(t.Context(), c.Site.ID, true); err != nil {
		t.Fatal(err)
	}
	if w := c.post(plain, "If-None-Match", etag, "Authorization", "Bearer admin"); w.Code != http.StatusNotFound {
		t.Errorf("deleted site: %d", w.Code)
	}
}

func TestCheckInParallelFirst(t *testing.T) {
	c := newCheckIns(t)
	second := storetest.NewWorld(t, c.store, 2)
	var group sync.WaitGroup
	for i := range 100 {
		group.Go(func() {
			site := []int64{1, second.Site.ID}[i%2]
			w := c.post(fmt.Sprintf(`{"siteId":%d,"hostname":"agent"}`, site), "Authorization", "Bearer admin")
			if w.Code != http.StatusOK {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		})
	}
	group.Wait()
	agents := c.agents(t)
	if len(agents) != 2 || agents[0].SiteID == agents[1].SiteID {
		t.Errorf("%+v", agents)
	}
	if err := c.store.DeleteAgent(t.Context(), agents[0].ID); err != nil {
		t.Fatal(err)
	}
	if left := c.agents(t); len(left) != 1 || left[0].ID != agents[1].ID {
		t.Errorf("%+v", left)
	}
}

func TestCheckInSixtyAgentsWhileEditing(t *testing.T) {
	c := newCheckIns(t)
	ctx, stop := context.WithCancel(t.Context())
	var editing, agents sync.WaitGroup
	editing.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			_, err := c.store.UpdateContainer(t.Context(), c.Container.ID, func(ct *inv.Container) error { ct.Hostname = fmt.Sprintf("web%d", i); return nil })
			if err != nil {
				t.Error(err)
				return
			}
		}
	})
	for i := range 60 {
		agents.Go(func() {
			etag := ""
			for round := range 10 {
				body := fmt.Sprintf(`{"siteId":1,"hostname":"agent%d","services":{"nginx":{"state":"active","lastApply":"success","message":"%d"}}}`, i, round/3)
				began := time.Now()
				w := c.post(body, "If-None-Match", etag)
				if took := time.Since(began); w.Code != 200 && w.Code != 304 || took > 2*time.Second {
					t.Errorf("%d after %v: %s", w.Code, took, w.Body)
				}
				etag = w.Header().Get("ETag")
			}
		})
	}
	agents.Wait()
	stop()
	editing.Wait()
	list := c.agents(t)
	for _, agent := range list {
		if agent.Report.Services["nginx"].Message != "3" {
			t.Errorf("lost the last report of %s: %+v", agent.Hostname, agent.Report)
		}
	}
	if len(list) != 60 {
		t.Errorf("%d agents", len(list))
	}
}

func TestCheckInWithoutDatabase(t *testing.T) {
	c := newCheckIns(t)
	etag := c.settle(t)
	c.post(plain)
	if err := c.store.Close(); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, body, tag string
		want            int
	}{
		{"up to date", plain, etag, 304},
		{"up to date, another time", strings.Replace(plain, "1771234560", "1771234590", 1), etag, 304},
		{"other tag", plain, `"x"`, 503},
		{"no tag", plain, "", 503},
		{"news", strings.Replace(plain, "active", "failed", 1), etag, 503},
		{"a result", fmt.Sprintf(`{"siteId":1,"hostname":"agent","volumes":{"%d":{"applied":false}}}`, c.Volume.ID), etag, 503},
		{"unknown agent", strings.Replace(plain, `"agent"`, `"other"`, 1), etag, 503},
		{"unknown site", strings.Replace(plain, `"siteId":1`, `"siteId":7`, 1), etag, 503},
	}
	for _, test := range tests {
		w := c.post(test.body, "If-None-Match", test.tag, "Authorization", "Bearer admin")
		if w.Code != test.want {
			t.Errorf("%s: %d %s", test.name, w.Code, w.Body)
		}
		if strings.Contains(w.Body.String(), "sql") || strings.Contains(w.Body.String(), "closed") {
			t.Errorf("%s: the cause is shown: %s", test.name, w.Body)
		}
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
