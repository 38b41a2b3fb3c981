package dashboard

import (
	"context"
	"errors"
	"fmt"
	"time"

	"opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/prose"
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
		waiting, err := d.snapshots.Waiting(ctx, site.ID)
		if errors.Is(err, store.ErrNotFound) {
			continue // deleted meanwhile
		}
		if err != nil {
			return nil, fmt.Errorf("count what waits in site %d: %w", site.ID, err)
		}
		words[site.ID] = describeHeld(pin, waiting, now)
	}
	return words, nil
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
