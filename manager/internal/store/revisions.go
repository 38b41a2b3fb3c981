package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/revision"
)

// Revision is a published snapshot of a site.
type Revision struct {
	ID        int64
	SiteID    int64
	Number    int64  // counts from 1 in each site
	ETag      string `gorm:"column:etag"`
	Data      Packed // the exact JSON
	CreatedAt time.Time
	// Summary counts what it changed against the revision before, by resource.
	Summary revision.Summary `gorm:"serializer:json"`
	// ChangedBy are those who changed the site since the revision before, in the
	// order in which they first did.
	ChangedBy []string `gorm:"serializer:json"`
	// PublishedBy is who said that it be published, "" if nobody had to, and Note
	// what for.
	PublishedBy string
	Note        string
	// Audited is how far the audit log was read for ChangedBy: an entry's id.
	Audited int64
}

// RevisionFilter chooses revisions. Zero fields choose all.
type RevisionFilter struct {
	SiteID int64
	ETag   string
	Below  int64 // only numbers below it
}

var revisionSort = map[string]string{"number": "number", "createdAt": "created_at"}

// ListRevisions returns a page of revisions, without their data and the latest
// first, and the number of all that match. Sort: id, number, createdAt.
func (s *Store) ListRevisions(ctx context.Context, filter RevisionFilter, opts ListOptions) ([]Revision, int64, error) {
	query := where(s.reader(ctx), "site_id", filter.SiteID)
	if filter.Below != 0 {
		query = query.Where("number < ?", filter.Below)
	}
	return list[Revision](where(query, "etag", filter.ETag).Omit("data"), opts.newestFirst(), revisionSort, "etag", "changed_by", "published_by", "note")
}

// GetRevision returns the revision of a number with its data, or ErrNotFound.
func (s *Store) GetRevision(ctx context.Context, siteID, number int64) (Revision, error) {
	return oneRevision(s.reader(ctx), "site_id = ? AND number = ?", siteID, number)
}

// RevisionByETag returns the latest revision of a tag with its data, or
// ErrNotFound.
func (s *Store) RevisionByETag(ctx context.Context, siteID int64, etag string) (Revision, error) {
	return oneRevision(s.reader(ctx), "site_id = ? AND etag = ?", siteID, etag)
}

// oneRevision returns the latest one that matches.
func oneRevision(tx *gorm.DB, condition string, args ...any) (Revision, error) {
	var row Revision
	err := tx.Where(condition, args...).Order("number DESC").Take(&row).Error
	if errors.Is(err, gorm.ErrRecordNotFound) {
		return Revision{}, ErrNotFound
	}
	if err != nil {
		return Revision{}, fmt.Errorf("read revision (%s) of %v: %w", condition, args, err)
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

// Published is what the agents of a site get.
type Published struct {
	// Revision is the latest one, or the one that the site is pinned to.
	Revision Revision
	// Pin is nil if the site is not pinned.
	Pin *Pin
	// Held is true if the revision is not made of the inventory as it is: the
	// site is pinned or published by hand.
	Held bool
	// Version is the site's change counter that the snapshot goes with.
	Version uint64
	// Volumes are all of the site's volumes, whether they are in the snapshot or
	// not.
	Volumes []Volume
}

// Publish returns what agents of a site get. Unless the site is pinned or is
// published by hand, it builds the snapshot and keeps it as a new revision if it
// is not the latest one already. Reading and keeping are one write transaction:
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
	held, pin, err := heldRevision(tx, siteID)
	if err != nil {
		return Published{}, err
	}
	if held == nil {
		return publishInventory(tx, siteID, "", "", encode)
	}
	return publishedAs(tx, *held, pin)
}

// publishedAs is what agents get with a revision that is kept already.
func publishedAs(tx *gorm.DB, row Revision, pin *Pin) (Published, error) {
	version, err := readVersion(tx, row.SiteID)
	if err != nil {
		return Published{}, err
	}
	published := Published{Revision: row, Pin: pin, Held: true, Version: version}
	if err := tx.Where("site_id = ?", row.SiteID).Order("id").Find(&published.Volumes).Error; err != nil {
		return Published{}, fmt.Errorf("read volumes of site %d: %w", row.SiteID, err)
	}
	return published, nil
}

// heldRevision is the revision that agents get whatever the inventory says: the
// pinned one, or the latest one of a site that is published by hand. It is nil
// if the inventory decides, as it does for a site without any revision: agents
// have to get something.
func heldRevision(tx *gorm.DB, siteID int64) (*Revision, *Pin, error) {
	site, err := get[Site](tx, siteID)
	if err != nil {
		return nil, nil, err
	}
	pin, err := readPin(tx, siteID)
	if err != nil {
		return nil, nil, err
	}
	if pin != nil {
		row, err := oneRevision(tx, "site_id = ? AND number = ?", siteID, pin.Revision)
		return &row, pin, err
	}
	if site.Publishing != inventory.PublishManual {
		return nil, nil, nil
	}
	row, err := oneRevision(tx, "site_id = ?", siteID)
	if errors.Is(err, ErrNotFound) {
		return nil, nil, nil
	}
	return &row, nil, err
}

// publishInventory keeps the present content of the inventory as the latest
// revision. By is who said so, "" if nobody had to.
func publishInventory(tx *gorm.DB, siteID int64, by, note string, encode Encode) (Published, error) {
	content, err := readInventory(tx, siteID)
	if err != nil {
		return Published{}, err
	}
	data, etag, err := encode(content)
	if err != nil {
		return Published{}, fmt.Errorf("build snapshot of site %d: %w", siteID, err)
	}
	version, err := readVersion(tx, siteID)
	if err != nil {
		return Published{}, err
	}
	row, err := keepRevision(tx, Revision{SiteID: siteID, ETag: etag, Data: data, PublishedBy: by, Note: note}, &content)
	if err != nil {
		return Published{}, err
	}
	return Published{Revision: row, Version: version, Volumes: content.Volumes}, nil
}

// keepRevision keeps a revision with the next number, unless the latest one is
// the same. Content is what it was made of, nil if it is the content of another
// revision once more, which nobody has changed.
func keepRevision(tx *gorm.DB, next Revision, content *Inventory) (Revision, error) {
	var latest []Revision
	if err := tx.Where("site_id = ?", next.SiteID).Order("number DESC").Limit(1).Find(&latest).Error; err != nil {
		return Revision{}, fmt.Errorf("read latest revision of site %d: %w", next.SiteID, err)
	}
	var before Revision
	if len(latest) > 0 {
		if before = latest[0]; before.ETag == next.ETag {
			return before, nil
		}
	}
	next.Number = before.Number + 1
	next.ChangedBy, next.Audited = []string{}, before.Audited
	was, summary := summarise(before.Data, next.Data)
	next.Summary = summary
	if content != nil {
		if err := nameAuthors(tx, &next, before.Audited, was, content.Domains); err != nil {
			return Revision{}, err
		}
	}
	if err := tx.Create(&next).Error; err != nil {
		return Revision{}, fmt.Errorf("keep revision %d of site %d: %w", next.Number, next.SiteID, err)
	}
	return next, nil
}

// summarise reads a snapshot and counts what differs in the next one. One that
// cannot be read is no reason not to publish.
func summarise(before, after []byte) (was checkin.Snapshot, summary revision.Summary) {
	was = checkin.Bootstrap()
	var err error
	if before != nil {
		was, err = checkin.ParseSnapshot(before)
	}
	if err != nil {
		return checkin.Bootstrap(), revision.Summary{}
	}
	is, err := checkin.ParseSnapshot(after)
	if err != nil {
		return was, revision.Summary{}
	}
	return was, revision.Summarise(revision.Compare(was, is))
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
