package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"

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
	Type   string
}

var nodeSort = map[string]string{"name": "name", "ipv4Address": "ipv4_address", "createdAt": "created_at", "updatedAt": "updated_at"}

// ListNodes returns a page of nodes and the number of all that match.
// Sort: id, name, ipv4Address, createdAt, updatedAt.
func (s *Store) ListNodes(ctx context.Context, filter NodeFilter, opts ListOptions) ([]Node, int64, error) {
	query := where(s.read.WithContext(ctx), "site_id", filter.SiteID)
	query = where(query, "type", filter.Type)
	return list[Node](where(query, "name", inventory.FoldSearch(filter.Name)), opts, nodeSort, "name", "ipv4_address")
}

// GetNode returns a node or ErrNotFound.
func (s *Store) GetNode(ctx context.Context, id int64) (Node, error) {
	return get[Node](s.reader(ctx), id)
}

// CreateNode stores a new node of a site. Errors: ErrNotFound (no such site),
// *InvalidError, *ConflictError.
func (s *Store) CreateNode(ctx context.Context, siteID int64, node inventory.Node) (Node, error) {
	if err := node.Normalise(); err != nil {
		return Node{}, err
	}
	row := Node{SiteID: siteID, Node: node}
	err := s.update(ctx, func(tx *gorm.DB) error { return writeNode(tx, nil, &row) })
	return row, err
}

// UpdateNode applies change to a node. Errors: those of change, ErrNotFound,
// *InvalidError, *ConflictError.
func (s *Store) UpdateNode(ctx context.Context, id int64, change func(*inventory.Node) error) (Node, error) {
	var row Node
	err := s.update(ctx, func(tx *gorm.DB) (err error) {
		if row, err = get[Node](tx, id); err != nil {
			return err
		}
		before := row
		if err := change(&row.Node); err != nil {
			return err
		}
		if err := row.Node.Normalise(); err != nil {
			return err
		}
		return writeNode(tx, &before, &row)
	})
	return row, err
}

// writeNode checks and writes a normalised node.
func writeNode(tx *gorm.DB, before, row *Node) error {
	if err := row.checkInSite(tx); err != nil {
		return err
	}
	return write(tx, before, row, row.unique()...)
}

// checkInSite checks what needs the node's site: its address and full name. It
// returns ErrNotFound if there is no such site.
func (n Node) checkInSite(tx *gorm.DB) error {
	site, err := get[Site](tx, n.SiteID)
	if err != nil {
		return err
	}
	return checkHost(site, n.IPv4Address, "name", n.Name)
}

// checkHost checks address and name of a node or container of a site.
func checkHost(site Site, addr, field, name string) error {
	if err := checkAddress(site, addr); err != nil {
		return err
	}
	return checkInternalName(site, field, name)
}

func (n Node) subject() Subject {
	return Subject{Resource: "node", ID: n.ID, Name: n.Name, SiteID: n.SiteID}
}

func (n Node) unique() []unique {
	return []unique{uniqueHostName("name", n.SiteID, n.Name, n.ID, 0), uniqueAddress(n.SiteID, n.IPv4Address, n.ID, 0)}
}

// uniqueHostName is the rule that nodes and containers of a site share one DNS
// name space. The node or container itself is told by its id.
func uniqueHostName(field string, siteID int64, name string, nodeID, containerID int64) unique {
	return unique{
		field: field, message: fmt.Sprintf("the name %q is already in use in this site", name),
		holders: `SELECT 'node "' || name || '"' FROM nodes WHERE site_id = ? AND name = ? AND id <> ?
			UNION ALL SELECT 'container "' || hostname || '"' FROM containers WHERE site_id = ? AND hostname = ? AND id <> ?`,
		args: []any{siteID, name, nodeID, siteID, name, containerID},
	}
}

// uniqueAddress is the rule that an address of a site has one owner.
func uniqueAddress(siteID int64, addr string, nodeID, containerID int64) unique {
	return unique{
		field: "ipv4Address", message: fmt.Sprintf("the address %s is already in use in this site", addr),
		holders: `SELECT 'node "' || name || '"' FROM nodes WHERE site_id = ? AND ipv4_address = ? AND ipv4_address <> '' AND id <> ?
			UNION ALL SELECT 'container "' || hostname || '"' FROM containers
			WHERE site_id = ? AND ipv4_address = ? AND ipv4_address <> '' AND id <> ?`,
		args: []any{siteID, addr, nodeID, siteID, addr, containerID},
	}
}

// checkAddress refuses addresses that no node or container of the site can
// have: the gateway's, and the first and last of the subnet.
func checkAddress(site Site, addr string) error {
	if addr != "" && addr == site.Gateway {
		return invalid("ipv4Address", "%s is the site's gateway", addr)
	}
	if err := site.CheckAddress(addr); err != nil {
		return invalid("ipv4Address", "%v", err)
	}
	return nil
}

// checkInternalName refuses a name that is too long under the site's internal
// domain: the agent would have to leave it out.
func checkInternalName(site Site, field, name string) error {
	if site.InternalDomain == "" {
		return nil
	}
	if err := inventory.CheckFullName(name + "." + site.InternalDomain); err != nil {
		return invalid(field, "%v", err)
	}
	return nil
}

// DeleteNode deletes a node; cascade also its containers and all of them.
// Errors: ErrNotFound, *InUseError.
func (s *Store) DeleteNode(ctx context.Context, id int64, cascade bool) error {
	return s.update(ctx, func(tx *gorm.DB) error {
		node, err := get[Node](tx, id)
		if err != nil {
			return err
		}
		if !cascade {
			err = requireUnused(tx, fmt.Sprintf("node %q", node.Name),
				`SELECT 'container "' || hostname || '"' FROM containers WHERE node_id = ? ORDER BY id`, id)
		} else {
			err = errors.Join(
				remove[Volume](tx, "container_id IN (SELECT id FROM containers WHERE node_id = ?)", id),
				remove[Service](tx, "container_id IN (SELECT id FROM containers WHERE node_id = ?)", id),
				remove[Container](tx, "node_id = ?", id))
		}
		if err != nil {
			return err
		}
		return removeOne[Node](tx, id)
	})
}
