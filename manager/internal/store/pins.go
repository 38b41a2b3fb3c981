package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/inventory"
)

// Pin is why a site's agents get an earlier revision than the latest one. The
// inventory is as it is, and goes on changing.
type Pin struct {
	SiteID   int64 `gorm:"primaryKey"`
	Revision int64 // its number
	Reason   string
	PinnedBy string
	PinnedAt time.Time
}

// ListPins returns the pins of all sites.
func (s *Store) ListPins(ctx context.Context) ([]Pin, error) {
	var rows []Pin
	if err := s.reader(ctx).Order("site_id").Find(&rows).Error; err != nil {
		return nil, fmt.Errorf("list pins: %w", err)
	}
	return rows, nil
}

// GetPin returns the pin of a site, nil if there is none.
func (s *Store) GetPin(ctx context.Context, siteID int64) (*Pin, error) {
	return readPin(s.reader(ctx), siteID)
}

func readPin(tx *gorm.DB, siteID int64) (*Pin, error) {
	var rows []Pin
	if err := tx.Where("site_id = ?", siteID).Limit(1).Find(&rows).Error; err != nil {
		return nil, fmt.Errorf("read pin of site %d: %w", siteID, err)
	}
	if len(rows) == 0 {
		return nil, nil
	}
	return &rows[0], nil
}

// PinSite lets a site's agents get a revision until UnpinSite, whatever is
// published; 0 is the one they get now. A confirmation of removals is taken
// back: it was given for what ran then. Errors: ErrNotFound (no such site),
// *InvalidError, *ConflictError.
func (s *Store) PinSite(ctx context.Context, siteID, number int64, reason string, encode Encode) (Pin, error) {
	reason, err := inventory.ParseRemark(reason)
	if err != nil {
		return Pin{}, invalid("reason", "%v", err)
	}
	var pin Pin
	err = s.update(ctx, func(tx *gorm.DB) error {
		row, err := toBePinned(tx, siteID, number, encode)
		if err != nil {
			return err
		}
		before, err := readPin(tx, siteID)
		if err != nil {
			return err
		}
		pin = Pin{SiteID: siteID, Revision: row.Number, Reason: reason, PinnedBy: ActorOf(ctx).Name, PinnedAt: now()}
		if before != nil {
			err = save(tx, *before, &pin)
		} else if err = remove[ConfirmedRemovals](tx, "site_id = ?", siteID); err == nil {
			err = insert(tx, &pin)
		}
		if err != nil {
			return err
		}
		return auditSite(tx, ActionPin, siteID, Values{"revision": pin.Revision, "reason": pin.Reason})
	})
	return pin, err
}

// toBePinned is the revision of a number. One that lets agents remove much, by a
// confirmation of another day, is refused if its content is there without that.
func toBePinned(tx *gorm.DB, siteID, number int64, encode Encode) (Revision, error) {
	if number == 0 {
		published, err := publish(tx, siteID, encode)
		return published.Revision, err
	}
	if _, err := get[Site](tx, siteID); err != nil {
		return Revision{}, err
	}
	row, err := oneRevision(tx, "site_id = ? AND number = ?", siteID, number)
	if errors.Is(err, ErrNotFound) {
		return Revision{}, invalid("revision", "there is no revision %d of this site, or it is not kept any more", number)
	}
	if err != nil {
		return Revision{}, err
	}
	_, plain, err := withRemovalsConfirmed(row.Data, false)
	if err != nil || plain == row.ETag {
		return row, err
	}
	same, err := oneRevision(tx, "site_id = ? AND etag = ?", siteID, plain)
	switch {
	case errors.Is(err, ErrNotFound):
		return row, nil
	case err != nil:
		return Revision{}, err
	}
	return Revision{}, &ConflictError{Field: "revision", Message: fmt.Sprintf(
		"revision %d lets agents remove much without asking, as was confirmed when it was published; pin revision %d, which has the same content without that",
		number, same.Number)}
}

// withRemovalsConfirmed returns a snapshot with the word that its removals are
// meant, or without it, and its tag.
func withRemovalsConfirmed(data []byte, confirmed bool) ([]byte, string, error) {
	snapshot, err := checkin.ParseSnapshot(data)
	if err != nil {
		return nil, "", err
	}
	snapshot.RemovalsConfirmed = confirmed
	return checkin.Encode(snapshot)
}

// UnpinSite lets a site's agents get the latest revision again, and reports
// whether they did not already. It returns ErrNotFound if there is no such site.
func (s *Store) UnpinSite(ctx context.Context, siteID int64) (unpinned bool, err error) {
	err = s.update(ctx, func(tx *gorm.DB) error {
		if _, err := get[Site](tx, siteID); err != nil {
			return err
		}
		pin, err := readPin(tx, siteID)
		if err != nil || pin == nil {
			return err
		}
		unpinned = true
		if err := remove[Pin](tx, "site_id = ?", siteID); err != nil {
			return err
		}
		return auditSite(tx, ActionUnpin, siteID, Values{"revision": pin.Revision})
	})
	return unpinned && err == nil, err
}
