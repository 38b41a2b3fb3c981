package pass

import (
	"strings"
	"time"

	"opensource.internal/agent/internal/apply"
	"opensource.internal/agent/internal/services"
	"opensource.internal/agent/internal/state"
)

// The pauses after a failed apply: each is twice the one before. A cause can
// pass (a port is freed, a disk has space again), so it is never given up; but
// every test binds nginx's ports, and every reload leaves old workers behind.
const (
	firstPause   = 30 * time.Second
	longestPause = 15 * time.Minute
	// earlier lets the pass take place that the timer starts about when a
	// pause ends.
	earlier = 10 * time.Second
)

// nextTry says when what has failed is tried again. previous is nil or the
// failure before.
func nextTry(previous *state.Retry, fingerprint string, now time.Time) *state.Retry {
	failures, since := 1, now.UTC().Truncate(time.Second)
	if previous != nil && previous.Fingerprint == fingerprint {
		failures += previous.Failures
	}
	if previous != nil && !previous.Since.IsZero() {
		since = previous.Since
	}
	pause := longestPause
	if doublings := failures - 1; doublings < 5 {
		pause = firstPause << doublings
	}
	return &state.Retry{
		Fingerprint: fingerprint, Failures: failures, After: now.Add(pause - earlier).UTC().Truncate(time.Second), Since: since,
	}
}

// waits reports whether a failure is left alone for now. A clock that was set
// back does not make it wait longer than the longest pause.
func waits(r *state.Retry, fingerprint string, now time.Time) bool {
	return r != nil && r.Fingerprint == fingerprint && now.Before(r.After) && r.After.Sub(now) <= longestPause
}

// waiting reports whether a service is left as it is in this pass: it has
// failed with all the same before, its pause is not over, and its files are what
// they were then. A person does not wait.
func (p *pass) waiting(service services.Service, fingerprint string) bool {
	stands := p.state.Services[service.Name]
	if p.ByHand || inForce(stands.Outcome) || !waits(stands.Retry, fingerprint, time.Now()) {
		return false
	}
	if !p.serviceUndisturbed(service) && !p.editedAsBefore(service) {
		return false
	}
	why, _, _ := strings.Cut(stands.Message, "\n")
	p.Log.Warn("configuration still not applied", "service", service.Name, "outcome", stands.Outcome,
		"failures", stands.Retry.Failures, "next", stands.Retry.After.Local().Format(time.TimeOnly), "error", why)
	return true
}

// editedAsBefore reports whether somebody else has changed files of a service,
// and to undo just that has failed.
func (p *pass) editedAsBefore(service services.Service) bool {
	stands := p.state.Services[service.Name]
	edits := stands.Retry.Edits
	return edits != "" && p.runs(service) && !p.engine.CutShort(service.Name) && apply.Edits(stands.Digests) == edits
}
