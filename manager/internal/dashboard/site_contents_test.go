package dashboard_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/servertest"
)

// twoContainers is a site with services and volumes of two containers, one of
// which has no address, and one service of another site.
func twoContainers(t *testing.T) (s *servertest.Server, cookie string) {
	t.Helper()
	s, cookie = inventory(t)
	s.Create(t, "/sites/1/containers", object{"nodeId": 1, "hostname": "attic"})
	s.Create(t, "/containers/2/services", object{"type": "transport", "internalPort": 53, "protocol": "udp", "externalPort": 2053})
	s.Create(t, "/containers/2/volumes", object{"name": "mails", "mountPath": "/var/mail", "mode": "ro"})
	s.Create(t, "/sites", object{"name": "other"})
	s.Create(t, "/sites/2/nodes", object{"name": "n"})
	s.Create(t, "/sites/2/containers", object{"nodeId": 2, "hostname": "elsewhere", "ipv4Address": "192.0.2.1"})
	s.Create(t, "/containers/3/services", object{"type": "http", "internalPort": 81, "externalHostname": "foreign", "externalDomainId": 1})
	return s, cookie
}

func TestAllServicesOfASite(t *testing.T) {
	s, cookie := twoContainers(t)
	list := func(query string) string { return sentences(get(t, s, "/sites/1/services"+query, cookie)) }
	shows(t, get(t, s, "/sites/1", cookie), 200, `href="/sites/1/services">4 services`, `href="/sites/1/volumes">2 volumes`)
	shows(t, get(t, s, "/sites/1/services", signInViewer(t, s)), 200, `href="/services/1">app.example.com`, `href="/containers/1">web`, "192.0.2.101")
	wantOn(t, list(""), []string{
		"app.example.com", "Web\n", "TCP 203.0.113.10:2000", "SRV _sip._tcp.lab.internal", "UDP 203.0.113.10:2053", "\n2053\n", "no agent", "not served",
	}, []string{"foreign"})
	for query, want := range map[string][2]string{
		"?q=app.example.com":         {"app.example.com", "2053"}, // as people name it
		"?q=attic":                   {"2053", "app."},
		"?q=2053":                    {"2053", "app."},
		"?q=_SIP":                    {"_sip._tcp", "app."},
		"?type=transport":            {"2053", "app."},
		"?type=http&q=attic":         {"", "app."},
		"?sort=container&q=.":        {"app.example.com", "2053"},
		"?sort=-externalPort&page=1": {"2053", ""},
	} {
		if text := list(query); !strings.Contains(text, want[0]) || want[1] != "" && strings.Contains(text, want[1]) {
			t.Errorf("%s: want %q and not %q: %s", query, want[0], want[1], text)
		}
	}
	order := func(query string, names ...string) {
		t.Helper()
		text, last := list(query), 0
		for _, name := range names {
			at := strings.Index(text, name)
			if at < last {
				t.Errorf("%s: %s is not where it should be", query, name)
			}
			last = at
		}
	}
	order("?sort=container", "UDP 203", "app.example.com")
	order("?sort=-container", "app.example.com", "UDP 203")
	order("?sort=-externalPort", "UDP 203", "TCP 203", "app.example.com")
	order("?sort=internalPort", "TCP 203", "UDP 203", "SRV", "app.example.com")

	for i := range 60 {
		s.Create(t, "/containers/1/services", object{"type": "http", "internalPort": 80, "externalHostname": fmt.Sprintf("n%02d", i), "externalDomainId": 1})
	}
	shows(t, get(t, s, "/sites/1/services?q=n&type=http&page=2", cookie), 200, "51 to ", `rel="prev"`)
	shows(t, get(t, s, "/sites/3/services", cookie), 404, "Not found")
	s.Create(t, "/sites", object{"name": "empty"})
	shows(t, get(t, s, "/sites/3/services", cookie), 200, "Nothing of this site is published.")
	shows(t, get(t, s, "/sites/3/volumes", cookie), 200, "This site has no volume.")
}

func TestWhetherAServiceIsInForce(t *testing.T) {
	s, cookie := twoContainers(t)
	state := func(of string) string {
		t.Helper()
		_, row, found := strings.Cut(sentences(get(t, s, "/sites/1/services", cookie)), of)
		row, _, _ = strings.Cut(row, "\x00")
		if !found {
			t.Fatalf("no service %s", of)
		}
		return row
	}
	wants := func(of, want string) {
		t.Helper()
		if got := state(of); !strings.Contains(got, want) {
			t.Errorf("%s: %q is not in %s", of, want, got)
		}
	}
	checkIn(t, s, checkin.Request{SiteID: 1, Hostname: "edge"})
	given := s.Call(t, "GET", "/sites/1/snapshot", nil).Header.Get("ETag")
	wants("app.example.com", "edge does not tell what it runs")
	received := `"another"`
	report := func(etag string, quarantined ...checkin.QuarantinedItem) {
		t.Helper()
		checkIn(t, s, checkin.Request{
			SiteID: 1, Hostname: "edge", Running: &checkin.Running{ETag: etag, Since: time.Now()},
			Services: map[string]checkin.ServiceReport{
				"nginx": {State: "active", LastApply: checkin.ApplySuccess, Outcome: checkin.OutcomeApplied, ReceivedETag: received, Quarantined: quarantined},
			},
		})
	}
	report(`"another"`)
	wants("app.example.com", "edge does not run the latest revision")
	report(given)
	wants("app.example.com", "in force")
	wants("UDP 203.0.113.10:2053", "its container has no address")
	received = given
	report(`"another"`, checkin.QuarantinedItem{Kind: checkin.KindHTTP, ID: 1, Name: "app.example.com", Reason: `[emerg] <img src=x onerror="document.title='owned'">`})
	wants("app.example.com", "Left out by edge")
	wants("app.example.com", "[emerg] <img src=x")
	wants("TCP 203.0.113.10:2000", "in force")
	wants("SRV _sip._tcp.lab.internal", "edge does not run the latest revision") // dnsmasq has not told
	report(given)

	change := func(path string, body object) {
		t.Helper()
		if answer := s.Call(t, "PATCH", path, body); answer.Status != 200 {
			t.Fatalf("%s: %d %s", path, answer.Status, answer.Body)
		}
	}
	change("/sites/1", object{"publishing": "manual"})
	change("/services/2", object{"internalPort": 23})
	wants("TCP 203.0.113.10:2000", "its last change is not published")
	wants("SRV _sip._tcp.lab.internal", "in force")
}

func TestAllVolumesOfASite(t *testing.T) {
	s, cookie := twoContainers(t)
	checkIn(t, s, checkin.Request{SiteID: 1, Hostname: "edge", Volumes: map[string]checkin.VolumeReport{
		"1": {Applied: true}, "2": {Message: "mkdir: permission denied <b>"},
	}})
	list := func(query string) string { return sentences(get(t, s, "/sites/1/volumes"+query, cookie)) }
	wantOn(t, list(""), []string{"data", "web", "/mnt/volumes/site-1/alice/web/data", "/var/lib/data", "ready", "failed", "mkdir: permission denied <b>", "attic"}, nil)
	for query, want := range map[string][2]string{
		"?q=attic":                   {"mails", "data"},
		"?q=permission":              {"mails", "data"},
		"?q=alice":                   {"data", "mails"},
		"?status=failed":             {"mails", "data"},
		"?status=ready":              {"data", "mails"},
		"?status=odd&sort=container": {"data", ""},
	} {
		if text := list(query); !strings.Contains(text, want[0]) || want[1] != "" && strings.Contains(text, want[1]) {
			t.Errorf("%s: want %q and not %q: %s", query, want[0], want[1], text)
		}
	}
	if text := list("?sort=container"); strings.Index(text, "mails") > strings.Index(text, "alice") {
		t.Errorf("not sorted by container: %s", text)
	}
}

func TestContentsOfASiteInABrowser(t *testing.T) {
	s, cookie := twoContainers(t)
	long := strings.Repeat("long-host-name.", 15) + "x"
	s.Create(t, "/containers/1/services", object{"type": "http", "internalPort": 80, "externalHostname": long, "externalDomainId": 1})
	s.Create(t, "/containers/1/volumes", object{"name": strings.Repeat("v", 63), "mountPath": "/" + strings.Repeat("unbroken", 25), "mode": "rw"})
	checkIn(t, s, checkin.Request{SiteID: 1, Hostname: "edge"})
	given := s.Call(t, "GET", "/sites/1/snapshot", nil).Header.Get("ETag")
	b := browse(t, s, cookie)
	b.open(t, "/sites/1/services")
	b.reads(t, "does not tell what it runs")
	checkIn(t, s, checkin.Request{SiteID: 1, Hostname: "edge", Running: &checkin.Running{ETag: given, Since: time.Now()}, Volumes: map[string]checkin.VolumeReport{
		"1": {Applied: true}, "2": {Message: "mkdir /mnt/volumes: permission denied"},
	}, Services: map[string]checkin.ServiceReport{"nginx": {
		State: "active", LastApply: checkin.ApplySuccess, Outcome: checkin.OutcomeApplied,
		Quarantined: []checkin.QuarantinedItem{{Kind: checkin.KindStream, ID: 2, Name: "tcp 2000", Reason: "[emerg] " + strings.Repeat("unbroken", 40)}},
	}}})
	b.reads(t, "Left out by edge")
	looked(t, b, "site-services")
	b.open(t, "/sites/1/volumes")
	b.reads(t, "permission denied")
	looked(t, b, "site-volumes")
}
