package services

import (
	"context"
	"errors"
	"fmt"
	"time"

	"opensource.internal/agent/internal/systemd"
)

// shortLivedError says that a service had loaded and shown its configuration
// and did not stay up.
type shortLivedError struct {
	after time.Duration
	why   error
}

func (e *shortLivedError) Error() string {
	return fmt.Sprintf("it came alive and did not last: %s later %s", e.after.Round(100*time.Millisecond), e.why)
}

// staysUp watches the unit for as long as steady, or until ctx is over, and
// returns an error if it does not go on with the given main process. That
// systemd cannot be asked any more is none: the service has proven itself.
func staysUp(ctx context.Context, units Units, unit string, process systemd.Process, steady time.Duration) error {
	const pause = 250 * time.Millisecond
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, steady)
	defer cancel()
	for ctx.Err() == nil {
		err := goesOn(ctx, units, unit, process)
		if errors.Is(err, systemd.ErrNoBus) || errors.Is(err, systemd.ErrTimeout) {
			return nil
		}
		if err != nil {
			return &shortLivedError{time.Since(start), err}
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
	return nil
}

// goesOn returns an error unless the unit runs, and as the given process.
func goesOn(ctx context.Context, units Units, unit string, process systemd.Process) error {
	state, err := units.ActiveState(ctx, unit)
	if err != nil {
		return err
	}
	switch state {
	case "active", "reloading", "refreshing": // others may reload it too
	default:
		return fmt.Errorf("%s is %s", unit, state)
	}
	now, err := units.MainProcess(ctx, unit)
	switch {
	case err != nil:
		return err
	case now.Restarts > process.Restarts:
		return fmt.Errorf("the main process of %s has ended and systemd has started another", unit)
	case now.PID != process.PID:
		return fmt.Errorf("%s has another main process", unit)
	}
	return nil
}
