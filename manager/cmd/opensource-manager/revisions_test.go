package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/show"
	"opensource.internal/manager/internal/store"
)

// withRevisions has a site, lab, with two revisions: the second one has another
// gateway.
func withRevisions(t *testing.T) (*shell, *store.Store) {
	t.Helper()
	s := newShell(t)
	opened := s.store()
	if _, err := opened.CreateSite(t.Context(), inventory.Site{
		Name: "lab", InternalDomain: "lab.internal", DHCPRange: "192.0.2.100,192.0.2.200", SubnetMask: "255.255.255.0",
		Gateway: "192.0.2.1", DNSForwarders: "9.9.9.9",
	}); err != nil {
		t.Fatal(err)
	}
	s.must("", "revisions", "lab")
	setGateway(t, opened, "192.0.2.2")
	s.must("", "revisions", "lab")
	return s, opened
}

func setGateway(t *testing.T, s *store.Store, gateway string) {
	t.Helper()
	if _, err := s.UpdateSite(t.Context(), 1, func(site *inventory.Site) error { site.Gateway = gateway; return nil }); err != nil {
		t.Fatal(err)
	}
}

func wantAll(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in:\n%s", part, text)
		}
	}
}

func TestRevisions(t *testing.T) {
	s, _ := withRevisions(t)
	for _, args := range [][]string{{"revisions", "lab"}, {"revisions", "1"}, {"revisions", "list", "LAB"}} {
		wantAll(t, s.must("", args...), "NUMBER", "site added", "settings of the site changed", "current")
	}
	list := decode[[]show.SiteRevision](t, s.must("", "revisions", "lab", "--json"))
	if len(list) != 2 || list[0].Number != 2 || !list[0].Current || list[0].Summary["site"].Changed != 1 || len(list[0].ChangedBy) != 1 {
		t.Errorf("%+v", list)
	}
	if got := s.must("", "revisions", "lab", "--limit", "1"); !strings.HasSuffix(got, "and 1 more: --limit 0 lists all\n") {
		t.Error(got)
	}
	shown := []byte(s.must("", "revisions", "show", "lab", "1"))
	if snapshot, err := checkin.ParseSnapshot(shown); err != nil || snapshot.Site.Gateway != "192.0.2.1" || checkin.ETag(shown) != list[1].ETag {
		t.Errorf("%+v %v", snapshot, err)
	}
	if at := strings.Fields(strings.Split(s.must("", "revisions", "lab"), "\n")[1])[1]; at != list[0].CreatedAt.Format(time.RFC3339) || !strings.HasSuffix(at, "Z") {
		t.Error(at)
	}
	diff := s.must("", "revisions", "diff", "lab", "2")
	wantAll(t, diff, "From revision 1 to revision 2: settings of the site changed.\n\n~ site lab\n    gateway: 192.0.2.1 → 192.0.2.2\n",
		"dnsmasq reads its files again", "+++ /var/lib/dnsmasq/dhcp-opts", "+option:router,192.0.2.2", "Note: no agent of the site has told")
	if short := s.must("", "revisions", "diff", "lab", "2", "--no-files"); strings.Contains(short, "+++") {
		t.Error(short)
	}
	wantAll(t, s.must("", "revisions", "diff", "lab", "1"), "From nothing to revision 1", "+ site lab\n    name: lab\n")
	if d := decode[show.Difference](t, s.must("", "revisions", "diff", "lab", "1", "--from", "2", "--json")); *d.From != 2 || *d.To != 1 || len(d.Changes) != 1 || len(d.Files) != 1 {
		t.Errorf("%+v", d)
	}
}

func TestPinAndPublish(t *testing.T) {
	s, opened := withRevisions(t)
	if got := s.must("", "pin", "lab", "1", "--reason", "2 has the wrong gateway"); !strings.HasPrefix(got, "Pinned to revision 1 by ") || !strings.HasSuffix(got, ": 2 has the wrong gateway\n") {
		t.Error(got)
	}
	wantAll(t, s.must("", "revisions", "lab"), "pinned", "2 has the wrong gateway")
	wantAll(t, s.must("", "sites"), "pinned to 1, by itself")
	wantAll(t, s.must("", "pending", "lab"), "Pinned to revision 1", "From revision 1 to what the inventory has now", "+option:router,192.0.2.2", "before the site is unpinned")
	if _, err := opened.RecordCheckIn(t.Context(), store.CheckIn{SiteID: 1, Hostname: "agent"}); err != nil {
		t.Fatal(err)
	}
	wantAll(t, s.must("", "agents"), "site pinned to revision 1")
	if got := s.must("", "unpin", "lab"); got != "Unpinned: agents get revision 2.\n" {
		t.Error(got)
	}
	if got := s.must("", "unpin", "lab"); got != "Site \"lab\" is not pinned: agents get revision 2.\n" {
		t.Error(got)
	}

	if _, err := opened.UpdateSite(t.Context(), 1, func(site *inventory.Site) error { site.Publishing = inventory.PublishManual; return nil }); err != nil {
		t.Fatal(err)
	}
	if got := s.must("", "pending", "lab"); got != "Nothing waits: agents get what the inventory has.\n" {
		t.Error(got)
	}
	setGateway(t, opened, "192.0.2.3")
	wantAll(t, s.must("", "sites"), "by hand")
	looked := decode[show.Pending](t, s.must("", "pending", "lab", "--json"))
	tag := strings.Trim(looked.ETag, `"`)
	if got := s.must("", "pending", "lab"); looked.Waiting != 1 || !strings.HasSuffix(got, fmt.Sprintf("publish lab --etag %s\n", tag)) {
		t.Errorf("%+v\n%s", looked, got)
	}
	setGateway(t, opened, "192.0.2.4")
	if r := s.run("", "publish", "lab", "--etag", tag); r.code != exitFault || !strings.Contains(r.stderr, "look at it again") {
		t.Errorf("%+v", r)
	}
	if got := s.must("", "publish", "lab", "--note", "the new router"); got != "Revision 3 is published: settings of the site changed.\n" {
		t.Error(got)
	}
	if got := s.must("", "publish", "lab", "--note", "again"); got != "Nothing waits: revision 3 has what the inventory has.\n" {
		t.Error(got)
	}
	if got := s.must("", "publish", "lab", "--json"); !strings.Contains(got, `"published": false`) {
		t.Error(got)
	}
	wantAll(t, s.must("", "revisions", "lab"), "published by", "the new router")
}

func TestPreviewPrintsTheFiles(t *testing.T) {
	s, _ := withRevisions(t)
	wantAll(t, s.must("", "preview", "lab"), "# Note: no agent", "# ==> /etc/nginx/nginx.conf <==", "# ==> /var/lib/dnsmasq/dhcp-opts <==", "option:router,192.0.2.2")
	wantAll(t, s.must("", "preview", "lab", "--revision", "1", "--json"), `option:router,192.0.2.1\n`)
}

func TestRevisionCommandsRefuse(t *testing.T) {
	s, _ := withRevisions(t)
	for _, test := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"revisions", "nope"}, exitFault, `there is no site "nope"`},
		{[]string{"revisions", "99"}, exitFault, `there is no site "99"`},
		{[]string{"revisions", "lab", "--limit", "-1"}, exitUsage, "--limit"},
		{[]string{"revisions", "show", "lab", "9"}, exitFault, "no revision 9"},
		{[]string{"revisions", "diff", "lab", "9"}, exitFault, "no revision 9"},
		{[]string{"revisions", "diff", "lab", "2", "--from", "9"}, exitFault, "no revision 9"},
		{[]string{"preview", "lab", "--revision", "9"}, exitFault, "no revision 9"},
		{[]string{"pin", "lab", "1"}, exitUsage, "--reason"},
		{[]string{"pin", "lab", "1", "--reason", " "}, exitUsage, "reason: it has 1 to 500 characters"},
		{[]string{"pin", "lab", "9", "--reason", "x"}, exitUsage, "no revision 9"},
		{[]string{"pin", "lab", "0x", "--reason", "x"}, exitUsage, "0x"},
		{[]string{"publish", "lab", "--etag", "a b"}, exitUsage, "--etag"},
		{[]string{"publish", "nope"}, exitFault, "no site"},
	} {
		if r := s.run("", test.args...); r.code != test.code || !strings.Contains(r.stderr, test.says) || r.stdout != "" {
			t.Errorf("%v: %+v", test.args, r)
		}
	}
}
