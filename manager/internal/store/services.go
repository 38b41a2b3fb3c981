package store

import (
	"context"
	"time"

	"opensource.internal/manager/internal/inventory"
)

// Service is a stored service.
type Service struct {
	ID                int64
	SiteID            int64
	ContainerID       int64
	inventory.Service `gorm:"embedded"`
	CreatedAt         time.Time
	UpdatedAt         time.Time
}

// ServiceFilter chooses services. Zero fields choose all.
type ServiceFilter struct {
	SiteID      int64
	ContainerID int64
	Type        inventory.ServiceType
}

// ListServices returns a page of services and the number of all that match.
// Sort: id, type, internalPort, externalHostname, externalPort, createdAt, updatedAt.
func (s *Store) ListServices(ctx context.Context, filter ServiceFilter, opts ListOptions) ([]Service, int64, error) {
	panic("soon")
}

// GetService returns a service or ErrNotFound.
func (s *Store) GetService(ctx context.Context, id int64) (Service, error) { panic("soon") }

// CreateService stores a new service of a container. A transport service
// without an external port gets the lowest free one of its site's range.
// Errors: ErrNotFound (no such container), *InvalidError, *ConflictError (also
// for a range that is used up).
func (s *Store) CreateService(ctx context.Context, containerID int64, service inventory.Service) (Service, error) {
	panic("soon")
}

// UpdateService applies change to a service; its type stays. Errors: those of
// change, ErrNotFound, *InvalidError, *ConflictError.
func (s *Store) UpdateService(ctx context.Context, id int64, change func(*inventory.Service) error) (Service, error) {
	panic("soon")
}

// DeleteService deletes a service or returns ErrNotFound.
func (s *Store) DeleteService(ctx context.Context, id int64) error { panic("soon") }
