package dashboard_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/auth"
	"opensource.internal/manager/internal/store"
	"opensource.internal/manager/servertest"
)

const password = "correct horse battery"

type object = map[string]any

// signIn makes a user and returns the cookie of a session.
func signIn(t testing.TB, s *servertest.Server) string {
	t.Helper()
	var taken *store.ConflictError
	if _, err := auth.CreateUser(t.Context(), s.Store, "ada", auth.RoleAdmin, password); err != nil && !errors.As(err, &taken) {
		t.Fatal(err)
	}
	return sessionOf(t, s.Do(t, "POST", "/sign-in", url.Values{"name": {"ada"}, "password": {password}}.Encode(),
		http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}))
}

// sessionOf is the session cookie that an answer sets.
func sessionOf(t testing.TB, answer servertest.Answer) string {
	t.Helper()
	for _, set := range answer.Header.Values("Set-Cookie") {
		if cookie, _, _ := strings.Cut(set, ";"); strings.Contains(cookie, "_session=") {
			return cookie
		}
	}
	t.Fatalf("sign in: %d %s", answer.Status, answer.Body)
	return ""
}

func get(t *testing.T, s *servertest.Server, path, cookie string) servertest.Answer {
	t.Helper()
	header := http.Header{"Accept": {"text/html,application/xhtml+xml,*/*;q=0.8"}} // as browsers do
	if cookie != "" {
		header.Set("Cookie", cookie)
	}
	return s.Do(t, "GET", path, nil, header)
}

// refresh asks for a page's content as an open page does.
func refresh(t *testing.T, s *servertest.Server, path, cookie string) servertest.Answer {
	t.Helper()
	return s.Do(t, "GET", path, nil, http.Header{"Cookie": {cookie}, "X-Refresh": {"1"}})
}

func checkIn(t *testing.T, s *servertest.Server, request checkin.Request) {
	t.Helper()
	base, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	client := checkin.Client{URL: base, Key: s.AdminKey}
	if _, err := client.CheckIn(t.Context(), request, ""); err != nil {
		t.Fatal(err)
	}
}

func checkInHealthy(t *testing.T, s *servertest.Server, site int64, host string) {
	t.Helper()
	healthy := checkin.ServiceReport{State: "active", LastApply: checkin.ApplySuccess, Outcome: checkin.OutcomeApplied}
	checkIn(t, s, checkin.Request{
		SiteID: site, Hostname: host, CurrentTime: time.Now().Unix(),
		Services: map[string]checkin.ServiceReport{"nginx": healthy, "dnsmasq": healthy},
	})
}

// populated is a manager with agents in every state, some of them hostile.
func populated(t *testing.T) (s *servertest.Server, cookie string) {
	t.Helper()
	s = servertest.Start(t, servertest.Options{})
	lab := s.Create(t, "/sites", object{"name": "lab"})
	long := s.Create(t, "/sites", object{"name": strings.Repeat("a-very-long-name-", 3) + "site"})
	node := s.Create(t, fmt.Sprintf("/sites/%d/nodes", lab), object{"name": "pve1"})
	container := s.Create(t, fmt.Sprintf("/sites/%d/containers", lab), object{"nodeId": node, "hostname": "web", "ipv4Address": "198.51.100.101"})
	var volumes []int64
	for _, name := range []string{"data", "logs", "cache"} {
		volumes = append(volumes, s.Create(t, fmt.Sprintf("/containers/%d/volumes", container), object{"name": name, "mountPath": "/" + name, "mode": "rw"}))
	}
	now := time.Now()
	expires := now.Add(9 * 24 * time.Hour)
	healthy := checkin.ServiceReport{State: "active", LastApply: checkin.ApplySuccess, Outcome: checkin.OutcomeApplied, AppliedAt: &now}

	checkIn(t, s, checkin.Request{
		SiteID: lab, Hostname: "gateway", CurrentTime: now.Unix(), IPv4Address: "198.51.100.5",
		Services: map[string]checkin.ServiceReport{"nginx": healthy, "dnsmasq": {
			State: "active", LastApply: checkin.ApplyFailure, Outcome: checkin.OutcomeRolledBack,
			Message: "dnsmasq: bad option at line 12 of /etc/dnsmasq.conf\n<script>document.title=\"owned\"</script>\n\t<img src=x onerror=\"document.title='owned'\">",
			Quarantined: []checkin.QuarantinedItem{
				{Kind: checkin.KindReservation, ID: 7, Name: "web", Reason: "address 198.51.100.300 is not an IPv4 address", KeptPrevious: true},
				{Kind: checkin.KindHTTP, Name: "<b>bold</b>", Reason: "javascript:alert(1)"},
			},
			Drift: []checkin.Drift{{Path: "/etc/dnsmasq.conf", Diff: "-no-resolv\n+resolv-file=/tmp/x"}},
		}},
		Volumes: map[string]checkin.VolumeReport{
			fmt.Sprint(volumes[0]): {Applied: true, Message: "owner 999:999 and mode 0700 were left as they are"},
			fmt.Sprint(volumes[1]): {Applied: false, Message: "mkdir /mnt/volumes/site-1: permission denied"},
		},
		Agent: &checkin.AgentInfo{Version: "2026.12.0", Templates: []string{"<img src=x onerror=\"document.title='owned'\">"}},
		Host:  &checkin.HostInfo{OS: "<script>document.title=\"owned\"</script>"},
		Guard: &checkin.Guard{Removed: 5, Total: 6, Kind: "<i>things</i>", ETag: "<b>tag</b>"},
		Probes: map[string]checkin.Probe{
			"<img src=x onerror=\"document.title='owned'\">": {Hop: "<b>hop</b>", Message: "<script>document.title=\"owned\"</script>"},
			"xn--<b>.example": {Hop: checkin.HopDNS},
		},
		Running: &checkin.Running{ETag: `"0123456789abcdef0123456789abcdef"`, Since: now},
		Certificates: map[string]checkin.Certificate{
			"example.com": {State: checkin.CertificateExpiring, NotAfter: &expires},
			"example.org": {State: checkin.CertificateMissing, Fallback: true},
			"example.net": {State: checkin.CertificateOK, NotAfter: &expires},
		},
	})
	checkIn(t, s, checkin.Request{
		SiteID: long, Hostname: strings.Repeat("long-host-name.", 16) + "example", CurrentTime: now.Add(-3 * time.Hour).Unix(),
		Services: map[string]checkin.ServiceReport{"nginx": healthy, "dnsmasq": {
			State: "inactive", LastApply: checkin.ApplyUnknown, Outcome: checkin.OutcomeSkipped, Message: "not managed: the site has no dhcpRange, gateway",
			Hold: &checkin.Hold{Until: now.Add(2 * time.Hour), Reason: "maintenance <script>document.title=\"owned\"</script>", By: "root"},
		}},
		Guard: &checkin.Guard{Removed: 40, Total: 60},
	})
	checkIn(t, s, checkin.Request{
		SiteID: long, Hostname: "healthy", CurrentTime: now.Unix(), IPv4Address: "198.51.100.7",
		Agent:    &checkin.AgentInfo{Version: "2026.12.0"},
		Services: map[string]checkin.ServiceReport{"nginx": healthy, "dnsmasq": healthy},
	})
	checkIn(t, s, checkin.Request{SiteID: long, Hostname: "old-agent", CurrentTime: now.Unix()})
	return s, signIn(t, s)
}

func TestAgentsPageTellsEverything(t *testing.T) {
	s, cookie := populated(t)
	page := get(t, s, "/agents", cookie)
	text := string(page.Body)
	for _, want := range []string{
		`href="/agents/1"`, "gateway", "lab", `href="/sites/1"`, "198.51.100.5", "2026.12.0", "4 online", "0 late", "0 offline", "1 failing", "1 behind",
		"nginx", "dnsmasq", "rolled back", "active", "inactive", "not managed", "1 failed", "1 pending", "1 ready", "runs another, not 1",
		"2 certificates", "Certificate of example.com: expiring, valid for 9 days more.", "Certificate of example.org: missing; the self-signed one is served instead.",
		"Its clock is 3 hours behind", "by root: maintenance &lt;script&gt;", "removes 40 of 60 records", "edited on the host", "dnsmasq on hold",
		"not managed: the site has no dhcpRange, gateway", "removes 5 of 6 &lt;i&gt;things&lt;/i&gt;", "2 of 2 not reached", "none reported", "not reported",
	} {
		if !strings.Contains(text, want) && !strings.Contains(text, strings.ReplaceAll(want, "&#43;", "+")) {
			t.Errorf("%q is not on the page", want)
		}
	}
	for _, never := range []string{"<script>document", "<img", "<b>", "<i>", "example.net"} {
		if strings.Contains(text, never) {
			t.Errorf("%q is on the page", never)
		}
	}
	fragment := string(refresh(t, s, "/agents", cookie).Body)
	if strings.Contains(fragment, "<html") || !strings.Contains(fragment, "gateway") {
		t.Error("the fragment is not a part of the page")
	}
}

func TestNothingInlineAndAStrictPolicy(t *testing.T) {
	s, cookie := populated(t)
	states, statesCookie := everyState(t)
	held := newHeldBackSite(t, nil)
	hostile := newAgentSite(t)
	agent := hostile.hostile(t)
	inline := regexp.MustCompile(`(?i)<script(?: defer)?>|<script src="[^"]*">|<style|\son[a-z]+=["']|\sstyle=|javascript:[^a]|https?://`)
	for _, page := range []struct {
		of           *servertest.Server
		path, cookie string
	}{
		{s, "/agents", cookie},
		{s, "/sign-in", ""},
		{s, "/nope", cookie},
		{s, "/settings", cookie},
		{s, "/api-keys", cookie},
		{s, "/api-keys/new", cookie},
		{s, "/api-keys/1/revoke", cookie},
		{s, "/users", cookie},
		{s, "/users/new", cookie},
		{s, "/users/1/delete", cookie},
		{s, "/account", cookie},
		{s, "/notifications", cookie},
		{s, "/notifications/targets/new", cookie},
		{s, "/notifications/silences/new", cookie},
		{s, "/audit", cookie},
		{s, "/events", cookie},
		{s, "/sites", cookie},
		{s, "/sites/1", cookie},
		{s, "/sites/1/edit", cookie},
		{s, "/sites/1/delete", cookie},
		{s, "/sites/1/revisions", cookie},
		{s, "/sites/1/revisions/1", cookie},
		{s, "/sites/1/diff?from=0", cookie},
		{s, "/sites/1/pending", cookie},
		{s, "/sites/1/pin", cookie},
		{states, "/agents", statesCookie},
		{held.Server, held.removals, signIn(t, held.Server)},
		{hostile.Server, agent, hostile.cookie},
		{hostile.Server, agent + "/events", hostile.cookie},
		{hostile.Server, agent + "/delete", hostile.cookie},
	} {
		path, answer := page.path, get(t, page.of, page.path, page.cookie)
		policy := answer.Header.Get("Content-Security-Policy")
		if !strings.Contains(policy, "default-src 'self'") || strings.Contains(policy, "unsafe") {
			t.Errorf("%s: policy %q", path, policy)
		}
		if got := answer.Header.Get("Content-Type"); got != "text/html; charset=utf-8" {
			t.Errorf("%s: content type %q", path, got)
		}
		if got := answer.Header.Get("Cache-Control"); got != "no-store" {
			t.Errorf("%s: Cache-Control %q", path, got)
		}
		markup := regexp.MustCompile(`(?s)<pre.*?</pre>`).ReplaceAllString(string(answer.Body), "")
		if found := inline.FindString(markup); found != "" {
			t.Errorf("%s: %q", path, found)
		}
	}
}

func TestEveryLinkedFileIsThere(t *testing.T) {
	s, cookie := populated(t)
	page := string(get(t, s, "/agents", cookie).Body)
	links := regexp.MustCompile(`(?:href|src)="(/[^"#]*)`).FindAllStringSubmatch(page, -1)
	if len(links) < 4 {
		t.Fatalf("links %v", links)
	}
	for _, link := range links {
		answer := get(t, s, link[1], cookie)
		if answer.Status != 200 && link[1] != "/" {
			t.Errorf("%s: %d", link[1], answer.Status)
		}
		if strings.Contains(link[1], "/assets/") && !strings.Contains(answer.Header.Get("Cache-Control"), "immutable") {
			t.Errorf("%s: Cache-Control %q", link[1], answer.Header.Get("Cache-Control"))
		}
	}
	for _, path := range []string{"/assets/", "/assets/nope.css", "/assets/../dashboard.go", "/assets/%2e%2e/doc.go"} {
		if got := get(t, s, path, ""); got.Status != 404 {
			t.Errorf("%s: %d", path, got.Status)
		}
	}
	if got := get(t, s, "/assets/style.css", ""); got.Status != 200 || got.Header.Get("Cache-Control") != "no-cache" {
		t.Errorf("without a version: %d %q", got.Status, got.Header.Get("Cache-Control"))
	}
}

func TestEmptyAndFirstPages(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	if first := get(t, s, "/sign-in", ""); first.Status != 303 || first.Header.Get("Location") != "/setup" {
		t.Errorf("a fresh manager does not lead to the first account: %d %s", first.Status, first.Body)
	}
	shows(t, get(t, s, "/setup", ""), 200, "Nobody has an account here yet", "opensource-manager setup-code")
	cookie := signIn(t, s)
	shows(t, get(t, s, "/sign-in", ""), 200, `name="password"`)
	shows(t, get(t, s, "/agents", cookie), 200, "No agent has checked in yet", `href="/sites/new"`)
	shows(t, get(t, s, "/agents", signInViewer(t, s)), 200, "An administrator has to create the first one")
	site := s.Create(t, "/sites", object{"name": "lab"})
	shows(t, get(t, s, "/agents", cookie), 200, "No agent has checked in yet", fmt.Sprintf(`href="/sites/%d/enroll"`, site))
}

func TestRefusedSignInKeepsTheName(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	answer := s.Do(t, "POST", "/sign-in", url.Values{"name": {`"><script>alert(1)</script>`}, "password": {"secret!"}}.Encode(),
		http.Header{"Content-Type": {"application/x-www-form-urlencoded"}})
	text := string(answer.Body)
	if answer.Status != 401 || !strings.Contains(text, "Name or password is wrong") || !strings.Contains(text, "&#34;&gt;&lt;script&gt;") {
		t.Errorf("%d %s", answer.Status, text)
	}
	if strings.Contains(text, "secret!") || strings.Contains(text, "<script>alert") {
		t.Error("the page repeats what it must not")
	}
}

func TestUnknownPage(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	answer := get(t, s, "/nope", "")
	if answer.Status != 404 || !strings.Contains(string(answer.Body), "There is no such page") {
		t.Errorf("%d %s", answer.Status, answer.Body)
	}
	for _, accept := range []string{"*/*", "application/json"} { // no browser
		answer := s.Do(t, "GET", "/nope", nil, http.Header{"Accept": {accept}})
		if fault := servertest.Error(t, answer); answer.Status != 404 || fault.Code != "not_found" {
			t.Errorf("%s: %d %s", accept, answer.Status, answer.Body)
		}
	}
}

// TestImpatientBrowsersAreNoFault: a stranger who hangs up fills no log.
func TestImpatientBrowsersAreNoFault(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	for range 20 {
		connection, err := net.Dial("tcp", strings.TrimPrefix(s.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.WriteString(connection, "POST /sign-in HTTP/1.1\r\nHost: manager\r\n"+
			"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 100\r\n\r\nname=")
		if err := errors.Join(err, connection.Close()); err != nil {
			t.Fatal(err)
		}
	}
	s.Stop(t) // and wait for what is still being answered
	if log := s.Log.String(); strings.Contains(log, "level=ERROR") {
		t.Error(log)
	}
}
