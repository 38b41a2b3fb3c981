package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"

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

var domainSort = map[string]string{"name": "name", "createdAt": "created_at", "updatedAt": "updated_at"}

// ListExternalDomains returns a page of domains and the number of all that
// match. Sort: id, name, createdAt, updatedAt.
func (s *Store) ListExternalDomains(ctx context.Context, filter ExternalDomainFilter, opts ListOptions) ([]ExternalDomain, int64, error) {
	query := where(s.read.WithContext(ctx), "name", inventory.FoldSearch(filter.Name))
	return list[ExternalDomain](where(query, "default_site_id", filter.DefaultSiteID), opts, domainSort, "name", "auth_server")
}

// GetExternalDomain returns a domain or ErrNotFound.
func (s *Store) GetExternalDomain(ctx context.Context, id int64) (ExternalDomain, error) {
	return get[ExternalDomain](s.reader(ctx), id)
}

// CreateExternalDomain stores a new domain. Errors: *InvalidError (also for a
// default site that does not exist), *ConflictError.
func (s *Store) CreateExternalDomain(ctx context.Context, domain inventory.ExternalDomain) (ExternalDomain, error) {
	if err := domain.Normalise(); err != nil {
		return ExternalDomain{}, err
	}
	row := ExternalDomain{ExternalDomain: domain}
	err := s.update(ctx, func(tx *gorm.DB) error {
		if err := checkDefaultSite(tx, row); err != nil {
			return err
		}
		return insert(tx, &row, uniquePublicName("name", row.Name, 0, 0))
	})
	return row, err
}

// UpdateExternalDomain applies change to a domain. Errors: those of change,
// ErrNotFound, *InvalidError, *ConflictError.
func (s *Store) UpdateExternalDomain(ctx context.Context, id int64, change func(*inventory.ExternalDomain) error) (ExternalDomain, error) {
	var row ExternalDomain
	err := s.update(ctx, func(tx *gorm.DB) (err error) {
		if row, err = get[ExternalDomain](tx, id); err != nil {
			return err
		}
		before := row
		if err := change(&row.ExternalDomain); err != nil {
			return err
		}
		if err := row.ExternalDomain.Normalise(); err != nil {
			return err
		}
		if err := checkDefaultSite(tx, row); err != nil {
			return err
		}
		rules, err := namesUnder(tx, row)
		if err != nil {
			return err
		}
		return save(tx, before, &row, rules...)
	})
	return row, err
}

func checkDefaultSite(tx *gorm.DB, domain ExternalDomain) error {
	if domain.DefaultSiteID == nil {
		return nil
	}
	_, err := get[Site](tx, *domain.DefaultSiteID)
	if errors.Is(err, ErrNotFound) {
		return invalid("defaultSiteId", "there is no site %d", *domain.DefaultSiteID)
	}
	return err
}

func (d ExternalDomain) subject() Subject {
	return Subject{Resource: "external_domain", ID: d.ID, Name: d.Name}
}

// namesUnder checks every full name that a changed domain makes, and returns
// the rule of uniqueness of each.
func namesUnder(tx *gorm.DB, domain ExternalDomain) ([]unique, error) {
	var services []Service
	if err := tx.Where("type = 'http' AND external_domain_id = ?", domain.ID).Find(&services).Error; err != nil {
		return nil, fmt.Errorf("read the domain's services: %w", err)
	}
	rules := []unique{uniquePublicName("name", domain.Name, 0, domain.ID)}
	for _, service := range services {
		name := service.ExternalHostname + "." + domain.Name
		if err := inventory.CheckFullName(name); err != nil {
			return nil, invalid("name", "%v", err)
		}
		if asksItself(service.Service, domain.ExternalDomain) {
			return nil, invalid("authServer", "%s is a service that needs a sign-in itself (authRequired): sign-in would ask itself for ever", name)
		}
		rules = append(rules, uniquePublicName("name", name, service.ID, 0))
	}
	return rules, nil
}

// DeleteExternalDomain deletes a domain; cascade also the HTTP services under
// it. Errors: ErrNotFound, *InUseError.
func (s *Store) DeleteExternalDomain(ctx context.Context, id int64, cascade bool) error {
	return s.update(ctx, func(tx *gorm.DB) error {
		domain, err := get[ExternalDomain](tx, id)
		if err != nil {
			return err
		}
		if !cascade {
			err = requireUnused(tx, fmt.Sprintf("external domain %q", domain.Name),
				`SELECT 'http service "' || external_hostname || '"' FROM services WHERE external_domain_id = ? ORDER BY id`, id)
		} else {
			err = remove[Service](tx, "external_domain_id = ?", id)
		}
		if err != nil {
			return err
		}
		return removeOne[ExternalDomain](tx, id)
	})
}
