// Package tasks runs what has to be done now and then, once for all managers
// that share a database: only the one that holds a lease does it, and another
// takes over when that one stops or is gone.
package tasks

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"opensource.internal/manager/internal/store"
)

// LeaseName is the lease that the holder of the tasks has, and LeaseTerm how
// long nobody does them after a holder was killed.
const (
	LeaseName = "tasks"
	LeaseTerm = 30 * time.Second
)

// Task is something to be done every interval, first when the lease is taken. A
// run is given up after Timeout, a minute if 0. It ends early when the manager
// stops, or has lost the lease: what it does must bear being broken off, and
// being done again by another manager.
type Task struct {
	Name    string
	Every   time.Duration
	Timeout time.Duration
	Run     func(context.Context) error
}

const (
	defaultTimeout = time.Minute
	// stopWait is how long tasks may take to end, and releaseWait how long it
	// may take to give the lease back: the manager stops in well under a second.
	stopWait    = 250 * time.Millisecond
	releaseWait = 200 * time.Millisecond
)

// Runner runs tasks while it holds a lease.
type Runner struct {
	lease *store.Lease
	log   *slog.Logger
	tasks []Task
}

// New returns a Runner of tasks. Each has its own rhythm and its own goroutine:
// one that hangs or fails holds up no other.
func New(lease *store.Lease, log *slog.Logger, list ...Task) *Runner {
	return &Runner{lease: lease, log: log, tasks: list}
}

// Run does the tasks whenever it holds the lease, until the context ends. Then
// it stops them and gives the lease back.
func (r *Runner) Run(ctx context.Context) {
	faults := faults{log: r.log, act: "hold the lease of the tasks"}
	for ctx.Err() == nil {
		until, err := r.hold(ctx, r.lease.Term())
		faults.note(ctx, err)
		if time.Now().Before(until) && !r.work(ctx, until) {
			return // a task is still at it: the lease runs out by itself
		}
		wait(ctx, r.lease.Term()/3)
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseWait)
	defer cancel()
	if err := r.lease.Release(last); err != nil {
		r.log.Warn("another manager does the tasks only when the lease has run out", "err", err)
	}
}

// hold takes or renews the lease, and waits for the database no longer than is
// left of it.
func (r *Runner) hold(ctx context.Context, left time.Duration) (until time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	return r.lease.Hold(ctx)
}

// work does the tasks while the lease is renewed, and reports whether all have
// ended.
func (r *Runner) work(ctx context.Context, until time.Time) (ended bool) {
	holding, stop := context.WithCancel(ctx)
	defer stop()
	var running sync.WaitGroup
	for _, task := range r.tasks {
		running.Go(func() { r.repeat(holding, task) })
	}
	r.renew(ctx, until)
	stop()
	done := make(chan struct{})
	go func() { running.Wait(); close(done) }()
	select {
	case <-done:
		return true
	case <-time.After(stopWait):
		r.log.Error("a task does not stop")
	}
	if ctx.Err() != nil {
		return false
	}
	<-done // the lease was lost: nothing is begun anew beside what still runs
	return true
}

// renew returns when the lease is lost or the context ends.
func (r *Runner) renew(ctx context.Context, until time.Time) {
	faults := faults{log: r.log, act: "renew the lease of the tasks"}
	for ctx.Err() == nil && time.Now().Before(until) {
		wait(ctx, min(r.lease.Term()/3, time.Until(until)))
		if left := time.Until(until); left > 0 && ctx.Err() == nil {
			var err error
			until, err = r.hold(ctx, left)
			faults.note(ctx, err)
		}
	}
}

// repeat does one task until the context ends.
func (r *Runner) repeat(ctx context.Context, task Task) {
	faults := faults{log: r.log, act: "task " + task.Name}
	for ctx.Err() == nil {
		faults.note(ctx, task.once(ctx))
		wait(ctx, task.Every)
	}
}

// once does a task. A panic is a fault of it, not of the manager.
func (t Task) once(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(t.Timeout, defaultTimeout))
	defer cancel()
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panicked: %v\n%s", cause, debug.Stack())
		}
	}()
	return t.Run(ctx)
}

// faults logs when something begins to fail, fails in another way, and works
// again, but not every time in between.
type faults struct {
	log  *slog.Logger
	act  string
	last string
}

func (f *faults) note(ctx context.Context, err error) {
	switch {
	case ctx.Err() != nil: // it was told to stop
	case err == nil && f.last != "":
		f.last = ""
		f.log.Info("works again", "what", f.act)
	case err != nil && err.Error() != f.last:
		f.last = err.Error()
		f.log.Error("failed, and is tried again", "what", f.act, "err", err)
	}
}

func wait(ctx context.Context, duration time.Duration) {
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
