package store

import (
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"testing"

	"opensource.internal/manager/internal/inventory"
)

// slowSource answers as of when it was asked, but only once it may.
type slowSource struct {
	counterSource
	asked, may chan struct{}
}

func (s slowSource) mark() (any, error) {
	mark, err := s.counterSource.mark()
	s.asked <- struct{}{}
	<-s.may
	return mark, err
}

// Whoever takes part in somebody else's look waits no longer than it may.
func TestALookIsLeftInTime(t *testing.T) {
	s, err := Open(t.Context(), Database{Path: filepath.Join(t.TempDir(), "manager.db")}, Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	slow := slowSource{s.changes.source, make(chan struct{}, 10), make(chan struct{})}
	s.changes.source = slow
	result := make(chan error, 2)
	look := func(ctx context.Context) {
		_, err := s.Versions(ctx)
		result <- err
	}
	go look(t.Context())
	<-slow.asked
	go look(t.Context()) // waits for the first one, to make the next
	joined := func() bool {
		s.changes.joining.Lock()
		defer s.changes.joining.Unlock()
		return s.changes.next != nil
	}
	for !joined() {
		runtime.Gosched()
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.changes.look(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	close(slow.may)
	for range 2 {
		if err := <-result; err != nil {
			t.Error(err)
		}
	}
}

// TestLookIsNeverOlderThanTheCall commits a change while a look is under way:
// a call that comes after the commit must not take part in that look.
func TestLookIsNeverOlderThanTheCall(t *testing.T) {
	s, err := Open(t.Context(), Database{Path: filepath.Join(t.TempDir(), "manager.db")}, Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	slow := slowSource{s.changes.source, make(chan struct{}, 10), make(chan struct{})}
	s.changes.source = slow

	first, second := make(chan Versions, 1), make(chan Versions, 1)
	look := func(result chan<- Versions) {
		versions, err := s.Versions(t.Context())
		if err != nil {
			t.Error(err)
		}
		result <- versions
	}
	go look(first)
	<-slow.asked
	site, err := s.CreateSite(t.Context(), inventory.Site{Name: "lab"})
	if err != nil {
		t.Fatal(err)
	}
	go look(second)
	for range 1000 { // the second call arrives while the first look lasts
		runtime.Gosched()
	}
	close(slow.may)
	if versions := <-first; versions.Site(site.ID) != 0 {
		t.Fatal("the first look saw the change: the test shows nothing")
	}
	if versions := <-second; versions.Site(site.ID) == 0 {
		t.Error("a call after the commit did not see it")
	}
}
