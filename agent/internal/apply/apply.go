// Package apply puts the rendered files of one managed service into force:
// staged, tested, committed all or none, loaded by the running process, proven
// to be live, and otherwise undone.
//
// The live files are written only after the candidate has passed the service's
// own test. The versions they replace are kept beside them until the new ones
// are proven, and it is written down first which files that are. So a run that
// was killed in between is made good by the next one, whatever is wanted then:
// it finishes or undoes the work, and says so.
package apply

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"opensource.internal/agent/checkin"
	"opensource.internal/agent/internal/atomicfile"
	"opensource.internal/agent/render"
)

// Overrun is the longest time that a rollback takes after the deadline of the
// context given to Apply.
const Overrun = 10 * time.Second

const (
	// reserve is what reloading and committing take besides the proof.
	reserve = time.Second
	// leastSteady is how long a process is watched where time is short.
	leastSteady = time.Second
	// unhurried bounds an activation where the context has no deadline.
	unhurried = 15 * time.Second
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
	// Writes are the files and folders that the main file names and that the
	// validator opens or makes as the service would.
	Writes []string
	// Test asks the service's own validator about the content of the main
	// file live, which lies at candidate, in the same folder; the two are the
	// same for the live file itself. The error holds the validator's words.
	Test func(ctx context.Context, candidate, live string) error
	// Loaded reports whether the running process has loaded exactly result,
	// whose files are known to be the live ones.
	Loaded func(ctx context.Context, result render.Result) bool
	// Window is how long the proof may take where the test took that long, if
	// the time that is left allows it; Window(0) is what it needs at least.
	Window func(test time.Duration) time.Duration
	// Steady is how long the process has to stay up after the proof, if the
	// time that is left allows it.
	Steady time.Duration
	// Action says in words what Activate would do to make the process load the
	// files, such as "reload".
	Action func(context.Context, Activation) string
	// Activate makes the process load the live files and waits until it has
	// proven to have done so. The error holds systemd's and the service's words.
	Activate func(context.Context, Activation) error
}

// Activation is what a service has to load.
type Activation struct {
	// Files are the live files, the main file last.
	Files []string
	// Main is true if the main file may be another than the one that the
	// running process has loaded.
	Main bool
	// Revision is what the process has to show; empty after a rollback, when
	// it is enough that the process runs.
	Revision string
	// Window bounds the proof of the revision, not counting the reload itself.
	Window time.Duration
	// Steady is how long the process has to stay up after the proof, or as
	// long as the context allows; zero after a rollback.
	Steady time.Duration
}

// Engine applies services.
type Engine struct {
	// Reload is false where only files are to be written (--root): nothing is
	// activated or proven then.
	Reload bool
	// Records is the folder where it is written down which files are about to be
	// replaced, so that whatever comes next can make good a run that was cut
	// short. Empty for none.
	Records string
	// Log is told of each live file that is written, and of the work of an
	// earlier run; how the apply ended is in its Report alone. It must not be
	// nil.
	Log *slog.Logger

	// InForce returns the files of a service that were put into force last, as
	// far as their content is known; nil if there is no way to know. What it
	// returns is what an apply goes back to, where somebody has edited the live
	// file.
	InForce func(service string) []render.File

	// Preview, if it is not nil, has the engine change nothing.
	Preview *Preview

	// reached is told the name of each step that was completed, in tests.
	reached func(step string)
}

// Report is what became of one apply.
type Report struct {
	Outcome checkin.Outcome
	// Message says why, in the words of the tool that refused, uncut.
	Message string
	// Fault is set if the service's own program has found fault with the files.
	Fault *Fault
	// Tested is how long the program took to test the candidate.
	Tested time.Duration
	// Changed names the live files that were written, also if they were put
	// back later.
	Changed []string
	// Drifted names the files that somebody else had changed: they are neither
	// what was applied last nor what is wanted.
	Drifted []string
	// Managed is what had been in force of them, by path, if that is known.
	Managed map[string][]byte
	// Digests holds the hexadecimal SHA-256 of every file that is in force, by
	// path. It is nil unless the outcome is unchanged or applied.
	Digests map[string]string
}

// Apply puts the result into force. last holds the digests of the latest
// report that had some; nil is fine. Nothing is begun that cannot be proven
// before the context's deadline. Once live files are written, a cancelled
// context is not heeded any more: the work is finished or undone, by the
// deadline plus Overrun.
//
// A failure is not remembered: the next call tries again.
func (e *Engine) Apply(ctx context.Context, service Service, result render.Result, last map[string]string) Report {
	if e.Preview != nil {
		return e.Preview.apply(ctx, e, service, result, last)
	}
	run := e.begin(service, result)
	run.last = last
	if len(result.Files) == 0 {
		return run.skipped(ctx)
	}
	if err := run.compare(); err != nil {
		return run.rejected(err)
	}
	run.noteEdits()
	if run.upToDate(ctx) {
		return run.succeeded(checkin.OutcomeUnchanged)
	}
	if err := run.possible(ctx); err != nil {
		return run.rejected(err)
	}
	if err := run.test(ctx); err != nil {
		return run.refused(ctx, err)
	}
	if err := run.enoughTime(ctx); err != nil {
		return run.rejected(errors.Join(err, run.files.discard()))
	}
	if err := run.note(); err != nil {
		return run.refused(ctx, err)
	}
	if err := run.commit(); err != nil {
		return run.rollBack(ctx, err, run.files.interrupted)
	}
	if err := run.activate(ctx); err != nil {
		return run.rollBack(ctx, err, true)
	}
	return run.succeeded(checkin.OutcomeApplied)
}

// Refuse settles a service of which nothing could be rendered: why is the
// cause. Nothing is touched, unless an earlier run was cut short: what that has
// left half done is undone, since nothing will finish it.
func (e *Engine) Refuse(ctx context.Context, service Service, cause error) Report {
	if e.Preview != nil {
		return e.Preview.refuse(service, cause)
	}
	return e.begin(service, render.Result{}).abandon(ctx, cause)
}

// run is one call of Apply or Refuse.
type run struct {
	engine  *Engine
	service Service
	result  render.Result
	log     *slog.Logger
	last    map[string]string // digests of what was in force, by path
	earlier *record           // of a run that was cut short; nil if none was, or once it is settled
	noted   bool              // this run has a record of its own
	files   *files
	window  time.Duration
	report  Report
}

func (e *Engine) begin(service Service, result render.Result) *run {
	run := &run{engine: e, service: service, result: result, log: e.Log.With("service", service.Name)}
	run.lookBack()
	return run
}

// compare looks at the live files, and at what an earlier run has left.
func (r *run) compare() (err error) {
	if r.files, err = compare(r.result.Files); err != nil || r.earlier == nil {
		return err
	}
	left, err := r.earlier.files()
	if err != nil {
		return err
	}
	r.files.takeOver(left)
	return nil
}

// noteEdits finds what somebody else has changed since it was put into force.
func (r *run) noteEdits() {
	r.files.noteEdits(r.last, func() []render.File {
		if r.engine.InForce == nil {
			return nil
		}
		return r.engine.InForce(r.service.Name)
	})
	r.report.Drifted, r.report.Managed = r.files.drifted()
}

// skipped settles a service for which there is nothing to manage: all stays as
// it is, or as it was before a run that was cut short.
func (r *run) skipped(ctx context.Context) Report {
	cause := errors.New(r.result.Skipped)
	for path := range r.last {
		if _, err := atomicfile.SweepFor(path); err != nil {
			r.log.Warn("candidate left behind", "error", err)
		}
	}
	if r.earlier != nil {
		if report := r.abandon(ctx, cause); r.earlier != nil || report.Outcome == checkin.OutcomeStuck {
			return report
		}
	}
	return r.failed(checkin.OutcomeSkipped, cause)
}

// abandon undoes what an earlier run has left half done.
func (r *run) abandon(ctx context.Context, cause error) (report Report) {
	if r.earlier == nil {
		return r.rejected(cause)
	}
	if err := context.Cause(ctx); err != nil {
		return r.rejected(fmt.Errorf("%w\nstopped before the work of an earlier pass was undone: %w", cause, err))
	}
	var err error
	if r.files, err = r.earlier.files(); err != nil {
		return r.rejected(errors.Join(cause, err))
	}
	if !r.files.interrupted {
		r.close()
		return r.rejected(cause)
	}
	if err := r.possible(ctx); err != nil {
		return r.rejected(errors.Join(cause, err))
	}
	return r.rollBack(ctx, cause, true)
}

// upToDate reports whether nothing is to be done: the live files are what is
// wanted, none of them is unproven, and the process has loaded them.
func (r *run) upToDate(ctx context.Context) bool {
	if r.files.differ() || r.files.kept {
		return false
	}
	return !r.engine.Reload || r.service.Loaded(ctx, r.result)
}

// possible returns an error if the service is not there, or could not be made
// to load what would be written.
func (r *run) possible(ctx context.Context) error {
	if err := r.service.Installed(); err != nil || !r.engine.Reload {
		return err
	}
	if err := r.service.Ready(ctx); err != nil {
		return fmt.Errorf("not applied, since %s could not be reloaded: %w", r.service.Name, err)
	}
	return nil
}

// test stages what differs and has the service's validator look at it. No live
// file is touched.
func (r *run) test(ctx context.Context) error {
	if err := r.files.stage(); err != nil {
		return err
	}
	r.reached("staged")
	main := r.files.main()
	start := time.Now()
	err := r.service.test(ctx, main.candidate(), main.Path)
	r.report.Tested = time.Since(start)
	if err != nil {
		return err
	}
	r.window = r.service.Window(r.report.Tested)
	r.reached("tested")
	return nil
}

// refused settles an apply whose candidate did not pass. What a run that was
// cut short has left half done is undone then, since nothing will finish it.
func (r *run) refused(ctx context.Context, cause error) Report {
	cause = errors.Join(cause, r.files.discard())
	if ctx.Err() != nil {
		return r.rejected(cause)
	}
	if r.files.interrupted {
		return r.rollBack(ctx, cause, true)
	}
	r.close()
	return r.rejected(cause)
}

// enoughTime returns an error if what follows could not be finished before the
// deadline, or is not wanted any more. It cuts the window to what is left: a
// manager that is slow to answer must not keep a large site from being repaired.
func (r *run) enoughTime(ctx context.Context) error {
	if err := context.Cause(ctx); err != nil {
		return fmt.Errorf("stopped before any live file was written: %w", err)
	}
	deadline, limited := ctx.Deadline()
	if !limited || !r.engine.Reload {
		return nil
	}
	needed := r.engine.Needs(r.service, r.report.Tested)
	left := time.Until(deadline)
	if left < needed {
		return fmt.Errorf("not applied yet: proving it may take %s, and the pass ends in %s",
			needed.Round(time.Millisecond), left.Round(time.Millisecond))
	}
	r.window = min(r.window, left-besides(r.service))
	return nil
}

// Needs returns the time without which nothing is begun after a test that took
// that long.
func (e *Engine) Needs(service Service, test time.Duration) time.Duration {
	if !e.Reload {
		return 0
	}
	// Whoever reloads reads the files as the test did, and so does the process.
	return max(service.Window(0), 2*test) + besides(service)
}

func besides(service Service) time.Duration {
	return reserve + min(service.Steady, leastSteady)
}

// commit makes all staged files live, or as many as it can until an error.
func (r *run) commit() error {
	if err := r.files.main().preserve(r.last); err != nil {
		return errors.Join(err, r.files.discard())
	}
	for _, file := range r.files.all {
		if !file.differs {
			continue
		}
		if err := file.commit(); err != nil {
			return errors.Join(err, r.files.discard())
		}
		r.report.Changed = append(r.report.Changed, file.Path)
		r.log.Info("file written", "path", file.Path)
		r.reached("committed " + filepath.Base(file.Path))
	}
	return r.files.putBackGone()
}

// activate has the process load the live files and prove it. It goes on when
// ctx is cancelled, but keeps its deadline.
func (r *run) activate(ctx context.Context) error {
	if !r.engine.Reload {
		return nil
	}
	deadline, limited := ctx.Deadline()
	if !limited {
		deadline = time.Now().Add(r.window + unhurried)
	}
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), deadline)
	defer cancel()
	err := r.service.Activate(ctx, Activation{
		Files:    r.files.paths(),
		Main:     r.files.main().replaced(),
		Revision: r.result.Revision,
		Window:   r.window,
		Steady:   r.service.Steady,
	})
	if err == nil {
		r.reached("activated")
	}
	return err
}

// rollBack restores what is kept of all files and, if the process may have
// loaded the new ones, has it load them again. Both errors are reported.
func (r *run) rollBack(ctx context.Context, cause error, mayBeLoaded bool) Report {
	main := r.files.main().replaced()
	untouched := len(r.report.Changed) == 0 && !r.files.interrupted
	if untouched && mayBeLoaded {
		r.close()
		return r.failed(checkin.OutcomeStuck, fmt.Errorf("%w\nthe live files are the wanted ones: there is nothing to go back to", cause))
	}
	r.reached("rolling back")
	undo := r.files.restore()
	r.reached("restored")
	restored := undo == nil
	if r.engine.Reload && mayBeLoaded {
		undo = errors.Join(undo, r.reactivate(ctx, main))
	}
	if restored {
		r.close()
	}
	if undo == nil && untouched {
		return r.rejected(cause)
	}
	if undo != nil {
		r.failed(checkin.OutcomeStuck, cause) // what is found wrong with the version before is no fault of the candidate's
		r.report.Message += "\ngoing back to the previous configuration: " + undo.Error()
		return r.report
	}
	return r.failed(checkin.OutcomeRolledBack, cause)
}

// reactivate has the process load what was restored. If that may be the work of
// somebody else and is refused, a process that runs is left as it is.
func (r *run) reactivate(ctx context.Context, main bool) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), Overrun)
	defer cancel()
	if path := r.files.main().Path; !r.wasInForce(path) {
		if err := r.service.test(ctx, path, path); err != nil {
			return fmt.Errorf("not loaded, since it is refused, and not what this agent has put there: %w", err)
		}
	}
	return r.service.Activate(ctx, Activation{Files: r.files.paths(), Main: main})
}

// wasInForce reports whether a live file is known to be the one that was in
// force.
func (r *run) wasInForce(path string) bool {
	live := liveDigest(path)
	return live != "" && (live == r.last[path] || live == r.earlier.old(path))
}

func (r *run) rejected(cause error) Report {
	return r.failed(checkin.OutcomeRejected, cause)
}

func (r *run) failed(outcome checkin.Outcome, cause error) Report {
	r.report.Outcome, r.report.Message = outcome, cause.Error()
	errors.As(cause, &r.report.Fault)
	return r.report
}

// succeeded settles the apply: what is live is proven, so the versions before
// it are not needed any more.
func (r *run) succeeded(outcome checkin.Outcome) Report {
	if err := r.files.forget(); err != nil {
		r.log.Warn("previous version left behind", "error", err)
	}
	r.reached("settled")
	r.close()
	r.report.Outcome = outcome
	r.report.Digests = r.files.digests()
	return r.report
}

func (r *run) reached(step string) {
	if r.engine.reached != nil {
		r.engine.reached(step)
	}
}
