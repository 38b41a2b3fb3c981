package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"opensource.internal/manager/internal/auth"
	"opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/snapshot"
	"opensource.internal/manager/internal/store"
)

// pinView asks before agents get another revision than the latest one, or the
// latest one again.
type pinView struct {
	SiteID  int64
	Words   []string
	Form    *form
	Danger  bool
	Diff    differenceView
	Changed bool // what agents get is not what was looked at
}

// pinning is a pin, or the end of one, that is asked for.
type pinning struct {
	site   store.Site
	served snapshot.Version
	pin    *store.Pin
	to     snapshot.Version // what agents would get
}

// version names what agents get and would get, so that nobody changes what they
// have not seen.
func (p pinning) version() string {
	return version([]any{p.served.ETag, p.served.Number, p.pin, p.to.ETag})
}

// askPin shows what agents would get with the revision of the address.
func (d *dashboard) askPin(v *visit) error {
	asked, err := d.pinningOf(v.Request.Context(), v, d.cached)
	if err != nil {
		return err
	}
	reason := ""
	return d.showPin(v, http.StatusOK, asked, &form{Fields: reasonField(&reason)}, false)
}

func reasonField(reason *string) []*field {
	return []*field{text("reason", "Reason", reason).required().hint("Is shown wherever the site is, until it is unpinned")}
}

func (d *dashboard) pin(v *visit) error {
	typed, err := v.typed()
	if err != nil {
		return err
	}
	reason := ""
	f := &form{Fields: reasonField(&reason)}
	if err := f.read(typed); err != nil {
		return err
	}
	var pin store.Pin
	err = d.ifSeen(v, f.Version, d.pinningOf, func(ctx context.Context, asked pinning) (err error) {
		pin, err = d.snapshots.Pin(ctx, asked.site.ID, asked.to.Number, reason)
		return err
	})
	changed, status := errors.Is(err, errNotSeen), f.refused(err)
	if changed {
		status = http.StatusConflict
	}
	if status != 0 {
		asked, err := d.pinningOf(v.Request.Context(), v, d.cached)
		if err != nil {
			return err
		}
		return d.showPin(v, status, asked, f, changed)
	}
	if err != nil {
		return err
	}
	auth.RequestOf(v.Request.Context()).Logger().Info("site pinned", "site", pin.SiteID, "revision", pin.Revision, "by", pin.PinnedBy, "reason", pin.Reason)
	return v.goTo(revisionsPath(pin.SiteID), fmt.Sprintf("Pinned: agents get revision %d with their next check-in.", pin.Revision))
}

// pinningOf is the pin that the address asks for: to the revision that it names,
// or to what agents get now.
func (d *dashboard) pinningOf(ctx context.Context, v *visit, serving serving) (pinning, error) {
	asked, err := d.servedAt(ctx, v, serving)
	if err != nil {
		return pinning{}, err
	}
	asked.to = asked.served
	if wanted := v.Query("revision"); wanted != "" {
		number, err := strconv.ParseInt(wanted, 10, 64)
		if err != nil || number <= 0 {
			return pinning{}, store.ErrNotFound
		}
		if asked.to, err = d.snapshots.Revision(ctx, asked.site.ID, number); err != nil {
			return pinning{}, err
		}
	}
	return asked, nil
}

// serving tells what agents of a site get now, and its pin.
type serving func(ctx context.Context, siteID int64) (snapshot.Version, *store.Pin, error)

// cached is what serves agents, too.
func (d *dashboard) cached(ctx context.Context, siteID int64) (snapshot.Version, *store.Pin, error) {
	version, current, err := d.snapshots.Served(ctx, siteID)
	if err != nil {
		return version, nil, err
	}
	return version, current.Pin, nil
}

// servedAt is what agents of the address's site get now.
func (d *dashboard) servedAt(ctx context.Context, v *visit, serving serving) (asked pinning, err error) {
	id, err := v.id()
	if err != nil {
		return asked, err
	}
	if asked.site, err = d.store.GetSite(ctx, id); err == nil {
		asked.served, asked.pin, err = serving(ctx, id)
	}
	return asked, err
}

// errNotSeen says that agents get something else than what was looked at.
var errNotSeen = errors.New("not what was looked at")

// ifSeen acts if what is asked for is still what was looked at. Looking again and
// acting are one transaction: nobody changes anything in between.
func (d *dashboard) ifSeen(v *visit, seen string, find func(context.Context, *visit, serving) (pinning, error), act func(context.Context, pinning) error) error {
	return d.store.Atomically(v.Request.Context(), func(ctx context.Context) error {
		asked, err := find(ctx, v, d.snapshots.Settled)
		if err != nil {
			return err
		}
		if asked.version() != seen {
			return errNotSeen
		}
		return act(ctx, asked)
	})
}

func (d *dashboard) showPin(v *visit, status int, asked pinning, f *form, changed bool) error {
	name := fmt.Sprintf("revision %d", asked.to.Number)
	f.Version, f.Submit, f.Cancel = asked.version(), "Pin to "+name, revisionsPath(asked.site.ID)
	view := pinView{Form: f, Danger: true, Changed: changed, Words: []string{
		"Agents get exactly " + name + " with their next check-in, whatever is changed or published, until somebody unpins the site.",
		"The inventory stays as it is. Mend there what was wrong, and unpin then.",
	}}
	return d.showPinView(v, status, "Pin to "+name+"?", asked, view)
}

func (d *dashboard) showPinView(v *visit, status int, title string, asked pinning, view pinView) error {
	ctx := v.Request.Context()
	view.SiteID = asked.site.ID
	if pin := asked.pin; pin != nil {
		view.Words = append(view.Words, describeHeld(pin, 0, v.Now)+".")
	}
	var err error
	if view.Diff, err = d.compare(ctx, asked.site, asked.served, asked.to); err != nil {
		return err
	}
	if view.Diff.Agents, err = d.agentsOf(ctx, asked.site, v.Now); err != nil {
		return err
	}
	return v.show(status, v.page(title, "/sites", belowRevisions(asked.site)...), pinPage(v.page(title, "/sites"), view))
}

// askUnpin shows what agents would get without the pin.
func (d *dashboard) askUnpin(v *visit) error {
	asked, err := d.unpinningOf(v.Request.Context(), v, d.cached)
	if err != nil {
		return err
	}
	if asked.pin == nil {
		return v.goTo(revisionsPath(asked.site.ID), "The site is not pinned.")
	}
	return d.showUnpin(v, http.StatusOK, asked, false)
}

func (d *dashboard) unpin(v *visit) error {
	asked, err := d.unpinningOf(v.Request.Context(), v, d.cached)
	if err != nil {
		return err
	}
	typed, err := v.typed()
	if err != nil {
		return err
	}
	back := revisionsPath(asked.site.ID)
	if asked.pin == nil {
		return v.goTo(back, "The site is not pinned any more: somebody else has unpinned it.")
	}
	unpinned := false
	err = d.ifSeen(v, typed.Get("version"), d.unpinningOf, func(ctx context.Context, asked pinning) (err error) {
		unpinned, err = d.store.UnpinSite(ctx, asked.site.ID)
		return err
	})
	if errors.Is(err, errNotSeen) {
		if asked, err = d.unpinningOf(v.Request.Context(), v, d.cached); err != nil {
			return err
		}
		return d.showUnpin(v, http.StatusConflict, asked, true)
	}
	if err != nil {
		return err
	}
	if unpinned {
		auth.RequestOf(v.Request.Context()).Logger().Info("site unpinned", "site", asked.site.ID, "by", v.Who.Name)
	}
	return v.goTo(back, "Unpinned: agents get what is published with their next check-in.")
}

// unpinningOf is the end of the pin of the address's site: agents get what was
// published last, or what the inventory has if the site publishes by itself.
func (d *dashboard) unpinningOf(ctx context.Context, v *visit, serving serving) (pinning, error) {
	asked, err := d.servedAt(ctx, v, serving)
	if err != nil {
		return pinning{}, err
	}
	if asked.site.Publishing != inventory.PublishManual {
		asked.to, err = d.snapshots.Inventory(ctx, asked.site.ID)
		return asked, err
	}
	latest, _, err := d.store.ListRevisions(ctx, store.RevisionFilter{SiteID: asked.site.ID}, store.ListOptions{Limit: 1, Sort: "-number"})
	if err != nil || len(latest) == 0 {
		return asked, err
	}
	asked.to, err = d.snapshots.Revision(ctx, asked.site.ID, latest[0].Number)
	return asked, err
}

func (d *dashboard) showUnpin(v *visit, status int, asked pinning, changed bool) error {
	f := &form{Version: asked.version(), Submit: "Unpin", Cancel: revisionsPath(asked.site.ID)}
	words := "Agents get what the inventory has with their next check-in, and every change from then on."
	if asked.to.Number != 0 {
		words = fmt.Sprintf("Agents get revision %d with their next check-in: the one that was published last.", asked.to.Number)
	}
	return d.showPinView(v, status, "Unpin the site?", asked, pinView{Form: f, Changed: changed, Words: []string{words}})
}
