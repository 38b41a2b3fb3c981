package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"
)

// Revision is a published snapshot of a site.
type Revision struct {
	ID        int64
	SiteID    int64
	Number    int64  // counts from 1 in each site
	ETag      string `gorm:"column:etag"`
	Data      []byte // the exact JSON
	CreatedAt time.Time
}

// RevisionFilter chooses revisions. Zero fields choose all.
type RevisionFilter struct {
	SiteID int64
	ETag   string
}

var revisionSort = map[string]string{"number": "number", "createdAt": "created_at"}

// ListRevisions returns a page of revisions, without their data, and the
// number of all that match. Sort: id, number, createdAt.
func (s *Store) ListRevisions(ctx context.Context, filter RevisionFilter, opts ListOptions) ([]Revision, int64, error) {
	query := where(s.read.WithContext(ctx), "site_id", filter.SiteID)
	return list[Revision](where(query, "etag", filter.ETag).Omit("data"), opts, revisionSort)
}

// GetRevision returns the revision of a number with its data, or ErrNotFound.
func (s *Store) GetRevision(ctx context.Context, siteID, number int64) (Revision, error) {
	return s.oneRevision(ctx, "site_id = ? AND number = ?", siteID, number)
}

// RevisionByETag returns the latest revision of a tag with its data, or
// ErrNotFound.
func (s *Store) RevisionByETag(ctx context.Context, siteID int64, etag string) (Revision, error) {
	return s.oneRevision(ctx, "site_id = ? AND etag = ?", siteID, etag)
}

func (s *Store) oneRevision(ctx context.Context, condition string, siteID int64, value any) (Revision, error) {
	var row Revision
	err := s.read.WithContext(ctx).Where(condition, siteID, value).Order("number DESC").Take(&row).Error
	if errors.Is(err, gorm.ErrRecordNotFound) {
		return Revision{}, ErrNotFound
	}
	if err != nil {
		return Revision{}, fmt.Errorf("read revision %v of site %d: %w", value, siteID, err)
	}
	return row, nil
}

// Inventory is everything a site's snapshot is built from, as of one moment.
// Every list is ordered by id; when its records were created and changed is not
// read.
type Inventory struct {
	Site       Site
	Nodes      []Node
	Containers []Container
	Services   []Service
	Volumes    []Volume
	// Domains are those of the site's HTTP services and those whose default
	// site it is.
	Domains []ExternalDomain
	// RemovalsConfirmed is whether ConfirmedRemovals stand.
	RemovalsConfirmed bool
}

// Encode turns an inventory into a snapshot and its strong tag.
type Encode func(Inventory) (data []byte, etag string, err error)

// Published is a site's current snapshot.
type Published struct {
	Revision Revision
	// Version is the site's change counter that the snapshot goes with.
	Version uint64
	// Volumes are all of the site's volumes.
	Volumes []Volume
}

// Publish builds a site's snapshot and keeps it as a new revision unless it is
// the latest one already. Reading and keeping are one write transaction:
// however many processes publish at once, a later revision is never built from
// an earlier inventory. It returns ErrNotFound if there is no such site.
func (s *Store) Publish(ctx context.Context, siteID int64, encode Encode) (Published, error) {
	var published Published
	err := s.update(ctx, func(tx *gorm.DB) (err error) {
		published, err = publish(tx, siteID, encode)
		return err
	})
	return published, err
}

func publish(tx *gorm.DB, siteID int64, encode Encode) (Published, error) {
	inventory, err := readInventory(tx, siteID)
	if err != nil {
		return Published{}, err
	}
	data, etag, err := encode(inventory)
	if err != nil {
		return Published{}, fmt.Errorf("build snapshot of site %d: %w", siteID, err)
	}
	version, err := readVersion(tx, siteID)
	if err != nil {
		return Published{}, err
	}
	revision, err := keepRevision(tx, siteID, etag, data)
	if err != nil {
		return Published{}, err
	}
	return Published{Revision: revision, Version: version, Volumes: inventory.Volumes}, nil
}

func keepRevision(tx *gorm.DB, siteID int64, etag string, data []byte) (Revision, error) {
	var latest []Revision
	err := tx.Omit("data").Where("site_id = ?", siteID).Order("number DESC").Limit(1).Find(&latest).Error
	if err != nil {
		return Revision{}, fmt.Errorf("read latest revision of site %d: %w", siteID, err)
	}
	next := Revision{SiteID: siteID, Number: 1, ETag: etag, Data: data}
	if len(latest) > 0 {
		if latest[0].ETag == etag {
			latest[0].Data = data
			return latest[0], nil
		}
		next.Number = latest[0].Number + 1
	}
	if err := tx.Create(&next).Error; err != nil {
		return Revision{}, fmt.Errorf("keep revision %d of site %d: %w", next.Number, siteID, err)
	}
	return next, nil
}

// readInventory reads an Inventory, or returns ErrNotFound.
func readInventory(tx *gorm.DB, siteID int64) (Inventory, error) {
	site, err := get[Site](tx, siteID)
	if err != nil {
		return Inventory{}, err
	}
	i := Inventory{Site: site}
	// Of thousands of records the times would take longer to read than the rest.
	of := func(condition string, args ...any) *gorm.DB {
		return tx.Omit("created_at", "updated_at").Where(condition, args...).Order("id")
	}
	err = errors.Join(
		of("site_id = ?", siteID).Find(&i.Nodes).Error,
		of("site_id = ?", siteID).Find(&i.Containers).Error,
		of("site_id = ?", siteID).Find(&i.Services).Error,
		of("site_id = ?", siteID).Find(&i.Volumes).Error,
		of(`default_site_id = @site
			OR id IN (SELECT external_domain_id FROM services WHERE site_id = @site AND type = 'http')`,
			sql.Named("site", siteID)).Find(&i.Domains).Error,
		tx.Raw("SELECT EXISTS (SELECT 1 FROM confirmed_removals WHERE site_id = ?)", siteID).Scan(&i.RemovalsConfirmed).Error)
	if err != nil {
		return Inventory{}, fmt.Errorf("read inventory of site %d: %w", siteID, err)
	}
	return i, nil
}

func readVersion(tx *gorm.DB, siteID int64) (uint64, error) {
	var version uint64
	err := tx.Raw("SELECT version FROM change_counters WHERE scope = 'site' AND id = ?", siteID).Scan(&version).Error
	if err != nil {
		return 0, fmt.Errorf("read change counter of site %d: %w", siteID, err)
	}
	return version, nil
}
