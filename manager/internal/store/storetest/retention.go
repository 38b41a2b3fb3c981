package storetest

import (
	"fmt"
	"testing"
	"time"

	"opensource.internal/manager/internal/store"
)

func testRetention(t *testing.T, s *store.Store) {
	w := NewWorld(t, s, 1) // 8 audit entries
	ctx := t.Context()
	for i := range 30 {
		guesser := store.WithActor(ctx, store.Actor{Kind: store.ActorUnknown, Address: fmt.Sprintf("192.0.2.%d", i)})
		if err := s.AuditFailedSignIn(guesser, store.Subject{Resource: "session"}); err != nil {
			t.Fatal(err)
		}
		must(s.RecordCheckIn(ctx, store.CheckIn{
			SiteID: w.Site.ID, Hostname: fmt.Sprintf("edge%d", i), At: time.Now().Add(-time.Duration(30-i) * time.Hour),
		}))(t)
	}
	audit := func() (others, failures int) {
		t.Helper()
		_, all, err := s.ListAudit(ctx, store.AuditFilter{}, store.ListOptions{})
		_, failed, err2 := s.ListAudit(ctx, store.AuditFilter{Action: store.ActionSignInFailed}, store.ListOptions{})
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		return int(all - failed), int(failed)
	}
	for _, step := range []struct {
		keep             store.Retention
		others, failures int
		events           int
	}{
		{store.Retention{Age: 31 * time.Hour, Rows: 1000}, 8, 30, 30},
		{store.Retention{}, 8, 30, 30},
		{store.Retention{Rows: 1000}, 8, 30, 30},
		{store.Retention{Age: 31 * time.Hour}, 8, 30, 30},
		{store.Retention{Age: 10*time.Hour + time.Minute, Rows: 20}, 8, 20, 10},
		{store.Retention{Age: time.Hour * 1000, Rows: 5}, 5, 5, 5},
		{store.Retention{Age: time.Nanosecond, Rows: 5}, 0, 0, 0},
	} {
		if err := s.PruneAudit(ctx, step.keep); err != nil {
			t.Fatal(err)
		}
		if err := s.PruneEvents(ctx, step.keep); err != nil {
			t.Fatal(err)
		}
		others, failures := audit()
		if events := len(kinds(t, s, store.EventFilter{})); others != step.others || failures != step.failures || events != step.events {
			t.Errorf("%+v: %d entries, %d failures, %d events", step.keep, others, failures, events)
		}
	}
}

// More than one transaction deletes at once.
func testRetentionOfMany(t *testing.T, s *store.Store) {
	w := NewWorld(t, s, 1)
	AddContainers(t, s, w, 1100)
	if err := s.DeleteSite(t.Context(), w.Site.ID, true); err != nil {
		t.Fatal(err)
	}
	if err := s.PruneAudit(t.Context(), store.Retention{Age: time.Hour, Rows: 1}); err != nil {
		t.Fatal(err)
	}
	wantEntries(t, s, store.AuditFilter{}, "delete site site1")
}
