package preflight

import (
	"context"
	"strings"

	"opensource.internal/agent/checkin"
)

// Standing is what the passes have made of a managed service.
type Standing struct {
	Name    string
	Hold    *checkin.Hold
	Outcome checkin.Outcome
	Message string   // why it fails
	Edited  []string // files with another content than was put in force
}

// standing tells what keeps the site from being all in force though passes run.
func standing(_ context.Context, o *Options) []Finding {
	if o.Unread {
		return list(o.notKnown())
	}
	var found []Finding
	if o.HeldBack != "" {
		found = append(found, warn("confirm it on the manager's page /agents, or correct the site there", "a snapshot is held back: it removes %s", o.HeldBack))
	}
	for _, service := range o.Services {
		found = append(found, named(service.Name, service.findings()...)...)
	}
	if len(found) == 0 {
		return list(ok("nothing is held, held back, edited or failing"))
	}
	return found
}

func (s Standing) findings() []Finding {
	var found []Finding
	if s.Hold != nil {
		found = append(found, warn("opensource-agent release "+s.Name+", when the work is done",
			"held until %s: nothing is applied or repaired", s.Hold.Until.Local().Format("2006-01-02 15:04:05 MST")))
	}
	if s.Outcome.Failed() {
		first, _, _ := strings.Cut(s.Message, "\n")
		found = append(found, warn("opensource-agent status, which has all its words", "the new configuration is not in force (%s): %s", s.Outcome, first))
	}
	if len(s.Edited) > 0 {
		found = append(found, warn("put what should stay into a template: the next pass undoes the rest",
			"edited by somebody else: %s", strings.Join(s.Edited, ", ")))
	}
	return found
}

// notKnown is for what is told from the state, where that may not be read.
func (o *Options) notKnown() Finding {
	return warn("run sudo opensource-agent check", "not known: may not read %s", o.StateDirectory)
}
