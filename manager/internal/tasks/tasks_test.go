package tasks_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"opensource.internal/manager/internal/store"
	"opensource.internal/manager/internal/store/storetest"
	"opensource.internal/manager/internal/tasks"
)

// manager runs tasks until it is stopped.
type manager struct {
	stop func() time.Duration
}

func start(t *testing.T, s *store.Store, term time.Duration, log *slog.Logger, list ...tasks.Task) manager {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		tasks.New(s.NewLease("tasks", term), log, list...).Run(ctx)
		close(done)
	}()
	stop := sync.OnceValue(func() time.Duration {
		began := time.Now()
		cancel()
		<-done
		return time.Since(began)
	})
	t.Cleanup(func() { stop() })
	return manager{stop: stop}
}

// beats is a task that tells of every run.
func beats(name string) (tasks.Task, <-chan struct{}) {
	ran := make(chan struct{})
	return tasks.Task{Name: name, Every: 10 * time.Millisecond, Run: func(ctx context.Context) error {
		select {
		case ran <- struct{}{}:
		case <-ctx.Done():
		}
		return nil
	}}, ran
}

func within(t *testing.T, what string, happens <-chan struct{}) {
	t.Helper()
	select {
	case <-happens:
	case <-time.After(20 * time.Second):
		t.Fatalf("never: %s", what)
	}
}

func TestOnlyTheHolderDoesThem(t *testing.T) {
	database := storetest.Database(t)
	first, firstRan := beats("first")
	second, secondRan := beats("second")
	a := start(t, storetest.OpenAt(t, database), time.Hour, slog.New(slog.DiscardHandler), first)
	within(t, "the first manager does its tasks", firstRan)
	start(t, storetest.OpenAt(t, database), 300*time.Millisecond, slog.New(slog.DiscardHandler), second)
	for range 20 {
		select {
		case <-firstRan:
		case <-secondRan:
			// The second one's term is short: it waits for that long without a
			// renewal only if the first one's is the same.
			t.Fatal("both do the tasks")
		}
	}
	if took := a.stop(); took > time.Second {
		t.Errorf("stopping took %s", took)
	}
	within(t, "the second manager takes over after a clean stop", secondRan)
}

func TestTakenOverWithinATermFromOneThatWasKilled(t *testing.T) {
	database := storetest.Database(t)
	const term = time.Second
	killed := storetest.OpenAt(t, database).NewLease("tasks", term)
	until, err := killed.Hold(t.Context())
	if err != nil || until.IsZero() {
		t.Fatal(until, err)
	}
	task, ran := beats("second")
	start(t, storetest.OpenAt(t, database), term, slog.New(slog.DiscardHandler), task)
	within(t, "the second manager takes over", ran)
	if time.Now().Before(until) {
		t.Error("two held the lease at once")
	}
}

func TestAFaultStopsNoOther(t *testing.T) {
	var log strings.Builder
	good, ran := beats("good")
	hangs := make(chan struct{})
	m := start(t, storetest.Open(t), time.Minute, slog.New(slog.NewTextHandler(&log, nil)),
		tasks.Task{Name: "fails", Every: time.Millisecond, Run: func(context.Context) error { return errors.New("no luck") }},
		tasks.Task{Name: "panics", Every: time.Millisecond, Run: func(context.Context) error { panic("no luck at all") }},
		tasks.Task{Name: "hangs", Every: time.Millisecond, Run: func(ctx context.Context) error {
			<-ctx.Done()
			close(hangs)
			return ctx.Err()
		}},
		good)
	for range 20 {
		within(t, "the good task runs", ran)
	}
	if took := m.stop(); took > time.Second {
		t.Errorf("stopping took %s", took)
	}
	within(t, "the hanging task was told to stop", hangs)
	for _, want := range []string{"task fails", "no luck", "task panics", "no luck at all"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("%q is not in the log:\n%s", want, log.String())
		}
	}
	if got := strings.Count(log.String(), "task fails"); got != 1 {
		t.Errorf("the same fault was logged %d times", got)
	}
}

func TestARunIsBounded(t *testing.T) {
	ended := make(chan struct{})
	start(t, storetest.Open(t), time.Minute, slog.New(slog.DiscardHandler), tasks.Task{
		Name: "endless", Every: time.Hour, Timeout: 50 * time.Millisecond,
		Run: func(ctx context.Context) error {
			<-ctx.Done()
			close(ended)
			return ctx.Err()
		},
	})
	within(t, "the run is given up", ended)
}

// A task that does not listen delays the stop, but not for long, and the lease
// is not given away while it is still at it.
func TestATaskThatDoesNotListen(t *testing.T) {
	database := storetest.Database(t)
	release, began := make(chan struct{}), make(chan struct{})
	defer close(release)
	var once sync.Once
	m := start(t, storetest.OpenAt(t, database), time.Hour, slog.New(slog.DiscardHandler), tasks.Task{
		Name: "deaf", Every: time.Hour, Run: func(context.Context) error {
			once.Do(func() { close(began) })
			<-release
			return nil
		},
	})
	within(t, "it runs", began)
	if took := m.stop(); took > time.Second {
		t.Errorf("stopping took %s", took)
	}
	until, err := storetest.OpenAt(t, database).NewLease("tasks", time.Hour).Hold(t.Context())
	if err != nil || !until.IsZero() {
		t.Errorf("another one got the lease: %v, %v", until, err)
	}
}

// Of many who want a lease at once, one gets it.
func TestOneWinner(t *testing.T) {
	database := storetest.Database(t)
	var winners atomic.Int32
	var all sync.WaitGroup
	for range 4 {
		s := storetest.OpenAt(t, database)
		all.Go(func() {
			until, err := s.NewLease("tasks", time.Hour).Hold(t.Context())
			if err != nil {
				t.Error(err)
			}
			if !until.IsZero() {
				winners.Add(1)
			}
		})
	}
	all.Wait()
	if winners.Load() != 1 {
		t.Errorf("%d hold the lease", winners.Load())
	}
}
