package systemd

import (
	"errors"
	"math"
	"testing"
	"time"
)

func TestVersion(t *testing.T) {
	bus := startBus(t)
	bus.set("Version", "252.39-1~deb12u1")
	version, err := bus.manager(t).Version(t.Context())
	if wantNoError(t, err); version != "252.39-1~deb12u1" {
		t.Errorf("got %q", version)
	}
	bus.fallSilent(t)
	if _, err := bus.manager(t).Version(t.Context()); !errors.Is(err, ErrTimeout) {
		t.Errorf("from a silent bus: %v", err)
	}
}

func TestUnitFileState(t *testing.T) {
	bus := startBus(t)
	bus.set("UnitFileState", "disabled")
	state, err := bus.manager(t).UnitFileState(t.Context(), unit)
	if wantNoError(t, err); state != "disabled" {
		t.Errorf("got %q", state)
	}
}

func TestNextElapse(t *testing.T) {
	soon := time.Now().Add(20 * time.Second).Truncate(time.Microsecond)
	for name, test := range map[string]struct {
		realtime, monotonic uint64
		want                func(time.Time) bool
	}{
		"by the calendar":     {uint64(soon.UnixMicro()), 0, soon.Equal},
		"never":               {0, math.MaxUint64, time.Time.IsZero},
		"by the time it runs": {0, 1, func(at time.Time) bool { return !at.IsZero() && at.Before(time.Now()) }},
		"whichever is first":  {uint64(soon.UnixMicro()), 1, func(at time.Time) bool { return at.Before(soon) }},
	} {
		t.Run(name, func(t *testing.T) {
			bus := startBus(t)
			bus.set("NextElapseUSecRealtime", test.realtime)
			bus.set("NextElapseUSecMonotonic", test.monotonic)
			got, err := bus.manager(t).NextElapse(t.Context(), unit)
			if wantNoError(t, err); !test.want(got) {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestLastRun(t *testing.T) {
	for name, test := range map[string]struct {
		ended        uint64
		code, status int32
		want         Run
	}{
		"not yet": {0, 0, 0, Run{}},
		"exited":  {1771234560_000000, 1, 3, Run{Ended: time.Unix(1771234560, 0), Status: 3}},
		"killed":  {1771234560_000000, 2, 15, Run{Ended: time.Unix(1771234560, 0), Status: 15, Killed: true}},
	} {
		t.Run(name, func(t *testing.T) {
			bus := startBus(t)
			bus.set("ExecMainExitTimestamp", test.ended)
			bus.set("ExecMainCode", test.code)
			bus.set("ExecMainStatus", test.status)
			got, err := bus.manager(t).LastRun(t.Context(), unit)
			if wantNoError(t, err); !got.Ended.Equal(test.want.Ended) || got.Status != test.want.Status || got.Killed != test.want.Killed {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestHasCredential(t *testing.T) {
	type credential struct{ Name, Source string }
	none, one := []credential{}, []credential{{"other", "/x"}, {"api-key", "/etc/opensource-agent/api-key"}}
	for name, test := range map[string]struct {
		plain, encrypted []credential
		want             bool
	}{
		"none":      {none, none, false},
		"plain":     {one, none, true},
		"encrypted": {none, one, true},
		"another":   {one[:1], none, false},
	} {
		t.Run(name, func(t *testing.T) {
			bus := startBus(t)
			bus.set("LoadCredential", test.plain)
			bus.set("LoadCredentialEncrypted", test.encrypted)
			if got, err := bus.manager(t).HasCredential(t.Context(), unit, "api-key"); err != nil || got != test.want {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}
