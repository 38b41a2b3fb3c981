package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"opensource.internal/manager/internal/inventory"
)

// Former is what a site had when a revision of it was made.
type Former struct {
	// Contents are its records. Domains are all external domains of then.
	Contents
	// Since is how far back the audit log goes if changes from before it may be
	// missing in Contents, else nil.
	Since *time.Time
	// Elsewhere names the other sites that have services under an external domain
	// now, by its id.
	Elsewhere map[int64][]string
}

// ErrLost says that the audit log does not hold all that was changed.
var ErrLost = errors.New("the audit log does not hold all changes since")

// Rewind takes back what was changed in a site since a revision: the audit log
// has for every change what was before. The contents are those of the site now,
// read in the same transaction. It returns ErrLost where the log has gaps; that
// it has none has to be seen by the revision's snapshot.
func (s *Store) Rewind(ctx context.Context, contents Contents, row Revision) (Former, error) {
	tx := s.reader(ctx)
	since, err := madeAt(tx, row)
	if err != nil {
		return Former{}, err
	}
	entries, err := changesSince(tx, row.SiteID, since)
	if err != nil {
		return Former{}, err
	}
	then := Former{Contents: contents}
	err = errors.Join(
		rewind(tx, &then.Sites, entries), rewind(tx, &then.Nodes, entries), rewind(tx, &then.Containers, entries),
		rewind(tx, &then.Services, entries), rewind(tx, &then.Volumes, entries), rewind(tx, &then.Domains, entries))
	if err != nil {
		return Former{}, err
	}
	if then.Since, err = logBeginsAfter(tx, since); err != nil {
		return Former{}, err
	}
	then.Elsewhere, err = usedElsewhere(tx, row.SiteID)
	return then, err
}

// madeAt is the entry of the audit log at which the content of a revision was
// that of the inventory. One that only repeats the content of another, with the
// word that its removals are meant, was made when that was.
func madeAt(tx *gorm.DB, row Revision) (int64, error) {
	_, plain, err := withRemovalsConfirmed(row.Data, false)
	if err != nil || plain == row.ETag {
		return row.Audited, err
	}
	same, err := oneRevision(tx, "site_id = ? AND etag = ? AND number < ?", row.SiteID, plain, row.Number)
	if errors.Is(err, ErrNotFound) {
		return row.Audited, nil
	}
	return same.Audited, err
}

// ChangedSince reports whether records of a site, or external domains, were changed
// after a revision of it was made.
func (s *Store) ChangedSince(ctx context.Context, row Revision) (bool, error) {
	entries, err := changesSince(s.reader(ctx), row.SiteID, row.Audited)
	return len(entries) > 0, err
}

// changesSince are the changes of a site's records and of all external domains,
// the last one first.
func changesSince(tx *gorm.DB, siteID, since int64) ([]AuditEntry, error) {
	var entries []AuditEntry
	err := tx.Where("id > ? AND action IN ?", since, []Action{ActionCreate, ActionUpdate, ActionDelete}).
		Where("site_id = ? AND resource IN ? OR resource = ?", siteID, siteResources, ExternalDomain{}.subject().Resource).
		Order("id DESC").Find(&entries).Error
	if err != nil {
		return nil, fmt.Errorf("read what was changed in site %d: %w", siteID, err)
	}
	return entries, nil
}

// logBeginsAfter is the moment of the oldest change in the log if it is one from
// after an entry: older ones may be gone.
func logBeginsAfter(tx *gorm.DB, since int64) (*time.Time, error) {
	var oldest []AuditEntry
	if err := tx.Where("action <> ?", ActionSignInFailed).Order("id").Limit(1).Find(&oldest).Error; err != nil {
		return nil, fmt.Errorf("read the beginning of the audit log: %w", err)
	}
	if len(oldest) == 0 || oldest[0].ID <= since+1 {
		return nil, nil
	}
	return &oldest[0].At, nil
}

func usedElsewhere(tx *gorm.DB, siteID int64) (map[int64][]string, error) {
	var uses []struct {
		DomainID int64
		Name     string
	}
	err := tx.Raw(`SELECT DISTINCT v.external_domain_id AS domain_id, s.name FROM services v JOIN sites s ON s.id = v.site_id
		WHERE v.type = 'http' AND v.site_id <> ? ORDER BY s.name`, siteID).Scan(&uses).Error
	if err != nil {
		return nil, fmt.Errorf("read which sites use external domains: %w", err)
	}
	names := map[int64][]string{}
	for _, use := range uses {
		names[use.DomainID] = append(names[use.DomainID], use.Name)
	}
	return names, nil
}

// rewind takes changes of records of a kind back, from the last one on.
func rewind[T audited](tx *gorm.DB, rows *[]T, entries []AuditEntry) error {
	columns, err := columnsOf[T](tx)
	if err != nil {
		return err
	}
	present, byID := map[int64]T{}, map[int64]*T{}
	for _, row := range *rows {
		present[row.subject().ID], byID[row.subject().ID] = row, &row
	}
	resource := (*new(T)).subject().Resource
	for _, e := range entries {
		if e.Resource != resource {
			continue
		}
		row, there := byID[e.ResourceID]
		if there == (e.Action == ActionDelete) {
			return ErrLost
		}
		if e.Action == ActionCreate {
			delete(byID, e.ResourceID)
			continue
		}
		values := e.Before
		if !there {
			again := present[e.ResourceID] // with what no entry tells
			row = &again
			byID[e.ResourceID] = row
			values = columns.all(e)
		}
		if err := columns.set(tx.Statement.Context, row, values); err != nil {
			return err
		}
	}
	*rows = nil
	for _, row := range byID {
		*rows = append(*rows, *row)
	}
	slices.SortFunc(*rows, func(a, b T) int { return cmp.Compare(a.subject().ID, b.subject().ID) })
	return nil
}

// columns are the fields of a record that an entry tells, by their JSON names.
type columns map[string]*schema.Field

func columnsOf[T any](tx *gorm.DB) (columns, error) {
	parsed := &gorm.Statement{DB: tx}
	if err := parsed.Parse(new(T)); err != nil {
		return nil, fmt.Errorf("read the fields of a %T: %w", *new(T), err)
	}
	named := columns{}
	for _, field := range parsed.Schema.Fields {
		place := field.DBName == "id" || field.DBName == "site_id"
		if field.DBName != "" && field.Tag.Get("audit") != "-" && (place || !notValues[field.DBName]) {
			named[camelCase(field.DBName)] = field
		}
	}
	return named, nil
}

// all are the values of a record that was deleted: its entry leaves out what was
// not set.
func (c columns) all(e AuditEntry) Values {
	all := Values{}
	for name := range c {
		all[name] = e.Before[name]
	}
	all["id"] = e.ResourceID
	if c["siteId"] != nil {
		all["siteId"] = e.SiteID
	}
	return all
}

// set gives a record values of the audit log. One that it has no field for is of
// another version of the program.
func (c columns) set(ctx context.Context, row any, values Values) error {
	for name, value := range values {
		field := c[name]
		if field == nil {
			return ErrLost
		}
		of := reflect.ValueOf(row).Elem()
		field.ReflectValueOf(ctx, of).SetZero() // else what another row points to, too, would be written to
		if err := field.Set(ctx, of, value); err != nil {
			return fmt.Errorf("%w: %s of a %T: %w", ErrLost, name, row, err)
		}
	}
	return nil
}

// InventoryOf is what the snapshot of the only site of some contents is built
// from.
func InventoryOf(c Contents) Inventory {
	i := Inventory{Site: c.Sites[0], Nodes: c.Nodes, Containers: c.Containers, Services: c.Services, Volumes: c.Volumes}
	used := map[int64]bool{}
	for _, service := range c.Services {
		if service.Type == inventory.ServiceHTTP && service.ExternalDomainID != nil {
			used[*service.ExternalDomainID] = true
		}
	}
	for _, domain := range c.Domains {
		if used[domain.ID] || domain.DefaultSiteID != nil && *domain.DefaultSiteID == i.Site.ID {
			i.Domains = append(i.Domains, domain)
		}
	}
	return i
}

// NoteSetBack keeps that a site's inventory was set back to a revision, and
// publishes it unless the site is pinned or published by hand. It is for the
// transaction in which that was done.
func (s *Store) NoteSetBack(ctx context.Context, siteID, number int64, encode Encode) (published Published, err error) {
	err = s.update(ctx, func(tx *gorm.DB) error {
		if err := auditSite(tx, ActionSetBack, siteID, Values{"revision": number}); err != nil {
			return err
		}
		held, pin, err := heldRevision(tx, siteID)
		if err != nil {
			return err
		}
		if held != nil {
			published, err = publishedAs(tx, *held, pin)
			return err
		}
		published, err = publishInventory(tx, siteID, "", fmt.Sprintf("set back to revision %d", number), encode)
		return err
	})
	return published, err
}
