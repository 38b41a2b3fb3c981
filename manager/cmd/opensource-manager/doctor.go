package main

import (
	"errors"
	"fmt"
	"strings"

	"opensource.internal/manager/internal/config"
	"opensource.internal/manager/internal/health"
)

type doctorCommand struct {
	JSON bool `name:"json" help:"Print JSON."`
}

func (doctorCommand) regardlessOfSettings() {}

// The states of a finding.
const (
	fine = health.Fine
	warn = health.Warn
	fail = health.Fail
)

// finding is what a check has found, and what to do about it.
type finding struct {
	Check   string `json:"check"`
	State   string `json:"state"`
	Message string `json:"message"`
	Fix     string `json:"fix,omitempty"`
}

// diagnosis is all that the doctor says.
type diagnosis struct {
	Settings []config.Setting `json:"settings"`
	Findings []finding        `json:"findings"`
}

// errUnwell is told by the findings already.
var errUnwell = errors.New("something fails: see above")

// Run looks at everything the manager depends on. One check that fails never
// stops the next.
func (c doctorCommand) Run(e *environmentOf) error {
	d := diagnosis{Settings: e.settings}
	d.Findings = append(d.Findings, checkSettings(e)...)
	if e.mistakes == nil {
		d.Findings = append(d.Findings, checkDatabase(e)...)
		d.Findings = append(d.Findings, checkService(e)...)
		d.Findings = append(d.Findings, checkPublicURL(e)...)
	}
	d.Findings = append(d.Findings, checkClock(e)...)
	if err := d.print(e, c.JSON); err != nil {
		return err
	}
	for _, f := range d.Findings {
		if f.State == fail {
			return errUnwell
		}
	}
	return nil
}

func (d diagnosis) print(e *environmentOf, asJSON bool) error {
	if asJSON {
		return e.printJSON(d)
	}
	settings := newTable(e.stdout, "SETTING", "VALUE", "FROM")
	for _, s := range d.Settings {
		settings.row(s.Name, s.Value, s.From)
	}
	if err := settings.flush(); err != nil {
		return err
	}
	fmt.Fprintln(e.stdout)
	findings := newTable(e.stdout, "CHECK", "STATE", "FOUND")
	for _, f := range d.Findings {
		findings.row(f.Check, f.State, f.Message)
		if f.Fix != "" {
			findings.row(" ", " ", "→ "+f.Fix)
		}
	}
	return findings.flush()
}

// checkSettings tells every mistake; none is told as one finding.
func checkSettings(e *environmentOf) []finding {
	if e.mistakes == nil {
		return []finding{{"settings", fine, "all can be used", ""}}
	}
	var found []finding
	for line := range strings.SplitSeq(e.mistakes.Error(), "\n") {
		found = append(found, finding{"settings", fail, line, "mend it in " + config.File + ", and restart the manager"})
	}
	return found
}
