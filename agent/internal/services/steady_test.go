package services

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"opensource.internal/agent/internal/systemd"
)

// aging is a unit whose state depends on the time since the beginning.
type aging struct {
	noBus
	began time.Time
	state func(age time.Duration) (string, systemd.Process, error)
}

func (a aging) ActiveState(context.Context, string) (string, error) {
	state, _, err := a.state(time.Since(a.began))
	return state, err
}

func (a aging) MainProcess(context.Context, string) (systemd.Process, error) {
	_, process, err := a.state(time.Since(a.began))
	return process, err
}

func TestStaysUp(t *testing.T) {
	first := systemd.Process{PID: 100, Restarts: 1}
	// later is the state of the unit after one second.
	later := func(state string, process systemd.Process, err error) func(time.Duration) (string, systemd.Process, error) {
		return func(age time.Duration) (string, systemd.Process, error) {
			if age < time.Second {
				return "active", first, nil
			}
			return state, process, err
		}
	}
	for name, test := range map[string]struct {
		state func(time.Duration) (string, systemd.Process, error)
		says  string
		after time.Duration
	}{
		"stays":                 {later("active", first, nil), "", steady},
		"reloaded by others":    {later("reloading", first, nil), "", steady},
		"dies":                  {later("failed", systemd.Process{}, nil), "it came alive and did not last: 1s later nginx.service is failed", time.Second},
		"ends":                  {later("inactive", systemd.Process{}, nil), "1s later nginx.service is inactive", time.Second},
		"is about to restart":   {later("activating", systemd.Process{}, nil), "1s later nginx.service is activating", time.Second},
		"restarts itself":       {later("active", systemd.Process{PID: 101, Restarts: 2}, nil), "1s later the main process of nginx.service has ended and systemd has started another", time.Second},
		"is replaced by others": {later("active", systemd.Process{PID: 101}, nil), "1s later nginx.service has another main process", time.Second},
		"has no process":        {later("active", systemd.Process{}, nil), "1s later nginx.service has another main process", time.Second},
		"bus gone":              {later("", systemd.Process{}, errNoBus), "", time.Second},
		"unit gone":             {later("", systemd.Process{}, errors.New("no such unit")), "1s later no such unit", time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				err := staysUp(t.Context(), aging{began: began, state: test.state}, nginxUnit, first, steady)
				if (err == nil) != (test.says == "") || err != nil && !strings.HasSuffix(err.Error(), test.says) {
					t.Errorf("got %v, want %q", err, test.says)
				}
				if took := time.Since(began); took != test.after {
					t.Errorf("ended after %v, want %v", took, test.after)
				}
			})
		})
	}
}

// The pass ends before the time is over: what was seen so far has to do.
func TestStaysUpUntilTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		unit := aging{began: began, state: func(time.Duration) (string, systemd.Process, error) {
			return "active", systemd.Process{PID: 100}, nil
		}}
		if err := staysUp(ctx, unit, nginxUnit, systemd.Process{PID: 100}, steady); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took != 1500*time.Millisecond {
			t.Errorf("ended after %v", took)
		}
	})
}
