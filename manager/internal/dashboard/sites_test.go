package dashboard_test

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/servertest"
)

// submit sends a form as a browser does.
func submit(t *testing.T, s *servertest.Server, path, cookie string, values url.Values) servertest.Answer {
	t.Helper()
	return s.Do(t, "POST", path, values.Encode(), http.Header{
		"Content-Type": {"application/x-www-form-urlencoded"}, "Cookie": {cookie}, "Sec-Fetch-Site": {"same-origin"},
	})
}

// form are the values that a page's form would send.
func form(t *testing.T, page servertest.Answer) url.Values {
	t.Helper()
	values := url.Values{}
	for _, input := range regexp.MustCompile(`<input [^>]*>`).FindAllString(string(page.Body), -1) {
		name := regexp.MustCompile(` name="([^"]*)"`).FindStringSubmatch(input)
		if value := regexp.MustCompile(` value="([^"]*)"`).FindStringSubmatch(input); name != nil && value != nil {
			values.Set(name[1], html.UnescapeString(value[1]))
		}
	}
	return values
}

// shows compares a page with its status and what has to be on it.
func shows(t *testing.T, page servertest.Answer, status int, wanted ...string) {
	t.Helper()
	if page.Status != status {
		t.Errorf("status %d, want %d: %s", page.Status, status, page.Body)
	}
	wantOn(t, html.UnescapeString(string(page.Body)), wanted, nil)
}

func TestSitesAreManagedInTheBrowser(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	cookie := signIn(t, s)
	shows(t, get(t, s, "/sites", cookie), 200, "There is no site yet", `href="/sites/new"`)

	refused := submit(t, s, "/sites/new", cookie, url.Values{"name": {""}, "gateway": {"<b>192.0.2.300</b>"}, "internalDomain": {"lab.internal"}})
	shows(t, refused, 422, "Nothing was saved", `href="#field-name"`, `id="field-name-fault">is required`, `aria-invalid="true"`,
		`aria-describedby="field-gateway-hint field-gateway-fault"`, `value="lab.internal"`)
	if strings.Contains(string(refused.Body), "<b>192") {
		t.Error("what was typed became markup")
	}
	created := submit(t, s, "/sites/new", cookie, url.Values{"name": {"lab"}, "internalDomain": {"LAB.internal."}, "publishing": {"manual"}})
	if created.Status != 303 || created.Header.Get("Location") != "/sites/1/enroll" {
		t.Fatalf("%d %s", created.Status, created.Body)
	}
	done, _, _ := strings.Cut(created.Header.Get("Set-Cookie"), ";")
	shows(t, get(t, s, "/sites/1", cookie+"; "+done), 200, `The site "lab" was created.`, "lab.internal", "Changes wait until they are published", "No agent has checked in")
	shows(t, submit(t, s, "/sites/new", cookie, url.Values{"name": {"LAB"}}), 409, `the name "LAB" is already in use`, `id="field-name-fault"`)
	shows(t, get(t, s, "/sites?q=lab", cookie), 200, `href="/sites/1"`)
	shows(t, get(t, s, "/sites?q=nothing", cookie), 200, "No site has “nothing” in its name")
	for _, path := range []string{"/sites/2", "/sites/x", "/sites/0", "/sites/2/edit", "/sites/2/delete"} {
		shows(t, get(t, s, path, cookie), 404, "There is no such page")
	}
}

func TestWhoSavesSeesWhatSomebodyElseSaved(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	cookie := signIn(t, s)
	s.Create(t, "/sites", object{"name": "lab", "gateway": "192.0.2.1"})
	mine := form(t, get(t, s, "/sites/1/edit", cookie))
	mine.Set("publishing", "auto")
	if answer := s.Call(t, "PATCH", "/sites/1", object{"gateway": "192.0.2.254"}); answer.Status != 200 {
		t.Fatal(answer.Status)
	}
	mine.Set("name", "laboratory")
	late := submit(t, s, "/sites/1/edit", cookie, mine)
	shows(t, late, 409, "Changed by somebody else meanwhile", `Gateway</a>: 192.0.2.254`, `Name</a>: lab`, `value="laboratory"`, `value="192.0.2.1"`)
	if strings.Contains(string(late.Body), "Subnet mask</a>") {
		t.Error("what nobody changed is told, too")
	}
	again := form(t, late)
	again.Set("publishing", "auto")
	if saved := submit(t, s, "/sites/1/edit", cookie, again); saved.Status != 303 {
		t.Fatalf("%d %s", saved.Status, saved.Body)
	}
	shows(t, get(t, s, "/sites/1", cookie), 200, "laboratory", "192.0.2.1")
}

func TestDeletingASiteNamesWhatVanishes(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	cookie := signIn(t, s)
	site := s.Create(t, "/sites", object{"name": "lab"})
	node := s.Create(t, "/sites/1/nodes", object{"name": "pve1"})
	container := s.Create(t, "/sites/1/containers", object{"nodeId": node, "hostname": "web", "ipv4Address": "192.0.2.101"})
	domain := s.Create(t, "/external-domains", object{"name": "example.com", "defaultSiteId": site})
	s.Create(t, fmt.Sprintf("/containers/%d/services", container), object{"type": "http", "internalPort": 8080, "externalHostname": "app", "externalDomainId": domain})
	asked := get(t, s, "/sites/1/delete", cookie)
	shows(t, asked, 200, "pve1", "<bdi>web</bdi>", "HTTP app (port 8080)", "External domains stay")
	s.Create(t, "/sites/1/nodes", object{"name": "pve2"})
	shows(t, submit(t, s, "/sites/1/delete", cookie, form(t, asked)), 409, "has changed since you looked", "pve2")
	if gone := submit(t, s, "/sites/1/delete", cookie, form(t, get(t, s, "/sites/1/delete", cookie))); gone.Status != 303 {
		t.Fatalf("%d %s", gone.Status, gone.Body)
	}
	shows(t, get(t, s, "/sites/1", cookie), 404)
}

func TestViewersOnlyLookAtSites(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	viewer := signInViewer(t, s)
	s.Create(t, "/sites", object{"name": "lab"})
	for _, path := range []string{"/sites", "/sites/1"} {
		page := get(t, s, path, viewer)
		shows(t, page, 200, "lab")
		wantOn(t, string(page.Body), nil, []string{"/sites/new", "/edit", "/delete"})
	}
	for _, path := range []string{"/sites/new", "/sites/1/edit", "/sites/1/delete"} {
		shows(t, get(t, s, path, viewer), 403, "Only an administrator may do this")
		shows(t, submit(t, s, path, viewer, url.Values{"name": {"mine"}}), 403, "Only an administrator may do this")
	}
	crossing := s.Do(t, "POST", "/sites/new", "name=evil", http.Header{
		"Content-Type": {"application/x-www-form-urlencoded"}, "Cookie": {signIn(t, s)}, "Sec-Fetch-Site": {"cross-site"},
	})
	if crossing.Status != 403 {
		t.Errorf("another origin: %d", crossing.Status)
	}
}

func TestSitesInABrowser(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	b := browse(t, s, signIn(t, s))
	b.open(t, "/sites")
	looked(t, b, "sites-empty")
	b.press(t, "Create the first site")
	b.fill(t, "gateway", "192.0.2.300")
	b.press(t, "Create the site")
	b.forgive() // the browser tells the status of the refused form
	b.until(t, `document.activeElement.classList.contains("faults")`)
	looked(t, b, "site-faults")
	b.fill(t, "name", strings.Repeat("a-very-long-name-", 3)+"site")
	b.fill(t, "gateway", "192.0.2.1")
	b.press(t, "Create the site")
	b.reads(t, "Next comes its agent.")
	b.open(t, "/sites/1")
	s.Create(t, "/sites/1/nodes", object{"name": "appeared"})
	b.reads(t, "1 node")
	checkIn(t, s, checkin.Request{SiteID: 1, Hostname: strings.Repeat("long-host-name.", 16) + "example", Services: map[string]checkin.ServiceReport{}})
	b.reads(t, "online")
	looked(t, b, "site")
	b.press(t, "Delete…")
	looked(t, b, "site-delete")
	b.press(t, "Cancel")
	b.open(t, "/sites")
	looked(t, b, "sites")
	b.until(t, `document.getElementById("live").textContent === "Live"`)
	eval[bool](t, b, `(() => { const q = document.getElementById("q"); q.focus(); q.value = "half a wo"; return true; })()`)
	s.Create(t, "/sites", object{"name": "appeared while typing"})
	b.reads(t, "appeared while typing")
	if got := eval[string](t, b, `document.activeElement.id + " " + document.getElementById("q").value`); got != "q half a wo" {
		t.Errorf("what is typed is lost: %q", got)
	}
}
