package store

import (
	"context"
	"time"

	"opensource.internal/manager/internal/inventory"
)

// Container is a stored container.
type Container struct {
	ID                  int64
	SiteID              int64
	inventory.Container `gorm:"embedded"`
	// VMID is the container's number on its node, if it is known.
	VMID      *int64 `gorm:"column:vmid"`
	CreatedAt time.Time
	UpdatedAt time.Time
}

// ContainerFilter chooses containers. Zero fields choose all.
type ContainerFilter struct {
	SiteID   int64
	NodeID   int64
	Hostname string
	Owner    string
}

// ListContainers returns a page of containers and the number of all that match.
// Sort: id, hostname, owner, ipv4Address, createdAt, updatedAt.
func (s *Store) ListContainers(ctx context.Context, filter ContainerFilter, opts ListOptions) ([]Container, int64, error) {
	panic("soon")
}

// GetContainer returns a container or ErrNotFound.
func (s *Store) GetContainer(ctx context.Context, id int64) (Container, error) { panic("soon") }

// CreateContainer stores a new container of a site. Errors: ErrNotFound (no
// such site), *InvalidError (also for a node of another site), *ConflictError.
func (s *Store) CreateContainer(ctx context.Context, siteID int64, container inventory.Container) (Container, error) {
	panic("soon")
}

// UpdateContainer applies change to a container. Errors: those of change,
// ErrNotFound, *InvalidError, *ConflictError.
func (s *Store) UpdateContainer(ctx context.Context, id int64, change func(*inventory.Container) error) (Container, error) {
	panic("soon")
}

// DeleteContainer deletes a container; cascade also its services and volumes
// (directories stay). Errors: ErrNotFound, *InUseError.
func (s *Store) DeleteContainer(ctx context.Context, id int64, cascade bool) error { panic("soon") }
