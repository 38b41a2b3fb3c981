package dashboard_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/servertest"
)

// audited is a manager at which much was done.
func audited(t *testing.T) (s *servertest.Server, cookie string) {
	t.Helper()
	s, cookie = inventory(t)
	mine := form(t, get(t, s, "/nodes/1/edit", cookie))
	mine.Set("type", "none")
	mine.Set("ipv4Address", "192.0.2.11")
	if saved := submit(t, s, "/nodes/1/edit", cookie, mine); saved.Status != 303 {
		t.Fatal(saved.Status)
	}
	submit(t, s, "/sign-in", "", url.Values{"name": {"ada"}, "password": {"wrong"}})
	s.Create(t, "/api-keys", object{"name": `<img src=x onerror="document.title='owned'">`, "role": "viewer"})
	return s, cookie
}

func TestTheAuditLogSaysWhoChangedWhatFromWhatToWhat(t *testing.T) {
	s, cookie := audited(t)
	log := get(t, s, "/audit", cookie)
	shows(t, log, 200, "changed: node “pve1”", `href="/nodes/1"`, "<li>ipv4 address: 192.0.2.10 → 192.0.2.11</li>", "<li>type: proxmox → none</li>",
		">ada", "could not sign in", "created: external domain", `href="/sites/1">lab`, "API key from 127.0.0.1")
	wantOn(t, string(log.Body), nil, []string{"<img src", password, s.AdminKey})
	for query, want := range map[string][2]string{
		"actor=ada":              {"changed: node", "created: external domain"},
		"by=user":                {"changed: node", "created: external domain"},
		"action=update":          {"changed: node", "created: external domain"},
		"resource=container":     {"created: container", "changed: node"},
		"site=1":                 {"changed: node", "created: external domain"},
		"q=192.0.2.11":           {"changed: node", "created: external domain"},
		"since=1h":               {"changed: node", ""},
		"since=1h&until=30m":     {"Nothing here is like that", "changed: node"},
		"until=2026-01-01&by=no": {"Nothing here is like that", "changed: node"},
		"since=yesterday":        {"is neither a time such as", "changed: node"},
	} {
		found := get(t, s, "/audit?"+query, cookie)
		rows := string(found.Body)
		if _, table, cut := strings.Cut(rows, "<tbody>"); cut {
			rows = table
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
