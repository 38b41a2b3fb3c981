package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"opensource.internal/agent/checkin"
)

// ConfirmedRemovals is an administrator's word that what a site's snapshot does
// not have any more is meant to be gone. The next change of the site's
// inventory drops it, whoever makes it: a trigger does.
type ConfirmedRemovals struct {
	SiteID      int64 `gorm:"primaryKey"`
	ConfirmedBy string
	ConfirmedAt time.Time
}

// TableName implements gorm's schema.Tabler.
func (ConfirmedRemovals) TableName() string { return "confirmed_removals" }

// ListConfirmedRemovals returns those that are in force, by site.
func (s *Store) ListConfirmedRemovals(ctx context.Context) ([]ConfirmedRemovals, error) {
	var rows []ConfirmedRemovals
	if err := s.read.WithContext(ctx).Order("site_id").Find(&rows).Error; err != nil {
		return nil, fmt.Errorf("list confirmed removals: %w", err)
	}
	return rows, nil
}

// ConfirmRemovals publishes a site's present content with the word that its
// removals are meant. If it stands already, nothing changes. A seen tag, if it
// is not empty, has to be that of the present content, else what would be
// confirmed is not what was looked at. Errors: ErrNotFound, *ConflictError.
func (s *Store) ConfirmRemovals(ctx context.Context, siteID int64, by, seen string, encode Encode) (Published, error) {
	var published Published
	err := s.update(ctx, func(tx *gorm.DB) (err error) {
		held, pin, err := heldRevision(tx, siteID)
		if err != nil {
			return err
		}
		if held != nil {
			published, err = confirmHeld(tx, *held, pin, by, seen)
			return err
		}
		if err := requireSeen(tx, siteID, seen, encode); err != nil {
			return err
		}
		row := ConfirmedRemovals{SiteID: siteID, ConfirmedBy: by, ConfirmedAt: now()}
		given := tx.Clauses(clause.OnConflict{DoNothing: true}).Create(&row)
		if given.Error != nil {
			return fmt.Errorf("confirm removals of site %d: %w", siteID, given.Error)
		}
		published, err = publishInventory(tx, siteID, by, removalsConfirmed, encode)
		if err != nil || given.RowsAffected == 0 {
			return err
		}
		return auditConfirmed(tx, published.Revision)
	})
	return published, err
}

// removalsConfirmed is the note of a revision that was made by a confirmation.
const removalsConfirmed = "removals confirmed"

// confirmHeld publishes once more what agents get instead of the inventory's
// content. A pin goes on to the new revision. The word stands for this content
// alone: what the inventory has by now was not looked at.
func confirmHeld(tx *gorm.DB, held Revision, pin *Pin, by, seen string) (Published, error) {
	_, plain, err := withRemovalsConfirmed(held.Data, false)
	if err != nil {
		return Published{}, err
	}
	data, etag, err := withRemovalsConfirmed(held.Data, true)
	if err != nil {
		return Published{}, err
	}
	if seen != "" && !checkin.SameETag(seen, plain) && !checkin.SameETag(seen, etag) {
		return Published{}, errOtherContent()
	}
	if held.ETag == etag {
		return publishedAs(tx, held, pin)
	}
	row, err := keepRevision(tx, Revision{SiteID: held.SiteID, ETag: etag, Data: data, PublishedBy: by, Note: removalsConfirmed}, nil)
	if err != nil {
		return Published{}, err
	}
	if pin != nil {
		moved := *pin
		moved.Revision = row.Number
		if err := save(tx, *pin, &moved); err != nil {
			return Published{}, err
		}
		pin = &moved
	}
	if err := errors.Join(reread(tx, held.SiteID), auditConfirmed(tx, row)); err != nil {
		return Published{}, err
	}
	return publishedAs(tx, row, pin)
}

func auditConfirmed(tx *gorm.DB, row Revision) error {
	return auditSite(tx, ActionConfirmRemovals, row.SiteID, Values{"etag": row.ETag, "revision": row.Number})
}

// requireSeen compares a tag with the present content, which has one tag before
// it is confirmed and another one afterwards.
func requireSeen(tx *gorm.DB, siteID int64, seen string, encode Encode) error {
	if seen == "" {
		return nil
	}
	inventory, err := readInventory(tx, siteID)
	if err != nil {
		return err
	}
	for _, confirmed := range []bool{true, false} {
		inventory.RemovalsConfirmed = confirmed
		_, etag, err := encode(inventory)
		if err != nil {
			return fmt.Errorf("build snapshot of site %d: %w", siteID, err)
		}
		if checkin.SameETag(seen, etag) {
			return nil
		}
	}
	return errOtherContent()
}

func errOtherContent() error {
	return &ConflictError{Field: "etag", Message: "the site's content is another one by now: look at it again"}
}
