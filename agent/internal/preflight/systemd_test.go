package preflight

import (
	"context"
	"fmt"
	"testing"
	"time"

	"opensource.internal/agent/internal/systemd"
)

// fakeUnits stands in for systemd.
type fakeUnits struct {
	down  error
	units map[string]unit // those that are not told are well
	next  time.Time
	last  systemd.Run

	credential string // the name of the passes' one
}

func (f fakeUnits) unit(name string) unit {
	u, told := f.units[name]
	if !told {
		u = unit{"loaded", "active", "enabled"}
	}
	return u
}

func (f fakeUnits) Version(context.Context) (string, error) { return "257.9", f.down }

func (f fakeUnits) ActiveState(_ context.Context, name string) (string, error) {
	return f.unit(name).active, f.down
}

func (f fakeUnits) LoadState(_ context.Context, name string) (string, error) {
	return f.unit(name).load, f.down
}

func (f fakeUnits) UnitFileState(_ context.Context, name string) (string, error) {
	return f.unit(name).file, f.down
}

func (f fakeUnits) NextElapse(context.Context, string) (time.Time, error) { return f.next, f.down }

func (f fakeUnits) LastRun(context.Context, string) (systemd.Run, error) { return f.last, f.down }

func (f fakeUnits) HasCredential(_ context.Context, service, name string) (bool, error) {
	return service == passUnit && name == f.credential, f.down
}

func TestSystemd(t *testing.T) {
	wantLines(t, systemdAnswers(t.Context(), &Options{Units: fakeUnits{}}), "OK    : version 257.9 answers")
	wantLines(t, systemdAnswers(t.Context(), &Options{Root: "/demo"}), "OK    : left alone")

	down := &Options{Units: fakeUnits{down: fmt.Errorf("%w: no such file", systemd.ErrNoBus)}}
	wantLines(t, systemdAnswers(t.Context(), down), "FAIL  : it cannot be asked over D-Bus: no connection to systemd: no such file. To do: systemctl status dbus")
	for _, look := range []func(context.Context, *Options) []Finding{timer, lastPass, nginxUnit, dnsmasqUnit} {
		wantLines(t, look(t.Context(), down), "WARN  : not known. To do: see systemd above")
	}
}

func TestTimer(t *testing.T) {
	soon := time.Now().Add(20 * time.Second)
	for name, test := range map[string]struct {
		units fakeUnits
		want  string
	}{
		"well":     {fakeUnits{next: soon}, "OK    : the next pass starts at " + soon.Format(time.TimeOnly)},
		"stopped":  {fakeUnits{units: map[string]unit{timerUnit: {"loaded", "inactive", "enabled"}}}, "FAIL  : opensource-agent.timer is inactive … To do: systemctl enable --now opensource-agent.timer"},
		"disabled": {fakeUnits{next: soon, units: map[string]unit{timerUnit: {"loaded", "active", "disabled"}}}, "WARN  : opensource-agent.timer is disabled … next boot"},
		"masked":   {fakeUnits{units: map[string]unit{timerUnit: {"masked", "inactive", "masked"}}}, "FAIL  : opensource-agent.timer is masked … To do: systemctl unmask"},
		"missing":  {fakeUnits{units: map[string]unit{timerUnit: {"not-found", "inactive", ""}}}, "FAIL  : there is no unit … To do: apt-get install opensource-agent"},
		"running":  {fakeUnits{units: map[string]unit{passUnit: {"loaded", "activating", "static"}}}, "OK    : a pass is running"},
		"no next":  {fakeUnits{units: map[string]unit{passUnit: {"loaded", "inactive", "static"}}}, "FAIL  : opensource-agent.timer is active and has no next time"},
	} {
		t.Run(name, func(t *testing.T) { wantLines(t, timer(t.Context(), &Options{Units: test.units}), test.want) })
	}
}

func TestLastPass(t *testing.T) {
	at := time.Date(2026, 12, 1, 10, 0, 0, 0, time.Local)
	for name, test := range map[string]struct {
		run  systemd.Run
		want string
	}{
		"none":        {systemd.Run{}, "WARN  : the timer has not started one"},
		"settled":     {systemd.Run{Ended: at}, "OK    : it ended at 2026-12-01 10:00:00 with 0"},
		"settings":    {systemd.Run{Ended: at, Status: 2}, "FAIL  : … with 2: settings are wrong. To do: see the settings above"},
		"away":        {systemd.Run{Ended: at, Status: 3}, "FAIL  : … with 3: the manager"},
		"rejected":    {systemd.Run{Ended: at, Status: 4}, "FAIL  : … with 4: something is not in force. To do: opensource-agent status"},
		"stuck":       {systemd.Run{Ended: at, Status: 5}, "FAIL  : … with 5: going back"},
		"another":     {systemd.Run{Ended: at, Status: 6}, "OK    : … with 6: another pass"},
		"killed":      {systemd.Run{Ended: at, Status: 9, Killed: true}, "FAIL  : it was killed at 2026-12-01 10:00:00 by signal 9"},
		"unexpected":  {systemd.Run{Ended: at, Status: 1}, "FAIL  : … with 1. To do: journalctl"},
		"unknown one": {systemd.Run{Ended: at, Status: 77}, "FAIL  : … with 77. To do: journalctl"},
	} {
		t.Run(name, func(t *testing.T) {
			wantLines(t, lastPass(t.Context(), &Options{Units: fakeUnits{last: test.run}}), test.want)
		})
	}
}

func TestServiceUnits(t *testing.T) {
	for name, test := range map[string]struct {
		unit    unit
		managed bool
		want    string
	}{
		"well":             {unit{"loaded", "active", "enabled"}, true, "OK    : active and enabled"},
		"down":             {unit{"loaded", "failed", "enabled"}, true, "FAIL  : it is failed. To do: journalctl -u nginx … systemctl restart nginx"},
		"down, not ours":   {unit{"loaded", "inactive", "enabled"}, false, "OK    : it is inactive, and the agent has nothing for it yet"},
		"not at boot":      {unit{"loaded", "active", "disabled"}, true, "WARN  : it is active and disabled … To do: systemctl enable nginx"},
		"masked":           {unit{"masked", "inactive", "masked"}, true, "FAIL  : nginx.service is masked … To do: systemctl unmask nginx.service"},
		"not installed":    {unit{"not-found", "inactive", ""}, false, "FAIL  : there is no unit nginx.service. To do: apt-get install nginx"},
		"cannot be parsed": {unit{"bad-setting", "inactive", "enabled"}, true, "FAIL  : nginx.service is not loaded but bad-setting"},
	} {
		t.Run(name, func(t *testing.T) {
			o := Options{Units: fakeUnits{units: map[string]unit{"nginx.service": test.unit}}, Managed: map[string]bool{"nginx": test.managed}}
			wantLines(t, nginxUnit(t.Context(), &o), test.want)
		})
	}
}
