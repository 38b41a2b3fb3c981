package store

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"gorm.io/gorm"
)

// The sizes of a page of a list.
const (
	DefaultLimit = 50
	MaxLimit     = 500
)

// ListOptions choose a page of a list.
type ListOptions struct {
	Limit  int // DefaultLimit if 0, at most MaxLimit; All for everything
	Offset int
	// Search chooses what contains it in one of the list's texts, in any case.
	Search string
	// Sort is the JSON name of a field, "-" before it for descending; by id
	// if empty. What cannot be sorted by is an InvalidError of "sort".
	Sort string
}

// All as ListOptions.Limit lists everything: for the manager itself, not for
// its clients.
const All = -1

// list reads one page of T and the number of all that match. The searchable are
// the columns that opts.Search looks into.
func list[T any](query *gorm.DB, opts ListOptions, sortable map[string]string, searchable ...string) ([]T, int64, error) {
	if opts.Search != "" {
		if len(searchable) == 0 {
			return nil, 0, invalid("q", "this list cannot be searched")
		}
		query = containing(query, opts.Search, searchable...)
	}
	query, err := opts.apply(query, sortable)
	if err != nil {
		return nil, 0, err
	}
	query = query.Session(&gorm.Session{}) // used twice
	var total int64
	if err := query.Limit(-1).Offset(-1).Model(new(T)).Count(&total).Error; err != nil {
		return nil, 0, fmt.Errorf("count records: %w", err)
	}
	rows := []T{}
	if err := query.Find(&rows).Error; err != nil {
		return nil, 0, fmt.Errorf("list records: %w", err)
	}
	return rows, total, nil
}

// newestFirst sorts what is not asked to be sorted otherwise.
func (o ListOptions) newestFirst() ListOptions {
	if o.Sort == "" {
		o.Sort = "-id"
	}
	return o
}

func (o ListOptions) apply(query *gorm.DB, sortable map[string]string) (*gorm.DB, error) {
	switch {
	case o.Limit == All:
	case o.Limit < 0 || o.Limit > MaxLimit:
		return nil, invalid("limit", "%d is not from 1 to %d", o.Limit, MaxLimit)
	case o.Limit == 0:
		query = query.Limit(DefaultLimit)
	default:
		query = query.Limit(o.Limit)
	}
	if o.Offset < 0 {
		return nil, invalid("offset", "%d is negative", o.Offset)
	}
	if o.Offset > 0 {
		query = query.Offset(o.Offset)
	}
	field, descending := strings.CutPrefix(o.Sort, "-")
	if field != "" && field != "id" {
		column, ok := sortable[field]
		if !ok {
			names := append([]string{"id"}, slices.Sorted(maps.Keys(sortable))...)
			return nil, invalid("sort", "cannot sort by %q: one of %s", field, strings.Join(names, ", "))
		}
		query = query.Order(column + direction(descending) + nulls(column, descending))
	}
	return query.Order("id" + direction(descending)), nil
}

func direction(descending bool) string {
	if descending {
		return " DESC"
	}
	return ""
}

// nullable are the columns lists are sorted by that may be null. Of no other the
// databases are told where nulls go: PostgreSQL would use no index then.
var nullable = map[string]bool{"site_id": true, "last_used_at": true, "expires_at": true, "used_at": true, "external_port": true}

// nulls puts what is not set before everything else. SQLite does so by itself.
func nulls(column string, descending bool) string {
	switch {
	case !nullable[column]:
		return ""
	case descending:
		return " NULLS LAST"
	}
	return " NULLS FIRST"
}
