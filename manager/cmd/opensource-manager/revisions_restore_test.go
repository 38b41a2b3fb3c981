package main

import (
	"strings"
	"testing"

	"opensource.internal/manager/internal/manifest"
)

func TestRevisionsRestore(t *testing.T) {
	s, opened := withRevisions(t)
	dry := s.must("", "revisions", "restore", "lab", "1", "--dry-run")
	wantAll(t, dry, "site \"lab\":\n  ~ site \"lab\"\n      gateway: 192.0.2.2 → 192.0.2.1\n0 created, 1 changed, 0 deleted (dry run: nothing was written)\n",
		"To do exactly this: opensource-manager revisions restore lab 1 --etag ")
	tag := strings.TrimSpace(dry[strings.LastIndex(dry, " "):])
	setGateway(t, opened, "192.0.2.3")
	for _, refused := range []struct{ args, says string }{
		{"revisions restore lab 1 --etag " + tag, "something else would be changed by now"},
		{"revisions restore lab 9", "there is no revision 9 of this site"},
		{"revisions restore lab 1 --etag \xff", "is not a tag"},
	} {
		if r := s.run("", strings.Fields(refused.args)...); r.code == 0 || !strings.Contains(r.stderr, refused.says) {
			t.Errorf("%s: %d %s", refused.args, r.code, r.stderr)
		}
	}
	wantAll(t, s.must("", "revisions", "restore", "lab", "1"), "gateway: 192.0.2.3 → 192.0.2.1", "The inventory is set back to revision 1. Agents get it as revision 4.\n")
	wantAll(t, s.must("", "revisions", "lab", "--limit", "1"), "set back to revision 1")
	if got := s.must("", "revisions", "restore", "lab", "1"); got != "no changes\n" {
		t.Error(got)
	}
	s.must("", "pin", "lab", "--reason", "looking")
	if r := decode[manifest.SetBackReport](t, s.must("", "revisions", "restore", "lab", "2", "--json")); !r.Held || r.Revision != nil || len(r.Changes) != 1 {
		t.Errorf("%+v", r)
	}
	wantAll(t, s.must("", "revisions", "restore", "lab", "3"), "That waits: see opensource-manager pending lab\n")
}
