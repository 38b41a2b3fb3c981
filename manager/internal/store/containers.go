package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"gorm.io/gorm"

	"opensource.internal/manager/internal/inventory"
)

// Container is a stored container.
type Container struct {
	ID                  int64
	SiteID              int64
	inventory.Container `gorm:"embedded"`
	CreatedAt           time.Time
	UpdatedAt           time.Time
}

// ContainerFilter chooses containers. Zero fields choose all.
type ContainerFilter struct {
	SiteID   int64
	NodeID   int64
	Hostname string
	Owner    string
	Address  string
	MAC      string
}

var containerSort = map[string]string{
	"hostname": "hostname", "owner": "owner", "ipv4Address": "ipv4_address",
	"createdAt": "created_at", "updatedAt": "updated_at",
}

// ListContainers returns a page of containers and the number of all that match.
// Sort: id, hostname, owner, ipv4Address, createdAt, updatedAt.
func (s *Store) ListContainers(ctx context.Context, filter ContainerFilter, opts ListOptions) ([]Container, int64, error) {
	query := where(s.read.WithContext(ctx), "site_id", filter.SiteID)
	query = where(query, "node_id", filter.NodeID)
	query = where(query, "hostname", inventory.FoldSearch(filter.Hostname))
	query = where(query, "ipv4_address", filter.Address)
	query = where(query, "mac_address", strings.ToLower(filter.MAC))
	return list[Container](where(query, "owner", strings.ToLower(filter.Owner)), opts, containerSort, "hostname", "owner", "ipv4_address", "mac_address")
}

// GetContainer returns a container or ErrNotFound.
func (s *Store) GetContainer(ctx context.Context, id int64) (Container, error) {
	return get[Container](s.reader(ctx), id)
}

// CreateContainer stores a new container of a site. Errors: ErrNotFound (no
// such site), *InvalidError (also for a node of another site), *ConflictError.
func (s *Store) CreateContainer(ctx context.Context, siteID int64, container inventory.Container) (Container, error) {
	if err := container.Normalise(); err != nil {
		return Container{}, err
	}
	row := Container{SiteID: siteID, Container: container}
	err := s.update(ctx, func(tx *gorm.DB) error { return writeContainer(tx, nil, &row) })
	return row, err
}

// UpdateContainer applies change to a container. Errors: those of change,
// ErrNotFound, *InvalidError, *ConflictError.
func (s *Store) UpdateContainer(ctx context.Context, id int64, change func(*inventory.Container) error) (Container, error) {
	var row Container
	err := s.update(ctx, func(tx *gorm.DB) (err error) {
		if row, err = get[Container](tx, id); err != nil {
			return err
		}
		before := row
		if err := change(&row.Container); err != nil {
			return err
		}
		if err := row.Container.Normalise(); err != nil {
			return err
		}
		return writeContainer(tx, &before, &row)
	})
	return row, err
}

// writeContainer checks and writes a normalised container.
func writeContainer(tx *gorm.DB, before, row *Container) error {
	if err := row.checkInSite(tx); err != nil {
		return err
	}
	return write(tx, before, row, row.unique()...)
}

// checkInSite checks what needs the container's site: its address, full name
// and node. It returns ErrNotFound if there is no such site.
func (c Container) checkInSite(tx *gorm.DB) error {
	site, err := get[Site](tx, c.SiteID)
	if err != nil {
		return err
	}
	if err := checkHost(site, c.IPv4Address, "hostname", c.Hostname); err != nil {
		return err
	}
	node, err := get[Node](tx, c.NodeID)
	if errors.Is(err, ErrNotFound) || err == nil && node.SiteID != c.SiteID {
		return invalid("nodeId", "there is no node %d in this site", c.NodeID)
	}
	return err
}

func (c Container) subject() Subject {
	return Subject{Resource: "container", ID: c.ID, Name: c.Hostname, SiteID: c.SiteID}
}

func (c Container) unique() []unique {
	return []unique{
		uniqueHostName("hostname", c.SiteID, c.Hostname, 0, c.ID),
		uniqueAddress(c.SiteID, c.IPv4Address, 0, c.ID),
		{
			field: "macAddress", message: fmt.Sprintf("the MAC address %s is already in use in this site", c.MACAddress),
			holders: `SELECT 'container "' || hostname || '"' FROM containers
				WHERE site_id = ? AND mac_address = ? AND mac_address <> '' AND id <> ?`,
			args: []any{c.SiteID, c.MACAddress, c.ID},
		},
	}
}

// DeleteContainer deletes a container; cascade also its services and volumes
// (directories stay). Errors: ErrNotFound, *InUseError.
func (s *Store) DeleteContainer(ctx context.Context, id int64, cascade bool) error {
	return s.update(ctx, func(tx *gorm.DB) error {
		container, err := get[Container](tx, id)
		if err != nil {
			return err
		}
		if !cascade {
			err = requireUnused(tx, fmt.Sprintf("container %q", container.Hostname), `
				SELECT type || ' service ' || CASE type WHEN 'http' THEN '"' || external_hostname || '"'
					WHEN 'dns' THEN '"' || dns_name || '"' ELSE protocol || ' ' || external_port END
				FROM services WHERE container_id = @id
				UNION ALL SELECT 'volume "' || name || '"' FROM volumes WHERE container_id = @id`, sql.Named("id", id))
		} else {
			err = errors.Join(
				remove[Volume](tx, "container_id = ?", id),
				remove[Service](tx, "container_id = ?", id))
		}
		if err != nil {
			return err
		}
		return removeOne[Container](tx, id)
	})
}
