package store

import (
	"context"
	"time"

	"opensource.internal/manager/internal/inventory"
)

// ExternalDomain is a stored external domain.
type ExternalDomain struct {
	ID                       int64
	inventory.ExternalDomain `gorm:"embedded"`
	CreatedAt                time.Time
	UpdatedAt                time.Time
}

// ExternalDomainFilter chooses external domains. Zero fields choose all.
type ExternalDomainFilter struct {
	Name          string
	DefaultSiteID int64
}

// ListExternalDomains returns a page of domains and the number of all that
// match. Sort: id, name, createdAt, updatedAt.
func (s *Store) ListExternalDomains(ctx context.Context, filter ExternalDomainFilter, opts ListOptions) ([]ExternalDomain, int64, error) {
	panic("soon")
}

// GetExternalDomain returns a domain or ErrNotFound.
func (s *Store) GetExternalDomain(ctx context.Context, id int64) (ExternalDomain, error) {
	panic("soon")
}

// CreateExternalDomain stores a new domain. Errors: *InvalidError (also for a
// default site that does not exist), *ConflictError.
func (s *Store) CreateExternalDomain(ctx context.Context, domain inventory.ExternalDomain) (ExternalDomain, error) {
	panic("soon")
}

// UpdateExternalDomain applies change to a domain. Errors: those of change,
// ErrNotFound, *InvalidError, *ConflictError.
func (s *Store) UpdateExternalDomain(ctx context.Context, id int64, change func(*inventory.ExternalDomain) error) (ExternalDomain, error) {
	panic("soon")
}

// DeleteExternalDomain deletes a domain; cascade also the HTTP services under
// it. Errors: ErrNotFound, *InUseError.
func (s *Store) DeleteExternalDomain(ctx context.Context, id int64, cascade bool) error {
	panic("soon")
}
