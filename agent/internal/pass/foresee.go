package pass

import (
	"context"
	"errors"
	"io/fs"
	"strconv"
	"time"

	"github.com/aymanbagabas/go-udiff"

	"opensource.internal/agent/checkin"
	"opensource.internal/agent/internal/apply"
	"opensource.internal/agent/internal/services"
	"opensource.internal/agent/internal/state"
	"opensource.internal/agent/internal/volumes"
	"opensource.internal/agent/render"
)

// Foreseen is what a pass would do at this moment.
type Foreseen struct {
	// Manager is why there is no answer of the manager to go by, or nil.
	Manager error
	// ETag and Fresh are those of the snapshot that would be in force, and
	// whether it has come just now. There is no tag if there is no snapshot.
	ETag  string
	Fresh bool
	// Released is true if an earlier pass has held that snapshot back, and the
	// next one would accept it.
	Released bool
	// AcceptedAt is when an earlier pass has accepted that snapshot.
	AcceptedAt time.Time
	// Guard is the snapshot that would be held back, or nil; Removing names what
	// it would remove.
	Guard    *checkin.Guard
	Removing []string
	Services []ForeseenService
	Volumes  []volumes.Plan
	Warnings []error // what could not be found out about the host
}

// ForeseenService is what would be done about one service.
type ForeseenService struct {
	Name    string
	Changes []Change
	// Action is how the process would be made to load the files, or empty.
	Action string
	// Tested is true if the service's own program was asked about the candidate;
	// Refused is why nothing would be done then, in its words.
	Tested  bool
	Refused string
	Skipped string // why the service is not managed, or empty
	LeftOut []checkin.QuarantinedItem
	Hold    *checkin.Hold
}

// Change is a live file that would be another one.
type Change struct {
	Path string
	Diff string // unified
}

// Foresee checks in with the manager and finds out what a pass would do then.
// Nothing is saved, nothing counts as told, and nothing is written but below
// folder, which must be empty. The error is that of an agent that could not do
// its own work, see CodeOf.
func Foresee(ctx context.Context, o Options, folder string) (Foreseen, Code, error) {
	ctx, cancel := context.WithTimeout(ctx, Limit)
	defer cancel()
	o.ByHand = true
	dir := state.OpenToRead(o.StateDirectory)
	unlock, err := dir.Lock(ctx, lockWait)
	switch {
	case errors.Is(err, fs.ErrNotExist): // nobody has run here yet
	case err != nil:
		return Foreseen{}, CodeOf(err), err
	default:
		defer unlock()
	}
	p := resume(o, dir)
	defer p.close()
	p.engine.Preview = apply.NewPreview(folder)

	p.look(ctx)
	p.recogniseHost(ctx)
	saved := p.accepted.Digest()
	p.reviewHeldBack()
	p.rounds = 1
	before := p.accepted.Digest()
	if _, p.manager = p.checkIn(ctx); p.accepted.Data == nil {
		return Foreseen{Manager: p.manager, Guard: p.state.Guard, Removing: p.removing}, p.conclude(), nil
	}
	f := Foreseen{
		Manager: p.manager, ETag: p.accepted.ETag, Fresh: p.accepted.Digest() != before,
		Guard: p.state.Guard, Removing: p.removing,
	}
	f.Released = !f.Fresh && before != saved
	if p.accepted.Digest() == saved {
		f.AcceptedAt = dir.AcceptedAt()
	}
	p.foresee(ctx, &f)
	code := p.conclude()
	if code == Settled && f.changes() {
		code = WouldChange
	}
	return f, code, nil
}

// foresee is ensure, but for the doing.
func (p *pass) foresee(ctx context.Context, f *Foreseen) {
	ctx, cancel := context.WithDeadline(ctx, p.started.Add(workLimit))
	defer cancel()
	p.ensured = p.accepted.Digest()
	p.probe(ctx)
	p.ensureServices(ctx)
	for _, service := range p.services {
		f.Services = append(f.Services, p.foreseen(service))
	}
	f.Volumes = p.foreseeVolumes(ctx)
	f.Warnings = p.facts.Warnings
}

func (p *pass) foreseen(service services.Service) ForeseenService {
	stands := p.state.Services[service.Name]
	f := ForeseenService{Name: service.Name, LeftOut: stands.Quarantined}
	if hold, held := p.state.Holds[service.Name]; held {
		f.Hold = &hold.Hold
		return f
	}
	previewed, asked := p.engine.Preview.Of(service.Name)
	if !asked {
		return f
	}
	report := previewed.Report
	f.Skipped, f.Action, f.Tested = previewed.Result.Skipped, previewed.Action, report.Tested > 0
	if !inForce(report.Outcome) {
		f.Refused = stands.Message
	}
	live := contents(previewed.Result.Files)
	for _, file := range previewed.Result.Files {
		if diff := changeOf(file, live); diff != "" {
			f.Changes = append(f.Changes, Change{Path: file.Path, Diff: diff})
		}
	}
	return f
}

// changeOf is the difference between a live file and the wanted one, in a form
// that patch(1) takes.
func changeOf(file render.File, live map[string]string) string {
	from := "/dev/null"
	if _, found := live[file.Path]; found {
		from = file.Path + "\tlive"
	}
	return udiff.Unified(from, file.Path+"\twanted", live[file.Path], string(file.Content))
}

// foreseeVolumes returns the volumes about which something would be done, or
// could not be.
func (p *pass) foreseeVolumes(ctx context.Context) []volumes.Plan {
	if p.accepted.Snapshot.Site == nil {
		return nil
	}
	var plans []volumes.Plan
	p.state.Volumes.Results = map[string]checkin.VolumeReport{}
	for _, plan := range volumes.Foresee(ctx, p.accepted.Snapshot.Site.Volumes, p.state.Volumes.Records, volumes.Options{Root: p.Root}) {
		p.state.Volumes.Results[strconv.FormatInt(plan.Volume.ID, 10)] = checkin.VolumeReport{Applied: plan.Err == nil}
		if plan.Would != "" || plan.Err != nil {
			plans = append(plans, plan)
		}
	}
	return plans
}

// changes reports whether a pass would change anything.
func (f *Foreseen) changes() bool {
	for _, service := range f.Services {
		if len(service.Changes) > 0 || service.Action != "" {
			return true
		}
	}
	for _, volume := range f.Volumes {
		if volume.Would != "" {
			return true
		}
	}
	return false
}
