package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/auth"
	"opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/prose"
	"opensource.internal/manager/internal/snapshot"
	"opensource.internal/manager/internal/store"
)

// held says of each site whose agents do not get what the inventory has how that
// is, in words.
func (d *dashboard) held(ctx context.Context, sites []store.Site, now time.Time) (map[int64]string, error) {
	pins, err := d.store.ListPins(ctx)
	if err != nil {
		return nil, err
	}
	bySite := map[int64]*store.Pin{}
	for _, pin := range pins {
		bySite[pin.SiteID] = &pin
	}
	words := map[int64]string{}
	for _, site := range sites {
		pin := bySite[site.ID]
		if pin == nil && site.Publishing != inventory.PublishManual {
			continue
		}
		waiting, err := d.waiting(ctx, site.ID)
		if err != nil {
			return nil, err
		}
		words[site.ID] = describeHeld(pin, waiting, now)
	}
	return words, nil
}

// waiting counts the changes of a site that its agents do not get. A site that
// was deleted meanwhile has none.
func (d *dashboard) waiting(ctx context.Context, siteID int64) (int, error) {
	changes, err := d.snapshots.Waiting(ctx, siteID)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return 0, fmt.Errorf("count what waits in site %d: %w", siteID, err)
	}
	return changes, nil
}

// describeHeld is empty if there is nothing to say.
func describeHeld(pin *store.Pin, waiting int, now time.Time) string {
	changes := prose.Counted(waiting, "change")
	verb := "wait"
	if waiting == 1 {
		verb = "waits"
	}
	if pin == nil {
		if waiting == 0 {
			return ""
		}
		return fmt.Sprintf("%s %s to be published.", changes, verb)
	}
	words := fmt.Sprintf("Pinned to revision %d by %s %s: %s", pin.Revision, pin.PinnedBy, ago(max(0, now.Sub(pin.PinnedAt))), pin.Reason)
	if waiting > 0 {
		words += fmt.Sprintf(" (%s %s until it is unpinned)", changes, verb)
	}
	return words
}

// pendingView is what the inventory has and agents do not get, with whom it
// concerns.
type pendingView struct {
	SiteID     int64
	Served     int64  // what agents get
	Words      string // how it stands
	Waiting    int
	ETag       string
	Diff       differenceView
	Form       *form
	CanPublish bool
	Changed    bool // the site is not as it was looked at
}

func noteField(note *string) []*field {
	return []*field{text("note", "Note", note).hint("Optional: what it is for. Is kept with the revision.")}
}

// pending shows what would be published.
func (d *dashboard) pending(v *visit) error {
	s, err := d.siteOf(v)
	if err != nil {
		return err
	}
	note := ""
	return d.showPending(v, http.StatusOK, s, &form{Fields: noteField(&note)}, false)
}

// publish publishes exactly what was looked at.
func (d *dashboard) publish(v *visit) error {
	s, err := d.siteOf(v)
	if err != nil {
		return err
	}
	typed, err := v.typed()
	if err != nil {
		return err
	}
	note := ""
	f := &form{Fields: noteField(&note)}
	if err := f.read(typed); err != nil {
		return err
	}
	seen := typed.Get("etag")
	if !checkin.ValidETag(seen) {
		return d.showPending(v, http.StatusConflict, s, f, true)
	}
	row, published, err := d.snapshots.Publish(v.Request.Context(), s.ID, seen, note)
	var other *store.ConflictError
	if errors.As(err, &other) {
		return d.showPending(v, http.StatusConflict, s, f, true)
	}
	if status := f.refused(err); status != 0 {
		return d.showPending(v, status, s, f, false)
	}
	if err != nil {
		return err
	}
	if !published {
		return v.goTo(revisionsPath(s.ID), fmt.Sprintf("Nothing waited any more: revision %d has this content already.", row.Number))
	}
	auth.RequestOf(v.Request.Context()).Logger().Info("site published", "site", s.ID, "revision", row.Number, "by", v.Who.Name)
	pin, err := d.store.GetPin(v.Request.Context(), s.ID)
	if err != nil {
		return err
	}
	if pin != nil {
		return v.goTo(revisionsPath(s.ID), fmt.Sprintf("Revision %d is published. The site is pinned: agents get it when it is unpinned.", row.Number))
	}
	return v.goTo(revisionsPath(s.ID), fmt.Sprintf("Revision %d is published. Below you see it arrive.", row.Number))
}

func (d *dashboard) showPending(v *visit, status int, s store.Site, f *form, changed bool) error {
	ctx := v.Request.Context()
	served, current, err := d.snapshots.Served(ctx, s.ID)
	if err != nil {
		return err
	}
	now, err := d.snapshots.Inventory(ctx, s.ID)
	if err != nil {
		return err
	}
	published, err := d.snapshots.PublishedAs(ctx, s.ID, now)
	if err != nil {
		return err
	}
	view := pendingView{SiteID: s.ID, Served: current.Number, ETag: now.ETag, Waiting: len(snapshot.Unpublished(served, now)), Form: f, Changed: changed}
	view.Words = describePending(s, current.Pin, view.Waiting, published)
	view.CanPublish = v.canWrite() && s.Publishing == inventory.PublishManual && view.Waiting > 0 && published == nil
	if view.Diff, err = d.compare(ctx, s, served, now); err != nil {
		return err
	}
	if view.Diff.Agents, err = d.agentsOf(ctx, s, v.Now); err != nil {
		return err
	}
	f.Submit, f.Cancel = "Publish "+prose.Counted(view.Waiting, "change"), revisionsPath(s.ID)
	p := v.page("Changes that wait", "/sites", belowRevisions(s)...)
	if !view.CanPublish { // a form is not taken away from under somebody's hands
		p.Topics = []string{"site:" + strconv.FormatInt(s.ID, 10)}
	}
	return v.show(status, p, pendingPage(p, view))
}

// describePending says how it stands with what waits.
func describePending(s store.Site, pin *store.Pin, waiting int, published *int64) string {
	switch {
	case waiting == 0:
		return "Nothing waits: agents get what the inventory has."
	case published != nil && pin != nil:
		return fmt.Sprintf("This is published already, as revision %d. The site is pinned to revision %d: agents get it when it is unpinned.", *published, pin.Revision)
	case pin != nil && s.Publishing != inventory.PublishManual:
		return fmt.Sprintf("The site is pinned to revision %d. Agents get this when it is unpinned.", pin.Revision)
	case pin != nil:
		return fmt.Sprintf("The site is pinned to revision %d: agents get what is published when it is unpinned.", pin.Revision)
	}
	return "Agents do not get this until it is published."
}
