package services

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"opensource.internal/agent/internal/apply"
	"opensource.internal/agent/internal/systemd"
	"opensource.internal/agent/render"
)

const (
	dnsmasqUnit        = "dnsmasq.service"
	dnsmasqTestTimeout = 5 * time.Second
	// dnsmasqJobTimeout is short since the site has no DNS in the meantime.
	dnsmasqJobTimeout = 8 * time.Second
	// dnsmasqDefaults holds the shell variables of Debian's unit.
	dnsmasqDefaults = "/etc/default/dnsmasq"
)

// dnsmasq is the DNS and DHCP server. It reads its main file when it starts
// and the side files again on SIGHUP (dnsmasq(8), NOTES). Its test reads only
// the main file, so a fault in a side file shows in its log alone.
type dnsmasq struct {
	units    Units
	server   string // where it answers DNS queries
	defaults string // the shell variables of Debian's unit
	journal  journal
}

// DNSMasq returns the service that is configured by render.DNSMasq.
func DNSMasq(units Units) Service {
	d := dnsmasq{
		units:    units,
		server:   "127.0.0.1:53",
		defaults: dnsmasqDefaults,
		journal:  journalSince,
	}
	return Service{Service: d.service(), Render: render.DNSMasq}
}

func (d dnsmasq) service() apply.Service {
	return apply.Service{
		Name:      "dnsmasq",
		Unit:      dnsmasqUnit,
		Installed: func() error { return installed("dnsmasq", "dnsmasq") },
		Ready:     func(ctx context.Context) error { return ready(ctx, d.units, dnsmasqUnit, "dnsmasq") },
		Test:      d.test,
		Loaded: func(ctx context.Context, result render.Result) bool {
			main := result.Files[len(result.Files)-1].Path
			return d.answers(ctx, result.Revision) == nil && !d.startedBefore(ctx, main)
		},
		Window:   func(time.Duration) time.Duration { return minWindow },
		Steady:   steady,
		Action:   d.action,
		Activate: d.activate,
	}
}

// test runs dnsmasq --test on the main file as Debian's unit will start it.
func (d dnsmasq) test(ctx context.Context, candidate, live string) error {
	args, err := unitArguments(d.defaults)
	if err != nil {
		return err
	}
	err = command(ctx, dnsmasqTestTimeout, "dnsmasq", append([]string{"--test", "-C", candidate}, args...)...)
	return blame(err, candidate, live)
}

func (d dnsmasq) action(ctx context.Context, a apply.Activation) string {
	process, err := d.units.MainProcess(ctx, dnsmasqUnit)
	if err != nil || d.needsRestart(ctx, a, process) {
		return "restart"
	}
	return "SIGHUP"
}

// needsRestart reports whether the process may not have loaded the main file,
// which it reads only when it starts.
func (d dnsmasq) needsRestart(ctx context.Context, a apply.Activation, process systemd.Process) bool {
	return a.Main || process.PID == 0 || d.startedBefore(ctx, a.Files[len(a.Files)-1])
}

func (d dnsmasq) activate(ctx context.Context, a apply.Activation) error {
	since := time.Now()
	process, err := d.load(ctx, a)
	if err != nil {
		return withLines(err, d.journal(ctx, dnsmasqUnit, allLines, since))
	}
	if a.Revision == "" {
		return nil
	}
	// Not among the lines of queries, if these are logged: there may be many.
	if faults := faultsIn(a.Files, d.journal(ctx, dnsmasqUnit, warnings, since)); len(faults) > 0 {
		err := withLines(errors.New("dnsmasq found faults in its files"), faults)
		return &apply.Fault{Words: err.Error(), Places: placesIn(faults)}
	}
	if err := staysUp(ctx, d.units, dnsmasqUnit, process, a.Steady); err != nil {
		return withLines(err, d.journal(ctx, dnsmasqUnit, allLines, since))
	}
	return nil
}

// load restarts dnsmasq if it may not have loaded the main file or does not
// run, and else has it read the side files again. It returns the process that
// has shown the revision.
func (d dnsmasq) load(ctx context.Context, a apply.Activation) (systemd.Process, error) {
	before, err := d.units.MainProcess(ctx, dnsmasqUnit)
	if err != nil {
		return before, err
	}
	restart := d.needsRestart(ctx, a, before)
	if restart {
		err = d.restart(ctx)
	} else {
		err = d.units.HUP(ctx, dnsmasqUnit)
	}
	if err == nil && a.Revision != "" {
		err = poll(ctx, a.Window, 0, func(ctx context.Context) error { return d.answers(ctx, a.Revision) })
	}
	if err != nil {
		return before, err
	}
	return d.runs(ctx, before, restart)
}

func (d dnsmasq) restart(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, dnsmasqJobTimeout)
	defer cancel()
	return d.units.Restart(ctx, dnsmasqUnit)
}

// runs returns the process of dnsmasq, or an error unless it is active, as
// another process than before if it was restarted and as the same if not.
func (d dnsmasq) runs(ctx context.Context, before systemd.Process, restarted bool) (systemd.Process, error) {
	if err := running(ctx, d.units, dnsmasqUnit); err != nil {
		return before, err
	}
	after, err := d.units.MainProcess(ctx, dnsmasqUnit)
	switch {
	case err != nil:
		return before, err
	case restarted && after.PID == before.PID:
		return after, fmt.Errorf("%s still has the main process %d after its restart", dnsmasqUnit, before.PID)
	case !restarted && after.PID != before.PID:
		return after, fmt.Errorf("%s has another main process although it was not restarted", dnsmasqUnit)
	}
	return after, nil
}

// startedBefore reports whether dnsmasq has started before the file got its
// present content, and so runs with another one. Files have the time of their
// commit. A time in the future, of a clock that was set back since, is no
// evidence.
func (d dnsmasq) startedBefore(ctx context.Context, path string) bool {
	info, err := os.Stat(path)
	if err != nil || info.ModTime().After(time.Now()) {
		return false
	}
	process, err := d.units.MainProcess(ctx, dnsmasqUnit)
	return err == nil && process.PID != 0 && process.Started.Before(info.ModTime())
}

// faultsIn selects the log lines that find fault with one of the files. What
// dnsmasq says of a file that it could read begins with "read"; of a name that
// it has found in one, "FILE NAME is ADDRESS" (dnsmasq(8), --log-queries).
func faultsIn(files, lines []string) []string {
	var faults []string
	for _, line := range lines {
		for _, file := range files {
			_, rest, found := strings.Cut(line, file)
			answer := strings.HasPrefix(rest, " ") && strings.Contains(rest, " is ")
			if found && !answer && !strings.HasPrefix(line, "read ") {
				faults = append(faults, line)
				break
			}
		}
	}
	return faults
}
