package systemd

import (
	"context"
	"errors"
	"math"
	"strconv"
	"time"

	"github.com/coreos/go-systemd/v22/dbus"
	"golang.org/x/sys/unix"
)

// Version returns what systemd calls its version, such as "252.39-1~deb12u1".
func (m *Manager) Version(ctx context.Context) (string, error) {
	var version string
	err := m.call(ctx, func(ctx context.Context, conn *dbus.Conn) error {
		type answer struct {
			text string
			err  error
		}
		done := make(chan answer, 1)
		go func() { // the library has no way to bound this one
			text, err := conn.GetManagerProperty("Version")
			done <- answer{text, err}
		}()
		select {
		case got := <-done:
			version = got.text
			return got.err
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	if err != nil {
		return "", err
	}
	if text, err := strconv.Unquote(version); err == nil { // the notation of a variant
		version = text
	}
	return version, nil
}

// UnitFileState returns whether the unit is started at boot: "enabled",
// "disabled", "masked", "static"…; empty if the unit has no file.
func (m *Manager) UnitFileState(ctx context.Context, unit string) (string, error) {
	state, err := property[string](ctx, m, unit, "Unit", "UnitFileState")
	return state, wrap("ask for the unit file state of", unit, err)
}

// NextElapse returns when a timer starts its unit next, or the zero time if it
// will not.
func (m *Manager) NextElapse(ctx context.Context, timer string) (time.Time, error) {
	realtime, errRealtime := property[uint64](ctx, m, timer, "Timer", "NextElapseUSecRealtime")
	monotonic, errMonotonic := property[uint64](ctx, m, timer, "Timer", "NextElapseUSecMonotonic")
	if err := errors.Join(errRealtime, errMonotonic); err != nil {
		return time.Time{}, wrap("ask for the next time of", timer, err)
	}
	next := time.Time{}
	if set(realtime) {
		next = time.UnixMicro(int64(realtime))
	}
	if set(monotonic) {
		var now unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
			return next, wrap("read the clock for the next time of", timer, err)
		}
		at := time.Now().Add(time.Duration(monotonic)*time.Microsecond - time.Duration(now.Nano()))
		if next.IsZero() || at.Before(next) {
			next = at
		}
	}
	return next, nil
}

// HasCredential tells whether a service is given a credential of that name
// (systemd.exec(5), LoadCredential=), which nobody but the service sees.
func (m *Manager) HasCredential(ctx context.Context, service, name string) (bool, error) {
	for _, kind := range []string{"LoadCredential", "LoadCredentialEncrypted"} {
		credentials, err := property[[][]any](ctx, m, service, "Service", kind)
		if err != nil {
			return false, wrap("ask for the credentials of", service, err)
		}
		for _, credential := range credentials { // its name, and where it comes from
			if len(credential) > 0 && credential[0] == name {
				return true, nil
			}
		}
	}
	return false, nil
}

// set tells a time from systemd's ways to say that there is none.
func set(microseconds uint64) bool { return microseconds != 0 && microseconds < math.MaxInt64/1000 }

// Run is how the main process of a service ended the last time.
type Run struct {
	Ended  time.Time // zero if it has not run since the boot
	Status int       // the exit status, or the number of the signal
	Killed bool      // by a signal
}

// LastRun returns how the service's main process ended the last time.
func (m *Manager) LastRun(ctx context.Context, service string) (Run, error) {
	ended, errEnded := property[uint64](ctx, m, service, "Service", "ExecMainExitTimestamp")
	code, errCode := property[int32](ctx, m, service, "Service", "ExecMainCode")
	status, errStatus := property[int32](ctx, m, service, "Service", "ExecMainStatus")
	if err := errors.Join(errEnded, errCode, errStatus); err != nil || ended == 0 {
		return Run{}, wrap("ask for the last run of", service, err)
	}
	const exited = 1 // CLD_EXITED of waitid(2)
	return Run{Ended: time.UnixMicro(int64(ended)), Status: int(status), Killed: code != exited}, nil
}
