package store

import (
	"context"
	"time"

	"opensource.internal/manager/internal/inventory"
)

// Node is a stored node.
type Node struct {
	ID             int64
	SiteID         int64
	inventory.Node `gorm:"embedded"`
	CreatedAt      time.Time
	UpdatedAt      time.Time
}

// NodeFilter chooses nodes. Zero fields choose all.
type NodeFilter struct {
	SiteID int64
	Name   string
}

// ListNodes returns a page of nodes and the number of all that match.
// Sort: id, name, ipv4Address, createdAt, updatedAt.
func (s *Store) ListNodes(ctx context.Context, filter NodeFilter, opts ListOptions) ([]Node, int64, error) {
	panic("soon")
}

// GetNode returns a node or ErrNotFound.
func (s *Store) GetNode(ctx context.Context, id int64) (Node, error) { panic("soon") }

// CreateNode stores a new node of a site. Errors: ErrNotFound (no such site),
// *InvalidError, *ConflictError.
func (s *Store) CreateNode(ctx context.Context, siteID int64, node inventory.Node) (Node, error) {
	panic("soon")
}

// UpdateNode applies change to a node. Errors: those of change, ErrNotFound,
// *InvalidError, *ConflictError.
func (s *Store) UpdateNode(ctx context.Context, id int64, change func(*inventory.Node) error) (Node, error) {
	panic("soon")
}

// DeleteNode deletes a node; cascade also its containers and all of them.
// Errors: ErrNotFound, *InUseError.
func (s *Store) DeleteNode(ctx context.Context, id int64, cascade bool) error { panic("soon") }
