package storetest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"opensource.internal/manager/internal/store"
)

func testLive(t *testing.T, s *store.Store) {
	ctx := t.Context()
	w := NewWorld(t, s, 1)
	counter := func() uint64 {
		t.Helper()
		return must(s.ReportCounters(ctx))(t)[w.Site.ID]
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC)
	before := counter()
	moves := func(what string, want bool) {
		t.Helper()
		now := counter()
		if (now != before) != want {
			t.Errorf("%s: the counter went from %d to %d", what, before, now)
		}
		before = now
	}
	id := must(s.RecordCheckIn(ctx, store.CheckIn{SiteID: w.Site.ID, Hostname: "edge", At: at, Report: reportOf(false)}))(t).ID
	moves("a new agent", true)
	must(s.RecordCheckIn(ctx, store.CheckIn{SiteID: w.Site.ID, Hostname: "edge", At: at.Add(time.Second), Report: reportOf(true)}))(t)
	moves("a new report", true)
	for _, siteID := range []int64{0, w.Site.ID} {
		want := map[int64]map[int64]time.Time{w.Site.ID: {id: at.Add(time.Second)}}
		if diff := cmp.Diff(want, must(s.AgentsToldAt(ctx, siteID))(t)); diff != "" {
			t.Errorf("told at (-want +got):\n%s", diff)
		}
	}
	latest := must(s.LatestEvents(ctx))(t)
	if len(latest) != 2 || latest[0].Kind != "first_seen" || latest[1].Kind != "apply_failed" || latest[1].AgentID != id || latest[1].SiteID != w.Site.ID {
		t.Errorf("latest events: %+v", latest)
	}
	if err := s.DeleteAgent(ctx, id); err != nil {
		t.Fatal(err)
	}
	moves("a forgotten agent", true)
	moves("nothing", false)
}
