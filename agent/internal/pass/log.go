package pass

import (
	"fmt"
	"maps"
	"slices"

	"opensource.internal/agent/checkin"
	"opensource.internal/agent/internal/apply"
)

// maxLines is how many lines of one kind a pass logs; the manager is told more.
const maxLines = 20

// logCertificates tells what is wrong with certificates when that has changed.
func (p *pass) logCertificates() {
	if maps.Equal(p.facts.CertificateNotes, p.state.CertificateNotes) {
		return
	}
	p.state.CertificateNotes = p.facts.CertificateNotes
	for i, domain := range slices.Sorted(maps.Keys(p.facts.CertificateNotes)) {
		if i == maxLines {
			p.Log.Warn("further certificates have faults", "count", len(p.facts.CertificateNotes)-i)
			return
		}
		p.Log.Warn("certificate", "domain", domain, "error", p.facts.CertificateNotes[domain])
	}
}

// logStillLeftOut tells, in a pass with nothing to do, why it does not end
// with 0.
func (p *pass) logStillLeftOut() {
	for _, service := range p.services {
		stands := p.state.Services[service.Name]
		p.logLeftOut(service.Name, stands.Outcome, stands.Quarantined)
	}
}

// logApply tells how an apply has ended, unless there was nothing to do.
func (p *pass) logApply(service string, report apply.Report) {
	switch {
	case report.Outcome == checkin.OutcomeApplied:
		p.Log.Info("configuration applied", "service", service, "files", report.Changed)
	case !inForce(report.Outcome):
		p.Log.Error("configuration not applied", "service", service, "outcome", report.Outcome, "message", report.Message)
	}
}

func (p *pass) logLeftOut(service string, outcome checkin.Outcome, leftOut []checkin.QuarantinedItem) {
	for i, left := range leftOut {
		if i == maxLines {
			p.Log.Warn("further records left out", "service", service, "count", len(leftOut)-i)
			return
		}
		what := "record left out"
		switch {
		case !inForce(outcome):
			what = "record refused" // with all others
		case left.KeptPrevious:
			what = "previous version of record kept"
		}
		p.Log.Warn(what, "service", service, "record", RecordName(left), "reason", left.Reason)
	}
}

// RecordName is a record as people know it: "http app.example.com (id 3)".
func RecordName(item checkin.QuarantinedItem) string {
	name := item.Kind + " " + item.Name
	if item.ID != 0 {
		name += fmt.Sprintf(" (id %d)", item.ID)
	}
	return name
}

// logVolumes tells of volumes that became ready, and in every pass of those
// that have failed: they are why the pass does not end with 0.
func (p *pass) logVolumes(before, now map[string]checkin.VolumeReport) {
	lines := 0
	for _, id := range slices.Sorted(maps.Keys(now)) {
		result := now[id]
		if result.Applied && before[id] == result {
			continue
		}
		if lines++; lines > maxLines {
			p.Log.Warn("further volumes are not told of here", "volumes", len(now))
			return
		}
		if result.Applied {
			p.Log.Info("volume ready", "volume", id, "message", result.Message)
		} else {
			p.Log.Error("volume failed", "volume", id, "message", result.Message)
		}
	}
}

// warnOnce logs what is known to be wrong with the host, once a pass.
func (p *pass) warnOnce(text string) {
	if p.warned == nil {
		p.warned = map[string]bool{}
	}
	if !p.warned[text] {
		p.warned[text] = true
		p.Log.Warn(text)
	}
}
