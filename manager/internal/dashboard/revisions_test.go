package dashboard_test

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/preview"
	"opensource.internal/manager/servertest"
)

// manualSite is a site whose changes wait, with three agents, a container and a
// service.
type manualSite struct {
	*servertest.Server
	id, service, container, domain int64
	path                           string
}

func newManualSite(t *testing.T) *manualSite {
	t.Helper()
	s := servertest.Start(t, servertest.Options{})
	m := &manualSite{Server: s}
	m.id = s.Create(t, "/sites", object{
		"name": "lab", "internalDomain": "lab.internal", "dhcpRange": "192.0.2.100,192.0.2.200", "subnetMask": "255.255.255.0",
		"gateway": "192.0.2.1", "dnsForwarders": "9.9.9.9",
	})
	m.path = fmt.Sprintf("/sites/%d", m.id)
	node := s.Create(t, m.path+"/nodes", object{"name": "pve1"})
	m.container = s.Create(t, m.path+"/containers", object{"nodeId": node, "hostname": "web", "ipv4Address": "192.0.2.101", "macAddress": "02:00:00:00:00:01"})
	m.domain = s.Create(t, "/external-domains", object{"name": "example.com", "defaultSiteId": m.id})
	m.service = m.addService(t, "app", 8080)
	m.call(t, "GET", m.path+"/revisions", nil) // keeps the first one
	m.call(t, "PATCH", m.path, object{"publishing": "manual"})
	return m
}

func (m *manualSite) call(t *testing.T, method, path string, body any) servertest.Answer {
	t.Helper()
	answer := m.Call(t, method, path, body)
	if answer.Status/100 != 2 {
		t.Fatalf("%s %s: %d %s", method, path, answer.Status, answer.Body)
	}
	return answer
}

func (m *manualSite) addService(t *testing.T, name string, port int) int64 {
	t.Helper()
	return m.Create(t, fmt.Sprintf("/containers/%d/services", m.container),
		object{"type": "http", "internalPort": port, "externalHostname": name, "externalDomainId": m.domain})
}

// etag is that of what agents get now.
func (m *manualSite) etag(t *testing.T) string {
	t.Helper()
	return m.call(t, "GET", m.path+"/snapshot", nil).Header.Get("ETag")
}

// tells lets an agent check in that was given a tag, and runs another one.
func (m *manualSite) tells(t *testing.T, host, received, running string, change ...func(*checkin.Request)) {
	t.Helper()
	now := time.Now().UTC()
	report := checkin.ServiceReport{
		State: "active", LastApply: checkin.ApplySuccess, Outcome: checkin.OutcomeApplied, ReceivedETag: received, RunningETag: running, AppliedAt: &now,
	}
	request := checkin.Request{
		SiteID: m.id, Hostname: host, CurrentTime: now.Unix(), Agent: &checkin.AgentInfo{Version: "2026.12.0"},
		Services: map[string]checkin.ServiceReport{"nginx": report, "dnsmasq": report},
	}
	if running != "" {
		request.Running = &checkin.Running{ETag: running, Since: now}
	}
	for _, c := range change {
		c(&request)
	}
	checkIn(t, m.Server, request)
}

// plain is a page as people read it.
func plain(page servertest.Answer) string {
	bare := regexp.MustCompile(`<[^>]*>`).ReplaceAllString(string(page.Body), " ")
	return html.UnescapeString(regexp.MustCompile(`\s+`).ReplaceAllString(bare, " "))
}

func says(t *testing.T, page servertest.Answer, status int, wanted ...string) {
	t.Helper()
	if page.Status != status {
		t.Errorf("status %d, want %d", page.Status, status)
	}
	said := plain(page)
	for _, want := range wanted {
		if !strings.Contains(said, want) {
			t.Errorf("%q is not on\n%s", want, said)
		}
	}
}

func TestPublishingInABrowser(t *testing.T) {
	m := newManualSite(t)
	first := m.etag(t)
	for _, host := range []string{"gw-a", "gw-b", "gw-c"} {
		m.tells(t, host, first, first)
	}
	b := browse(t, m.Server, signIn(t, m.Server))
	b.open(t, m.path)
	b.press(t, "Revisions")
	b.reads(t, "All 3 agents run revision 1.")
	looked(t, b, "revisions")

	m.addService(t, "wiki", 8082)
	m.call(t, "PATCH", fmt.Sprintf("/services/%d", m.service), object{"internalPort": 9090})
	m.call(t, "PATCH", fmt.Sprintf("/containers/%d", m.container), object{"macAddress": "02:00:00:00:00:02"})
	m.Create(t, fmt.Sprintf("/containers/%d/services", m.container), object{"type": "dns", "internalPort": 8082, "dnsName": "_wiki._tcp", "recordType": "SRV"})
	m.Create(t, fmt.Sprintf("/containers/%d/volumes", m.container), object{"name": "data", "mountPath": "/data", "mode": "rw"})
	b.reads(t, "5 changes wait to be published.")
	b.press(t, "Look and publish…")
	for _, want := range []string{
		"wiki.example.com", "app.example.com", "DHCP reservations", "SRV records", "Volumes", "Open connections stay.", "dnsmasq", "3 agents: gw-a, gw-b, gw-c",
		"Port in the container", "8080", "9090", "/etc/nginx/nginx.conf", "proxy_pass http://192.0.2.101:9090;",
	} {
		b.reads(t, want)
	}
	looked(t, b, "pending")
	b.fill(t, "note", "the wiki is new")
	b.press(t, "Publish 5 changes")
	b.reads(t, "Revision 2 is published.")
	b.reads(t, "0 of 3 agents run revision 2.")
	b.until(t, `document.getElementById("live").textContent === "Live"`)

	second := m.etag(t)
	m.tells(t, "gw-a", second, second)
	b.reads(t, "1 of 3 agents run revision 2.")
	m.tells(t, "gw-b", first, first)
	b.reads(t, "It was given it with its check-in")
	m.tells(t, "gw-b", second, first)
	b.reads(t, "It is taking it over.")
	m.tells(t, "gw-c", second, first, func(r *checkin.Request) {
		report := r.Services["nginx"]
		report.LastApply, report.Outcome, report.Message = checkin.ApplyFailure, checkin.OutcomeRejected, "nginx: [emerg] unknown directive"
		r.Services["nginx"] = report
	})
	b.reads(t, "nginx: [emerg] unknown directive")
	looked(t, b, "revisions-arriving")
	m.tells(t, "gw-b", second, first, func(r *checkin.Request) {
		r.Guard = &checkin.Guard{Removed: 6, Total: 8, Kind: checkin.GuardServices, ETag: second}
	})
	b.reads(t, "It removes 6 of 8 services, so an administrator has to confirm that first.")
	b.reads(t, "Look and confirm…")
	m.tells(t, "gw-b", second, second)
	m.tells(t, "gw-c", second, second)
	b.reads(t, "All 3 agents run revision 2.")
	b.reads(t, "the wiki is new")
}

func TestPinningInABrowser(t *testing.T) {
	m := newManualSite(t)
	first := m.etag(t)
	m.tells(t, "gateway", first, first)
	m.call(t, "PATCH", fmt.Sprintf("/services/%d", m.service), object{"internalPort": 9090})
	m.call(t, "POST", m.path+"/publish", nil)
	b := browse(t, m.Server, signIn(t, m.Server))
	b.open(t, m.path+"/revisions/1")
	looked(t, b, "revision")
	b.press(t, "Pin…")
	b.reads(t, "Pin to revision 1?")
	b.press(t, "Pin to revision 1")
	b.forgive() // the browser tells the status of the refused form
	b.until(t, `document.activeElement.classList.contains("faults")`)
	looked(t, b, "pin")
	b.fill(t, "reason", "9090 does not <b>answer</b>")
	b.press(t, "Pin to revision 1")
	b.reads(t, "Pinned: agents get revision 1 with their next check-in.")
	for _, path := range []string{"/agents", "/sites", m.path, m.path + "/revisions"} {
		b.open(t, path)
		b.reads(t, "Pinned to revision 1 by ada")
		b.reads(t, "9090 does not <b>answer</b>")
	}
	looked(t, b, "revisions-pinned")
	b.press(t, "Unpin…")
	b.reads(t, "Agents get revision 2 with their next check-in")
	looked(t, b, "unpin")
	b.press(t, "Unpin")
	b.reads(t, "Unpinned: agents get what is published")
	b.reads(t, "The agent does not run revision 2 yet.")
	b.reads(t, "It has not checked in since")
	b.open(t, "/agents")
	if strings.Contains(eval[string](t, b, "document.body.innerText"), "Pinned") {
		t.Error("the pin stays on the page of agents")
	}
}

// lineWith is the number of the line of nginx.conf, as a revision has it, that
// contains a text.
func (m *manualSite) lineWith(t *testing.T, revision int, text string) int {
	t.Helper()
	answer := m.call(t, "GET", fmt.Sprintf("%s/preview?revision=%d", m.path, revision), nil)
	for _, service := range servertest.Data[preview.Preview](t, answer).Services {
		for _, file := range service.Files {
			if before, _, found := strings.Cut(file.Content, text); found && file.Path == "/etc/nginx/nginx.conf" {
				return strings.Count(before, "\n") + 1
			}
		}
	}
	t.Fatalf("%q is not in nginx.conf of revision %d", text, revision)
	return 0
}

func TestDifferencesSideBySide(t *testing.T) {
	m := newManualSite(t)
	m.call(t, "PATCH", fmt.Sprintf("/services/%d", m.service), object{"internalPort": 9090})
	m.call(t, "POST", m.path+"/publish", nil)
	cookie := signIn(t, m.Server)
	page := get(t, m.Server, m.path+"/diff?from=1&to=2", cookie)
	before, after := m.lineWith(t, 1, "proxy_pass http://192.0.2.101:8080;"), m.lineWith(t, 2, "proxy_pass http://192.0.2.101:9090;")
	says(t, page, 200, "HTTP service app.example.com changed", "Port in the container 8080 9090",
		fmt.Sprintf("removed: %d proxy_pass http://192.0.2.101:8080; added: %d proxy_pass http://192.0.2.101:9090;", before, after))
	if n := strings.Count(string(page.Body), `class="gone"`); n != 1 {
		t.Errorf("%d lines are said to be removed", n)
	}
	says(t, get(t, m.Server, m.path+"/diff?from=2&to=1", cookie), 200, "Port in the container 9090 8080",
		fmt.Sprintf("removed: %d proxy_pass http://192.0.2.101:9090;", after))
	says(t, get(t, m.Server, m.path+"/diff?from=before&to=1", cookie), 200, "HTTP service app.example.com added")
	says(t, get(t, m.Server, m.path+"/diff?from=1", cookie), 200, "Inventory now", "9090")
	says(t, get(t, m.Server, m.path+"/diff?from=2", cookie), 200, "Nothing differs.")
	says(t, get(t, m.Server, m.path+"/diff?from=7&to=2", cookie), 422, "There is no revision 7 of this site")
	says(t, get(t, m.Server, m.path+"/diff?from=%3Cb%3E&to=2", cookie), 422, `"<b>" is not the number of a revision.`)
	says(t, get(t, m.Server, m.path+"/revisions/2", cookie), 200, "1 HTTP service changed", "app.example.com", "02:00:00:00:00:01", "192.0.2.101", "lab.internal")
	for _, path := range []string{"/revisions/9", "/revisions/x", "/revisions/0", "/pin?revision=9", "/pin?revision=x", "/diff?from=before&to=x"} {
		says(t, get(t, m.Server, m.path+path, cookie), 404, "There is no such page")
	}
	for _, path := range []string{"/sites/9/revisions", "/sites/9/pending", "/sites/9/diff", "/sites/9/unpin", "/sites/9/pin"} {
		says(t, get(t, m.Server, path, cookie), 404)
	}
}

// TestTwoPublishAtOnce: who has looked at something else publishes nothing.
func TestTwoPublishAtOnce(t *testing.T) {
	m := newManualSite(t)
	cookie := signIn(t, m.Server)
	m.addService(t, "wiki", 8082)
	mine := form(t, get(t, m.Server, m.path+"/pending", cookie))
	m.addService(t, "blog", 8083)
	mine.Set("note", "my note")
	late := submit(t, m.Server, m.path+"/pending", cookie, mine)
	says(t, late, 409, "Nothing was published", "Somebody has changed the site since you looked", "blog.example.com")
	if again := form(t, late); again.Get("note") != "my note" || again.Get("etag") == mine.Get("etag") {
		t.Errorf("%v after %v", again, mine)
	}
	says(t, submit(t, m.Server, m.path+"/pending", cookie, url.Values{"note": {"blind"}}), 409, "Nothing was published")
	ours := form(t, late)
	for range 2 {
		if done := submit(t, m.Server, m.path+"/pending", cookie, ours); done.Status != http.StatusSeeOther {
			t.Fatalf("%d %s", done.Status, done.Body)
		}
	}
	says(t, get(t, m.Server, m.path+"/revisions", cookie), 200, "1 to 2 of 2")
	says(t, get(t, m.Server, m.path+"/pending", cookie), 200, "Nothing waits: agents get what the inventory has.")

	m.addService(t, "shop", 8084)
	fresh := form(t, get(t, m.Server, m.path+"/pending", cookie))
	fresh.Set("note", strings.Repeat("x", 501))
	says(t, submit(t, m.Server, m.path+"/pending", cookie, fresh), 422, "has 1 to 500 characters")

	pin := form(t, get(t, m.Server, m.path+"/pin?revision=1", cookie))
	pin.Set("reason", "mine")
	m.call(t, "POST", m.path+"/pin", object{"revision": 2, "reason": "theirs"})
	says(t, submit(t, m.Server, m.path+"/pin?revision=1", cookie, pin), 409, "Agents get something else by now", "theirs")
	unpin := form(t, get(t, m.Server, m.path+"/unpin", cookie))
	m.call(t, "DELETE", m.path+"/pin", nil)
	if done := submit(t, m.Server, m.path+"/unpin", cookie, unpin); done.Status != http.StatusSeeOther {
		t.Errorf("%d %s", done.Status, done.Body)
	}
}

func TestViewersOnlyLookAtRevisions(t *testing.T) {
	m := newManualSite(t)
	m.addService(t, "wiki", 8082)
	viewer := signInViewer(t, m.Server)
	for _, path := range []string{"/revisions", "/revisions/1", "/pending", "/diff?from=1"} {
		page := get(t, m.Server, m.path+path, viewer)
		says(t, page, 200, "lab")
		wantOn(t, string(page.Body), nil, []string{`method="post" class`, "/pin", "/unpin", "Publish 1 change"})
	}
	for _, path := range []string{"/pending", "/pin?revision=1", "/unpin"} {
		says(t, submit(t, m.Server, m.path+path, viewer, url.Values{}), 403, "Only an administrator may do this")
	}
	for _, path := range []string{"/pin?revision=1", "/unpin"} {
		says(t, get(t, m.Server, m.path+path, viewer), 403)
	}
}

// TestHostileTextOnRevisions: whatever people and agents say neither becomes a
// part of the pages nor makes them wider than the window.
func TestHostileTextOnRevisions(t *testing.T) {
	m := newManualSite(t)
	const evil = `<img src=x onerror="document.title='owned'">`
	long := strings.Repeat("a-very-long-label-that-nobody-would-choose.", 5)
	m.Create(t, fmt.Sprintf("/containers/%d/services", m.container), object{
		"type": "http", "internalPort": 8081, "externalHostname": "x", "externalDomainId": m.Create(t, "/external-domains", object{"name": long + "example"}),
	})
	m.Create(t, fmt.Sprintf("/containers/%d/services", m.container), object{
		"type": "http", "internalPort": 8081, "externalHostname": "x", "externalDomainId": m.Create(t, "/external-domains", object{"name": "bücher.example"}),
	})
	m.Create(t, fmt.Sprintf("/containers/%d/volumes", m.container), object{"name": strings.Repeat("v", 60), "mountPath": "/data", "mode": "rw"})
	m.call(t, "POST", m.path+"/publish", object{"note": evil + strings.Repeat("x", 400)})
	etag := m.etag(t)
	m.tells(t, strings.Repeat("long-host-name.", 16)+"example", etag, etag)
	m.tells(t, "gw", etag, `"fcde2b2edba56bf408601fb721fe9b5c338d10ee429ea04fae5511b68fbf8fb9"`, func(r *checkin.Request) {
		report := r.Services["nginx"]
		report.LastApply, report.Outcome, report.Message = checkin.ApplyFailure, checkin.OutcomeStuck, evil+strings.Repeat("y", 300)
		r.Services["nginx"] = report
	})
	m.addService(t, "wiki", 8082)
	b := browse(t, m.Server, signIn(t, m.Server))
	for _, page := range []struct{ name, path, says string }{
		{"hostile-revisions", "/revisions", "“" + evil},
		{"hostile-revision", "/revisions/2", "bücher.example (xn--bcher-kva.example)"},
		{"hostile-diff", "/diff?from=1&to=2", "x." + long + "example"},
		{"hostile-pending", "/pending", "long-host-name."},
		{"hostile-pin", "/pin?revision=1", "x." + long + "example"},
	} {
		b.open(t, m.path+page.path)
		b.reads(t, page.says)
		looked(t, b, page.name)
		if n := eval[int](t, b, `document.querySelectorAll("main img, main script").length`); n != 0 {
			t.Errorf("%s: %d elements of others became part of the page", page.name, n)
		}
	}
	b.open(t, m.path+"/pin?revision=1")
	b.fill(t, "reason", "إعادة التشغيل "+evil+strings.Repeat("z", 400))
	b.press(t, "Pin to revision 1")
	b.reads(t, "إعادة التشغيل "+evil)
	looked(t, b, "hostile-pinned")
}

// TestPublishingByKeyboard alone.
func TestPublishingByKeyboard(t *testing.T) {
	m := newManualSite(t)
	m.addService(t, "wiki", 8082)
	b := browse(t, m.Server, signIn(t, m.Server))
	b.open(t, m.path+"/revisions")
	tabTo := func(text string) {
		t.Helper()
		for range 40 {
			b.do(t, chromedp.KeyEvent(kb.Tab))
			if eval[string](t, b, `document.activeElement.name || document.activeElement.textContent.trim()`) == text {
				if !eval[bool](t, b, `document.activeElement.matches(":focus-visible") && getComputedStyle(document.activeElement).outlineStyle !== "none"`) {
					t.Errorf("nobody sees that %q has the focus", text)
				}
				return
			}
		}
		t.Fatalf("%q cannot be reached", text)
	}
	tabTo("Look and publish…")
	b.do(t, chromedp.KeyEvent(kb.Enter))
	b.reads(t, "Agents do not get this until it is published.")
	tabTo("note")
	b.do(t, chromedp.KeyEvent("typed by hand"))
	tabTo("Publish 1 change")
	b.do(t, chromedp.KeyEvent(kb.Enter))
	b.reads(t, "Revision 2 is published.")
	b.reads(t, "typed by hand")
}

// TestALargeSite: what is too much is counted, and no page is heavy.
func TestALargeSite(t *testing.T) {
	m := newManualSite(t)
	for i := range 250 {
		m.addService(t, fmt.Sprintf("app%d", i), 8000+i)
	}
	cookie := signIn(t, m.Server)
	says(t, get(t, m.Server, m.path+"/pending", cookie), 200, "Publish 250 changes", "250 HTTP services added", "and 230 more", "and 50 more. All of them, on the manager's host:",
		"sudo opensource-manager pending 1", "more lines are not shown here")
	m.call(t, "POST", m.path+"/publish", nil)
	says(t, get(t, m.Server, m.path+"/revisions/2", cookie), 200, "HTTP services (251)", "and 51 more", "sudo opensource-manager revisions show 1 2")
	for _, path := range []string{"/revisions", "/revisions/2", "/diff?from=1&to=2"} {
		answer := m.Do(t, "GET", m.path+path, nil, http.Header{"Cookie": {cookie}, "Accept": {"text/html"}, "Accept-Encoding": {"gzip"}})
		if n := len(answer.Body); answer.Header.Get("Content-Encoding") != "gzip" || n > 50<<10 {
			t.Errorf("%s: %d bytes, %q", path, n, answer.Header.Get("Content-Encoding"))
		}
	}
}

// TestRevisionsAreListedByPage.
func TestRevisionsAreListedByPage(t *testing.T) {
	m := newManualSite(t)
	for i := range 26 {
		m.call(t, "PATCH", fmt.Sprintf("/services/%d", m.service), object{"internalPort": 9000 + i})
		m.call(t, "POST", m.path+"/publish", nil)
	}
	cookie := signIn(t, m.Server)
	first := get(t, m.Server, m.path+"/revisions", cookie)
	says(t, first, 200, "1 to 25 of 27", "Older")
	wantOn(t, string(first.Body), []string{`id="revision-27"`, `id="revision-3"`, `href="/sites/1/revisions?page=2"`}, []string{`id="revision-2"`, "Newer"})
	wantOn(t, string(get(t, m.Server, m.path+"/revisions?page=2", cookie).Body), []string{`id="revision-2"`, `id="revision-1"`, `href="/sites/1/revisions?page=1"`}, []string{`id="revision-3"`, "Older"})
	for _, page := range []string{"3", "999999999999", "-1", "x"} {
		says(t, get(t, m.Server, m.path+"/revisions?page="+page, cookie), 200, "What was published")
	}
}

// TestASiteThatPublishesByItself has nothing to publish, and waits when pinned.
func TestASiteThatPublishesByItself(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	cookie := signIn(t, s)
	s.Create(t, "/sites", object{"name": "lab"})
	says(t, get(t, s, "/sites/1/revisions", cookie), 200, "No agent has checked in for this site yet.", "site added", "current")
	says(t, get(t, s, "/sites/1/pending", cookie), 200, "Nothing waits: agents get what the inventory has.")
	pin := form(t, get(t, s, "/sites/1/pin", cookie))
	pin.Set("reason", "the move")
	if done := submit(t, s, "/sites/1/pin", cookie, pin); done.Status != http.StatusSeeOther {
		t.Fatalf("%d %s", done.Status, done.Body)
	}
	s.Create(t, "/sites/1/nodes", object{"name": "pve1"})
	waits := get(t, s, "/sites/1/pending", cookie)
	says(t, waits, 200, "The site is pinned to revision 1. Agents get this when it is unpinned.", "1 node added")
	wantOn(t, string(waits.Body), nil, []string{"Publish 1 change"})
	asked := get(t, s, "/sites/1/unpin", cookie)
	says(t, asked, 200, "Agents get what the inventory has with their next check-in", "1 node added", "the move")
	if done := submit(t, s, "/sites/1/unpin", cookie, form(t, asked)); done.Status != http.StatusSeeOther {
		t.Fatalf("%d %s", done.Status, done.Body)
	}
	says(t, get(t, s, "/sites/1/revisions", cookie), 200, "1 node added")
}

// TestPinningAConfirmationOfAnotherDay says which revision to take instead.
func TestPinningAConfirmationOfAnotherDay(t *testing.T) {
	m := newManualSite(t)
	m.call(t, "POST", m.path+"/confirm-removals", nil)
	m.call(t, "PATCH", fmt.Sprintf("/services/%d", m.service), object{"internalPort": 9090})
	m.call(t, "POST", m.path+"/publish", nil)
	cookie := signIn(t, m.Server)
	asked := form(t, get(t, m.Server, m.path+"/pin?revision=2", cookie))
	asked.Set("reason", "back")
	says(t, submit(t, m.Server, m.path+"/pin?revision=2", cookie, asked), 409, "Nothing was changed", "pin revision 1, which has the same content without that")
}
