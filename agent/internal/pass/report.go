package pass

import (
	"encoding/json"
	"strconv"
	"time"

	"opensource.internal/agent/checkin"
)

// request tells how everything stands at this moment.
func (p *pass) request() checkin.Request {
	r := p.standing()
	r.CurrentTime = time.Now().Unix()
	hostInfo := p.facts.Host
	r.Host = &hostInfo
	r.Agent = &checkin.AgentInfo{
		Version:   p.Version,
		MachineID: p.facts.MachineID,
		Templates: append([]string{}, p.templates.Overridden()...),
		Pass: &checkin.PassInfo{
			StartedAt:  p.started.UTC().Truncate(time.Second),
			DurationMS: time.Since(p.started).Milliseconds(),
			Rounds:     p.rounds,
		},
	}
	return fitted(r)
}

// standing is the part of the request that changes only when something
// happened.
func (p *pass) standing() checkin.Request {
	r := checkin.Request{
		SiteID:       p.SiteID,
		Hostname:     p.hostname(),
		IPv4Address:  p.facts.IPv4,
		Services:     map[string]checkin.ServiceReport{},
		Running:      p.state.Running,
		Certificates: p.facts.Certificates,
		Guard:        p.state.Guard,
		Probes:       p.probeResults(),
	}
	for _, service := range p.services {
		r.Services[service.Name] = p.serviceReport(service.Name)
	}
	if !p.state.Volumes.Told {
		r.Volumes = p.volumeResults()
	}
	return r
}

// volumeResults are those for the latest snapshot: while that is held back, of
// the volumes that are just the same in the one before.
func (p *pass) volumeResults() map[string]checkin.VolumeReport {
	if p.heldBack.Data == nil || p.heldBack.Snapshot.Site == nil || p.accepted.Snapshot.Site == nil {
		return p.state.Volumes.Results
	}
	inForce := map[checkin.Volume]bool{}
	for _, volume := range p.accepted.Snapshot.Site.Volumes {
		inForce[volume] = true
	}
	results := map[string]checkin.VolumeReport{}
	for _, volume := range p.heldBack.Snapshot.Site.Volumes {
		id := strconv.FormatInt(volume.ID, 10)
		if result, known := p.state.Volumes.Results[id]; known && inForce[volume] {
			results[id] = result
		}
	}
	return results
}

func (p *pass) serviceReport(name string) checkin.ServiceReport {
	s := p.state.Services[name]
	r := checkin.ServiceReport{
		State:        p.unitStates[name],
		LastApply:    s.LastApply,
		Message:      checkin.CleanMessage(s.Message, checkin.MaxMessage),
		Outcome:      s.Outcome,
		ReceivedETag: s.ReceivedETag,
		RunningETag:  s.RunningETag,
		AppliedAt:    s.AppliedAt,
		Quarantined:  s.Quarantined,
		Drift:        s.Drift,
	}
	if p.heldBack.Data != nil {
		r.ReceivedETag = p.heldBack.ETag
	}
	if hold, held := p.state.Holds[name]; held {
		r.Hold = &hold.Hold
	}
	if r.State == "" {
		r.State = checkin.StateUnknown
	}
	if r.LastApply == "" {
		r.LastApply = checkin.ApplyUnknown
	}
	return r
}

// tellable identifies what the next check-in would tell, clocks apart.
func (p *pass) tellable() string {
	// The request was built to be encoded; it cannot fail to be.
	body, _ := json.Marshal(p.standing())
	return digest(body)
}

// markTold notes that a check-in with the present results was answered.
func (p *pass) markTold() {
	p.state.Volumes.Told = true
	for name, service := range p.state.Services {
		service.Drift = nil
		p.state.Services[name] = service
	}
}

func (p *pass) hostname() string {
	if p.Hostname != "" {
		return p.Hostname
	}
	return p.facts.Hostname
}
