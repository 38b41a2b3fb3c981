package status

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"opensource.internal/agent/checkin"
	"opensource.internal/agent/internal/pass"
	"opensource.internal/agent/internal/state"
	"opensource.internal/agent/internal/systemd"
)

// host is a host whose passes have left what the test says.
type host struct {
	t    *testing.T
	root string
	state.State
}

func newHost(t *testing.T) *host {
	return &host{t: t, root: t.TempDir(), State: state.State{Services: map[string]state.Service{}}}
}

func (h *host) dir() string { return filepath.Join(h.root, "state") }

// file puts a file in force.
func (h *host) file(service, name, content string) string {
	h.t.Helper()
	path := filepath.Join(h.root, name)
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		h.t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(content))
	stands := h.Services[service]
	stands.Digests = map[string]string{path: hex.EncodeToString(sum[:])}
	h.Services[service] = stands
	return path
}

// status saves what is known and asks.
func (h *host) status() Status {
	h.t.Helper()
	dir, err := state.Open(h.dir())
	if err != nil {
		h.t.Fatal(err)
	}
	data, etag, err := checkin.Encode(checkin.Snapshot{
		Site:  &checkin.Site{ID: 1, Name: "lab", Nodes: []checkin.Node{}, DNSRecords: []checkin.DNSRecord{}, Volumes: []checkin.Volume{}},
		NGINX: checkin.NGINX{HTTPServices: []checkin.HTTPService{}, StreamServices: []checkin.StreamService{}, ExternalDomains: []checkin.ExternalDomain{{Name: "example.com"}}},
	})
	if err == nil {
		err = dir.SaveAccepted(state.Accepted{ETag: etag, Data: data})
	}
	if err == nil {
		err = dir.SaveState(h.State)
	}
	if err != nil {
		h.t.Fatal(err)
	}
	return h.look()
}

// look asks, and wants nothing to be changed by that.
func (h *host) look() Status {
	h.t.Helper()
	before := h.files()
	status, err := Gather(h.t.Context(), pass.Options{Version: "test", StateDirectory: h.dir(), Root: h.root, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		h.t.Fatal(err)
	}
	if diff := cmp.Diff(before, h.files()); diff != "" {
		h.t.Errorf("files were changed (-before +after):\n%s", diff)
	}
	return status
}

// files are all files of the host with the times of their changes.
func (h *host) files() map[string]time.Time {
	h.t.Helper()
	found := map[string]time.Time{}
	err := filepath.WalkDir(h.root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			found[path] = info.ModTime()
		}
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return found
}

func (h *host) nginx(s Status) Service {
	h.t.Helper()
	if len(s.Services) == 0 || s.Services[0].Name != "nginx" {
		h.t.Fatalf("services: %+v", s.Services)
	}
	return s.Services[0]
}

func TestAHostWithoutAPass(t *testing.T) {
	h := newHost(t)
	s := h.look()
	if s.Snapshot != nil || s.Site != nil || s.Running != nil || s.ExitCode != pass.Rejected || len(s.Warnings) > 0 {
		t.Errorf("got %+v", s)
	}
	if nginx := h.nginx(s); nginx.State != checkin.StateUnknown || nginx.LastApply != checkin.ApplyUnknown {
		t.Errorf("nginx: %+v", nginx)
	}
}

func TestWhatRuns(t *testing.T) {
	h := newHost(t)
	at := time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC)
	h.Services["nginx"] = state.Service{LastApply: checkin.ApplySuccess, Outcome: checkin.OutcomeApplied, AppliedAt: &at}
	h.Running = &checkin.Running{ETag: `"x"`, Since: at}
	h.Volumes.Results = map[string]checkin.VolumeReport{"42": {Applied: true}}
	h.file("nginx", "nginx.conf", "events {}")
	s := h.status()
	nginx := h.nginx(s)
	if s.ExitCode != pass.Settled || s.Site.Name != "lab" || s.Snapshot.ETag == "" || time.Since(s.Snapshot.AcceptedAt) > time.Minute ||
		s.Running.ETag != `"x"` || !s.Volumes["42"].Applied || nginx.Outcome != checkin.OutcomeApplied || !nginx.AppliedAt.Equal(at) || len(nginx.Edited) > 0 {
		t.Errorf("got %+v", s)
	}
	if c := s.Certificates["example.com"]; c.State != checkin.CertificateMissing || !c.Fallback || c.Note == "" {
		t.Errorf("certificate: %+v", c)
	}
}

func TestWhatFails(t *testing.T) {
	h := newHost(t)
	retry := state.Retry{Failures: 3, Since: now, After: now.Add(time.Minute)}
	h.Services["nginx"] = state.Service{LastApply: checkin.ApplyFailure, Outcome: checkin.OutcomeRejected, Message: "bad", Retry: &retry}
	s := h.status()
	if diff := cmp.Diff(&Failure{Since: now, Count: 3, Next: now.Add(time.Minute)}, h.nginx(s).Failure); diff != "" || s.ExitCode != pass.Rejected {
		t.Errorf("exit code %d, failure (-want +got):\n%s", s.ExitCode, diff)
	}
	h.Services["nginx"] = state.Service{LastApply: checkin.ApplyFailure, Outcome: checkin.OutcomeStuck}
	if s := h.status(); s.ExitCode != pass.NeedsAPerson {
		t.Errorf("stuck: exit code %d", s.ExitCode)
	}
	h.Services["nginx"] = state.Service{}
	h.Volumes.Results = map[string]checkin.VolumeReport{"42": {Message: "denied"}}
	if s := h.status(); s.ExitCode != pass.Rejected || s.Volumes["42"].Message != "denied" {
		t.Errorf("volume: %+v", s)
	}
}

func TestLocalEditsAndPassesThatWereCutShort(t *testing.T) {
	h := newHost(t)
	path := h.file("nginx", "nginx.conf", "events {}")
	if err := os.WriteFile(path, []byte("edited"), 0o644); err != nil {
		t.Fatal(err)
	}
	if nginx := h.nginx(h.status()); len(nginx.Edited) != 1 || nginx.Edited[0] != path || nginx.CutShort {
		t.Errorf("got %+v", nginx)
	}
	for _, left := range []string{filepath.Join(h.root, ".nginx.conf.opensource-agent.old"), filepath.Join(h.dir(), "commit-nginx.json")} {
		if err := os.WriteFile(left, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if nginx := h.nginx(h.status()); len(nginx.Edited) != 0 || !nginx.CutShort {
		t.Errorf("got %+v", nginx)
	}
}

func TestWhatProbesHaveFound(t *testing.T) {
	h := newHost(t)
	if s := h.status(); s.Probes == nil || len(s.Probes) > 0 {
		t.Errorf("without probes: %+v", s.Probes)
	}
	found := state.Probe{Probe: checkin.Probe{Hop: checkin.HopDNS, Message: "no such name"}, At: now}
	h.Probes = &state.Probes{At: now, Services: map[string]state.Probe{"app.example.com": found}}
	s := h.status()
	if diff := cmp.Diff(map[string]Probe{"app.example.com": Probe(found)}, s.Probes); diff != "" || s.ExitCode != pass.Settled {
		t.Errorf("exit code %d, probes (-want +got):\n%s", s.ExitCode, diff)
	}
}

func TestHolds(t *testing.T) {
	h := newHost(t)
	hold := func(left time.Duration) {
		h.Holds = map[string]state.Hold{"nginx": {From: time.Now().Add(-time.Hour), Hold: checkin.Hold{Until: time.Now().Add(left), By: "alice"}}}
	}
	hold(time.Hour)
	if nginx := h.nginx(h.status()); nginx.Hold == nil || nginx.Hold.By != "alice" {
		t.Errorf("hold: %+v", nginx.Hold)
	}
	hold(-time.Minute)
	if nginx := h.nginx(h.status()); nginx.Hold != nil {
		t.Errorf("a hold whose time is over: %+v", nginx.Hold)
	}
}

func TestDamagedStateIsAWarning(t *testing.T) {
	h := newHost(t)
	h.status()
	if err := os.WriteFile(filepath.Join(h.dir(), "state.json"), []byte(`{"services":`), 0o600); err != nil {
		t.Fatal(err)
	}
	if s := h.look(); len(s.Warnings) != 1 || !strings.Contains(s.Warnings[0], "state.json") || s.Site == nil {
		t.Errorf("got %+v", s)
	}
}

func TestLastPass(t *testing.T) {
	ended := now.UTC()
	for name, test := range map[string]struct {
		active string
		run    systemd.Run
		want   *LastPass
	}{
		"never":          {"inactive", systemd.Run{}, nil},
		"first one runs": {"activating", systemd.Run{}, &LastPass{Running: true}},
		"ended":          {"inactive", systemd.Run{Ended: ended, Status: 3}, &LastPass{EndedAt: &ended, ExitCode: new(3)}},
		"runs again":     {"activating", systemd.Run{Ended: ended}, &LastPass{Running: true, EndedAt: &ended, ExitCode: new(0)}},
		"killed":         {"failed", systemd.Run{Ended: ended, Status: 9, Killed: true}, &LastPass{EndedAt: &ended, Signal: new(9)}},
	} {
		if diff := cmp.Diff(test.want, lastPass(test.active, test.run)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
