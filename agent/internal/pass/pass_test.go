package pass

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"opensource.internal/agent/checkin"
	"opensource.internal/agent/internal/state"
)

func splitLines(s string) []string { return strings.Split(strings.TrimSpace(s), "\n") }

func cutTab(line string) (string, string, bool) { return strings.Cut(line, "\t") }

// lab is a site with one of everything but volumes.
func lab() checkin.Snapshot {
	backend := checkin.Backend{IPv4Address: "192.0.2.101"}
	return checkin.Snapshot{
		Site: &checkin.Site{
			ID: 1, Name: "lab", InternalDomain: "lab.internal", DHCPRange: "192.0.2.100,192.0.2.200",
			SubnetMask: "255.255.255.0", Gateway: "192.0.2.1", DNSForwarders: "9.9.9.9,1.1.1.1",
			Nodes: []checkin.Node{{Name: "pve1", IPv4Address: "192.0.2.10", Containers: []checkin.Container{
				{Hostname: "web", IPv4Address: "192.0.2.101", MACAddress: "02:00:00:00:00:01"},
			}}},
			DNSRecords: []checkin.DNSRecord{{ID: 7, Type: "SRV", Name: "_sip._tcp", Target: "web", Port: 5060}},
			Volumes:    []checkin.Volume{},
		},
		NGINX: checkin.NGINX{
			HTTPServices: []checkin.HTTPService{{
				ID: 3, InternalPort: 8080, Container: backend, ExternalHostname: "app", BackendProtocol: "http",
				ExternalDomain: checkin.HTTPServiceDomain{Name: "example.com"},
			}},
			StreamServices:  []checkin.StreamService{{ID: 4, InternalPort: 22, Container: backend, ExternalPort: 2201, Protocol: "tcp"}},
			ExternalDomains: []checkin.ExternalDomain{{Name: "example.com"}},
		},
	}
}

func TestFirstPassAppliesAndTells(t *testing.T) {
	s := newSite(t)
	s.publish(lab())
	s.pass(Settled)
	requests, statuses := s.take()
	if diff := cmp.Diff([]int{200, 304}, statuses); diff != "" {
		t.Fatalf("answers (-want +got):\n%s", diff)
	}
	first, told := requests[0], requests[1]
	if first.Services["nginx"].LastApply != checkin.ApplyUnknown || first.Volumes != nil {
		t.Errorf("the first check-in tells of an apply: %+v", first.Services)
	}
	for _, name := range []string{"nginx", "dnsmasq"} {
		r := told.Services[name]
		if r.LastApply != checkin.ApplySuccess || r.Outcome != checkin.OutcomeApplied || r.RunningETag != s.etag || r.ReceivedETag != s.etag ||
			r.State != checkin.StateUnknown || r.AppliedAt == nil {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if told.Running == nil || told.Running.ETag != s.etag {
		t.Errorf("running = %+v", told.Running)
	}
	if !strings.Contains(s.read("etc/nginx/nginx.conf"), "app.example.com") || !strings.Contains(s.read("var/lib/dnsmasq/hosts"), "web.lab.internal") {
		t.Error("the snapshot is not in the files")
	}
}

func TestUnchangedPassWritesNothing(t *testing.T) {
	s := newSite(t)
	s.publish(lab())
	s.pass(Settled)
	s.take()
	before := s.files()
	for range 3 {
		s.pass(Settled)
	}
	requests, statuses := s.take()
	if diff := cmp.Diff([]int{304, 304, 304}, statuses); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, s.files()); diff != "" {
		t.Errorf("files were written (-before +after):\n%s", diff)
	}
	if r := last(t, requests).Services["nginx"]; r.LastApply != checkin.ApplySuccess {
		t.Errorf("nginx: %+v", r)
	}
}

// Two managers behind one address may differ for a while: the site must not be
// reloaded to and fro.
// What cannot be a snapshot for this agent leaves everything as it is.
// An agent that took the place of an earlier one has no snapshot yet, but the
// host serves a site.
func TestARefusedRecordLeavesTheRestWorking(t *testing.T) {
	s := newSite(t)
	snapshot := lab()
	bad := snapshot.NGINX.HTTPServices[0]
	bad.ID, bad.ExternalHostname = 9, "app; return 200 owned; #"
	snapshot.NGINX.HTTPServices = append(snapshot.NGINX.HTTPServices, bad)
	s.publish(snapshot)
	s.pass(Rejected)
	requests, _ := s.take()
	r := last(t, requests).Services["nginx"]
	if r.LastApply != checkin.ApplyFailure || r.Outcome != checkin.OutcomeApplied || len(r.Quarantined) != 1 || r.Quarantined[0].ID != 9 || !strings.Contains(r.Message, "app; return") {
		t.Errorf("nginx: %+v", r)
	}
	if last(t, requests).Running != nil {
		t.Error("a snapshot that is not wholly in force was reported as running")
	}
	conf := s.read("etc/nginx/nginx.conf")
	if strings.Contains(conf, "owned") || !strings.Contains(conf, "app.example.com") {
		t.Error("the wrong record was left out")
	}
	before := s.files()
	s.pass(Rejected)
	after := s.files()
	if before["etc/nginx/nginx.conf"] != after["etc/nginx/nginx.conf"] {
		t.Error("the file was written again")
	}
	s.publish(lab())
	s.pass(Settled)
}

func TestABadSiteValueStopsOnlyItsService(t *testing.T) {
	s := newSite(t)
	s.publish(lab())
	s.pass(Settled)
	s.take()
	dnsmasq := s.read("etc/dnsmasq.conf")
	for _, value := range []checkin.Text{"192.0.2.100-192.0.2.200", "192.0.2.100,192.0.3.200", "192.0.2.200,192.0.2.100", "192.0.2.100,192.0.2.200\ndhcp-script=/bin/sh"} {
		bad := lab()
		bad.Site.DHCPRange = value
		bad.NGINX.HTTPServices[0].ExternalHostname = "new"
		s.publish(bad)
		s.pass(Rejected)
		requests, _ := s.take()
		if r := last(t, requests).Services["dnsmasq"]; r.Outcome != checkin.OutcomeRejected || !strings.Contains(r.Message, "dhcpRange") {
			t.Errorf("%q: dnsmasq: %+v", value, r)
		}
		if r := last(t, requests).Services["nginx"]; r.LastApply != checkin.ApplySuccess {
			t.Errorf("%q: nginx: %+v", value, r)
		}
		if s.read("etc/dnsmasq.conf") != dnsmasq || !strings.Contains(s.read("etc/nginx/nginx.conf"), "new.example.com") {
			t.Errorf("%q: the wrong files were written", value)
		}
	}
}

func TestABrokenTemplateStopsOnlyItsServiceAndIsTold(t *testing.T) {
	s := newSite(t)
	s.write("etc/opensource-agent/templates/dnsmasq/dnsmasq.conf.tmpl", "{{.NoSuchField}}")
	s.publish(lab())
	s.pass(Rejected)
	requests, _ := s.take()
	told := last(t, requests)
	if r := told.Services["dnsmasq"]; r.Outcome != checkin.OutcomeRejected || !strings.Contains(r.Message, "NoSuchField") {
		t.Errorf("dnsmasq: %+v", r)
	}
	if r := told.Services["nginx"]; r.LastApply != checkin.ApplySuccess {
		t.Errorf("nginx: %+v", r)
	}
	if diff := cmp.Diff([]string{"dnsmasq/dnsmasq.conf.tmpl"}, told.Agent.Templates); diff != "" {
		t.Errorf("templates (-want +got):\n%s", diff)
	}
}

func TestASiteThatLosesItsNetworkIsNotManagedAnyMore(t *testing.T) {
	s := newSite(t)
	s.publish(lab())
	s.pass(Settled)
	less := lab()
	less.Site.Gateway = ""
	s.publish(less)
	s.pass(Settled)
	requests, _ := s.take()
	if r := last(t, requests).Services["dnsmasq"]; r.Outcome != checkin.OutcomeSkipped || !strings.Contains(r.Message, "gateway") || r.LastApply == checkin.ApplySuccess {
		t.Errorf("dnsmasq: %+v", r)
	}
}

func TestVolumesAreToldUntilAnAnswerCame(t *testing.T) {
	s := newSite(t)
	snapshot := lab()
	snapshot.Site.Volumes = []checkin.Volume{
		{ID: 42, HostPath: "/srv/../etc", Mode: "rw"},
		{ID: 43, HostPath: "relative", Mode: "rw"},
	}
	s.publish(snapshot)
	s.pass(Rejected)
	requests, _ := s.take()
	if len(requests) != 2 || requests[0].Volumes != nil || len(requests[1].Volumes) != 2 || requests[1].Volumes["42"].Applied || requests[1].Volumes["42"].Message == "" {
		t.Fatalf("check-ins: %+v", requests)
	}
	s.pass(Rejected)
	requests, _ = s.take()
	if len(requests) != 1 || requests[0].Volumes != nil {
		t.Errorf("results that were told are told again: %+v", requests)
	}
	// New results that meet a silent manager are told by the next pass.
	snapshot.Site.Volumes[1].HostPath = "also/relative"
	s.publish(snapshot)
	n := 0
	data, etag := s.data, s.etag
	s.respond(func(w http.ResponseWriter, r *http.Request) {
		if n++; n == 1 {
			answerSnapshot(w, r, data, etag)
			return
		}
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	s.pass(Rejected)
	s.take()
	s.publish(snapshot)
	s.pass(Rejected)
	requests, _ = s.take()
	if len(requests[0].Volumes) != 2 {
		t.Errorf("the results got lost: %+v", requests[0].Volumes)
	}
}

func TestDamagedStateIsAFirstRun(t *testing.T) {
	for name, content := range map[string]string{
		"empty": "", "half": `{"services":{"ngi`, "NULs": strings.Repeat("\x00", 4096), "null": "null",
		"another generation": `{"etag":"\"abc\"\n","lastApply":{"nginx":"success"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.publish(lab())
			s.pass(Settled)
			s.take()
			before := s.files()
			s.write("var/lib/opensource-agent/state.json", content)
			s.write("var/lib/opensource-agent/snapshot.json", content)
			s.pass(Settled)
			if _, statuses := s.take(); statuses[0] != 200 {
				t.Errorf("answers = %v: a tag was sent from a damaged file", statuses)
			}
			after := s.files()
			for path, identity := range before {
				if !strings.Contains(path, "var/lib/opensource-agent/") && after[path] != identity {
					t.Errorf("%s was written although nothing differs", path)
				}
			}
			before = s.files()
			s.pass(Settled)
			if diff := cmp.Diff(before["var/lib/opensource-agent/state.json"], s.files()["var/lib/opensource-agent/state.json"]); diff != "" {
				t.Error("the state did not settle")
			}
		})
	}
}

func TestASecondPassSaysWhoRuns(t *testing.T) {
	s := newSite(t)
	dir, err := state.Open(s.options().StateDirectory)
	if err != nil {
		t.Fatal(err)
	}
	unlock, err := dir.Lock(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	s.pass(AnotherPassOn)
	unlock()
	if requests, _ := s.take(); len(requests) != 0 {
		t.Error("the second pass checked in")
	}
}

// A pass that does not end with 0 says why, also when it is the same as before.
func TestWhatStaysUnsettledIsLoggedInEveryPass(t *testing.T) {
	s := newSite(t)
	snapshot := lab()
	snapshot.NGINX.HTTPServices[0].ExternalHostname = "not a name"
	snapshot.Site.Volumes = []checkin.Volume{{ID: 42, HostPath: "relative", Mode: "rw"}}
	s.publish(snapshot)
	for range 3 {
		var log strings.Builder
		options := s.options()
		options.Log = slog.New(slog.NewTextHandler(&log, nil))
		if code := Run(t.Context(), options); code != Rejected {
			t.Errorf("exit code %d", code)
		}
		for _, want := range []string{"not a name", "volume failed", "volume=42"} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("%q is not in\n%s", want, log.String())
			}
		}
	}
}

func TestASnapshotThatIsSentAgainIsNoNews(t *testing.T) {
	s := newSite(t)
	data, etag, _ := checkin.Encode(checkin.Bootstrap())
	s.respond(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del("If-None-Match")
		answerSnapshot(w, r, data, etag)
	})
	for _, want := range []int{1, 0} {
		var log strings.Builder
		options := s.options()
		options.Log = slog.New(slog.NewTextHandler(&log, nil))
		if code := Run(t.Context(), options); code != Settled || strings.Count(log.String(), "snapshot received") != want {
			t.Errorf("exit code %d, want 0 and %d times news in\n%s", code, want, log.String())
		}
	}
}
