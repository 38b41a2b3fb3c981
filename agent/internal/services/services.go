// Package services holds the managed services, one file and one value each:
// how each is tested, made to load its files, and proven to have done so. A
// further service is a further file here, its line in All, and its templates.
package services

import (
	"context"
	"errors"
	"fmt"
	"time"

	"opensource.internal/agent/checkin"
	"opensource.internal/agent/internal/apply"
	"opensource.internal/agent/internal/systemd"
	"opensource.internal/agent/render"
)

// Service is one managed service: how its files come about, and how they are
// put into force.
type Service struct {
	apply.Service
	Render func(checkin.Snapshot, render.Facts, *render.Templates) (render.Result, error)
}

// All returns the managed services in the order in which they are applied.
func All(units Units, paths render.Paths) []Service {
	return []Service{
		NGINX(units, paths),
		DNSMasq(units),
	}
}

// Units is what the services need of systemd: a *systemd.Manager.
type Units interface {
	ActiveState(ctx context.Context, unit string) (string, error)
	LoadState(ctx context.Context, unit string) (string, error)
	MainProcess(ctx context.Context, unit string) (systemd.Process, error)
	ReloadOrRestart(ctx context.Context, unit string) error
	Restart(ctx context.Context, unit string) error
	HUP(ctx context.Context, unit string) error
}

// minWindow is how long a proof may take at least.
const minWindow = 5 * time.Second

// steady is how long a service has to stay up after it has proven what it runs:
// some die of their configuration only when they come to use it.
const steady = 3 * time.Second

// ready returns an error unless systemd answers and has the unit.
func ready(ctx context.Context, units Units, unit, debianPackage string) error {
	state, err := units.LoadState(ctx, unit)
	switch {
	case err != nil:
		return err
	case state == "not-found":
		return fmt.Errorf("systemd has no unit %s: install the Debian package %s", unit, debianPackage)
	case state == "masked":
		return fmt.Errorf("unit %s is masked: run systemctl unmask %s", unit, unit)
	}
	return nil
}

// running returns an error unless the unit is active.
func running(ctx context.Context, units Units, unit string) error {
	state, err := units.ActiveState(ctx, unit)
	if err == nil && state != "active" {
		err = fmt.Errorf("%s is %s", unit, state)
	}
	return err
}

// finalError is one that no further try will mend.
type finalError struct{ error }

func (e finalError) Unwrap() error { return e.error }

// poll calls proven, at growing intervals, until it has returned nil all the
// time for as long as steady, or a final error, or until the window is over.
// The last error is the result then.
func poll(ctx context.Context, window, steady time.Duration, proven func(context.Context) error) error {
	const first, longest = 10 * time.Millisecond, 250 * time.Millisecond
	ctx, cancel := context.WithTimeout(ctx, window)
	defer cancel()
	last := errors.New("no answer")
	var final finalError
	var since time.Time
	for pause := first; ; pause = min(2*pause, longest) {
		switch err := proven(ctx); {
		case errors.As(err, &final):
			return final.error
		case err != nil:
			since = time.Time{}
			if ctx.Err() == nil {
				last = err
			}
		case since.IsZero():
			since = time.Now()
		}
		if !since.IsZero() {
			if time.Since(since) >= steady {
				return nil
			}
			pause = first
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return fmt.Errorf("not live within %s: %w", window.Round(time.Millisecond), last)
		}
	}
}
