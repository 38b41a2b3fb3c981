package pass

import (
	"context"
	"slices"
	"strings"

	"opensource.internal/agent/checkin"
	"opensource.internal/agent/internal/host"
	"opensource.internal/agent/render"
)

// look finds out how host and services stand.
func (p *pass) look(ctx context.Context) {
	p.probe(ctx)
	p.askUnits(ctx)
}

// probe finds out what the host can do, for the accepted snapshot, unless this
// pass has done so already.
func (p *pass) probe(ctx context.Context) {
	if p.probed {
		return
	}
	p.probed = true
	p.facts = p.hostFacts(ctx)
	p.state.Host = p.facts.Cache
	for _, warning := range p.facts.Warnings {
		p.warnOnce(warning.Error())
	}
}

// hostFacts finds out what the host can do, for the accepted snapshot.
func (p *pass) hostFacts(ctx context.Context) host.Facts {
	facts := host.Probe(ctx, host.Inputs{
		Root:     p.Root,
		StateDir: p.StateDirectory,
		Domains:  render.CertificateDomains(p.accepted.Snapshot, p.ManagerHostname),
		CertDir:  p.paths.CertDir,
		KeyDir:   p.paths.KeyDir,
		Cache:    p.state.Host,
	})
	p.forgetUnusedPairs(facts)
	return facts
}

// forgetUnusedPairs leaves the dashboard's host name with the one certificate
// that is served for it: its own, or else its parent domain's. The other is
// nobody's trouble, unless the snapshot uses it.
func (p *pass) forgetUnusedPairs(facts host.Facts) {
	if p.ManagerHostname == "" {
		return
	}
	_, unused, _ := strings.Cut(p.ManagerHostname, ".")
	_, own := facts.Usable[p.ManagerHostname]
	if _, parents := facts.Usable[unused]; parents && !own {
		unused = p.ManagerHostname
	}
	if !slices.Contains(render.CertificateDomains(p.accepted.Snapshot, ""), unused) {
		delete(facts.Certificates, unused)
		delete(facts.CertificateNotes, unused)
	}
}

// askUnits asks systemd for the state of every unit.
func (p *pass) askUnits(ctx context.Context) {
	p.unitStates = map[string]string{}
	for _, service := range p.services {
		p.unitStates[service.Name] = checkin.StateUnknown
		if p.Root != "" {
			continue
		}
		active, err := p.units.ActiveState(ctx, service.Unit)
		if err != nil {
			p.Log.Warn("state unknown", "service", service.Name, "error", err)
			continue
		}
		p.unitStates[service.Name] = active
	}
}
