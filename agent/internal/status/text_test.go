package status

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"opensource.internal/agent/checkin"
	"opensource.internal/agent/internal/pass"
)

var update = flag.Bool("update", false, "write the files in testdata")

func TestMain(m *testing.M) {
	time.Local = time.UTC // that of the texts below
	os.Exit(m.Run())
}

var now = time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC)

func before(d time.Duration) *time.Time { return new(now.Add(-d)) }

// full is a site with something of everything.
func full() Status {
	return Status{
		At:       now,
		Agent:    Agent{Version: "2026.12.0", Templates: []string{"nginx/nginx.conf.tmpl"}},
		Site:     &Site{ID: 1, Name: "lab"},
		Snapshot: &Snapshot{ETag: `"b"`, AcceptedAt: now.Add(-time.Hour)},
		Running:  &checkin.Running{ETag: `"a"`, Since: now.Add(-50 * time.Hour)},
		Guard:    &checkin.Guard{Removed: 60, Total: 100, Kind: checkin.GuardServices, ETag: `"c"`},
		LastPass: &LastPass{EndedAt: before(12 * time.Second), ExitCode: new(4)},
		NextPass: new(now.Add(18 * time.Second)),
		Services: []Service{
			{
				Name: "nginx", Unit: "nginx.service", State: "active",
				LastApply: checkin.ApplyFailure, Outcome: checkin.OutcomeApplied, Message: "left out: …",
				ReceivedETag: `"b"`, RunningETag: `"b"`, AppliedAt: before(time.Hour),
				Quarantined: []checkin.QuarantinedItem{
					{Kind: checkin.KindHTTP, ID: 3, Name: "app.example.com", Reason: `internalPort: "80800" is not a port`},
					{Kind: checkin.KindStream, Name: "2201/tcp", Reason: "refused\nin two lines", KeptPrevious: true},
				},
				Drift:  []checkin.Drift{{Path: "/etc/nginx/nginx.conf", Diff: "-a\n+b\n"}},
				Edited: []string{"/etc/nginx/nginx.conf"},
			},
			{
				Name: "dnsmasq", Unit: "dnsmasq.service", State: "failed",
				LastApply: checkin.ApplyFailure, Outcome: checkin.OutcomeRolledBack, Message: "bad option\x1b[2J at line 12",
				ReceivedETag: `"b"`, RunningETag: `"a"`, AppliedAt: before(50 * time.Hour),
				Quarantined: []checkin.QuarantinedItem{}, Drift: []checkin.Drift{}, Edited: []string{},
				Failure:  &Failure{Since: now.Add(-59 * time.Minute), Count: 7, Next: now.Add(14 * time.Minute)},
				Hold:     &checkin.Hold{Until: now.Add(100 * time.Minute), By: "alice", Reason: "moving house"},
				CutShort: true,
			},
		},
		Volumes: map[string]checkin.VolumeReport{
			"9":  {Applied: true},
			"42": {Applied: true, Message: "owner 999:999 instead of 100000:100000"},
			"43": {Message: "mkdir /mnt/v/43: permission denied"},
		},
		Certificates: map[string]Certificate{
			"example.com": {Certificate: checkin.Certificate{State: checkin.CertificateExpiring, NotAfter: new(now.Add(75 * time.Hour))}},
			"example.org": {Certificate: checkin.Certificate{State: checkin.CertificateMissing, Fallback: true}, Note: "/etc/ssl/certs/example.org.crt: no such file"},
		},
		Probes: map[string]Probe{
			"app.example.com":  {At: *before(3 * time.Minute), Probe: checkin.Probe{Hop: checkin.HopBackend, Message: "dial tcp 192.0.2.101:8080: connect: connection refused"}},
			"wiki.example.com": {At: *before(8 * time.Minute)},
		},
		Warnings: []string{"ask for the next time of opensource-agent.timer: systemd did not answer in time"},
		ExitCode: pass.Rejected,
	}
}

func TestWords(t *testing.T) {
	var got bytes.Buffer
	if err := full().Write(&got); err != nil {
		t.Fatal(err)
	}
	compareFile(t, "full.txt", got.Bytes())
}

// Programs depend on the names in here.
func TestJSON(t *testing.T) {
	got, err := json.MarshalIndent(full(), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	compareFile(t, "full.json", append(got, '\n'))
}

func compareFile(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

func TestFirstLine(t *testing.T) {
	snapshot, site := &Snapshot{ETag: `"a"`, AcceptedAt: now}, &Site{ID: 1, Name: "lab"}
	for want, status := range map[string]Status{
		"no site: no snapshot of the manager was ever accepted":                {},
		"no site: the manager does not know it yet":                            {Snapshot: snapshot},
		"site 1 lab: not in force as a whole yet":                              {Snapshot: snapshot, Site: site},
		"site 1 lab: not all of it is in force":                                {Snapshot: snapshot, Site: site, ExitCode: pass.Rejected},
		"site 1 lab: needs a person":                                           {Snapshot: snapshot, Site: site, ExitCode: pass.NeedsAPerson},
		"site 1 lab: all in force since 2026-12-01 09:59:00 UTC (1 min ago)":   {Snapshot: snapshot, Site: site, Running: &checkin.Running{ETag: `"a"`, Since: *before(time.Minute)}},
		"site 1 lab: not in force as a whole yet\n  snapshot a accepted 2026-": {Snapshot: snapshot, Site: site, Running: &checkin.Running{ETag: `"b"`, Since: *before(time.Minute)}},
	} {
		status.At = now
		var got bytes.Buffer
		if err := status.Write(&got); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(got.String(), want) {
			t.Errorf("got %q, want %q", got.String(), want)
		}
	}
}

// What is not undone must not be called restored.
func TestEdits(t *testing.T) {
	for outcome, want := range map[checkin.Outcome]string{
		checkin.OutcomeApplied:    "  was edited by somebody else and restored: /a\n  edited by somebody else: /a\n",
		checkin.OutcomeRejected:   "  edited by somebody else: /a\n",
		checkin.OutcomeRolledBack: "  edited by somebody else: /a\n",
	} {
		var got bytes.Buffer
		edited := Service{Outcome: outcome, Drift: []checkin.Drift{{Path: "/a"}}, Edited: []string{"/a"}}
		if err := (Status{Services: []Service{edited}}).Write(&got); err != nil {
			t.Fatal(err)
		}
		_, told, _ := strings.Cut(got.String(), ": , ")
		if _, told, _ = strings.Cut(told, "\n"); told != want {
			t.Errorf("%s: got %q, want %q", outcome, told, want)
		}
	}
}

func TestNoNextPass(t *testing.T) {
	for _, test := range []struct {
		status Status
		told   bool
	}{
		{Status{timerAsked: true}, true},
		{Status{timerAsked: true, LastPass: &LastPass{EndedAt: &now, ExitCode: new(0)}}, true},
		{Status{timerAsked: true, LastPass: &LastPass{Running: true}}, false}, // systemd knows the next time afterwards
		{Status{timerAsked: true, NextPass: &now}, false},
		{Status{}, false},
	} {
		var got bytes.Buffer
		if err := test.status.Write(&got); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(got.String(), "no next pass") != test.told {
			t.Errorf("%+v: %s", test.status, got.String())
		}
	}
}

// A name server that is down must not fill the screen.
func TestManyProbesThatFail(t *testing.T) {
	probes := map[string]Probe{}
	for i := range maxProbes + 5 {
		probes[fmt.Sprintf("app%d.example.com", i)] = Probe{Probe: checkin.Probe{Hop: checkin.HopDNS, Message: "no answer in time"}, At: now}
	}
	var got bytes.Buffer
	if err := (Status{At: now, Probes: probes}).Write(&got); err != nil {
		t.Fatal(err)
	}
	if count := strings.Count(got.String(), "no answer in time"); count != maxProbes || !strings.Contains(got.String(), "and 5 more") || !strings.Contains(got.String(), "0 of 25 services can be reached") {
		t.Errorf("%d are listed:\n%s", count, got.String())
	}
}

func TestSpan(t *testing.T) {
	for in, want := range map[time.Duration]string{
		-time.Hour:                    "0 s",
		59 * time.Second:              "59 s",
		119 * time.Second:             "1 min",
		3*time.Hour + 5*time.Minute:   "3 h 5 min",
		51*time.Hour + 59*time.Minute: "2 d 3 h",
	} {
		if got := span(in); got != want {
			t.Errorf("%v: %q, want %q", in, got, want)
		}
	}
}
