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
	if p.RemovalGuard == 0 || snapshot.Snapshot.RemovalsConfirmed || digest(snapshot.Data) == digest(p.accepted.Data) {
		return nil
	}
	for _, group := range guarded {
		removed, total := group.removed(p.running(group.service), snapshot.Snapshot)
		if removed > fewRemovals && removed*100 > total*p.RemovalGuard {
			return &checkin.Guard{Removed: removed, Total: total, Kind: group.kind, ETag: snapshot.ETag}
		}
	}
	return nil
}

// running returns the snapshot of which the files of a service are in force; it
// is empty if there are none. After an upgrade it is the accepted one.
func (p *pass) running(service string) checkin.Snapshot {
	running, err := p.dir.LoadRunning(service)
	if err != nil {
		p.Log.Warn("going on with less knowledge", "error", err)
	}
	if running.Data == nil && p.state.Services[service].Digests != nil {
		return p.accepted.Snapshot
	}
	return running.Snapshot
}

// holdBack keeps a snapshot out of force. It returns false if that is so
// already, and has been told.
func (p *pass) holdBack(snapshot state.Accepted, guard *checkin.Guard) (fresh bool) {
	fresh = p.heldBack.Data == nil || digest(snapshot.Data) != digest(p.heldBack.Data)
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

func (p *pass) logHeldBack() {
	g := p.state.Guard
	what := "services"
	if g.Kind == checkin.GuardReservations {
		what = "DHCP reservations"
	}
	p.Log.Warn(fmt.Sprintf("held back: the new snapshot removes %d of the %d %s in force here. If that is meant, confirm it on the manager's page /agents "+
		"or by POST /api/v1/sites/%d/confirm-removals; if this manager knows neither, by opensource-agent run --confirm-removals on this host",
		g.Removed, g.Total, what, p.SiteID), "etag", g.ETag)
}

// guarded are the groups of records that are counted together.
var guarded = []group{
	{checkin.GuardServices, "nginx", servicesOf},
	{checkin.GuardReservations, "dnsmasq", reservationsOf},
}

type group struct {
	kind    checkin.GuardKind
	service string
	// records returns the records of a snapshot; managed is false if it says
	// nothing about them.
	records func(checkin.Snapshot) (records []record, managed bool)
}

// record is one record by everything it can be recognised by. It is the same
// as another if one of these is: a record that was renamed is still there, and
// so is one of a manager that has numbered its records anew.
type record []string

// removed counts the records of before that are not in after any more.
func (g group) removed(before, after checkin.Snapshot) (removed, total int) {
	old, known := g.records(before)
	kept, managed := g.records(after)
	if !known || !managed {
		return 0, 0
	}
	there := map[string]bool{}
	for _, record := range kept {
		for _, name := range record {
			there[name] = true
		}
	}
	for _, record := range old {
		if !record.in(there) {
			removed++
		}
	}
	return removed, len(old)
}

func (r record) in(there map[string]bool) bool {
	for _, name := range r {
		if there[name] {
			return true
		}
	}
	return false
}

// servicesOf recognises a service by its id, and by its public name or port.
func servicesOf(s checkin.Snapshot) ([]record, bool) {
	var records []record
	for _, h := range s.NGINX.HTTPServices {
		name := "http " + strings.ToLower(h.ExternalHostname+"."+h.ExternalDomain.Name)
		records = append(records, identified(name, "http", h.ID))
	}
	for _, t := range s.NGINX.StreamServices {
		name := fmt.Sprintf("%s %d", t.Protocol, t.ExternalPort)
		records = append(records, identified(name, "stream", t.ID))
	}
	return records, true
}

func identified(name, kind string, id int64) record {
	if id == 0 {
		return record{name}
	}
	return record{name, fmt.Sprintf("%s id %d", kind, id)}
}

// reservationsOf recognises a reservation by the host name of its container,
// and by its hardware address. Without all network fields dnsmasq is left as it
// is, so that nothing is removed.
func reservationsOf(s checkin.Snapshot) ([]record, bool) {
	if s.Site == nil || len(s.Site.MissingNetworkFields()) > 0 {
		return nil, false
	}
	var records []record
	for _, node := range s.Site.Nodes {
		for _, c := range node.Containers {
			if c.MACAddress != "" && c.IPv4Address != "" {
				records = append(records, record{"host " + strings.ToLower(c.Hostname), "mac " + strings.ToLower(string(c.MACAddress))})
			}
		}
	}
	return records, true
}
