package preflight

import (
	"context"
	"errors"
	"fmt"
	"time"

	"opensource.internal/agent/internal/systemd"
)

// Units is what the checks ask of systemd: a *systemd.Manager.
type Units interface {
	Version(ctx context.Context) (string, error)
	ActiveState(ctx context.Context, unit string) (string, error)
	LoadState(ctx context.Context, unit string) (string, error)
	UnitFileState(ctx context.Context, unit string) (string, error)
	NextElapse(ctx context.Context, timer string) (time.Time, error)
	LastRun(ctx context.Context, service string) (systemd.Run, error)
	HasCredential(ctx context.Context, service, name string) (bool, error)
}

const (
	timerUnit = "opensource-agent.timer"
	passUnit  = "opensource-agent.service"
)

// systemdAnswers tells whether systemd can be asked at all.
func systemdAnswers(ctx context.Context, o *Options) []Finding {
	if o.Root != "" {
		return leftAlone()
	}
	version, err := o.Units.Version(ctx)
	if err != nil {
		return list(fail("systemctl status dbus; without systemd no service can be reloaded (in a container: nesting=1)",
			"it cannot be asked over D-Bus: %v", err))
	}
	return list(ok("version %s answers over D-Bus", version))
}

// leftAlone is for what belongs to the host, and not to a folder of it.
func leftAlone() []Finding { return list(ok("left alone, because of --root")) }

// timer tells whether passes are started.
func timer(ctx context.Context, o *Options) []Finding {
	if o.Root != "" {
		return leftAlone()
	}
	const enable = "systemctl enable --now " + timerUnit
	state, err := unitState(ctx, o.Units, timerUnit)
	switch {
	case err != nil:
		return notAsked(err)
	case state.load != "loaded":
		return list(state.notLoaded(timerUnit, "opensource-agent"))
	case state.active != "active":
		return list(fail(enable, "%s is %s: no pass is started", timerUnit, state.active))
	}
	next, err := o.Units.NextElapse(ctx, timerUnit)
	switch {
	case err != nil:
		return notAsked(err)
	case next.IsZero():
		// While a pass runs there is no next one yet.
		if running, err := o.Units.ActiveState(ctx, passUnit); err == nil && running == "activating" {
			return list(ok("a pass is running"))
		}
		return list(fail("systemctl restart "+timerUnit, "%s is active and has no next time", timerUnit))
	case state.file != "enabled":
		return list(warn(enable, "%s is %s: no pass will be started after the next boot", timerUnit, state.file))
	}
	return list(ok("the next pass starts at %s", next.Local().Format(time.TimeOnly)))
}

// lastPass tells how the last pass ended that the timer started.
func lastPass(ctx context.Context, o *Options) []Finding {
	if o.Root != "" {
		return leftAlone()
	}
	run, err := o.Units.LastRun(ctx, passUnit)
	if err != nil {
		return notAsked(err)
	}
	if run.Ended.IsZero() {
		return list(warn("sudo opensource-agent", "the timer has not started one since the last boot"))
	}
	const journal = "journalctl -t opensource-agent -n 20"
	ended := fmt.Sprintf("it ended at %s with %d", run.Ended.Local().Format(time.DateTime), run.Status)
	if run.Killed {
		return list(fail(journal, "it was killed at %s by signal %d", run.Ended.Local().Format(time.DateTime), run.Status))
	}
	switch run.Status {
	case 0:
		return list(ok("%s: all is in force and told", ended))
	case 2:
		return list(fail("see the settings above", "%s: settings are wrong", ended))
	case 3:
		return list(fail("see the manager below; "+journal, "%s: the manager could not be reached, or refused", ended))
	case 4:
		return list(fail("opensource-agent status; "+journal, "%s: something is not in force", ended))
	case 5:
		return list(fail(journal+"; systemctl status nginx dnsmasq", "%s: going back to the previous configuration failed", ended))
	case 6:
		return list(ok("%s: another pass was running", ended))
	}
	return list(fail(journal, "%s", ended))
}

// unit is how a unit stands.
type unit struct{ load, active, file string }

func unitState(ctx context.Context, units Units, name string) (unit, error) {
	var u unit
	var errs [3]error
	u.load, errs[0] = units.LoadState(ctx, name)
	u.active, errs[1] = units.ActiveState(ctx, name)
	u.file, errs[2] = units.UnitFileState(ctx, name)
	return u, errors.Join(errs[:]...)
}

func (u unit) notLoaded(name, debianPackage string) Finding {
	switch u.load {
	case "masked":
		return fail("systemctl unmask "+name, "%s is masked: it cannot be started", name)
	case "not-found":
		return fail("apt-get install "+debianPackage, "there is no unit %s", name)
	}
	return fail("systemctl status "+name, "%s is not loaded but %s", name, u.load)
}

// notAsked is for what systemd did not tell. That it cannot be asked at all is a
// finding of its own.
func notAsked(err error) []Finding {
	if errors.Is(err, systemd.ErrNoBus) || errors.Is(err, systemd.ErrTimeout) {
		return list(warn("see systemd above", "not known"))
	}
	return list(warn("systemctl status", "not known: %v", err))
}

func nginxUnit(ctx context.Context, o *Options) []Finding { return service(ctx, o, "nginx") }

func dnsmasqUnit(ctx context.Context, o *Options) []Finding { return service(ctx, o, "dnsmasq") }

// service tells whether a managed service runs, and will after the next boot.
// The Debian package has its name.
func service(ctx context.Context, o *Options, name string) []Finding {
	if o.Root != "" {
		return leftAlone()
	}
	unitName := name + ".service"
	state, err := unitState(ctx, o.Units, unitName)
	switch {
	case err != nil:
		return notAsked(err)
	case state.load != "loaded":
		return list(state.notLoaded(unitName, name))
	case state.active != "active" && o.Unread:
		return list(o.notKnown())
	case state.active != "active" && !o.Managed[name]:
		return list(ok("it is %s, and the agent has nothing for it yet", state.active))
	case state.active != "active":
		return list(fail(fmt.Sprintf("journalctl -u %s -n 20; then systemctl restart %s", name, name), "it is %s", state.active))
	case state.file != "enabled":
		return list(warn("systemctl enable "+name, "it is active and %s: it will not be started at the next boot", state.file))
	}
	return list(ok("active and enabled"))
}
