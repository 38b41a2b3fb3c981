package storetest

import (
	"testing"
	"time"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/store"
)

// Of each quarter hour it is kept who was silent, as soon as managers have been
// there long enough to know.
func testQuarters(t *testing.T, s *store.Store) {
	w := NewWorld(t, s, 1)
	ctx := t.Context()
	began := time.Now().UTC()
	tell := func(name string, ago time.Duration) store.Agent {
		t.Helper()
		return must(s.RecordCheckIn(ctx, store.CheckIn{SiteID: w.Site.ID, Hostname: name, At: began.Add(-ago), Report: reportOf(false)}))(t)
	}
	online, late, offline := tell("online", 0), tell("late", 3*time.Minute), tell("offline", time.Hour)
	beating := tell("beating", time.Hour)
	s.Beat(store.Heartbeat{AgentID: beating.ID, Told: beating.Told, At: began, Report: &checkin.Request{}}) // in memory
	note := func(heardSince time.Time) {
		t.Helper()
		if err := s.NoteSilence(ctx, heardSince); err != nil {
			t.Fatal(err)
		}
	}
	// sums are those of all quarters: one may end meanwhile.
	sums := func(agent int64) (sum store.Quarter) {
		t.Helper()
		quarters := must(s.Quarters(ctx, agent, time.Now()))(t)
		if len(quarters) != 97 {
			t.Fatalf("%d quarters", len(quarters))
		}
		for i, q := range quarters {
			if i > 0 && q.BeganAt.Sub(quarters[i-1].BeganAt) != store.QuarterLength {
				t.Errorf("%v follows %v", q.BeganAt, quarters[i-1].BeganAt)
			}
			sum.Looks, sum.Late, sum.Offline = sum.Looks+q.Looks, sum.Late+q.Late, sum.Offline+q.Offline
		}
		if last := quarters[96].BeganAt; last.After(time.Now()) || last.Before(began.Add(-store.QuarterLength)) {
			t.Errorf("the last quarter began at %v", last)
		}
		return sum
	}
	note(time.Now().Add(-time.Minute)) // the managers have just come back themselves
	if got := sums(offline.ID); got != (store.Quarter{}) {
		t.Fatalf("known too early: %+v", got)
	}
	note(began.Add(-time.Hour))
	note(began.Add(-time.Hour))
	for id, want := range map[int64]store.Quarter{
		online.ID: {Looks: 2}, beating.ID: {Looks: 2}, late.ID: {Looks: 2, Late: 2}, offline.ID: {Looks: 2, Offline: 2}, 99999: {Looks: 2},
	} {
		if got := sums(id); got != want {
			t.Errorf("agent %d: %+v, want %+v", id, got, want)
		}
	}
	if old := must(s.Quarters(ctx, offline.ID, began.Add(-48*time.Hour)))(t); old[96].Looks != 0 || old[0].Looks != 0 {
		t.Error("what is known of today is told of another day")
	}
}
