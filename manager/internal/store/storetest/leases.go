package storetest

import (
	"errors"
	"testing"
	"time"

	"opensource.internal/manager/internal/store"
)

func testLease(t *testing.T, s *store.Store) {
	ctx := t.Context()
	if _, err := s.UnbrokenSince(ctx, "tasks"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("before anybody held it: %v", err)
	}
	began := time.Now()
	mine, others := s.NewLease("tasks", time.Hour), s.NewLease("tasks", time.Hour)
	held := func(l *store.Lease) bool {
		t.Helper()
		return !must(l.Hold(ctx))(t).IsZero()
	}
	if !held(mine) || held(others) || !held(mine) {
		t.Error("not held by the first, or by both")
	}
	if !held(s.NewLease("else", time.Hour)) {
		t.Error("a lease of another name is not another one")
	}
	if err := others.Release(ctx); err != nil {
		t.Fatal(err)
	}
	if !held(mine) {
		t.Error("somebody else gave it away")
	}
	if err := mine.Release(ctx); err != nil {
		t.Fatal(err)
	}
	if !held(others) || held(mine) {
		t.Error("not taken over after it was given back")
	}
	if since := must(s.UnbrokenSince(ctx, "tasks"))(t); since.Sub(began).Abs() > time.Minute {
		t.Errorf("unbroken since %s", since)
	}
}

// A time without a holder is a gap, a short change of hands is none.
func testLeaseGap(t *testing.T, s *store.Store) {
	ctx := t.Context()
	const term = 20 * time.Millisecond
	lease := s.NewLease("tasks", term)
	since := func() time.Time {
		t.Helper()
		must(lease.Hold(ctx))(t)
		return must(s.UnbrokenSince(ctx, "tasks"))(t)
	}
	first := since()
	waitUntil(t, first.Add(4*term))
	second := since()
	if !second.After(first) {
		t.Errorf("no gap between %s and %s", first, second)
	}
	other := s.NewLease("tasks", time.Hour)
	if err := lease.Release(ctx); err != nil {
		t.Fatal(err)
	}
	must(other.Hold(ctx))(t)
	if third := must(s.UnbrokenSince(ctx, "tasks"))(t); !third.Equal(second) {
		t.Errorf("a gap between %s and %s", second, third)
	}
}

// waitUntil waits for a moment of the clock, which is what is tested.
func waitUntil(t *testing.T, at time.Time) {
	t.Helper()
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	<-timer.C
}
