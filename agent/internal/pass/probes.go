package pass

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"opensource.internal/agent/checkin"
	"opensource.internal/agent/internal/host"
	"opensource.internal/agent/internal/probe"
	"opensource.internal/agent/internal/state"
)

// probePause is how long what was found holds while the same runs.
const probePause = 5 * time.Minute

// probeServices finds out how far a request to each HTTP service comes, if it is
// time to. Nothing depends on what it finds; it is told.
func (p *pass) probeServices(ctx context.Context) {
	if !p.SiteProbes {
		p.state.Probes = nil
		return
	}
	if !p.probesDue() {
		return
	}
	services, before := probe.Services(p.running("nginx")), map[string]state.Probe{}
	if p.state.Probes != nil {
		before = p.state.Probes.Services
	}
	longestAgoFirst(services, before)
	found := p.prober().Run(ctx, services)
	if len(found) == 0 && len(services) > 0 {
		return // there was no time for it: the next pass has
	}
	now := state.Probes{At: time.Now().UTC().Truncate(time.Second), Of: p.nginxRuns(), Services: map[string]state.Probe{}}
	for _, service := range services {
		if result, reached := found[service.Name]; reached {
			now.Services[service.Name] = state.Probe{Probe: result, At: now.At}
		} else if earlier, known := before[service.Name]; known {
			now.Services[service.Name] = earlier
		}
	}
	p.logProbes(before, now.Services)
	p.state.Probes = &now
}

// probesDue reports whether it is time to probe: something else runs by now, or
// the pause is over. A person does not wait.
func (p *pass) probesDue() bool {
	if !p.engine.Reload {
		return false // what listens is not of this agent
	}
	last := p.state.Probes
	if last == nil || p.ByHand || last.Of != p.nginxRuns() {
		return true
	}
	ago := time.Since(last.At)
	return ago >= probePause-earlier || ago < 0 // a clock that was set back
}

// nginxRuns identifies what nginx runs: another snapshot, or the same one loaded
// anew, is something else.
func (p *pass) nginxRuns() string {
	nginx := p.state.Services["nginx"]
	if nginx.AppliedAt == nil {
		return nginx.RunningETag
	}
	return nginx.RunningETag + " " + nginx.AppliedAt.Format(time.RFC3339)
}

// prober is one that asks the name servers of this host, and its nginx, and
// trusts whom this host trusts.
func (p *pass) prober() probe.Prober {
	authorities, err := probe.Authorities(host.Path(p.Root, probe.Bundle))
	if err != nil {
		p.warnOnce(err.Error())
	}
	prober := probe.Prober{Authorities: authorities, Listener: netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), 443)}
	for _, server := range p.facts.Resolvers {
		prober.NameServers = append(prober.NameServers, netip.AddrPortFrom(server, 53))
	}
	return prober
}

// longestAgoFirst puts services into the order in which they are probed: where
// there is no time for all of them, each has its turn.
func longestAgoFirst(services []probe.Service, results map[string]state.Probe) {
	slices.SortStableFunc(services, func(a, b probe.Service) int { return results[a.Name].At.Compare(results[b.Name].At) })
}

// probeResults is what the manager is told.
func (p *pass) probeResults() map[string]checkin.Probe {
	if p.state.Probes == nil {
		return nil
	}
	told := make(map[string]checkin.Probe, len(p.state.Probes.Services))
	for name, result := range p.state.Probes.Services {
		told[name] = result.Probe
	}
	return told
}

// logProbes tells of the services for which another hop fails than before.
func (p *pass) logProbes(before, now map[string]state.Probe) {
	var changed []string
	for name, result := range now {
		if result.Hop != before[name].Hop {
			changed = append(changed, name)
		}
	}
	slices.Sort(changed)
	for i, name := range changed {
		switch result := now[name]; {
		case i == maxLines:
			p.Log.Warn(fmt.Sprintf("probes have found something else for %d more", len(changed)-i))
			return
		case result.Hop == checkin.HopNone:
			p.Log.Info("service can be reached again", "name", name)
		default:
			p.Log.Warn("service cannot be reached", "name", name, "hop", result.Hop, "error", result.Message)
		}
	}
}
