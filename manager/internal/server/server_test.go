package server_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/auth"
	"opensource.internal/manager/internal/config"
	"opensource.internal/manager/internal/store"
	"opensource.internal/manager/servertest"
)

type object = map[string]any

func mustParse(s string) *url.URL {
	u, err := url.Parse(s)
	if err != nil {
		panic(err)
	}
	return u
}

func proxies(cidr string) []netip.Prefix { return []netip.Prefix{netip.MustParsePrefix(cidr)} }

func agentClient(s *servertest.Server, key string) *checkin.Client {
	return &checkin.Client{URL: mustParse(s.URL), Key: key, UserAgent: "test"}
}

func report(site int64) checkin.Request {
	return checkin.Request{
		SiteID: site, Hostname: "agent", CurrentTime: time.Now().Unix(), IPv4Address: "198.51.100.5",
		Services: map[string]checkin.ServiceReport{"nginx": {State: "active", LastApply: checkin.ApplySuccess}},
	}
}

func TestAgentAgainstTheManager(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	ctx := t.Context()
	fresh := agentClient(s, "")

	bootstrap, err := fresh.CheckIn(ctx, report(1), "")
	if err != nil || bootstrap.Snapshot.Site != nil {
		t.Fatalf("fresh manager: %+v, %v", bootstrap, err)
	}
	site := s.Create(t, "/sites", object{"name": "lab"})
	node := s.Create(t, fmt.Sprintf("/sites/%d/nodes", site), object{"name": "pve1"})
	container := s.Create(t, fmt.Sprintf("/sites/%d/containers", site), object{"nodeId": node, "hostname": "web", "ipv4Address": "198.51.100.101"})
	volume := s.Create(t, fmt.Sprintf("/containers/%d/volumes", container), object{"name": "data", "mountPath": "/data", "mode": "rw"})

	first, err := fresh.CheckIn(ctx, report(site), "")
	if err != nil || first.Snapshot.Site == nil || first.Snapshot.Site.ID != site || len(first.Snapshot.Site.Volumes) != 1 || first.ETag == "" {
		t.Fatalf("first check-in: %+v, %v", first, err)
	}
	if checkin.ETag(first.Data) != first.ETag {
		t.Error("the tag is not that of the bytes")
	}

	done := report(site)
	done.Volumes = map[string]checkin.VolumeReport{fmt.Sprint(volume): {Applied: true}}
	second, err := fresh.CheckIn(ctx, done, first.ETag)
	if err != nil || !second.NotModified {
		t.Fatalf("after the volume's result: %+v, %v", second, err)
	}
	shown := servertest.Data[object](t, s.Call(t, "GET", fmt.Sprintf("/volumes/%d", volume), nil))
	if shown["status"] != "ready" {
		t.Errorf("volume %v", shown)
	}
	snapshot := s.Call(t, "GET", fmt.Sprintf("/sites/%d/snapshot", site), nil)
	if snapshot.Header.Get("Etag") != first.ETag || !strings.Contains(string(snapshot.Body), string(first.Data)) {
		t.Errorf("the API shows another snapshot: %s", snapshot.Body)
	}
	for tags, status := range map[string]int{
		first.ETag: 304, "W/" + first.ETag: 304, `"zzz", W/` + first.ETag: 304, "*": 304, "": 200, strings.Trim(first.ETag, `"`): 200,
	} {
		got := s.Do(t, "GET", fmt.Sprintf("/api/v1/sites/%d/snapshot", site), nil, http.Header{"X-Api-Key": {s.AdminKey}, "If-None-Match": {tags}})
		if got.Status != status {
			t.Errorf("If-None-Match %s: %d, want %d", tags, got.Status, status)
		}
	}

	agents := servertest.Data[[]object](t, s.Call(t, "GET", "/agents?hostname=agent", nil))
	if len(agents) != 1 || agents[0]["status"] != "online" || agents[0]["peerAddress"] != "127.0.0.1" || agents[0]["ipv4Address"] != "198.51.100.5" {
		t.Fatalf("agents %v", agents)
	}
	id := int64(agents[0]["id"].(float64))
	if got := servertest.Data[object](t, s.Call(t, "GET", fmt.Sprintf("/agents/%d", id), nil)); got["hostname"] != "agent" {
		t.Errorf("agent %v", got)
	}

	key := s.Key(t, auth.NewKey{Name: "agent", Role: auth.RoleAgent, SiteID: site})
	if _, err := fresh.CheckIn(ctx, report(site), first.ETag); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("without a key, after the site has one: %v", err)
	}
	if answer, err := agentClient(s, key).CheckIn(ctx, report(site), first.ETag); err != nil || !answer.NotModified {
		t.Errorf("with the key: %+v, %v", answer, err)
	}
	if _, err := agentClient(s, key).CheckIn(ctx, report(site+1), ""); err == nil || !strings.Contains(err.Error(), "403") {
		t.Errorf("with the key, for another site: %v", err)
	}
	if got := s.Call(t, "DELETE", fmt.Sprintf("/agents/%d", id), nil); got.Status != 204 {
		t.Errorf("forget the agent: %d", got.Status)
	}
}

func TestCheckInNeverGetsACookie(t *testing.T) {
	s := start(t, nil)
	s.Create(t, "/sites", object{"name": "lab"})
	answer := s.Do(t, "POST", "/api/v1/agents", report(1), http.Header{"X-Api-Key": {s.AdminKey}})
	if answer.Status != 200 || answer.Header.Get("Set-Cookie") != "" {
		t.Errorf("%d, Set-Cookie %q", answer.Status, answer.Header.Get("Set-Cookie"))
	}
	cookie := signedIn(t, s, nil)
	s.Key(t, auth.NewKey{Name: "k", Role: auth.RoleAgent, SiteID: 1})
	if answer := s.Do(t, "POST", "/api/v1/agents", report(1), withCookie(cookie)); answer.Status != 401 {
		t.Errorf("check-in with a session: %d", answer.Status)
	}
}

func TestLoopbackThroughAProxyOnThisHost(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	s.Create(t, "/sites", object{"name": "lab"})
	if got := s.Do(t, "POST", "/api/v1/agents", report(1), nil); got.Status != 200 {
		t.Errorf("own agent: %d", got.Status)
	}
	for _, header := range []string{"X-Forwarded-For", "X-Forwarded-Host", "X-Real-IP", "Forwarded", "Via"} {
		if got := s.Do(t, "POST", "/api/v1/agents", report(1), http.Header{http.CanonicalHeaderKey(header): {"127.0.0.1"}}); got.Status != 401 {
			t.Errorf("with %s: %d", header, got.Status)
		}
	}
	off := servertest.Start(t, servertest.Options{Configure: func(c *config.Config) { c.LoopbackSite = 0 }})
	if got := off.Do(t, "POST", "/api/v1/agents", report(1), nil); got.Status != 401 {
		t.Errorf("switched off: %d", got.Status)
	}
}

func TestStopIsQuickAndLosesNothing(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	s.Create(t, "/sites", object{"name": "lab"})
	client := agentClient(s, s.AdminKey)
	request := report(1)
	if _, err := client.CheckIn(t.Context(), request, ""); err != nil {
		t.Fatal(err)
	}
	before := time.Now()
	request.CurrentTime = before.Unix()
	if _, err := client.CheckIn(t.Context(), request, ""); err != nil { // nothing new: only a heartbeat
		t.Fatal(err)
	}
	idle, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://")) // says nothing for ever
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()

	began := time.Now()
	s.Stop(t)
	if took := time.Since(began); took > 900*time.Millisecond {
		t.Errorf("stopping took %s", took)
	}
	if _, err := bufio.NewReader(idle).ReadByte(); err == nil {
		t.Error("a connection outlived the server")
	}
	after, err := store.Open(t.Context(), s.Database, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer after.Close()
	agents, _, err := after.ListAgents(t.Context(), store.AgentFilter{}, store.ListOptions{})
	if err != nil || len(agents) != 1 || agents[0].LastSeenAt.Before(before.Add(-10*time.Millisecond)) {
		t.Errorf("the last heartbeat is lost: %+v, %v", agents, err)
	}
	keys, _, err := after.ListAPIKeys(t.Context(), store.APIKeyFilter{}, store.ListOptions{})
	if err != nil || keys[0].LastUsedAt == nil {
		t.Errorf("the use of a key is lost: %+v, %v", keys, err)
	}
}

func TestPortInUseStopsTheStart(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	taken := config.Config{StateDirectory: t.TempDir(), Listen: strings.TrimPrefix(s.URL, "http://")}
	taken.Database = taken.StateDirectory + "/manager.db"
	if _, err := startServer(t, taken); err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("%v", err)
	}
}

func TestOpenListenerIsWarnedOf(t *testing.T) {
	s := servertest.Start(t, servertest.Options{Configure: func(c *config.Config) { c.Listen = "0.0.0.0:0" }})
	if !strings.Contains(s.Log.String(), "plain HTTP") {
		t.Error("no word about TLS")
	}
	quiet := servertest.Start(t, servertest.Options{})
	if strings.Contains(quiet.Log.String(), "plain HTTP") {
		t.Error("a warning on loopback")
	}
}

func TestLimitsOfARequest(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	answer := s.Do(t, "GET", "/api/v1/sites", nil, http.Header{"X-Api-Key": {strings.Repeat("k", 100<<10)}})
	if answer.Status != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("100 KiB of header: %d", answer.Status)
	}
	form := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
	if answer := s.Do(t, "POST", "/sign-in", "name="+strings.Repeat("a", 1<<20), form); answer.Status != http.StatusRequestEntityTooLarge {
		t.Errorf("1 MiB of form: %d", answer.Status)
	}
}

func TestHeadIsAnsweredAsGet(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	site := s.Create(t, "/sites", object{"name": "lab"})
	key := http.Header{"X-Api-Key": {s.AdminKey}}
	for _, path := range []string{"/api/v1/health", "/setup", fmt.Sprintf("/api/v1/sites/%d", site), fmt.Sprintf("/api/v1/sites/%d/snapshot", site)} {
		got, head := s.Do(t, "GET", path, nil, key), s.Do(t, "HEAD", path, nil, key)
		if head.Status != 200 || len(head.Body) > 0 || head.Header.Get("Content-Type") != got.Header.Get("Content-Type") || head.Header.Get("ETag") != got.Header.Get("ETag") {
			t.Errorf("HEAD %s: %d %v", path, head.Status, head.Header)
		}
	}
	for path, status := range map[string]int{"/api/v1/sites": 401, "/api/v1/nope": 404, "/sign-out": 405} {
		if head := s.Do(t, "HEAD", path, nil, nil); head.Status != status {
			t.Errorf("HEAD %s: %d, want %d", path, head.Status, status)
		}
	}
}
