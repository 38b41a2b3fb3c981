package store_test

import (
	"context"
	"testing"
	"time"

	"opensource.internal/manager/internal/store"
	"opensource.internal/manager/internal/store/storetest"
)

// A load balancer asks whether the manager can write while the manager does: for
// longer than a probe waits, and longer than its result is used again.
func TestAWriterIsNotInItsOwnWay(t *testing.T) {
	s := storetest.Open(t)
	begun, end := make(chan struct{}), make(chan struct{})
	done := make(chan error, 1)
	go func() {
		done <- s.Atomically(t.Context(), func(context.Context) error {
			close(begun)
			<-end
			return nil
		})
	}()
	<-begun
	for stop := time.Now().Add(3 * time.Second); time.Now().Before(stop); {
		if err := s.Writable(t.Context()); err != nil {
			t.Errorf("while a transaction is open: %v", err)
			break
		}
	}
	close(end)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// Somebody else's transaction is waited for, but not for ever.
func TestAForeignWriterThatDoesNotEnd(t *testing.T) {
	t.Parallel()
	database := storetest.Database(t)
	s := storetest.OpenAt(t, database)
	unlock := storetest.LockWrites(t, database)
	began := time.Now()
	for s.Writable(t.Context()) == nil {
		if time.Since(began) > time.Minute {
			t.Fatal("a database that is locked for a minute counts as writable")
		}
	}
	if took := time.Since(began); took < 5*time.Second {
		t.Errorf("given up after %s", took)
	}
	unlock()
	for err := store.ErrNotFound; err != nil; err = s.Writable(t.Context()) {
		if time.Since(began) > 2*time.Minute {
			t.Fatal(err)
		}
	}
}
