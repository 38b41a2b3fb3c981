package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"

	"opensource.internal/agent/checkin"
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

var siteSort = map[string]string{"name": "name", "createdAt": "created_at", "updatedAt": "updated_at"}

// ListSites returns a page of sites and the number of all that match.
// Sort: id, name, createdAt, updatedAt.
func (s *Store) ListSites(ctx context.Context, filter SiteFilter, opts ListOptions) ([]Site, int64, error) {
	query := s.read.WithContext(ctx)
	if filter.Name != "" {
		condition, args := named("name", filter.Name)
		query = query.Where(condition, args...)
	}
	return list[Site](query, opts, siteSort, "name", "internal_domain")
}

// GetSite returns a site or ErrNotFound.
func (s *Store) GetSite(ctx context.Context, id int64) (Site, error) {
	return get[Site](s.reader(ctx), id)
}

// CreateSite stores a new site. Errors: *InvalidError, *ConflictError.
func (s *Store) CreateSite(ctx context.Context, site inventory.Site) (Site, error) {
	if err := site.Normalise(); err != nil {
		return Site{}, err
	}
	row := Site{Site: site}
	err := s.update(ctx, func(tx *gorm.DB) error { return insert(tx, &row, row.unique()...) })
	return row, err
}

// UpdateSite applies change to a site. Errors: those of change, ErrNotFound,
// *InvalidError, *ConflictError.
func (s *Store) UpdateSite(ctx context.Context, id int64, change func(*inventory.Site) error) (Site, error) {
	var row Site
	err := s.update(ctx, func(tx *gorm.DB) (err error) {
		if row, err = get[Site](tx, id); err != nil {
			return err
		}
		before := row
		if err := change(&row.Site); err != nil {
			return err
		}
		if err := row.Site.Normalise(); err != nil {
			return err
		}
		if err := checkSite(tx, row); err != nil {
			return err
		}
		return save(tx, before, &row, row.unique()...)
	})
	return row, err
}

func (s Site) subject() Subject {
	return Subject{Resource: "site", ID: s.ID, Name: s.Name, SiteID: s.ID}
}

func (s Site) unique() []unique {
	condition, args := named("name", s.Name)
	return []unique{{
		field: "name", anyCase: true, message: fmt.Sprintf("the name %q is already in use", s.Name),
		holders: `SELECT 'site "' || name || '"' FROM sites WHERE ` + condition + ` AND id <> ?`,
		args:    append(args, s.ID),
	}}
}

// checkSite refuses settings that do not go with what is in the site.
func checkSite(tx *gorm.DB, site Site) error {
	faults := map[string]string{}
	for field, check := range map[string]func(*gorm.DB, Site) (fault string, err error){
		"gateway":        checkGateway,
		"dhcpRange":      checkRange,
		"internalDomain": checkInternalDomain,
	} {
		fault, err := check(tx, site)
		if err != nil {
			return err
		}
		if fault != "" {
			faults[field] = fault
		}
	}
	if len(faults) > 0 {
		return &InvalidError{Fields: faults}
	}
	return nil
}

// checkGateway finds a gateway that is somebody's address.
func checkGateway(tx *gorm.DB, site Site) (fault string, err error) {
	if site.Gateway == "" {
		return "", nil
	}
	var holders []string
	err = tx.Raw(`SELECT 'node "' || name || '"' FROM nodes WHERE site_id = @site AND ipv4_address = @gateway
		UNION ALL SELECT 'container "' || hostname || '"' FROM containers WHERE site_id = @site AND ipv4_address = @gateway`,
		sql.Named("site", site.ID), sql.Named("gateway", site.Gateway)).Scan(&holders).Error
	if err != nil {
		return "", fmt.Errorf("look for who has the gateway's address: %w", err)
	}
	if len(holders) == 0 {
		return "", nil
	}
	return fmt.Sprintf("%s is the address of %s", site.Gateway, holders[0]), nil
}

// checkRange finds a range from which the address of the site's own agent would
// be handed out.
func checkRange(tx *gorm.DB, site Site) (fault string, err error) {
	leases, err := checkin.ParseDHCPRange(site.DHCPRange)
	if err != nil {
		return "", nil // not set: it was parsed before
	}
	agent, err := agentWithin(tx, site.ID, leases)
	if agent == "" {
		return "", err
	}
	return fmt.Sprintf("%s contains the address of the site's agent, %s", site.DHCPRange, agent), nil
}

// checkInternalDomain finds the name that would become too long under it.
func checkInternalDomain(tx *gorm.DB, site Site) (fault string, err error) {
	if site.InternalDomain == "" {
		return "", nil
	}
	var longest []string
	err = tx.Raw(`SELECT name FROM (
			SELECT name FROM nodes WHERE site_id = @site
			UNION ALL SELECT hostname FROM containers WHERE site_id = @site
			UNION ALL SELECT dns_name FROM services WHERE site_id = @site AND type = 'dns') AS names
		ORDER BY length(name) DESC LIMIT 1`, sql.Named("site", site.ID)).Scan(&longest).Error
	if err != nil {
		return "", fmt.Errorf("look for the longest name of the site: %w", err)
	}
	for _, name := range longest {
		if err := inventory.CheckFullName(name + "." + site.InternalDomain); err != nil {
			return err.Error(), nil
		}
	}
	return "", nil
}

// agentWithin names an agent of the site whose address lies in the range.
func agentWithin(tx *gorm.DB, siteID int64, leases checkin.DHCPRange) (string, error) {
	var agents []Agent
	if err := tx.Where("site_id = ?", siteID).Find(&agents).Error; err != nil {
		return "", fmt.Errorf("read the site's agents: %w", err)
	}
	for _, agent := range agents {
		addr, err := checkin.ParseIPv4(string(agent.Report.IPv4Address))
		if err == nil && leases.Contains(addr) {
			return fmt.Sprintf("%s (%s)", addr, agent.Hostname), nil
		}
	}
	return "", nil
}

// DeleteSite deletes a site with its revisions and revoked keys; cascade also
// with its nodes and all on them, its keys, and what is known of its agents.
// Errors: ErrNotFound, *InUseError.
func (s *Store) DeleteSite(ctx context.Context, id int64, cascade bool) error {
	return s.update(ctx, func(tx *gorm.DB) error {
		site, err := get[Site](tx, id)
		if err != nil {
			return err
		}
		if !cascade {
			err = requireUnused(tx, fmt.Sprintf("site %q", site.Name),
				`SELECT 'node "' || name || '"' FROM nodes WHERE site_id = @site
				UNION ALL SELECT 'external domain "' || name || '"' FROM external_domains WHERE default_site_id = @site
				UNION ALL SELECT 'API key "' || name || '"' FROM api_keys WHERE site_id = @site AND revoked_at IS NULL
				UNION ALL SELECT 'agent "' || hostname || '"' FROM agents WHERE site_id = @site`,
				sql.Named("site", id))
		} else {
			err = errors.Join(
				remove[Volume](tx, "site_id = ?", id),
				remove[Service](tx, "site_id = ?", id),
				remove[Container](tx, "site_id = ?", id),
				remove[Node](tx, "site_id = ?", id))
		}
		if err == nil {
			err = errors.Join(
				remove[APIKey](tx, "site_id = ?", id), // the revoked ones, too
				remove[Agent](tx, "site_id = ?", id),
				leaveDomains(tx, id))
		}
		if err != nil {
			return err
		}
		return removeOne[Site](tx, id)
	})
}

// leaveDomains takes a site from the domains whose default it is.
func leaveDomains(tx *gorm.DB, siteID int64) error {
	var domains []ExternalDomain
	if err := tx.Where("default_site_id = ?", siteID).Order("id").Find(&domains).Error; err != nil {
		return fmt.Errorf("read the domains of site %d: %w", siteID, err)
	}
	for _, before := range domains {
		row := before
		row.DefaultSiteID = nil
		if err := save(tx, before, &row); err != nil {
			return err
		}
	}
	return nil
}
