package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"gorm.io/gorm"

	"opensource.internal/agent/checkin"
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
	DomainID    int64
}

var serviceSort = map[string]string{
	"type": "type", "internalPort": "internal_port", "externalHostname": "external_hostname",
	"externalPort": "external_port", "container": ofContainer("services"), "createdAt": "created_at", "updatedAt": "updated_at",
}

// ListServices returns a page of services and the number of all that match.
// Sort: id, type, internalPort, externalHostname, externalPort, container,
// createdAt, updatedAt.
func (s *Store) ListServices(ctx context.Context, filter ServiceFilter, opts ListOptions) ([]Service, int64, error) {
	query := where(s.read.WithContext(ctx), "site_id", filter.SiteID)
	query = where(query, "container_id", filter.ContainerID)
	query = where(query, "external_domain_id", filter.DomainID)
	return list[Service](where(query, "type", filter.Type), opts, serviceSort, "dns_name", fullName, "CAST(external_port AS TEXT)", ofContainer("services"))
}

// fullName is the public name of an HTTP service.
const fullName = "(SELECT services.external_hostname || '.' || d.name FROM external_domains d WHERE d.id = services.external_domain_id)"

// ofContainer is the host name of the container that rows of a table belong to.
func ofContainer(table string) string {
	return "(SELECT c.hostname FROM containers c WHERE c.id = " + table + ".container_id)"
}

// GetService returns a service or ErrNotFound.
func (s *Store) GetService(ctx context.Context, id int64) (Service, error) {
	return get[Service](s.reader(ctx), id)
}

// CreateService stores a new service of a container. A transport service
// without an external port gets the lowest free one of its site's range.
// Errors: ErrNotFound (no such container), *InvalidError, *ConflictError (also
// for a range that is used up).
func (s *Store) CreateService(ctx context.Context, containerID int64, service inventory.Service) (Service, error) {
	if err := service.Normalise(s.reserved); err != nil {
		return Service{}, err
	}
	row := Service{ContainerID: containerID, Service: service}
	err := s.update(ctx, func(tx *gorm.DB) error {
		container, err := get[Container](tx, containerID)
		if err != nil {
			return err
		}
		row.SiteID = container.SiteID
		return writeService(tx, nil, &row, s.reserved)
	})
	return row, err
}

// UpdateService applies change to a service; its type stays. Errors: those of
// change, ErrNotFound, *InvalidError, *ConflictError.
func (s *Store) UpdateService(ctx context.Context, id int64, change func(*inventory.Service) error) (Service, error) {
	var row Service
	err := s.update(ctx, func(tx *gorm.DB) (err error) {
		if row, err = get[Service](tx, id); err != nil {
			return err
		}
		before := row
		if err := change(&row.Service); err != nil {
			return err
		}
		if row.Type != before.Type {
			return invalid("type", "a service stays of its type (%s): delete it and create another", before.Type)
		}
		if err := row.Service.Normalise(s.reserved); err != nil {
			return err
		}
		return writeService(tx, &before, &row, s.reserved)
	})
	return row, err
}

// writeService completes, checks and writes a normalised service. reserved are
// ports that it is not to be given.
func writeService(tx *gorm.DB, before, row *Service, reserved []int) error {
	rules, err := complete(tx, row, reserved)
	if err != nil {
		return err
	}
	return write(tx, before, row, rules...)
}

// complete checks and fills in what needs other records, and returns the rules
// of uniqueness that go with the service's type.
func complete(tx *gorm.DB, row *Service, reserved []int) ([]unique, error) {
	switch row.Type {
	case inventory.ServiceHTTP:
		return completeHTTP(tx, row)
	case inventory.ServiceTransport:
		return completeTransport(tx, row, reserved)
	}
	return completeDNS(tx, row)
}

func completeDNS(tx *gorm.DB, row *Service) ([]unique, error) {
	site, err := get[Site](tx, row.SiteID)
	if err != nil {
		return nil, err
	}
	if err := checkInternalName(site, "dnsName", row.DNSName); err != nil {
		return nil, err
	}
	return []unique{{
		field: "dnsName", message: fmt.Sprintf("the container already has the record %s with port %d", row.DNSName, row.InternalPort),
		holders: `SELECT 'dns service "' || dns_name || '"' FROM services
			WHERE type = 'dns' AND container_id = ? AND dns_name = ? AND internal_port = ? AND id <> ?`,
		args: []any{row.ContainerID, row.DNSName, row.InternalPort, row.ID},
	}}, nil
}

func completeHTTP(tx *gorm.DB, row *Service) ([]unique, error) {
	domain, err := get[ExternalDomain](tx, *row.ExternalDomainID)
	if errors.Is(err, ErrNotFound) {
		return nil, invalid("externalDomainId", "there is no external domain %d", *row.ExternalDomainID)
	}
	if err != nil {
		return nil, err
	}
	name := row.ExternalHostname + "." + domain.Name
	if err := inventory.CheckFullName(name); err != nil {
		return nil, invalid("externalHostname", "%v", err)
	}
	if asksItself(row.Service, domain.ExternalDomain) {
		return nil, invalid("authRequired", "%s is the authServer of its own domain: sign-in would ask itself for ever", name)
	}
	return []unique{uniquePublicName("externalHostname", name, row.ID, 0)}, nil
}

// asksItself reports whether a service that needs a sign-in is the server that
// its domain sends people to for it. The agent refuses such a service.
func asksItself(service inventory.Service, domain inventory.ExternalDomain) bool {
	if !service.AuthRequired || domain.AuthServer == "" {
		return false
	}
	server, err := checkin.ParseAuthServer(domain.AuthServer)
	return err == nil && server.ServedAs() == service.ExternalHostname+"."+domain.Name
}

// uniquePublicName is the rule that nobody else answers for a full name: no
// other service, nor an external domain itself.
func uniquePublicName(field, name string, serviceID, domainID int64) unique {
	return unique{
		field: field, message: fmt.Sprintf("the name %s is already in use", name),
		holders: `SELECT 'container "' || c.hostname || '"' FROM services s
				JOIN external_domains d ON d.id = s.external_domain_id JOIN containers c ON c.id = s.container_id
				WHERE s.type = 'http' AND s.external_hostname || '.' || d.name = ? AND s.id <> ?
			UNION ALL SELECT 'external domain "' || name || '"' FROM external_domains WHERE name = ? AND id <> ?`,
		args: []any{name, serviceID, name, domainID},
	}
}

func completeTransport(tx *gorm.DB, row *Service, reserved []int) ([]unique, error) {
	if row.ExternalPort == 0 {
		port, err := freePort(tx, row.SiteID, row.Protocol, reserved, 0)
		if err != nil {
			return nil, err
		}
		row.ExternalPort = port
	}
	return []unique{{
		field: "externalPort", message: fmt.Sprintf("%s port %d is already in use in this site", row.Protocol, row.ExternalPort),
		holders: `SELECT 'container "' || c.hostname || '"' FROM services s JOIN containers c ON c.id = s.container_id
			WHERE s.type = 'transport' AND s.site_id = ? AND s.protocol = ? AND s.external_port = ? AND s.id <> ?`,
		args: []any{row.SiteID, row.Protocol, row.ExternalPort, row.ID},
	}}, nil
}

func (s Service) subject() Subject {
	name := s.ExternalHostname
	switch s.Type {
	case inventory.ServiceTransport:
		name = fmt.Sprintf("%s %d", s.Protocol, s.ExternalPort)
	case inventory.ServiceDNS:
		name = s.DNSName
	}
	return Subject{Resource: "service", ID: s.ID, Name: name, SiteID: s.SiteID}
}

// freePort returns the lowest port of the site's range that is neither taken
// nor reserved nor below from. It runs in the transaction that takes the port.
func freePort(tx *gorm.DB, siteID int64, protocol string, reserved []int, from int) (int, error) {
	site, err := get[Site](tx, siteID)
	if err != nil {
		return 0, err
	}
	ports, err := inventory.ParsePortRange(site.PortRange)
	if err != nil {
		return 0, fmt.Errorf("allocate a port for site %d: %w", siteID, err)
	}
	ports.First = max(ports.First, from)
	var taken []int
	err = tx.Model(&Service{}).Where("type = 'transport' AND site_id = ? AND protocol = ?", siteID, protocol).
		Where("external_port BETWEEN ? AND ?", ports.First, ports.Last).Order("external_port").
		Pluck("external_port", &taken).Error
	if err != nil {
		return 0, fmt.Errorf("read the site's ports: %w", err)
	}
	for port := ports.First; port <= ports.Last; port++ {
		if _, found := slices.BinarySearch(taken, port); !found && !inventory.Reserved(port, reserved) {
			return port, nil
		}
	}
	return 0, &ConflictError{
		Field:   "externalPort",
		Message: fmt.Sprintf("every %s port of the site's portRange %s is in use: widen it or name a port", protocol, site.PortRange),
	}
}

// DeleteService deletes a service or returns ErrNotFound.
func (s *Store) DeleteService(ctx context.Context, id int64) error {
	return s.update(ctx, func(tx *gorm.DB) error { return removeOne[Service](tx, id) })
}
