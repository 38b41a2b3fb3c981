package store

import (
	"context"
	"time"

	"opensource.internal/manager/internal/inventory"
)

// Site is a stored site.
type Site struct {
	ID             int64
	inventory.Site `gorm:"embedded"`
	CreatedAt      time.Time
	UpdatedAt      time.Time
}

// SiteFilter chooses sites. Zero fields choose all.
type SiteFilter struct{ Name string }

// ListSites returns a page of sites and the number of all that match.
// Sort: id, name, createdAt, updatedAt.
func (s *Store) ListSites(ctx context.Context, filter SiteFilter, opts ListOptions) ([]Site, int64, error) {
	panic("soon")
}

// GetSite returns a site or ErrNotFound.
func (s *Store) GetSite(ctx context.Context, id int64) (Site, error) { panic("soon") }

// CreateSite stores a new site. Errors: *InvalidError, *ConflictError.
func (s *Store) CreateSite(ctx context.Context, site inventory.Site) (Site, error) { panic("soon") }

// UpdateSite applies change to a site. Errors: those of change, ErrNotFound,
// *InvalidError, *ConflictError.
func (s *Store) UpdateSite(ctx context.Context, id int64, change func(*inventory.Site) error) (Site, error) {
	panic("soon")
}

// DeleteSite deletes a site with its agents, revisions and keys; cascade also
// with its nodes and all on them. Errors: ErrNotFound, *InUseError.
func (s *Store) DeleteSite(ctx context.Context, id int64, cascade bool) error { panic("soon") }
