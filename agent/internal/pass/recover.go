package pass

import "opensource.internal/agent/internal/state"

// recoverAccepted takes what the services run for the accepted snapshot where
// that was lost with its file. It is looked after until the manager has sent
// another, and for longer if that is held back or there is no manager. What
// services that run different snapshots were meant to run cannot be told.
func (p *pass) recoverAccepted() {
	var found state.Accepted
	for _, service := range p.services {
		running, err := p.dir.LoadRunning(service.Name)
		switch {
		case err != nil || running.Data == nil:
		case found.Data == nil:
			found = running
		case found.ETag != running.ETag:
			return
		}
	}
	if found.Data == nil {
		return
	}
	p.Log.Warn("the accepted snapshot was lost: going on with what is in force", "etag", found.ETag)
	p.accepted, p.recovered = found, true
	p.state.RealSite = p.state.RealSite || found.Snapshot.Site != nil
}
