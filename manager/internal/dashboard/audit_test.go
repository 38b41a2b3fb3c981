package dashboard_test

import (
	"fmt"
	"html"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/servertest"
)

// audited is a manager at which much was done.
func audited(t *testing.T) (s *servertest.Server, cookie string) {
	t.Helper()
	s, cookie = inventory(t)
	change := func(path string, values url.Values) {
		t.Helper()
		mine := form(t, get(t, s, path, cookie))
		for name := range values {
			mine.Set(name, values.Get(name))
		}
		if saved := submit(t, s, path, cookie, mine); saved.Status != 303 {
			t.Fatalf("%s: %d", path, saved.Status)
		}
	}
	change("/nodes/1/edit", url.Values{"type": {"none"}, "ipv4Address": {"192.0.2.11"}})
	change("/services/1/edit", url.Values{"internalPort": {"9090"}, "externalDomainId": {"1"}, "backendProtocol": {"http"}, "authRequired": nil})
	s.Create(t, "/sites/1/nodes", object{"name": "pve2"})
	change("/containers/1/edit", url.Values{"nodeId": {"2"}})
	s.Create(t, "/sites/1/containers", object{"nodeId": 1, "hostname": "shop"})
	s.Create(t, "/containers/2/services", object{"type": "transport", "internalPort": 22, "protocol": "tcp"})
	change("/containers/2/delete", nil)
	change("/sites/1/edit", url.Values{"publishing": {"manual"}})
	submit(t, s, "/sign-in", "", url.Values{"name": {"ada"}, "password": {"wrong"}})
	s.Create(t, "/notification-targets", object{"name": "on call", "url": "ntfy://ntfy.example.com/x", "siteIds": []int64{1}})
	s.Create(t, "/users", object{"name": "mara", "role": "viewer", "password": "correct horse battery"})
	s.Create(t, "/api-keys", object{"name": `<img src=x onerror="document.title='owned'">`, "role": "viewer"})
	return s, cookie
}

// sentences are what the cells of a page's table say, without the marks.
func sentences(page servertest.Answer) string {
	_, table, _ := strings.Cut(string(page.Body), "<tbody>")
	text := regexp.MustCompile(`<[^>]*>`).ReplaceAllString(strings.NewReplacer("<td", "\n<td", "</td>", "\n", "</tr>", "\x00", "</li>", "\n", `<span class="hint">`, "\n").Replace(table), "")
	return html.UnescapeString(regexp.MustCompile(` +`).ReplaceAllString(text, " "))
}

func TestTheAuditLogSaysWhoChangedWhatFromWhatToWhat(t *testing.T) {
	s, cookie := audited(t)
	log := get(t, s, "/audit", cookie)
	wantOn(t, sentences(log), []string{
		"\nada changed the node pve1\n", "\nIPv4 address: 192.0.2.10 → 192.0.2.11\n", "\nType: Proxmox",
		"\nada changed the service app of the container web\n", "\nPort: 8080 → 9090\n", "\nNode: pve1 → pve2\n",
		"\nThe API key test admin created the service “tcp 2001” of the container “shop” (deleted)\n", "\nProtocol: TCP\n",
		"\nada deleted the container “shop”\n", "\nada deleted the service “tcp 2001” of the container “shop” (deleted)\n",
		"\nPublishing: Every change at once → Changes wait until they are published\n",
		"\nSomebody unknown could not sign in as ada\n", "created the domain example.com", "created the notification target on call", "\nSites: lab\n",
		"created the user mara", "\nRole: Viewer: reads everything but secrets\n", "from 127.0.0.1",
	}, []string{"ipv4 address", "node id", "container id", "nodeId", "site ids"})
	shows(t, log, 200, `href="/nodes/1">pve1</a>`, `href="/services/1">app</a>`, `href="/containers/1">web</a>`, `href="/notifications/targets/1">on call</a>`,
		`href="/users/2">mara</a>`, `href="/sites/1">lab</a>`, `href="/api-keys/`)
	wantOn(t, string(log.Body), nil, []string{"<img src", password, s.AdminKey, `href="/containers/2"`, `href="/services/4"`})
	for query, want := range map[string][2]string{
		"actor=ada":              {"changed the node", "created the domain"},
		"by=user":                {"changed the node", "created the domain"},
		"action=update":          {"changed the node", "created the domain"},
		"resource=container":     {"created the container", "changed the node"},
		"site=1":                 {"changed the node", "created the domain"},
		"q=192.0.2.11":           {"changed the node", "created the domain"},
		"since=1h":               {"changed the node", ""},
		"since=1h&until=30m":     {"Nothing here is like that", "changed the node"},
		"until=2026-01-01&by=no": {"Nothing here is like that", "changed the node"},
		"since=yesterday":        {"is neither a time such as", "changed the node"},
	} {
		found := get(t, s, "/audit?"+query, cookie)
		rows := sentences(found)
		if rows == "" {
			rows = string(found.Body)
		}
		if !strings.Contains(rows, want[0]) || want[1] != "" && strings.Contains(rows, want[1]) {
			t.Errorf("%s: want %q and not %q", query, want[0], want[1])
		}
	}
	shows(t, get(t, s, "/audit?since=%3Cb%3E", cookie), 200, `aria-invalid="true"`, `id="field-since-fault"`)
	for i := range 60 {
		s.Create(t, "/sites/1/nodes", object{"name": fmt.Sprintf("n%d", i)})
	}
	shows(t, get(t, s, "/audit?action=create&page=2", cookie), 200, "51 to ", `href="?action=create"`)
}

func TestTheAuditLogIsForAdministrators(t *testing.T) {
	s, _ := audited(t)
	viewer := signInViewer(t, s)
	shows(t, get(t, s, "/audit", viewer), 403, "Only an administrator may do this")
	wantOn(t, string(get(t, s, "/api-keys", viewer).Body), nil, []string{`href="/audit"`})
}

func TestEventsOfAllAgents(t *testing.T) {
	s, cookie := populated(t)
	checkIn(t, s, checkin.Request{SiteID: 2, Hostname: "healthy", Services: map[string]checkin.ServiceReport{
		"nginx": {State: "active", LastApply: checkin.ApplyFailure, Outcome: checkin.OutcomeRejected, Message: `[emerg] <img src=x onerror="document.title='owned'">`},
	}})
	all := get(t, s, "/events", cookie)
	shows(t, all, 200, "apply failed", "first seen", "[emerg] <img", `href="/agents/3">healthy`, `href="/sites/1">lab`)
	wantOn(t, string(all.Body), nil, []string{"<img src"})
	for query, want := range map[string][2]string{
		"host=healthy":     {"[emerg]", ">gateway<"},
		"host=nobody":      {"there is no agent “nobody”", ""},
		"kind=first_seen":  {"first seen", "[emerg]"},
		"severity=error":   {"[emerg]", ">first seen<"},
		"site=1":           {"gateway", "[emerg]"},
		"since=%3Cb%3E":    {"is neither a time such as", "[emerg]"},
		"until=2020-01-01": {"Nothing here is like that", "[emerg]"},
		"q=emerg":          {"[emerg]", ">gateway<"},
	} {
		text := string(get(t, s, "/events?"+query, cookie).Body)
		if _, table, cut := strings.Cut(text, "<tbody>"); cut {
			text = table
		}
		text = strings.NewReplacer("&#34;nobody&#34;", "“nobody”").Replace(text)
		if !strings.Contains(text, want[0]) || want[1] != "" && strings.Contains(text, want[1]) {
			t.Errorf("%s: want %q and not %q", query, want[0], want[1])
		}
	}
	viewer := signInViewer(t, s)
	shows(t, get(t, s, "/events", viewer), 200, "apply failed")
	gone := submit(t, s, "/agents/3/delete", cookie, form(t, get(t, s, "/agents/3/delete", cookie)))
	if gone.Status != 303 {
		t.Fatal(gone.Status)
	}
	shows(t, get(t, s, "/events?host=healthy", cookie), 200, "no longer listed")
}

func TestAuditAndEventsInABrowser(t *testing.T) {
	s, cookie := audited(t)
	b := browse(t, s, cookie)
	b.open(t, "/audit")
	looked(t, b, "audit")
	b.open(t, "/audit?since=yesterday&q=nothing")
	looked(t, b, "audit-fault")
	b.open(t, "/events")
	looked(t, b, "events-empty")
	checkInHealthy(t, s, 1, strings.Repeat("long-host-name.", 16)+"example")
	b.reads(t, "first seen")
	checkIn(t, s, checkin.Request{SiteID: 1, Hostname: "edge", Services: map[string]checkin.ServiceReport{
		"nginx": {State: "active", LastApply: checkin.ApplyFailure, Outcome: checkin.OutcomeRejected, Message: "[emerg] " + strings.Repeat("unbroken", 40)},
	}})
	b.reads(t, "apply failed")
	looked(t, b, "events")
}
