package systemd

import (
	"context"
	"errors"
	"fmt"

	"github.com/coreos/go-systemd/v22/dbus"
)

// JobError is a job that systemd ended without success.
type JobError struct {
	// Result is the job's: "failed", "canceled", "timeout", "dependency" or
	// "skipped".
	Result string
	// Unit is the unit's own Result, such as "exit-code" or
	// "start-limit-hit"; empty if it could not be asked for.
	Unit string
}

func (e *JobError) Error() string {
	if e.Unit == "" || e.Unit == "success" {
		return "job " + e.Result
	}
	return fmt.Sprintf("job %s (%s)", e.Result, e.Unit)
}

// ReloadOrRestart reloads the unit, or restarts it if it cannot be reloaded,
// or starts it if it does not run, and waits for the job's result.
func (m *Manager) ReloadOrRestart(ctx context.Context, unit string) error {
	return wrap("reload", unit, m.job(ctx, unit, func(ctx context.Context, conn *dbus.Conn, result chan<- string) error {
		_, err := conn.ReloadOrRestartUnitContext(ctx, unit, "replace", result)
		return err
	}))
}

// Restart restarts or starts the unit and waits for the job's result.
func (m *Manager) Restart(ctx context.Context, unit string) error {
	return wrap("restart", unit, m.job(ctx, unit, func(ctx context.Context, conn *dbus.Conn, result chan<- string) error {
		_, err := conn.RestartUnitContext(ctx, unit, "replace", result)
		return err
	}))
}

// job queues a job and waits for its result. Starts that failed before do not
// count against the unit's start limit: after a rollback a service must not
// stay down because of the attempts that came before it.
func (m *Manager) job(ctx context.Context, unit string, queue func(context.Context, *dbus.Conn, chan<- string) error) error {
	ctx, cancel := context.WithTimeout(ctx, jobTimeout)
	defer cancel()
	err := m.call(ctx, func(ctx context.Context, conn *dbus.Conn) error {
		return conn.ResetFailedUnitContext(ctx, unit)
	})
	if errors.Is(err, ErrNoBus) || errors.Is(err, ErrTimeout) {
		return err
	} // Else there was no failure to reset.
	result := make(chan string, 1)
	if err := m.call(ctx, func(ctx context.Context, conn *dbus.Conn) error { return queue(ctx, conn, result) }); err != nil {
		return err
	}
	select {
	case outcome := <-result:
		if outcome == "done" {
			return nil
		}
		why, _ := property[string](ctx, m, unit, "Service", "Result")
		return &JobError{Result: outcome, Unit: why}
	case <-ctx.Done():
		return fmt.Errorf("the job did not end: %w", ErrTimeout)
	}
}
