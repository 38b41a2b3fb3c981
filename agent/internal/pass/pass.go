// Package pass is one run of the agent: check in, put into force what the
// answer or the last accepted snapshot means, and tell what happened.
//
// The manager is asked first, but nothing waits for it: with the manager away,
// or with nothing new, the pass still makes sure that what is on disk and
// running is what the last accepted snapshot means.
package pass

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"time"

	"opensource.internal/agent/checkin"
	"opensource.internal/agent/internal/apply"
	"opensource.internal/agent/internal/host"
	"opensource.internal/agent/internal/services"
	"opensource.internal/agent/internal/state"
	"opensource.internal/agent/internal/systemd"
	"opensource.internal/agent/render"
)

// Code is the exit status of a pass; a worse end has a higher one.
type Code int

// The exit codes of the agent.
const (
	Settled       Code = 0 // everything of the snapshot is in force and told
	Unexpected    Code = 1 // the agent could not do its own work
	Usage         Code = 2 // flags or configuration are wrong, or only root may
	ManagerAway   Code = 3 // no answer, or one that was refused; nothing was changed for it
	Rejected      Code = 4 // something of the snapshot is not in force
	NeedsAPerson  Code = 5 // a rollback failed
	AnotherPassOn Code = 6 // another pass is running

	WouldChange Code = 10 // a pass would change something; of Foresee alone
)

// String says what a code means.
func (c Code) String() string {
	switch c {
	case Settled:
		return "settled"
	case Unexpected:
		return "unexpected"
	case Usage:
		return "usage or configuration, or not root"
	case ManagerAway:
		return "manager unreachable, or its answer refused"
	case Rejected:
		return "something rejected, rolled back or left out, or a volume failed"
	case NeedsAPerson:
		return "a rollback failed"
	case AnotherPassOn:
		return "another pass is running"
	case WouldChange:
		return "something would change"
	}
	return "unknown"
}

// The bounds of a pass. Rolling back may take apply.Overrun longer than the
// work on the host.
const (
	Limit     = 30 * time.Second
	workLimit = Limit - apply.Overrun
	lockWait  = 3 * time.Second
	maxRounds = 5
)

// Options says what a pass is for and where it runs.
type Options struct {
	SiteID          int64
	Client          *checkin.Client
	Version         string // of the agent
	Hostname        string // empty: that of the host
	ManagerUpstream string // see render.Facts
	ManagerHostname string // see render.Facts
	StateDirectory  string
	// Root relocates all files that are written, and turns systemd off, if it
	// is not empty.
	Root string
	// Templates take the place of the embedded ones; nil: those of Overrides.
	Templates fs.FS
	// ByHand tries what has failed at once, as a person expects.
	ByHand bool
	// RemovalGuard is the share of the running records, in percent, that a
	// snapshot may remove without confirmation; 0 means any share.
	RemovalGuard int
	// ConfirmRemovals accepts the snapshot that is held back, whatever it removes.
	ConfirmRemovals bool
	// SiteProbes has the HTTP services probed every few minutes.
	SiteProbes bool
	Log        *slog.Logger
}

// pass is one run.
type pass struct {
	Options
	started time.Time
	dir     *state.Dir
	state   state.State
	// accepted is the snapshot that is meant to be in force.
	accepted state.Accepted
	// recovered is true if it is what is known of it from what runs: records
	// that were left out are not in it.
	recovered bool
	// heldBack is one that came later and is not accepted, since it removes
	// too much; Data is nil if there is none. state.Guard goes with it.
	heldBack state.Accepted
	// removing are the names of what it would remove.
	removing  []string
	paths     render.Paths
	templates *render.Templates
	units     *systemd.Manager // asked nothing with a Root
	services  []services.Service
	engine    apply.Engine

	facts      host.Facts
	probed     bool              // facts are those for the accepted snapshot
	warned     map[string]bool   // what was logged about the host already
	unitStates map[string]string // ActiveState by service name
	rounds     int
	ensured    string          // digest of the snapshot this pass has put into force last
	applied    map[string]bool // digests of all it has put into force
	// manager is why the manager's answer could not be had or not be used.
	manager error
	// own holds what went wrong with the agent's own work.
	own []error
}

// Run does one pass and returns how it ended.
func Run(ctx context.Context, options Options) Code {
	ctx, cancel := context.WithTimeout(ctx, Limit)
	defer cancel()
	p, unlock, err := begin(ctx, options)
	if err != nil {
		options.Log.Error(Advised(err, "").Error())
		return CodeOf(err)
	}
	defer unlock()
	defer p.close()

	p.look(ctx)
	p.recogniseHost(ctx)
	p.reviewHeldBack()
	p.checkInUntilSettled(ctx)
	p.save()
	return p.conclude()
}

// begin takes the lock and reads what the agent knows.
func begin(ctx context.Context, o Options) (*pass, func(), error) {
	dir, err := state.Open(o.StateDirectory)
	if err != nil {
		return nil, nil, err
	}
	unlock, err := dir.Lock(ctx, lockWait)
	if err != nil {
		return nil, nil, err
	}
	return resume(o, dir), unlock, nil
}

// resume makes a pass that knows what is in the state directory.
func resume(o Options, dir *state.Dir) *pass {
	p := prepare(o)
	p.dir = dir
	var warnings []error
	p.state, p.accepted, warnings = dir.LoadOutlined(p.Version)
	for _, warning := range warnings {
		o.Log.Warn("going on with less knowledge", "error", warning)
	}
	if p.state.Services == nil {
		p.state.Services = map[string]state.Service{}
	}
	if p.accepted.Data == nil {
		p.recoverAccepted()
	}
	p.noteHolds(p.started)
	return p
}

// prepare makes a pass that knows nothing yet.
func prepare(o Options) *pass {
	p := &pass{Options: o, started: time.Now(), applied: map[string]bool{}}
	if p.ManagerUpstream == "" {
		p.ManagerHostname = "" // no server for it, and no certificate to tell of
	}
	p.paths = relocated(o.Root)
	if p.Templates == nil {
		p.Templates = Overrides(o.Root)
	}
	p.templates = render.LoadTemplates(p.Templates)
	p.units = systemd.New()
	p.services = services.All(p.units, p.paths)
	p.engine = apply.Engine{Reload: o.Root == "", Records: o.StateDirectory, InForce: p.filesInForce, Log: o.Log}
	return p
}

func (p *pass) close() { p.units.Close() }

// CodeOf returns the exit code for an error that kept the agent from its work.
func CodeOf(err error) Code {
	var locked *state.LockedError
	if errors.As(err, &locked) {
		return AnotherPassOn
	}
	if needsRoot(err) {
		return Usage
	}
	return Unexpected
}

// needsRoot tells whether it is the rights of whoever called that do not suffice.
func needsRoot(err error) bool {
	return os.Geteuid() != 0 && errors.Is(err, fs.ErrPermission)
}

// Advised adds what to do to an error of a command, if that is known.
func Advised(err error, command string) error {
	if !needsRoot(err) {
		return err
	}
	return fmt.Errorf("%w: run it as root (%s)", err, strings.TrimSpace("sudo opensource-agent "+command))
}

// checkInUntilSettled does the rounds: check in, put a new snapshot into
// force, and check in again to tell. It is settled by an answer that brings
// nothing new when there is nothing new to tell either.
func (p *pass) checkInUntilSettled(ctx context.Context) {
	for p.rounds = 1; p.rounds <= maxRounds; p.rounds++ {
		fresh, err := p.checkIn(ctx)
		if err != nil {
			p.manager = err
			p.Log.Warn("keeping the running configuration", "error", err)
			if p.ensured == "" && ctx.Err() == nil {
				p.ensure(ctx) // when told to end, nothing could be done but fail
			}
			return
		}
		if !fresh && p.ensured != "" {
			return
		}
		told := p.tellable()
		p.ensure(ctx)
		if !fresh && p.tellable() == told {
			return
		}
	}
	p.Log.Warn("not settled", "rounds", maxRounds)
	if _, err := p.checkIn(ctx); err != nil {
		p.manager = err
	}
}

// checkIn tells the manager how everything stands and takes its answer. fresh
// is true if the answer is a snapshot that this pass has not put into force.
func (p *pass) checkIn(ctx context.Context) (fresh bool, err error) {
	request := p.request()
	answer, err := p.Client.CheckIn(ctx, request, p.latestTag())
	p.compareClocks(answer, err)
	if err != nil {
		return false, err
	}
	p.markTold()
	if answer.NotModified {
		p.Log.Debug("checked in", "answer", "not modified")
		return false, nil
	}
	return p.accept(answer)
}

// latestTag is that of the latest snapshot that came, in force or not.
func (p *pass) latestTag() string {
	if p.heldBack.Data != nil {
		return p.heldBack.ETag
	}
	if p.recovered {
		return "" // to get the whole of it
	}
	return p.accepted.ETag
}

// accept takes over a snapshot, unless it is not one for this agent or removes
// too much.
func (p *pass) accept(answer checkin.Answer) (fresh bool, err error) {
	site := answer.Snapshot.Site
	if site == nil && p.state.RealSite {
		return false, fmt.Errorf("manager answered that there is no site %d, but this agent has run a real one: not obeyed", p.SiteID)
	}
	if site != nil && site.ID != p.SiteID {
		return false, fmt.Errorf("manager answered with site %d instead of %d: not obeyed", site.ID, p.SiteID)
	}
	snapshot := state.Accepted{ETag: answer.ETag, Data: answer.Data, Snapshot: answer.Snapshot}
	received := digest(answer.Data)
	if guard := p.judge(snapshot); guard != nil {
		return p.holdBack(snapshot, guard), nil
	}
	fresh = received != p.ensured
	if fresh && p.applied[received] {
		p.Log.Warn("manager went back to an earlier snapshot of this pass: left for the next one", "etag", answer.ETag)
		return false, nil
	}
	if received != p.accepted.Digest() {
		p.Log.Info("snapshot received", "etag", answer.ETag)
	}
	p.takeOver(snapshot)
	return fresh, nil
}

// takeOver makes a snapshot the one that is meant to be in force.
func (p *pass) takeOver(snapshot state.Accepted) {
	p.accepted, p.recovered = snapshot, false
	p.probed = false
	p.state.RealSite = p.state.RealSite || snapshot.Snapshot.Site != nil
	p.state.Volumes.Told = false // every snapshot is answered with all results
	if err := p.dir.SaveAccepted(p.accepted); err != nil {
		// Not remembered is not lost: the next pass asks for it again.
		p.fault(err)
	}
	p.dropHeldBack()
}

// complete reads all of the accepted snapshot, if only its outline is known: a
// pass in which nothing has changed has no need of more.
func (p *pass) complete() error {
	if !p.accepted.Outlined {
		return nil
	}
	whole, err := p.accepted.Whole()
	if err != nil {
		p.state.Outline = nil // the next pass begins with the file
		return err
	}
	p.accepted = whole
	return nil
}

// outline keeps of the accepted snapshot what the next pass has to know.
func (p *pass) outline() {
	if p.accepted.Outlined || p.accepted.Data == nil {
		return
	}
	var err error
	if p.state.Outline, err = state.NewOutline(p.accepted, render.CertificateDomains(p.accepted.Snapshot, ""), p.Version); err != nil {
		p.fault(err)
	}
}

// fault notes that the agent could not do its own work.
func (p *pass) fault(err error) {
	p.own = append(p.own, err)
	p.Log.Error(err.Error())
}

func (p *pass) save() {
	p.outline()
	if err := p.dir.SaveState(p.state); err != nil {
		p.fault(err)
	}
}

// conclude says in one line how the pass ended, and returns its exit code.
func (p *pass) conclude() Code {
	code := Settled
	worse := func(c Code) { code = max(code, c) }
	if len(p.own) > 0 {
		worse(Unexpected)
	}
	if p.manager != nil {
		worse(ManagerAway)
	}
	if p.state.Guard != nil {
		p.logHeldBack()
	}
	worse(p.inForceCode())
	p.Log.Debug("pass ended", "code", int(code), "rounds", p.rounds, "duration", time.Since(p.started).Round(time.Millisecond))
	return code
}

// inForceCode is the part of the exit code that says how far the snapshot is in
// force.
func (p *pass) inForceCode() Code {
	code := Settled
	for _, service := range p.services {
		stands := p.state.Services[service.Name]
		switch {
		case stands.Outcome == checkin.OutcomeHeld:
			// What is wrong with it is a person's business, until the hold ends.
		case stands.Outcome == checkin.OutcomeStuck:
			code = NeedsAPerson
		case stands.LastApply == checkin.ApplyFailure:
			code = max(code, Rejected)
		}
	}
	for _, volume := range p.state.Volumes.Results {
		if !volume.Applied {
			code = max(code, Rejected)
		}
	}
	if p.state.Guard != nil {
		code = max(code, Rejected)
	}
	return code
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
