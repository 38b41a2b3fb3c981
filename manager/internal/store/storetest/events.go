package storetest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/events"
	"opensource.internal/manager/internal/store"
)

// kinds are the kinds of events, the oldest first.
func kinds(t *testing.T, s *store.Store, filter store.EventFilter) []events.Kind {
	t.Helper()
	rows, _, err := s.ListEvents(t.Context(), filter, store.ListOptions{Limit: store.All, Sort: "id"})
	if err != nil {
		t.Fatal(err)
	}
	list := []events.Kind{}
	for _, row := range rows {
		list = append(list, row.Kind)
	}
	return list
}

func wantKinds(t *testing.T, s *store.Store, want ...events.Kind) {
	t.Helper()
	if diff := cmp.Diff(want, kinds(t, s, store.EventFilter{})); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// reportOf is a report of nginx, refused or not.
func reportOf(fails bool) checkin.Request {
	service := checkin.ServiceReport{State: "active", LastApply: "success", Outcome: "applied"}
	if fails {
		service = checkin.ServiceReport{State: "active", LastApply: "failure", Outcome: "rejected", Message: "bad port"}
	}
	return checkin.Request{Services: map[string]checkin.ServiceReport{"nginx": service}}
}

// testFailureInDoubt: that a failure is over is told also if nothing was known of
// the service in between.
func testFailureInDoubt(t *testing.T, s *store.Store) {
	w := NewWorld(t, s, 1)
	at := time.Now().UTC()
	tell := func(report checkin.Request) {
		t.Helper()
		at = at.Add(time.Minute)
		must(s.RecordCheckIn(t.Context(), store.CheckIn{SiteID: w.Site.ID, Hostname: "edge", At: at, Report: report}))(t)
	}
	unknown := checkin.Request{Services: map[string]checkin.ServiceReport{"nginx": {State: "unknown", LastApply: "unknown"}}}
	want := []events.Kind{events.FirstSeen}
	for _, step := range []struct {
		report checkin.Request
		kinds  []events.Kind
	}{
		{unknown, nil},
		{reportOf(false), nil}, // nothing had failed
		{reportOf(true), []events.Kind{events.ApplyFailed}},
		{unknown, nil},
		{reportOf(false), []events.Kind{events.ApplyRecovered}},
		{unknown, nil},
		{reportOf(false), nil}, // it was told
		{reportOf(true), []events.Kind{events.ApplyFailed}},
		{unknown, nil},
		{checkin.Request{}, nil},
		{reportOf(false), []events.Kind{events.ApplyRecovered}},
		{reportOf(true), []events.Kind{events.ApplyFailed}},
		{checkin.Request{}, []events.Kind{events.ApplyRecovered}},
		{reportOf(false), nil},
	} {
		tell(step.report)
		want = append(want, step.kinds...)
		wantKinds(t, s, want...)
	}
}

func testEvents(t *testing.T, s *store.Store) {
	w := NewWorld(t, s, 1)
	ctx := t.Context()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	tell := func(fails bool, volumes map[int64]checkin.VolumeReport) {
		t.Helper()
		at = at.Add(time.Minute)
		must(s.RecordCheckIn(ctx, store.CheckIn{SiteID: w.Site.ID, Hostname: "edge", At: at, Report: reportOf(fails), Volumes: volumes}))(t)
	}
	tell(false, nil)
	tell(true, nil)
	tell(true, map[int64]checkin.VolumeReport{w.Volume.ID: {Message: "no mount"}})
	tell(true, map[int64]checkin.VolumeReport{w.Volume.ID: {Message: "still no mount"}, 99: {Applied: true}})
	tell(false, map[int64]checkin.VolumeReport{w.Volume.ID: {Applied: true}})
	wantKinds(t, s, events.FirstSeen, events.ApplyFailed, events.VolumeFailed, events.ApplyRecovered, events.VolumeReady)

	rows, total, err := s.ListEvents(ctx, store.EventFilter{Kind: events.VolumeFailed}, store.ListOptions{})
	if err != nil || total != 1 {
		t.Fatal(total, err)
	}
	agent := must(s.FindAgent(ctx, w.Site.ID, "edge"))(t)
	want := store.Event{
		ID: rows[0].ID, At: at.Add(-2 * time.Minute), SiteID: w.Site.ID, AgentID: agent.ID, Hostname: "edge",
		Kind: events.VolumeFailed, Severity: events.Error, Summary: "volume data of web: cannot be provided: no mount",
		Detail: store.Values{"total": float64(1), "volumes": []any{map[string]any{
			"id": float64(w.Volume.ID), "name": "data", "container": "web", "message": "no mount",
		}}},
	}
	if diff := cmp.Diff(want, rows[0], cmp.Comparer(time.Time.Equal)); diff != "" {
		t.Error(diff)
	}
	for name, test := range map[string]struct {
		filter store.EventFilter
		want   int
	}{
		"site": {store.EventFilter{SiteID: w.Site.ID}, 5}, "other site": {store.EventFilter{SiteID: 99}, 0},
		"agent": {store.EventFilter{AgentID: agent.ID}, 5}, "host": {store.EventFilter{Hostname: "edge"}, 5},
		"severity": {store.EventFilter{Severity: events.Error}, 2},
		"since":    {store.EventFilter{Since: at}, 2}, "until": {store.EventFilter{Until: at}, 3},
	} {
		if got := kinds(t, s, test.filter); len(got) != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// However many managers get a check-in at the same time, what it tells happened
// once.
func testEventsOnce(t *testing.T, s *store.Store) {
	w := NewWorld(t, s, 1)
	for _, fails := range []bool{false, true, false} {
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				_, err := s.RecordCheckIn(t.Context(), store.CheckIn{
					SiteID: w.Site.ID, Hostname: "edge", At: time.Now().UTC(), Report: reportOf(fails),
					Volumes: map[int64]checkin.VolumeReport{w.Volume.ID: {Applied: !fails}},
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	}
	wantKinds(t, s, events.FirstSeen, events.VolumeReady, events.ApplyFailed, events.VolumeFailed, events.ApplyRecovered, events.VolumeReady)
}

func testEventsAreBounded(t *testing.T, s *store.Store) {
	w := NewWorld(t, s, 1)
	for i := range 400 {
		must(s.RecordCheckIn(t.Context(), store.CheckIn{
			SiteID: w.Site.ID, Hostname: fmt.Sprintf("edge%d", i), At: time.Now(), Report: reportOf(i%2 == 0),
		}))(t)
	}
	got := kinds(t, s, store.EventFilter{})
	if len(got) != 301 || got[300] != events.LeftOut {
		t.Errorf("%d events, the last is %s", len(got), got[len(got)-1])
	}
}

func testOffline(t *testing.T, s *store.Store) {
	w := NewWorld(t, s, 1)
	ctx := t.Context()
	longAgo := time.Now().UTC().Add(-time.Hour)
	tell := func(name string, at time.Time) store.Agent {
		t.Helper()
		return must(s.RecordCheckIn(ctx, store.CheckIn{SiteID: w.Site.ID, Hostname: name, At: at, Report: reportOf(false)}))(t)
	}
	tell("silent", longAgo)
	tell("late", time.Now().UTC().Add(-store.LateFor+10*time.Second))
	beating := tell("beating", longAgo)
	s.Beat(store.Heartbeat{AgentID: beating.ID, Told: beating.Told, At: time.Now(), Report: &beating.Report.Request}) // in memory
	mark := func(heardSince time.Time) {
		t.Helper()
		if err := s.MarkOffline(ctx, heardSince); err != nil {
			t.Fatal(err)
		}
	}
	offline := func() []string {
		t.Helper()
		names := []string{}
		agents, _, err := s.ListAgents(ctx, store.AgentFilter{}, store.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, agent := range agents {
			if agent.OfflineAt != nil {
				names = append(names, agent.Hostname)
			}
		}
		return names
	}
	mark(time.Now().Add(-store.LateFor)) // the managers have just come back themselves
	if got := offline(); len(got) != 0 {
		t.Fatalf("offline too early: %v", got)
	}
	for range 2 {
		mark(longAgo)
	}
	if diff := cmp.Diff([]string{"silent"}, offline()); diff != "" {
		t.Fatal(diff)
	}
	tell("silent", time.Now().UTC())
	if got := offline(); len(got) != 0 {
		t.Errorf("still offline: %v", got)
	}
	wantKinds(t, s, events.FirstSeen, events.FirstSeen, events.FirstSeen, events.Offline, events.Back)
}

// One that was offline and has nothing new to tell is back with a heartbeat.
func testBackWithAHeartbeat(t *testing.T, s *store.Store) {
	w := NewWorld(t, s, 1)
	ctx := t.Context()
	longAgo := time.Now().UTC().Add(-time.Hour)
	agent := must(s.RecordCheckIn(ctx, store.CheckIn{SiteID: w.Site.ID, Hostname: "edge", At: longAgo, Report: reportOf(false)}))(t)
	for _, want := range [][]events.Kind{{events.FirstSeen, events.Offline}, {events.FirstSeen, events.Offline, events.Back}} {
		if err := s.MarkOffline(ctx, longAgo); err != nil { // writes heartbeats first
			t.Fatal(err)
		}
		wantKinds(t, s, want...)
		s.Beat(store.Heartbeat{AgentID: agent.ID, Told: agent.Told, At: time.Now(), Report: &agent.Report.Request})
	}
	rows, _, err := s.ListEvents(ctx, store.EventFilter{Kind: events.Back}, store.ListOptions{})
	if err != nil || rows[0].Summary != "checks in again, after 60 minutes" {
		t.Errorf("%+v, %v", rows, err)
	}
}

// What a manager remembers of an agent that has told another one something new
// since, is not written over it.
func testMissedReport(t *testing.T, s *store.Store) {
	w := NewWorld(t, s, 1)
	ctx := t.Context()
	tell := func(fails bool) store.Agent {
		t.Helper()
		return must(s.RecordCheckIn(ctx, store.CheckIn{SiteID: w.Site.ID, Hostname: "edge", At: time.Now().UTC(), Report: reportOf(fails)}))(t)
	}
	remembered := tell(false)
	tell(true)
	old := store.Heartbeat{AgentID: remembered.ID, Told: remembered.Told, At: time.Now(), Report: &remembered.Report.Request}
	if !s.Beat(old) {
		t.Fatal("refused before anybody could know")
	}
	if err := s.MarkOffline(ctx, time.Now().Add(-time.Hour)); err != nil { // writes heartbeats
		t.Fatal(err)
	}
	if agent := must(s.GetAgent(ctx, remembered.ID))(t); agent.Report.Services["nginx"].Outcome != "rejected" {
		t.Errorf("the newer report was written over: %+v", agent.Report)
	}
	if s.Beat(old) {
		t.Error("taken a second time: nobody would ever look at the database")
	}
	if !s.Beat(old) {
		t.Error("refused for ever")
	}
	tell(false)
	wantKinds(t, s, events.FirstSeen, events.ApplyFailed, events.ApplyRecovered)
}
