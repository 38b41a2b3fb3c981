package pass

import (
	"context"

	"opensource.internal/agent/checkin"
	"opensource.internal/agent/internal/host"
	"opensource.internal/agent/render"
)

// Rendered is what one managed service should look like, or why that cannot be
// said.
type Rendered struct {
	Service string
	render.Result
	Err error
}

// HostFacts returns what a pass on this host would render a snapshot with, and
// what could not be found out or is not as it should be. It only reads.
func HostFacts(ctx context.Context, o Options, snapshot checkin.Snapshot) (render.Facts, host.Facts) {
	p := prepare(o)
	p.accepted.Snapshot = snapshot
	p.facts = p.hostFacts(ctx)
	return p.renderFacts(), p.facts
}

// Render renders a snapshot as a pass would with these facts. Nothing is asked,
// tested or written.
func Render(o Options, snapshot checkin.Snapshot, facts render.Facts) []Rendered {
	p := prepare(o)
	var all []Rendered
	for _, service := range p.services {
		result, err := service.Render(snapshot, facts, p.templates)
		all = append(all, Rendered{Service: service.Name, Result: result, Err: err})
	}
	return all
}
