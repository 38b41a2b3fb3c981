package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/show"
	"opensource.internal/manager/internal/store"
)

// withAgents has a site with an agent that is well and one that is not and has
// not been heard for an hour.
func withAgents(t *testing.T) *shell {
	t.Helper()
	s := newShell(t)
	opened := s.store()
	site, err := opened.CreateSite(t.Context(), inventory.Site{Name: "lab"})
	if err != nil {
		t.Fatal(err)
	}
	well := checkin.Request{
		Services:    map[string]checkin.ServiceReport{"nginx": {State: "active", LastApply: checkin.ApplySuccess}},
		IPv4Address: "192.0.2.77", Agent: &checkin.AgentInfo{Version: "1.2.3"}, Running: &checkin.Running{ETag: `"abc"`},
	}
	ill := checkin.Request{
		Services: map[string]checkin.ServiceReport{
			"dnsmasq": {State: "failed", LastApply: checkin.ApplyFailure, Outcome: checkin.OutcomeRolledBack, Quarantined: []checkin.QuarantinedItem{{}, {}}},
			"nginx":   {State: "active", Outcome: checkin.OutcomeHeld, Hold: &checkin.Hold{}},
		},
		Guard:        &checkin.Guard{Removed: 6, Total: 8},
		Certificates: map[string]checkin.Certificate{"example.com": {State: checkin.CertificateExpired}, "example.net": {State: checkin.CertificateOK}},
	}
	for _, c := range []store.CheckIn{
		{SiteID: site.ID, Hostname: "well", At: time.Now(), PeerAddress: "192.0.2.1", Report: well},
		{SiteID: site.ID, Hostname: "ill", At: time.Now().Add(-time.Hour), PeerAddress: "192.0.2.2", Report: ill},
	} {
		if _, err := opened.RecordCheckIn(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// What an agent tells of volumes is not in its report, and yet a problem.
func TestAgentsShowFailedVolumes(t *testing.T) {
	s := withAgents(t)
	opened := s.store()
	node, err := opened.CreateNode(t.Context(), 1, inventory.Node{Name: "pve1", Type: "proxmox"})
	if err != nil {
		t.Fatal(err)
	}
	container, err := opened.CreateContainer(t.Context(), 1, inventory.Container{NodeID: node.ID, Hostname: "web"})
	if err != nil {
		t.Fatal(err)
	}
	volume, err := opened.CreateVolume(t.Context(), container.ID, inventory.Volume{Name: "data", MountPath: "/data", Mode: "rw"})
	if err != nil {
		t.Fatal(err)
	}
	const failed = "1 of the site's volumes failed"
	if list := s.must("", "agents"); strings.Contains(list, failed) {
		t.Errorf("a pending volume:\n%s", list)
	}
	results := map[int64]checkin.VolumeReport{volume.ID: {Message: "no such mount"}}
	if _, err := opened.RecordCheckIn(t.Context(), store.CheckIn{SiteID: 1, Hostname: "well", At: time.Now(), Volumes: results}); err != nil {
		t.Fatal(err)
	}
	if list := s.must("", "agents"); !strings.Contains(list, failed) {
		t.Errorf("%s", list)
	}
}

func TestAgents(t *testing.T) {
	s := withAgents(t)
	list := s.must("", "agents")
	for _, want := range []string{
		"ID  SITE  HOST", "192.0.2.77", "192.0.2.2", "1.2.3", "online", "0 s ago (20", "60 min ago", "offline",
		"dnsmasq is failed; dnsmasq rolled back; dnsmasq left out 2; nginx is on hold; removal of 6 of 8 held back; certificate of example.com expired",
	} {
		if !strings.Contains(list, want) {
			t.Errorf("%q is not in\n%s", want, list)
		}
	}
	if strings.Contains(list, "192.0.2.1 ") {
		t.Errorf("the address is not that of the host, as on the page:\n%s", list)
	}
	if strings.Contains(list, "\x1b") {
		t.Error("there are escapes for a terminal where there is none")
	}
	for _, test := range []struct {
		args []string
		want []string
	}{
		{[]string{"--state", "offline"}, []string{"ill"}},
		{[]string{"--state", "online", "--site", "1"}, []string{"well"}},
		{[]string{"--state", "online", "--site", "LAB"}, []string{"well"}},
		{[]string{"--state", "late"}, nil},
	} {
		var names []string
		for _, a := range decode[[]show.Agent](t, s.must("", append([]string{"agents", "--json"}, test.args...)...)) {
			names = append(names, a.Hostname)
		}
		if strings.Join(names, " ") != strings.Join(test.want, " ") {
			t.Errorf("%v: %v", test.args, names)
		}
	}
	if r := s.run("", "agents", "--site", "7"); r.code != exitUsage || !strings.Contains(r.stderr, `--site: there is no site "7": opensource-manager sites lists them`) {
		t.Errorf("%+v", r)
	}
	if r := s.run("", "agents", "--state", "asleep"); r.code != exitUsage {
		t.Errorf("%+v", r)
	}
}

// written stops a watch after some writes.
type written struct {
	bytes.Buffer
	left int
	stop context.CancelFunc
}

func (w *written) Write(p []byte) (int, error) {
	if w.left--; w.left == 0 {
		w.stop()
	}
	return w.Buffer.Write(p)
}

func TestWatchEndsCleanlyWithItsContext(t *testing.T) {
	s := withAgents(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out := &written{left: 2, stop: stop}
	var stderr bytes.Buffer
	if code := execute(ctx, []string{"agents", "--watch", "--json"}, s.env, nil, nil, out, &stderr); code != exitOK || stderr.Len() > 0 {
		t.Errorf("exit %d: %s", code, stderr.String())
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2 || len(decode[[]show.Agent](t, lines[1])) != 2 {
		t.Errorf("%q", lines)
	}
}

func TestSites(t *testing.T) {
	s := withAgents(t)
	if got := s.must("", "sites"); !strings.Contains(got, "lab") || !strings.Contains(got, "1 of 2") {
		t.Errorf("%s", got)
	}
	if got := decode[[]show.Site](t, s.must("", "sites", "--json")); len(got) != 1 || got[0].Name != "lab" || got[0].InternalDomain != nil {
		t.Errorf("%+v", got)
	}
}

func TestWhatHostsSayCannotCommandATerminal(t *testing.T) {
	var out bytes.Buffer
	table := newTable(&out, "A", "B")
	table.row("x\x1b[2Jy\nz\tw", "")
	if err := table.flush(); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); got != "A           B\nx\uFFFD[2Jy z w  -\n" {
		t.Errorf("%q", got)
	}
}

func TestRoughly(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0 s", 90 * time.Second: "90 s", 2 * time.Minute: "2 min", 3 * time.Hour: "3 h", 49 * time.Hour: "2 d",
	} {
		if got := roughly(d); got != want {
			t.Errorf("%s: %q, want %q", d, got, want)
		}
	}
}
