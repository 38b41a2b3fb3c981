package dashboard_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/auth"
	"opensource.internal/manager/internal/config"
	"opensource.internal/manager/servertest"
)

// heldBackSite is a site of which six of eight services are removed, which its
// agent holds back.
type heldBackSite struct {
	*servertest.Server
	site, node int64
	agent      int64
	removals   string // the page about it
	etag       string // of what is held back
}

func newHeldBackSite(t *testing.T, configure func(*config.Config)) *heldBackSite {
	t.Helper()
	h := &heldBackSite{Server: servertest.Start(t, servertest.Options{Configure: configure})}
	h.site = h.Create(t, "/sites", object{
		"name": "lab", "internalDomain": "lab.internal", "dhcpRange": "198.51.100.100,198.51.100.200",
		"subnetMask": "255.255.255.0", "gateway": "198.51.100.1", "dnsForwarders": "9.9.9.9",
	})
	h.node = h.Create(t, fmt.Sprintf("/sites/%d/nodes", h.site), object{"name": "pve1"})
	domain := h.Create(t, "/external-domains", object{"name": "bücher.example"})
	var containers []int64
	for i := range 8 {
		containers = append(containers, h.Create(t, fmt.Sprintf("/sites/%d/containers", h.site), object{
			"nodeId": h.node, "hostname": fmt.Sprintf("c%d", i), "ipv4Address": fmt.Sprintf("198.51.100.%d", 101+i), "macAddress": fmt.Sprintf("02:00:00:00:00:%02d", i),
		}))
		h.Create(t, fmt.Sprintf("/containers/%d/services", containers[i]), object{"type": "http", "internalPort": 80, "externalHostname": fmt.Sprintf("app%d", i), "externalDomainId": domain})
	}
	before := h.tag(t)
	for _, id := range containers[:6] {
		if answer := h.Call(t, "DELETE", fmt.Sprintf("/containers/%d?cascade=true", id), nil); answer.Status != 204 {
			t.Fatal(answer.Status)
		}
	}
	h.etag = h.tag(t)
	h.checkIn(t, before, &checkin.Guard{Removed: 6, Total: 8, Kind: checkin.GuardServices, ETag: h.etag})
	agents := servertest.Data[[]struct{ ID int64 }](t, h.Call(t, "GET", "/agents", nil))
	h.agent = agents[0].ID
	h.removals = fmt.Sprintf("/agents/%d/removals", h.agent)
	return h
}

func (h *heldBackSite) tag(t *testing.T) string {
	t.Helper()
	return h.Call(t, "GET", fmt.Sprintf("/sites/%d/snapshot", h.site), nil).Header.Get("ETag")
}

func (h *heldBackSite) checkIn(t *testing.T, running string, guard *checkin.Guard) {
	t.Helper()
	report := checkin.ServiceReport{State: "active", LastApply: checkin.ApplySuccess, Outcome: checkin.OutcomeUnchanged, RunningETag: running}
	checkIn(t, h.Server, checkin.Request{
		SiteID: h.site, Hostname: "gateway", CurrentTime: time.Now().Unix(), Guard: guard,
		Services: map[string]checkin.ServiceReport{"nginx": report, "dnsmasq": report},
	})
}

// post sends the form of a page.
func (h *heldBackSite) post(t *testing.T, etag, cookie string, header http.Header) servertest.Answer {
	t.Helper()
	with := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
	if cookie != "" {
		with.Set("Cookie", cookie)
	}
	for name, values := range header {
		with[name] = values
	}
	return h.Do(t, "POST", h.removals, url.Values{"etag": {etag}}.Encode(), with)
}

func (h *heldBackSite) confirmed(t *testing.T) bool {
	t.Helper()
	answer := h.Call(t, "GET", fmt.Sprintf("/sites/%d/snapshot", h.site), nil)
	return servertest.Data[checkin.Snapshot](t, answer).RemovalsConfirmed
}

func signInViewer(t *testing.T, s *servertest.Server) string {
	t.Helper()
	if _, err := auth.CreateUser(t.Context(), s.Store, "eve", auth.RoleViewer, password); err != nil {
		t.Fatal(err)
	}
	return sessionOf(t, s.Do(t, "POST", "/sign-in", url.Values{"name": {"eve"}, "password": {password}}.Encode(),
		http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}))
}

// wantOn compares what is on a page with what has to be, and must not be.
func wantOn(t *testing.T, page string, wanted, unwanted []string) {
	t.Helper()
	for _, want := range wanted {
		if !strings.Contains(page, want) {
			t.Errorf("%q is not on the page", want)
		}
	}
	for _, never := range unwanted {
		if strings.Contains(page, never) {
			t.Errorf("%q is on the page", never)
		}
	}
}

func TestAnAdministratorConfirmsARemoval(t *testing.T) {
	h := newHeldBackSite(t, nil)
	cookie := signIn(t, h.Server)
	link := `href="` + h.removals + `"`
	for _, ask := range []func(*testing.T, *servertest.Server, string, string) servertest.Answer{get, refresh} {
		wantOn(t, string(ask(t, h.Server, "/agents", cookie).Body), []string{"held back", "removes 6 of 8 services", link}, nil)
	}
	asking := get(t, h.Server, h.removals, cookie)
	if asking.Status != 200 {
		t.Fatal(asking.Status)
	}
	wantOn(t, string(asking.Body), []string{
		"gateway", "lab", "removes 6 of 8 services", "app0.bücher.example (app0.xn--bcher-kva.example)", "app5.bücher.example", "<li>c0</li>", "<li>c5</li>",
		`action="` + h.removals + `"`, strings.Trim(h.etag, `"`),
	}, []string{"app6", "app7", "<li>c6</li>", "not known"})
	if h.confirmed(t) {
		t.Fatal("looking confirms")
	}

	if done := h.post(t, h.etag, cookie, nil); done.Status != 303 || done.Header.Get("Location") != strings.TrimSuffix(h.removals, "/removals") {
		t.Fatalf("%d %s", done.Status, done.Body)
	}
	if !h.confirmed(t) {
		t.Error("it is not confirmed")
	}
	wantOn(t, string(get(t, h.Server, "/agents", cookie).Body), []string{"Confirmed by ada", "takes it over with its next pass"}, []string{link})
	if !strings.Contains(h.Log.String(), `msg="removals confirmed"`) {
		t.Error("who confirmed is not in the log")
	}
	if again := h.post(t, h.etag, cookie, nil); again.Status != 303 {
		t.Errorf("a second click: %d", again.Status)
	}
	if look := get(t, h.Server, h.removals, cookie); look.Status != 303 {
		t.Errorf("there is nothing to confirm any more: %d", look.Status)
	}

	// The agent has taken it over.
	h.checkIn(t, h.tag(t), nil)
	wantOn(t, string(get(t, h.Server, "/agents", cookie).Body), []string{"gateway"}, []string{"held back", "Confirmed by"})
}

func TestWhoMayNotConfirm(t *testing.T) {
	h := newHeldBackSite(t, nil)
	viewer, admin := signInViewer(t, h.Server), signIn(t, h.Server)
	page := string(get(t, h.Server, "/agents", viewer).Body)
	wantOn(t, page, []string{"removes 6 of 8 services", "until an administrator confirms"}, []string{h.removals})
	for name, answer := range map[string]servertest.Answer{
		"a viewer looks":    get(t, h.Server, h.removals, viewer),
		"a viewer confirms": h.post(t, h.etag, viewer, nil),
		"another origin":    h.post(t, h.etag, admin, http.Header{"Sec-Fetch-Site": {"cross-site"}}),
	} {
		if answer.Status != 403 {
			t.Errorf("%s: %d", name, answer.Status)
		}
	}
	signIn := "/sign-in?next=" + url.QueryEscape(h.removals)
	for _, answer := range []servertest.Answer{get(t, h.Server, h.removals, ""), h.post(t, h.etag, "", nil)} {
		if answer.Status != 303 || answer.Header.Get("Location") != signIn {
			t.Errorf("a stranger gets %d %s, want to go to %s", answer.Status, answer.Header.Get("Location"), signIn)
		}
	}
	for etag, want := range map[string]int{"": 400, "*": 400, "abc": 400, `"a" "b"`: 400, strings.Repeat("x", 100_000): 413} {
		if answer := h.post(t, etag, admin, nil); answer.Status != want {
			t.Errorf("tag %.20q: %d", etag, answer.Status)
		}
	}
	for _, path := range []string{"/agents/999/removals", "/agents/x/removals", "/agents/99999999999999999999/removals", "/agents/-1/removals"} {
		if answer := get(t, h.Server, path, admin); answer.Status != 404 {
			t.Errorf("%s: %d", path, answer.Status)
		}
	}
	if h.confirmed(t) {
		t.Error("somebody of these has confirmed")
	}
}

func TestOnlyWhatWasLookedAtIsConfirmed(t *testing.T) {
	h := newHeldBackSite(t, nil)
	cookie := signIn(t, h.Server)
	h.Create(t, fmt.Sprintf("/sites/%d/containers", h.site), object{"nodeId": h.node, "hostname": "late", "ipv4Address": "198.51.100.99"})
	if late := h.post(t, h.etag, cookie, nil); late.Status != 409 || !strings.Contains(string(late.Body), "another configuration by now") {
		t.Errorf("%d %s", late.Status, late.Body)
	}
	if h.confirmed(t) {
		t.Error("what nobody looked at is confirmed")
	}
	wantOn(t, string(get(t, h.Server, "/agents", cookie).Body), []string{"removes 6 of 8 services", "another configuration by now, which the agent judges"}, []string{h.removals})
	if look := get(t, h.Server, h.removals, cookie); look.Status != 303 {
		t.Errorf("there is nothing to look at: %d", look.Status)
	}
}

func TestARemovalOfWhatWasNeverPublishedHere(t *testing.T) {
	h := newHeldBackSite(t, nil)
	cookie := signIn(t, h.Server)
	h.checkIn(t, `"of-another-manager"`, &checkin.Guard{Removed: 6, Total: 8}) // and an agent that names no tag
	page := get(t, h.Server, h.removals, cookie)
	wantOn(t, string(page.Body), []string{"removes 6 of 8 records", "never published what runs there"}, nil)
	if done := h.post(t, h.etag, cookie, nil); done.Status != 303 || !h.confirmed(t) {
		t.Errorf("%d, confirmed is %v", done.Status, h.confirmed(t))
	}
}

// TestNothingIsRemovedOfWhatNeverRan: a service that is not managed is no riddle.
func TestNothingIsRemovedOfWhatNeverRan(t *testing.T) {
	h := newHeldBackSite(t, nil)
	cookie := signIn(t, h.Server)
	for kind, want := range map[checkin.GuardKind]int{checkin.GuardServices: 1, checkin.GuardReservations: 2} {
		checkIn(t, h.Server, checkin.Request{
			SiteID: h.site, Hostname: "gateway", CurrentTime: time.Now().Unix(), Guard: &checkin.Guard{Removed: 6, Total: 8, Kind: kind, ETag: h.etag},
			Services: map[string]checkin.ServiceReport{
				"nginx":   {State: "active", LastApply: checkin.ApplySuccess, Outcome: checkin.OutcomeUnchanged, RunningETag: `"of-another-manager"`},
				"dnsmasq": {State: "inactive", LastApply: checkin.ApplyUnknown, Outcome: checkin.OutcomeSkipped},
			},
		})
		page := string(get(t, h.Server, h.removals, cookie).Body)
		if got := strings.Count(page, "never published what runs there"); got != want {
			t.Errorf("%s are removed: of %d kinds it is said that they are not known, want %d", kind, got, want)
		}
	}
}

func TestRemovalsUnderAPrefix(t *testing.T) {
	h := newHeldBackSite(t, func(c *config.Config) {
		c.PublicURL = &url.URL{Scheme: "http", Host: "example.com", Path: "/manager"}
	})
	cookie := signIn(t, h.Server)
	wantOn(t, string(get(t, h.Server, "/agents", cookie).Body), []string{`href="/manager` + h.removals + `"`}, nil)
	wantOn(t, string(get(t, h.Server, h.removals, cookie).Body), []string{`action="/manager` + h.removals + `"`, `href="/manager/agents"`}, nil)
	if done := h.post(t, h.etag, cookie, nil); done.Header.Get("Location") != "/manager"+strings.TrimSuffix(h.removals, "/removals") {
		t.Error(done.Header.Get("Location"))
	}
}
