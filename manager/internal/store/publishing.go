package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"gorm.io/gorm"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/inventory"
)

// ReadInventory returns what a site's snapshot is built from, as of one moment,
// or ErrNotFound. It publishes nothing.
func (s *Store) ReadInventory(ctx context.Context, siteID int64) (Inventory, error) {
	var read Inventory
	err := s.reader(ctx).Transaction(func(tx *gorm.DB) (err error) {
		read, err = readInventory(tx, siteID)
		return err
	}, asOfOneMoment)
	return read, err
}

// asOfOneMoment is for transactions that read several tables. PostgreSQL shows
// each statement the latest otherwise; SQLite never does.
var asOfOneMoment = &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true}

// PublishSite publishes the present content of a site's inventory, and returns
// its revision: the latest one if that has it already, so that nothing waited and
// nothing is published. Agents of a pinned site
// get it when the site is unpinned. A seen tag, if it is not empty, has to be
// that of the content, else what would be published is not what was looked at.
// Errors: ErrNotFound, *InvalidError, *ConflictError.
func (s *Store) PublishSite(ctx context.Context, siteID int64, seen, note string, encode Encode) (row Revision, published bool, err error) {
	if note != "" {
		if note, err = inventory.ParseRemark(note); err != nil {
			return Revision{}, false, invalid("note", "%v", err)
		}
	}
	err = s.update(ctx, func(tx *gorm.DB) error {
		before, err := oneRevision(tx, "site_id = ?", siteID)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
		now, err := publishInventory(tx, siteID, ActorOf(ctx).Name, note, encode)
		if err != nil {
			return err
		}
		if seen != "" && !checkin.SameETag(seen, now.Revision.ETag) {
			return errOtherContent()
		}
		row, published = now.Revision, now.Revision.Number != before.Number
		if !published {
			return nil
		}
		more := Values{"etag": row.ETag, "revision": row.Number}
		if note != "" {
			more["note"] = note
		}
		return errors.Join(reread(tx, siteID), auditSite(tx, ActionPublish, siteID, more))
	})
	return row, published && err == nil, err
}

// reread makes caches read a site anew that is not changed.
func reread(tx *gorm.DB, siteID int64) error {
	err := tx.Exec("UPDATE change_counters SET version = version + 1 WHERE scope = 'site' AND id = ?", siteID).Error
	if err != nil {
		return fmt.Errorf("count up site %d: %w", siteID, err)
	}
	return nil
}
