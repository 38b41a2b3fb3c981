package pass

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"opensource.internal/agent/checkin"
	"opensource.internal/agent/internal/apply"
	"opensource.internal/agent/internal/host"
	"opensource.internal/agent/internal/services"
	"opensource.internal/agent/internal/state"
	"opensource.internal/agent/render"
)

// Known is what the passes of this host have come to, and how host and units
// stand now.
type Known struct {
	Accepted   state.Accepted // without data before the first snapshot
	AcceptedAt time.Time
	Running    *checkin.Running
	Guard      *checkin.Guard // the snapshot that is held back, or nil
	Services   []KnownService // in the order in which they are applied
	Volumes    map[string]checkin.VolumeReport
	Probes     *state.Probes // nil if the services are not probed
	Host       host.Facts
	Facts      render.Facts // that the next pass would render with
	Templates  []string     // that take the place of the embedded ones
	// Code is that of a pass to which the manager has nothing to say.
	Code     Code
	Warnings []error // what could not be read
	// Unread is the one of them that says that this user may not read it, or nil.
	Unread error
}

// KnownService is how one managed service stands.
type KnownService struct {
	Name, Unit string
	state.Service
	ActiveState string // see checkin.ServiceReport
	Hold        *checkin.Hold
	Edited      []string // files with another content than was put in force
	CutShort    bool     // a pass has not come to the end of an apply
}

// Know looks without a lock, and changes nothing.
func Know(ctx context.Context, o Options) Known {
	p := prepare(o)
	defer p.close()
	known := Known{Templates: p.templates.Overridden()}
	dir := state.OpenToRead(o.StateDirectory)
	p.state, p.accepted, known.Warnings = dir.Load()
	for _, warning := range known.Warnings {
		if known.Unread == nil && errors.Is(warning, fs.ErrPermission) {
			known.Unread = warning
		}
	}
	known.AcceptedAt = dir.AcceptedAt()
	p.look(ctx)
	known.Guard, known.Probes = p.state.Guard, p.state.Probes
	known.Accepted, known.Running, known.Volumes = p.accepted, p.state.Running, p.state.Volumes.Results
	known.Host, known.Facts, known.Code = p.facts, p.renderFacts(), p.inForceCode()
	for _, service := range p.services {
		known.Services = append(known.Services, p.knownService(service))
	}
	return known
}

func (p *pass) knownService(service services.Service) KnownService {
	known := KnownService{
		Name: service.Name, Unit: service.Unit, Service: p.state.Services[service.Name], ActiveState: p.unitStates[service.Name],
	}
	if hold, held := p.state.Holds[service.Name]; held && ended(hold, p.started) == "" {
		known.Hold = &hold.Hold
	}
	known.Edited, known.CutShort = apply.Edited(known.Digests), p.engine.CutShort(service.Name)
	return known
}
