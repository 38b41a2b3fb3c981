package pass

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"opensource.internal/agent/checkin"
	"opensource.internal/agent/internal/state"
)

// crowd is the lab with that many HTTP services, transport services and
// reservations instead of its own, with ids.
func crowd(http, stream, reservations int) checkin.Snapshot {
	snapshot := lab()
	app, port := snapshot.NGINX.HTTPServices[0], snapshot.NGINX.StreamServices[0]
	snapshot.NGINX.HTTPServices, snapshot.NGINX.StreamServices = []checkin.HTTPService{}, []checkin.StreamService{}
	for i := range http {
		app.ID, app.ExternalHostname = int64(100+i), fmt.Sprintf("app%d", i)
		snapshot.NGINX.HTTPServices = append(snapshot.NGINX.HTTPServices, app)
	}
	for i := range stream {
		port.ID, port.ExternalPort = int64(1100+i), 2201+i
		snapshot.NGINX.StreamServices = append(snapshot.NGINX.StreamServices, port)
	}
	snapshot.Site.DNSRecords = []checkin.DNSRecord{}
	snapshot.Site.Nodes[0].Containers = []checkin.Container{}
	for i := range reservations {
		snapshot.Site.Nodes[0].Containers = append(snapshot.Site.Nodes[0].Containers, checkin.Container{
			Hostname: fmt.Sprintf("c%d", i), IPv4Address: fmt.Sprintf("192.0.2.%d", 101+i), MACAddress: checkin.Text(fmt.Sprintf("02:00:00:00:01:%02x", i)),
		})
	}
	return snapshot
}

// guardedSite is a host that runs a snapshot with the guard on.
func guardedSite(t *testing.T, snapshot checkin.Snapshot) *site {
	s := newSite(t)
	s.guard = 50
	s.publish(snapshot)
	s.pass(Settled)
	s.take()
	return s
}

func TestAMassRemovalIsHeldBack(t *testing.T) {
	s := guardedSite(t, crowd(6, 4, 1))
	running := s.etag
	conf, snapshot := s.read("etc/nginx/nginx.conf"), s.read("var/lib/opensource-agent/snapshot.json")

	s.publish(crowd(2, 2, 1))
	code, log := s.logged()
	if code != Rejected || !strings.Contains(log, "removes 6 of the 10 services in force here") || !strings.Contains(log, `removed="app2.example.com, `) || !strings.Contains(log, "/api/v1/sites/1/confirm-removals") {
		t.Errorf("exit code %d:\n%s", code, log)
	}
	requests, statuses := s.take()
	if diff := cmp.Diff([]int{200, 304}, statuses); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
	told := last(t, requests)
	want := &checkin.Guard{Removed: 6, Total: 10, Kind: checkin.GuardServices, ETag: s.etag}
	if diff := cmp.Diff(want, told.Guard); diff != "" || requests[0].Guard != nil {
		t.Errorf("guard (-want +got):\n%s", diff)
	}
	if r := told.Services["nginx"]; r.ReceivedETag != s.etag || r.RunningETag != running || r.LastApply != checkin.ApplySuccess || told.Running.ETag != running {
		t.Errorf("nginx: %+v, running %+v", r, told.Running)
	}

	// It stays so, and what runs is looked after.
	before := s.files()
	s.pass(Rejected)
	if diff := cmp.Diff(before, s.files()); diff != "" {
		t.Errorf("files were written (-before +after):\n%s", diff)
	}
	s.write("etc/nginx/nginx.conf", "edited")
	s.pass(Rejected)
	if s.read("etc/nginx/nginx.conf") != conf || s.read("var/lib/opensource-agent/snapshot.json") != snapshot {
		t.Error("what runs is not what it was before")
	}
	requests, statuses = s.take()
	if diff := cmp.Diff([]int{304, 304, 304}, statuses); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
	for _, told := range requests {
		if diff := cmp.Diff(want, told.Guard); diff != "" {
			t.Errorf("guard (-want +got):\n%s", diff)
		}
	}

	// An administrator confirms: the same content comes with another tag.
	confirmed := crowd(2, 2, 1)
	confirmed.RemovalsConfirmed = true
	s.publish(confirmed)
	s.pass(Settled)
	s.wantAccepted()
	// The next change of the inventory drops the confirmation.
	s.publish(crowd(3, 2, 1))
	s.pass(Settled)
	s.wantAccepted()
}

// wantAccepted wants the published snapshot to be in force, and told so.
func (s *site) wantAccepted() {
	s.t.Helper()
	requests, _ := s.take()
	told := last(s.t, requests)
	if told.Guard != nil || told.Running == nil || told.Running.ETag != s.etag || told.Services["nginx"].RunningETag != s.etag || told.Services["nginx"].ReceivedETag != s.etag {
		s.t.Errorf("told: %+v", told)
	}
	if _, found := s.files()["var/lib/opensource-agent/held-back.json"]; found {
		s.t.Error("a snapshot is still held back")
	}
}

func TestWhatCountsAsAMassRemoval(t *testing.T) {
	base := crowd(6, 4, 10)
	without := func(change func(*checkin.Snapshot)) checkin.Snapshot {
		snapshot := crowd(6, 4, 10)
		change(&snapshot)
		return snapshot
	}
	for name, test := range map[string]struct {
		before, after checkin.Snapshot
		share         int
		want          *checkin.Guard // of which kind and numbers count
	}{
		"half":                       {base, crowd(3, 2, 10), 50, nil},
		"more than half":             {base, crowd(3, 1, 10), 50, &checkin.Guard{Removed: 6, Total: 10, Kind: checkin.GuardServices}},
		"all":                        {base, crowd(0, 0, 10), 50, &checkin.Guard{Removed: 10, Total: 10, Kind: checkin.GuardServices}},
		"all, guard off":             {base, crowd(0, 0, 0), 0, nil},
		"all of four":                {crowd(2, 2, 4), crowd(0, 0, 0), 50, nil},
		"all of five":                {crowd(3, 2, 0), crowd(0, 0, 0), 50, &checkin.Guard{Removed: 5, Total: 5, Kind: checkin.GuardServices}},
		"a smaller share":            {base, crowd(3, 2, 10), 40, &checkin.Guard{Removed: 5, Total: 10, Kind: checkin.GuardServices}},
		"reservations":               {base, crowd(6, 4, 4), 50, &checkin.Guard{Removed: 6, Total: 10, Kind: checkin.GuardReservations}},
		"both":                       {base, crowd(0, 0, 0), 50, &checkin.Guard{Removed: 10, Total: 10, Kind: checkin.GuardServices}},
		"nothing ran":                {checkin.Snapshot{}, base, 50, nil},
		"grows":                      {base, crowd(60, 40, 50), 50, nil},
		"dnsmasq not managed now":    {base, without(func(s *checkin.Snapshot) { s.Site.Gateway = ""; s.Site.Nodes[0].Containers = nil }), 50, nil},
		"dnsmasq not managed before": {without(func(s *checkin.Snapshot) { s.Site.Gateway = "" }), crowd(6, 4, 0), 50, nil},
		"renamed": {base, without(func(s *checkin.Snapshot) {
			for i := range s.NGINX.HTTPServices {
				s.NGINX.HTTPServices[i].ExternalHostname += "-new"
			}
		}), 50, nil},
		"renamed by an older manager without ids": {base, without(func(s *checkin.Snapshot) {
			for i := range s.NGINX.HTTPServices {
				s.NGINX.HTTPServices[i].ID, s.NGINX.HTTPServices[i].ExternalDomain.Name = 0, "example.org"
			}
		}), 50, &checkin.Guard{Removed: 6, Total: 10, Kind: checkin.GuardServices}},
	} {
		t.Run(name, func(t *testing.T) {
			dir, err := state.Open(filepath.Join(t.TempDir(), "state"))
			if err != nil {
				t.Fatal(err)
			}
			p := pass{Options: Options{RemovalGuard: test.share}, dir: dir}
			if test.before.NGINX.HTTPServices != nil {
				for _, service := range []string{"nginx", "dnsmasq"} {
					if err := dir.SaveRunning(service, accepted(t, test.before)); err != nil {
						t.Fatal(err)
					}
				}
			}
			fresh := accepted(t, test.after)
			if test.want != nil {
				test.want.ETag = fresh.ETag
			}
			if diff := cmp.Diff(test.want, p.judge(fresh)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func accepted(t *testing.T, snapshot checkin.Snapshot) state.Accepted {
	t.Helper()
	for i, node := range snapshot.Site.Nodes {
		if node.Containers == nil {
			snapshot.Site.Nodes[i].Containers = []checkin.Container{}
		}
	}
	data, etag, err := checkin.Encode(snapshot)
	if err != nil {
		t.Fatal(err)
	}
	return state.Accepted{ETag: etag, Data: data, Snapshot: snapshot}
}

// Whatever comes in whatever order: what runs never loses more than the share
// in one step unless that was confirmed.
func TestNoOrderOfSnapshotsGetsPastTheGuard(t *testing.T) {
	s := guardedSite(t, crowd(6, 4, 8))
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	before := s.running(t)
	if len(before["services"]) != 10 || len(before["reservations"]) != 8 {
		t.Fatalf("running: %v", before)
	}
	heldBack, let, confirmed := 0, 0, 0
	for step := range 60 {
		snapshot := crowd(0, 0, 0)
		all := crowd(6, 4, 8)
		share := random.Float64()
		for _, h := range all.NGINX.HTTPServices {
			if random.Float64() < share {
				snapshot.NGINX.HTTPServices = append(snapshot.NGINX.HTTPServices, h)
			}
		}
		for _, t := range all.NGINX.StreamServices {
			if random.Float64() < share {
				snapshot.NGINX.StreamServices = append(snapshot.NGINX.StreamServices, t)
			}
		}
		for _, c := range all.Site.Nodes[0].Containers {
			if random.Float64() < share {
				snapshot.Site.Nodes[0].Containers = append(snapshot.Site.Nodes[0].Containers, c)
			}
		}
		switch random.IntN(8) {
		case 0:
			snapshot = crowd(0, 0, 0)
		case 1:
			snapshot = all
		case 2, 3:
			snapshot.RemovalsConfirmed = true
		case 6:
			snapshot.Site.Gateway = ""
		case 4:
			s.write("etc/opensource-agent/templates/nginx/listen.tmpl", "no_such_directive;")
		case 5:
			if err := os.RemoveAll(filepath.Join(s.root, "etc/opensource-agent")); err != nil {
				t.Fatal(err)
			}
		}
		s.publish(snapshot)
		for range 1 + random.IntN(2) {
			Run(t.Context(), s.options())
			now := s.running(t)
			for kind, names := range before {
				if !massRemoval(names, now[kind]) {
					continue
				}
				confirmed++
				if !s.accepted().RemovalsConfirmed {
					t.Fatalf("seed %d, step %d: of %v only %v are left", seed, step, names, now[kind])
				}
			}
			before = now
		}
		requests, _ := s.take()
		if last(t, requests).Guard != nil {
			heldBack++
		} else {
			let++
		}
	}
	t.Logf("%d snapshots were held back, %d were not; %d mass removals were confirmed", heldBack, let, confirmed)
	if heldBack < 3 || let < 3 {
		t.Errorf("seed %d: too few snapshots to tell anything", seed)
	}
}

// massRemoval is the rule in its own words.
func massRemoval(before, now []string) bool {
	removed := slices.DeleteFunc(slices.Clone(before), func(name string) bool { return slices.Contains(now, name) })
	return len(removed) >= 5 && 2*len(removed) > len(before)
}

// accepted is the snapshot that is meant to be in force.
func (s *site) accepted() checkin.Snapshot {
	s.t.Helper()
	dir, err := state.Open(s.options().StateDirectory)
	if err != nil {
		s.t.Fatal(err)
	}
	_, accepted, _ := dir.Load()
	return accepted.Snapshot
}

// running are the services and reservations in the live files.
func (s *site) running(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{"services": {}, "reservations": {}}
	for line := range strings.Lines(s.read("etc/nginx/nginx.conf")) {
		line = strings.TrimSpace(line)
		for i := range 6 {
			if line == fmt.Sprintf("server_name app%d.example.com;", i) {
				found["services"] = append(found["services"], line)
			}
		}
		for i := range 4 {
			if strings.HasPrefix(line, fmt.Sprintf("listen %d", 2201+i)) {
				found["services"] = append(found["services"], line)
			}
		}
	}
	for line := range strings.Lines(s.read("var/lib/dnsmasq/dhcp-hosts")) {
		if mac, _, ok := strings.Cut(line, ","); ok && strings.HasPrefix(mac, "02:") {
			found["reservations"] = append(found["reservations"], mac)
		}
	}
	return found
}

func TestASmallerChangeTakesThePlaceOfWhatIsHeldBack(t *testing.T) {
	for name, snapshot := range map[string]checkin.Snapshot{"another": crowd(6, 3, 1), "the one that runs": crowd(6, 4, 1)} {
		t.Run(name, func(t *testing.T) {
			s := guardedSite(t, crowd(6, 4, 1))
			s.publish(crowd(0, 0, 1))
			s.pass(Rejected)
			s.publish(snapshot)
			s.pass(Settled)
			s.wantAccepted()
		})
	}
}

func TestConfirmedByHand(t *testing.T) {
	s := guardedSite(t, crowd(6, 4, 1))
	s.confirm = true
	s.publish(crowd(0, 0, 1))
	code, log := s.logged()
	if code != Rejected || !strings.Contains(log, "nothing to confirm") {
		t.Errorf("something was confirmed that nobody had seen: exit code %d\n%s", code, log)
	}
	s.pass(Settled)
	s.wantAccepted()
	s.confirm = false
	s.pass(Settled)
	s.publish(crowd(6, 4, 1))
	s.pass(Settled)
	s.publish(crowd(0, 0, 1))
	s.pass(Rejected) // confirmed once, not for ever
}

func TestAChangedSettingIsHeeded(t *testing.T) {
	for _, share := range []int{0, 99} {
		s := guardedSite(t, crowd(6, 4, 1))
		s.publish(crowd(1, 0, 1))
		s.pass(Rejected)
		s.guard = share
		s.pass(Settled)
		s.wantAccepted()
	}
}

func TestARemovalIsHeldBackAgainWhenWhatWasHeldBackGotLost(t *testing.T) {
	for name, lose := range map[string]func(*site){
		"the file":   func(s *site) { _ = os.Remove(filepath.Join(s.root, "var/lib/opensource-agent/held-back.json")) },
		"a part":     func(s *site) { s.write("var/lib/opensource-agent/held-back.json", `{"etag":"\"a`) },
		"the state":  func(s *site) { s.write("var/lib/opensource-agent/state.json", "{") },
		"what was":   func(s *site) { s.write("var/lib/opensource-agent/snapshot.json", "{") },
		"what runs":  func(s *site) { s.write("var/lib/opensource-agent/running-nginx.json", "") },
		"its number": func(s *site) { s.remember(func(known *state.State) { known.Guard = nil }) },
	} {
		t.Run(name, func(t *testing.T) {
			s := guardedSite(t, crowd(6, 4, 1))
			conf := s.read("etc/nginx/nginx.conf")
			s.publish(crowd(0, 0, 1))
			s.pass(Rejected)
			lose(s)
			for range 2 {
				s.pass(Rejected)
			}
			requests, _ := s.take()
			if told := last(t, requests); told.Guard == nil || told.Guard.Removed != 10 || s.read("etc/nginx/nginx.conf") != conf {
				t.Errorf("guard: %+v", told.Guard)
			}
		})
	}
}

// A version that came before the guard has left only its snapshot.
func TestTheGuardAfterAnUpgrade(t *testing.T) {
	s := guardedSite(t, crowd(6, 4, 8))
	for _, name := range []string{"running-nginx.json", "running-dnsmasq.json"} {
		if err := os.Remove(filepath.Join(s.root, "var/lib/opensource-agent", name)); err != nil {
			t.Fatal(err)
		}
	}
	s.publish(crowd(6, 4, 0))
	s.pass(Rejected)
	requests, _ := s.take()
	if guard := last(t, requests).Guard; guard == nil || guard.Kind != checkin.GuardReservations {
		t.Errorf("guard: %+v", guard)
	}
}

// A version before the guard applies without writing down what runs then. After
// a way back to it and forth again, what was noted earlier is not in force.
func TestTheGuardAfterADowngrade(t *testing.T) {
	s := guardedSite(t, crowd(6, 4, 1))
	earlier := s.read("var/lib/opensource-agent/running-nginx.json")
	s.confirm = true
	s.publish(crowd(0, 0, 1))
	s.pass(Rejected)
	s.pass(Settled)
	s.confirm = false
	s.write("var/lib/opensource-agent/running-nginx.json", earlier)
	s.publish(crowd(1, 0, 1))
	s.pass(Settled)
}

// What was never in force cannot be removed.
func TestAFirstConfigurationThatFailsIsNotGuarded(t *testing.T) {
	s := newSite(t)
	s.guard = 50
	s.write("etc/opensource-agent/templates/nginx/listen.tmpl", "no_such_directive;")
	s.publish(crowd(6, 4, 1))
	s.pass(Rejected)
	s.publish(crowd(0, 0, 1))
	s.pass(Rejected)
	if requests, _ := s.take(); last(t, requests).Guard != nil {
		t.Errorf("guard: %+v", last(t, requests).Guard)
	}
}

// Cleared network fields leave dnsmasq's files as they are. When they come back
// with few reservations, these files are what is compared.
func TestReservationsOfASiteWithoutNetworkStayGuarded(t *testing.T) {
	s := guardedSite(t, crowd(1, 0, 8))
	cleared := crowd(1, 0, 0)
	cleared.Site.DHCPRange = ""
	s.publish(cleared)
	s.pass(Settled)
	s.take()
	s.publish(crowd(1, 0, 0))
	s.pass(Rejected)
	requests, _ := s.take()
	if guard := last(t, requests).Guard; guard == nil || guard.Removed != 8 {
		t.Errorf("guard: %+v", guard)
	}
}

// An agent that was given another site by mistake must not clear the host.
func TestAnotherSiteIsGuarded(t *testing.T) {
	s := guardedSite(t, crowd(6, 4, 1))
	conf := s.read("etc/nginx/nginx.conf")
	s.siteID = 2
	other := crowd(0, 0, 0)
	other.Site.ID = 2
	s.publish(other)
	s.pass(Rejected)
	if s.read("etc/nginx/nginx.conf") != conf {
		t.Error("the site is gone")
	}
	// Nor is it taken for one of the agent's own site later.
	s.siteID, s.confirm = 1, true
	s.respond(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	s.pass(ManagerAway)
	if s.read("etc/nginx/nginx.conf") != conf {
		t.Error("the site is gone")
	}
	s.publish(crowd(6, 4, 1))
	s.pass(Settled)
	s.wantAccepted()
}

// With the manager away what is held back stays so, and is still told of here.
func TestHeldBackWithTheManagerAway(t *testing.T) {
	s := guardedSite(t, crowd(6, 4, 1))
	s.publish(crowd(0, 0, 1))
	s.pass(Rejected)
	s.respond(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	code, log := s.logged()
	if code != Rejected || !strings.Contains(log, "removes 10 of the 10") {
		t.Errorf("exit code %d:\n%s", code, log)
	}
}

// A volume that the snapshot held back adds or changes stays pending, so that a
// manager may answer every check-in in full. The pass must not go round in
// circles for it.
func TestAPendingVolumeOfWhatIsHeldBack(t *testing.T) {
	with := func(snapshot checkin.Snapshot, ids ...int64) checkin.Snapshot {
		for _, id := range ids {
			snapshot.Site.Volumes = append(snapshot.Site.Volumes, checkin.Volume{ID: id, HostPath: fmt.Sprintf("/srv/../%d", id), Mode: "rw"})
		}
		return snapshot
	}
	s := newSite(t)
	s.guard = 50
	s.publish(with(crowd(6, 4, 1), 41, 42, 44))
	s.pass(Rejected)
	s.take()
	latest := with(crowd(0, 0, 1), 41, 42, 43) // without 44
	latest.Site.Volumes[0].Mode = "ro"
	s.publish(latest)
	data, etag := s.data, s.etag
	pending := true
	s.respond(func(w http.ResponseWriter, r *http.Request) {
		if pending {
			r.Header.Del("If-None-Match")
		}
		answerSnapshot(w, r, data, etag)
	})
	s.pass(Rejected)
	requests, _ := s.take()
	if len(requests) != 2 || requests[0].Volumes != nil || len(requests[1].Volumes) != 1 || requests[1].Volumes["42"].Message == "" || requests[1].Guard == nil {
		t.Errorf("%d check-ins, the last one with %+v", len(requests), last(t, requests))
	}
	before := s.files()
	for range 2 {
		s.pass(Rejected)
	}
	if requests, statuses := s.take(); len(statuses) != 2 || last(t, requests).Guard == nil {
		t.Errorf("answers = %v", statuses)
	}
	if diff := cmp.Diff(before, s.files()); diff != "" {
		t.Errorf("files were written (-before +after):\n%s", diff)
	}
	s.confirm, pending = true, false
	s.pass(Rejected)
	requests, _ = s.take()
	if told := last(t, requests); len(told.Volumes) != 3 || told.Guard != nil {
		t.Errorf("told: %+v", told)
	}
}

func TestAManagerWithoutTagsIsGuarded(t *testing.T) {
	s := guardedSite(t, crowd(6, 4, 1))
	data, _, err := checkin.Encode(crowd(0, 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	s.respond(func(w http.ResponseWriter, r *http.Request) { answerSnapshot(w, r, data, "") })
	for _, want := range []int{2, 1} {
		s.pass(Rejected)
		if requests, statuses := s.take(); len(statuses) != want || last(t, requests).Guard == nil {
			t.Errorf("answers = %v, want %d; guard %+v", statuses, want, last(t, requests).Guard)
		}
	}
}

// A pass that was killed while it took over what was held back must not hold
// it back again.
func TestAcceptedIsAccepted(t *testing.T) {
	s := guardedSite(t, crowd(6, 4, 1))
	s.publish(crowd(0, 0, 1))
	s.pass(Rejected)
	dir, err := state.Open(s.options().StateDirectory)
	if err != nil {
		t.Fatal(err)
	}
	heldBack, err := dir.LoadHeldBack()
	if err != nil || heldBack.ETag != s.etag {
		t.Fatalf("%+v, %v", heldBack.ETag, err)
	}
	if err := dir.SaveAccepted(heldBack); err != nil {
		t.Fatal(err)
	}
	s.take()
	s.pass(Settled)
	s.wantAccepted()
}
