package pass

import (
	"fmt"
	"strings"

	"opensource.internal/agent/checkin"
	"opensource.internal/agent/internal/state"
)

// fewRemovals is how many removals are never too many.
const fewRemovals = 4

// The guard against mass removal. A snapshot that removes a large share of what
// runs is more often a mistake on the manager's side than meant. It is held
// back as a whole until somebody says that it is meant; what is in force stays
// so, and is looked after.

// reviewHeldBack judges again what an earlier pass has held back: somebody may
// have confirmed it here, and the settings or what runs may have changed.
func (p *pass) reviewHeldBack() {
	if p.state.Guard == nil {
		if p.ConfirmRemovals {
			p.Log.Warn("nothing is held back: there is nothing to confirm")
		}
		return
	}
	heldBack, err := p.dir.LoadHeldBack()
	if err != nil {
		p.Log.Warn("going on with less knowledge", "error", err)
	}
	if site := heldBack.Snapshot.Site; site == nil || site.ID != p.SiteID {
		p.dropHeldBack() // lost, or of another site: the manager sends what is due
		return
	}
	p.heldBack = heldBack
	p.state.Guard = p.judge(heldBack)
	if p.state.Guard == nil || p.ConfirmRemovals {
		p.Log.Info("the snapshot that was held back is accepted", "etag", heldBack.ETag)
		p.takeOver(heldBack)
	}
}

// judge returns why a snapshot has to be held back, or nil.
func (p *pass) judge(snapshot state.Accepted) *checkin.Guard {
	if p.RemovalGuard == 0 || snapshot.Snapshot.RemovalsConfirmed || snapshot.Digest() == p.accepted.Digest() {
		return nil
	}
	for _, kind := range []checkin.GuardKind{checkin.GuardServices, checkin.GuardReservations} {
		names, total := p.removed(kind, snapshot.Snapshot)
		if removed := len(names); removed > fewRemovals && removed*100 > total*p.RemovalGuard {
			p.removing = names
			return &checkin.Guard{Removed: removed, Total: total, Kind: kind, ETag: snapshot.ETag}
		}
	}
	return nil
}

// removed names the records in force, and says of how many, that are not in a
// snapshot any more.
func (p *pass) removed(kind checkin.GuardKind, snapshot checkin.Snapshot) (names []string, total int) {
	service := "nginx"
	if kind == checkin.GuardReservations {
		service = "dnsmasq"
	}
	return checkin.Removed(kind, p.running(service), snapshot)
}

// running returns the snapshot of which the files of a service are in force; it
// is empty if there are none. Where an older version of the agent has applied
// last, and noted nothing, it is the accepted one.
func (p *pass) running(service string) checkin.Snapshot {
	running, err := p.dir.LoadRunning(service)
	if err != nil {
		p.Log.Warn("going on with less knowledge", "error", err)
	}
	stands := p.state.Services[service]
	outdated := running.ETag != stands.RunningETag && stands.RunningETag == p.accepted.ETag
	if stands.Digests != nil && (running.Data == nil || outdated) {
		running = p.accepted
	}
	if running.Outlined {
		if running, err = running.Whole(); err != nil {
			p.Log.Warn("going on with less knowledge", "error", err)
			return checkin.Snapshot{}
		}
	}
	return running.Snapshot
}

// holdBack keeps a snapshot out of force. It returns false if that is so
// already, and has been told.
func (p *pass) holdBack(snapshot state.Accepted, guard *checkin.Guard) (fresh bool) {
	fresh = p.heldBack.Data == nil || snapshot.Digest() != p.heldBack.Digest()
	p.heldBack, p.state.Guard = snapshot, guard
	if fresh {
		// Of its volumes those that run are told; a new one stays pending.
		p.state.Volumes.Told = false
	}
	if err := p.dir.SaveHeldBack(snapshot); err != nil {
		p.fault(err) // the next pass asks for it again
	}
	return fresh
}

func (p *pass) dropHeldBack() {
	if p.state.Guard == nil && p.heldBack.Data == nil {
		return
	}
	p.heldBack, p.state.Guard = state.Accepted{}, nil
	if err := p.dir.DropHeldBack(); err != nil {
		p.fault(err)
	}
}

// logHeldBack says in every pass what waits for whom.
func (p *pass) logHeldBack() {
	confirm := fmt.Sprintf("if that is meant: on the manager's page /agents, or by POST /api/v1/sites/%d/confirm-removals\n"+
		"with a manager that knows neither: opensource-agent run --confirm-removals on this host", p.SiteID)
	p.Log.Warn("held back: the new snapshot removes "+Removals(*p.state.Guard),
		"removed", firstOf(p.removing), "etag", p.state.Guard.ETag, "confirm", confirm)
}

// Removals says in words what a snapshot that is held back would remove.
func Removals(g checkin.Guard) string {
	kind := "services"
	if g.Kind == checkin.GuardReservations {
		kind = "DHCP reservations"
	}
	return fmt.Sprintf("%d of the %d %s in force here", g.Removed, g.Total, kind)
}

// firstOf lists the first of many names.
func firstOf(names []string) string {
	const most = 10
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
