package dashboard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/a-h/templ"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/auth"
	"opensource.internal/manager/internal/store"
)

// guardView is a configuration that an agent holds back because it removes too
// much.
type guardView struct {
	Words string
	Next  string // what has to happen now
	// Confirmable is whether an administrator's word is waited for.
	Confirmable bool
	Link        templ.SafeURL // where it can be given; empty for who may not
}

// removalsPage is what an administrator looks at before confirming.
type removalsPage struct {
	SiteID int64
	Agent  string
	Site   string
	Words  string
	Action templ.SafeURL // where the form goes
	ETag   string
	Groups []removedGroup
}

type removedGroup struct {
	Title   string
	Names   []string
	Unknown bool // what the agent runs is not known here
}

// describeGuard says how it stands with what an agent holds back; nil if that is
// nothing.
func (d *dashboard) describeGuard(ctx context.Context, a store.Agent, confirmed map[int64]store.ConfirmedRemovals, now time.Time) (*guardView, error) {
	guard := a.Report.Guard
	if guard == nil {
		return nil, nil
	}
	view := &guardView{Words: "Held back: the new configuration " + removes(*guard) + "."}
	if word, is := confirmed[a.SiteID]; is {
		view.Next = fmt.Sprintf("Confirmed by %s %s: the agent takes it over with its next pass.", word.ConfirmedBy, ago(max(0, now.Sub(word.ConfirmedAt))))
		return view, nil
	}
	_, etag, err := d.snapshots.Get(ctx, a.SiteID)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, fmt.Errorf("read what site %d is given: %w", a.SiteID, err)
	}
	if guard.ETag != "" && !checkin.SameETag(guard.ETag, etag) {
		view.Next = "The site has another configuration by now, which the agent judges with its next pass."
		return view, nil
	}
	view.Confirmable = true
	view.Next = "What runs stays in force until an administrator confirms the removal, or what was removed is back."
	return view, nil
}

// removalsOf is the address of the page about what an agent holds back.
func (d *dashboard) removalsOf(agentID int64) templ.SafeURL {
	return templ.SafeURL(fmt.Sprintf("%s/agents/%d/removals", d.prefix, agentID))
}

func removes(g checkin.Guard) string {
	kind := cmp.Or(string(g.Kind), "records")
	if g.Kind == checkin.GuardReservations {
		kind = "DHCP reservations"
	}
	return fmt.Sprintf("removes %d of %d %s", g.Removed, g.Total, kind)
}

// confirmedRemovals are the sites for which a mass removal is confirmed.
func (d *dashboard) confirmedRemovals(ctx context.Context) (map[int64]store.ConfirmedRemovals, error) {
	list, err := d.store.ListConfirmedRemovals(ctx)
	if err != nil {
		return nil, err
	}
	bySite := map[int64]store.ConfirmedRemovals{}
	for _, confirmed := range list {
		bySite[confirmed.SiteID] = confirmed
	}
	return bySite, nil
}

// removals shows what would be removed, and asks.
func (d *dashboard) removals(v *visit) error {
	agent, err := d.heldBack(v)
	if err != nil {
		return err
	}
	ctx := v.Request.Context()
	confirmed, err := d.confirmedRemovals(ctx)
	if err != nil {
		return err
	}
	guard, err := d.describeGuard(ctx, agent, confirmed, v.Now)
	if err != nil {
		return err
	}
	if guard == nil || !guard.Confirmable {
		return v.goTo(agentPath(agent.ID), "") // which says how it stands
	}
	view, err := d.describeRemovals(ctx, agent)
	if err != nil {
		return err
	}
	p := v.page("Confirm a removal", "/agents", agentsCrumb, crumb{agent.Hostname, agentPath(agent.ID)})
	return v.show(http.StatusOK, p, confirmPage(p, view))
}

// confirm takes an administrator's word.
func (d *dashboard) confirm(v *visit) error {
	agent, err := d.heldBack(v)
	if err != nil {
		return err
	}
	p := v.page("Not confirmed", "/agents", agentsCrumb, crumb{agent.Hostname, agentPath(agent.ID)})
	refused := readForm(v.Context)
	if refused == 0 && !checkin.ValidETag(v.Request.PostForm.Get("etag")) {
		refused = http.StatusBadRequest
	}
	if refused != 0 {
		return v.show(refused, p, errorPage(p, unreadForm(refused)))
	}
	current, err := d.snapshots.ConfirmRemovals(v.Request.Context(), agent.SiteID, v.Who.Name, v.Request.PostForm.Get("etag"))
	var changed *store.ConflictError
	if errors.As(err, &changed) {
		return v.show(http.StatusConflict, p, errorPage(p,
			"The site has another configuration by now than the one you looked at. The agent judges it with its next pass: look again then."))
	}
	if err != nil {
		return err
	}
	auth.RequestOf(v.Request.Context()).Logger().Info("removals confirmed", "site", agent.SiteID, "by", v.Who.Name, "etag", current.ETag)
	return v.goTo(agentPath(agent.ID), "The removal is confirmed. The agent goes on with its next pass.")
}

// heldBack is the agent of the address.
func (d *dashboard) heldBack(v *visit) (store.Agent, error) {
	id, err := v.id()
	if err != nil {
		return store.Agent{}, err
	}
	return d.store.GetAgent(v.Request.Context(), id)
}

// describeRemovals names what is in force on an agent's host and not in the
// site's present content.
func (d *dashboard) describeRemovals(ctx context.Context, a store.Agent) (removalsPage, error) {
	site, err := d.store.GetSite(ctx, a.SiteID)
	if err != nil {
		return removalsPage{}, err
	}
	data, etag, err := d.snapshots.Get(ctx, a.SiteID)
	if err != nil {
		return removalsPage{}, err
	}
	after, err := checkin.ParseSnapshot(data)
	if err != nil {
		return removalsPage{}, err
	}
	view := removalsPage{
		SiteID: a.SiteID, Agent: a.Hostname, Site: site.Name, Words: removes(*a.Report.Guard),
		Action: d.removalsOf(a.ID), ETag: etag,
	}
	for _, kind := range []struct {
		of             checkin.GuardKind
		title, service string
	}{
		{checkin.GuardServices, "Services", "nginx"},
		{checkin.GuardReservations, "DHCP reservations", "dnsmasq"},
	} {
		group := removedGroup{Title: kind.title}
		before, err := d.running(ctx, a, kind.service)
		switch {
		case errors.Is(err, store.ErrNotFound):
			// Of what has never run nothing is removed.
			group.Unknown = a.Report.Guard.Kind == kind.of || a.Report.Services[kind.service].RunningETag != ""
		case err != nil:
			return removalsPage{}, err
		default:
			names, _ := checkin.Removed(kind.of, before, after)
			for _, name := range names {
				group.Names = append(group.Names, readable(name))
			}
		}
		if group.Unknown || len(group.Names) > 0 {
			view.Groups = append(view.Groups, group)
		}
	}
	return view, nil
}

// running is the snapshot that a service of an agent runs, or store.ErrNotFound
// if this manager has never published it.
func (d *dashboard) running(ctx context.Context, a store.Agent, service string) (checkin.Snapshot, error) {
	etag := a.Report.Services[service].RunningETag
	if etag == "" && a.Report.Running != nil {
		etag = a.Report.Running.ETag
	}
	revision, err := d.store.RevisionByETag(ctx, a.SiteID, etag)
	if err != nil {
		return checkin.Snapshot{}, err
	}
	return checkin.ParseSnapshot(revision.Data)
}
