package show

import (
	"time"

	"opensource.internal/manager/internal/store"
)

// Pin is why a site's agents get another revision than the latest one.
type Pin struct {
	Revision int64     `json:"revision" doc:"The number of the revision that agents get"`
	Reason   string    `json:"reason"`
	PinnedBy string    `json:"pinnedBy"`
	PinnedAt time.Time `json:"pinnedAt"`
}

// PinOf shows a pin; nil is none.
func PinOf(p *store.Pin) *Pin {
	if p == nil {
		return nil
	}
	return &Pin{Revision: p.Revision, Reason: p.Reason, PinnedBy: p.PinnedBy, PinnedAt: p.PinnedAt.UTC()}
}

// PinsOf shows pins, by site.
func PinsOf(rows []store.Pin) map[int64]*Pin {
	bySite := map[int64]*Pin{}
	for _, row := range rows {
		bySite[row.SiteID] = PinOf(&row)
	}
	return bySite
}
