package dashboard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/a-h/templ"
	"github.com/gin-gonic/gin"

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
func (d *dashboard) removals(c *gin.Context) {
	who, agent, ok := d.heldBack(c)
	if !ok {
		return
	}
	ctx := c.Request.Context()
	confirmed, err := d.confirmedRemovals(ctx)
	if err != nil {
		d.fault(c, "read confirmed removals", err)
		return
	}
	guard, err := d.describeGuard(ctx, agent, confirmed, time.Now())
	if err != nil {
		d.fault(c, "look at what is held back", err)
		return
	}
	if guard == nil || !guard.Confirmable {
		d.goTo(c, "/agents") // which says how it stands
		return
	}
	view, err := d.describeRemovals(ctx, agent)
	if err != nil {
		d.fault(c, "read what would be removed", err)
		return
	}
	p := d.page("Confirm a removal")
	p.User = who.Name
	d.show(c, http.StatusOK, confirmPage(p, view))
}

// confirm takes an administrator's word.
func (d *dashboard) confirm(c *gin.Context) {
	who, agent, ok := d.heldBack(c)
	if !ok {
		return
	}
	c.Request.Body = http.MaxBytesReader(c.Writer, c.Request.Body, maxForm)
	if err := c.Request.ParseForm(); err != nil || !checkin.ValidETag(c.Request.PostForm.Get("etag")) {
		d.show(c, http.StatusBadRequest, errorPage(d.page("Not confirmed"), "The form could not be read. Please try again."))
		return
	}
	current, err := d.snapshots.ConfirmRemovals(c.Request.Context(), agent.SiteID, who.Name, c.Request.PostForm.Get("etag"))
	var changed *store.ConflictError
	switch {
	case err == nil:
		auth.RequestOf(c.Request.Context()).Logger().Info("removals confirmed", "site", agent.SiteID, "by", who.Name, "etag", current.ETag)
		d.goTo(c, "/agents")
	case errors.As(err, &changed):
		d.show(c, http.StatusConflict, errorPage(d.page("Not confirmed"),
			"The site has another configuration by now than the one you looked at. The agent judges it with its next pass: look again then."))
	case errors.Is(err, store.ErrNotFound):
		d.notFound(c)
	default:
		d.fault(c, "confirm removals", err)
	}
}

// heldBack is the administrator who asks, and the agent of the address. Others
// have been answered if ok is false.
func (d *dashboard) heldBack(c *gin.Context) (who auth.Principal, agent store.Agent, ok bool) {
	ctx := c.Request.Context()
	who, err := d.auth.Person(ctx)
	switch {
	case errors.Is(err, auth.ErrUnauthorized):
		d.goTo(c, "/sign-in")
		return who, agent, false
	case err != nil:
		d.fault(c, "find out who is signed in", err)
		return who, agent, false
	case !who.Role.CanWrite():
		d.show(c, http.StatusForbidden, errorPage(d.page("Not allowed"), "Only an administrator can confirm a removal."))
		return who, agent, false
	}
	c.Request = c.Request.WithContext(auth.AsActor(ctx, who))
	id, err := strconv.ParseInt(c.Param("id"), 10, 64)
	if err == nil {
		agent, err = d.store.GetAgent(ctx, id)
	}
	var notANumber *strconv.NumError
	switch {
	case errors.As(err, &notANumber), errors.Is(err, store.ErrNotFound):
		d.notFound(c)
	case err != nil:
		d.fault(c, "read agent", err)
	}
	return who, agent, err == nil
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
		Agent: a.Hostname, Site: site.Name, Words: removes(*a.Report.Guard),
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
