package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"opensource.internal/manager/internal/manifest"
)

const labManifest = `version: 1
site:
  name: lab
nodes:
  - name: pve1
containers:
  - hostname: web
    node: pve1
    ipv4Address: 192.0.2.10
`

func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestApplyAndExport(t *testing.T) {
	s := newShell(t)
	s.must("", "migrate")
	file := write(t, "lab.yaml", labManifest)
	if got := s.must("", "apply", "-f", file, "--dry-run"); !strings.HasSuffix(got, "3 created, 0 changed, 0 deleted (dry run: nothing was written)\n") {
		t.Error(got)
	}
	if r := s.run("", "export", "lab"); r.code != exitFault || !strings.Contains(r.stderr, `there is no site "lab"`) {
		t.Errorf("%+v", r)
	}
	if got := s.must("", "apply", "-f", file); !strings.HasSuffix(got, "3 created, 0 changed, 0 deleted\n") {
		t.Error(got)
	}
	for _, args := range [][]string{{"export", "LAB"}, {"export", "1"}, {"export", "--all"}, {"export", "--all", "--json"}} {
		if got := s.must(s.must("", args...), "apply", "-f", "-", "--prune"); got != "no changes\n" {
			t.Errorf("%v: %s", args, got)
		}
	}
	asJSON := s.must("", "export", "lab", "--json")
	if got := s.must("", "apply", "-f", write(t, "lab.json", asJSON), "-f", write(t, "two.yaml", "version: 1\nsite: {name: two}\n")); got != "site \"two\":\n  + site \"two\"\n      volumesRoot: /mnt/volumes\n      portRange: 2000-2999\n      publishing: auto\n1 created, 0 changed, 0 deleted\n" {
		t.Error(got)
	}
	report := decode[manifest.Report](t, s.must(strings.Replace(labManifest, "web", "www", 1), "apply", "-f", "-", "--prune", "--json"))
	if len(report.Changes) != 2 || report.Changes[0].Action != manifest.Create || report.Changes[1].Action != manifest.Delete {
		t.Errorf("%+v", report)
	}
	if schema := decode[map[string]any](t, s.must("", "apply", "--schema")); schema["properties"] == nil {
		t.Errorf("%v", schema)
	}
}

func TestApplyNamesThePlaceOfEveryFault(t *testing.T) {
	s := newShell(t)
	one := write(t, "one.yaml", strings.Replace(labManifest, "node: pve1", "node: pve2", 1))
	two := write(t, "two.yaml", "version: 1\nsite: {name: two, gatway: x}\n")
	r := s.run("", "apply", "-f", one, "-f", two)
	want := one + ":8:11: containers[0].node: there is no node \"pve2\"; did you mean pve1?\n" +
		two + ":2:19: site.gatway: there is no such field; did you mean gateway?\n" +
		"opensource-manager: nothing was changed: 2 faults\n"
	if r.code != exitFault || r.stderr != want || r.stdout != "" {
		t.Errorf("exit %d, stdout %q, stderr\n%s", r.code, r.stdout, r.stderr)
	}
	r = s.run("a: [", "apply", "-f", "-", "--json")
	var found manifest.FaultsError
	if err := json.Unmarshal([]byte(r.stdout), &found); err != nil || len(found.Faults) != 1 || found.Faults[0].File != "stdin" || found.Faults[0].Line != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	for _, args := range [][]string{{"apply"}, {"apply", "-f"}, {"export"}, {"export", "lab", "--all"}} {
		if r := s.run("", args...); r.code != exitUsage {
			t.Errorf("%v: %+v", args, r)
		}
	}
	if r := s.run("", "apply", "-f", "/nowhere.yaml"); r.code != exitFault || !strings.Contains(r.stderr, "/nowhere.yaml") {
		t.Errorf("%+v", r)
	}
}

// The port that the service listens on is no site's.
func TestApplyKnowsTheServicesPort(t *testing.T) {
	s := newShell(t)
	s.env["LISTEN"] = "127.0.0.1:2000"
	got := s.must(labManifest+"    services: [{type: transport, protocol: tcp, internalPort: 22}]\n", "apply", "-f", "-")
	if !strings.Contains(got, "externalPort: 2001\n") {
		t.Error(got)
	}
}
