package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/store"
)

type sitesCommand struct {
	JSON bool `name:"json" help:"Print JSON."`
}

// siteOf is a site as it is printed.
type siteOf struct {
	ID             int64     `json:"id"`
	Name           string    `json:"name"`
	InternalDomain string    `json:"internalDomain"`
	DHCPRange      string    `json:"dhcpRange"`
	Agents         int       `json:"agents"`
	Online         int       `json:"online"`
	Publishing     string    `json:"publishing"`
	Pin            *pinOf    `json:"pin"`
	Revision       int64     `json:"revision"` // the latest; 0: nothing has been published
	ETag           string    `json:"etag"`
	UpdatedAt      time.Time `json:"updatedAt"`
}

// Run lists the sites.
func (c sitesCommand) Run(e *environmentOf) error {
	return e.withStore(func(s *store.Store) error {
		sites, err := showSites(e, s)
		if err != nil {
			return err
		}
		if c.JSON {
			return e.printJSON(sites)
		}
		t := newTable(e.stdout, "ID", "NAME", "INTERNAL DOMAIN", "DHCP RANGE", "ONLINE", "REVISION", "PUBLISHED", "CHANGED")
		for _, site := range sites {
			t.row(site.ID, site.Name, site.InternalDomain, site.DHCPRange, onlineOf(site), site.Revision, publishedHow(site), since(site.UpdatedAt, time.Now()))
		}
		return t.flush()
	})
}

func onlineOf(site siteOf) string { return fmt.Sprintf("%d of %d", site.Online, site.Agents) }

// publishedHow says whether agents get the latest revision, and when.
func publishedHow(site siteOf) string {
	how := map[string]string{inventory.PublishAuto: "by itself", inventory.PublishManual: "by hand"}[site.Publishing]
	if site.Pin != nil {
		how = fmt.Sprintf("pinned to %d, %s", site.Pin.Revision, how)
	}
	return how
}

func showSites(e *environmentOf, s *store.Store) ([]siteOf, error) {
	rows, _, err := s.ListSites(e, store.SiteFilter{}, store.ListOptions{Limit: store.All})
	if err != nil {
		return nil, err
	}
	agents, _, err := s.ListAgents(e, store.AgentFilter{}, store.ListOptions{Limit: store.All})
	if err != nil {
		return nil, err
	}
	pins, err := pinsOf(e, s)
	if err != nil {
		return nil, err
	}
	sites := make([]siteOf, 0, len(rows))
	for _, row := range rows {
		site := siteOf{
			ID: row.ID, Name: row.Name, InternalDomain: row.InternalDomain, DHCPRange: row.DHCPRange, UpdatedAt: row.UpdatedAt.UTC(),
			Publishing: row.Publishing, Pin: pins[row.ID],
		}
		for _, agent := range agents {
			if agent.SiteID != row.ID {
				continue
			}
			site.Agents++
			if agent.Presence(time.Now()) == store.Online {
				site.Online++
			}
		}
		latest, _, err := s.ListRevisions(e, store.RevisionFilter{SiteID: row.ID}, store.ListOptions{Limit: 1, Sort: "-number"})
		if err != nil {
			return nil, err
		}
		if len(latest) > 0 {
			site.Revision, site.ETag = latest[0].Number, latest[0].ETag
		}
		sites = append(sites, site)
	}
	return sites, nil
}

// findSite finds the site that a command names, by its name or its id. Should
// these be two sites, it is for the caller to say which.
func findSite(e *environmentOf, s *store.Store, text string) (store.Site, error) {
	var found []store.Site
	digits, byID := strings.CutPrefix(text, "id:")
	if !byID {
		named, _, err := s.ListSites(e, store.SiteFilter{Name: text}, store.ListOptions{Limit: 1})
		if err != nil {
			return store.Site{}, err
		}
		found = named
	}
	if id, err := strconv.ParseInt(digits, 10, 64); err == nil {
		site, err := s.GetSite(e, id)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return store.Site{}, err
		}
		if err == nil && (len(found) == 0 || found[0].ID != id) {
			found = append(found, site)
		}
	}
	switch len(found) {
	case 0:
		return store.Site{}, fmt.Errorf("there is no site %q: opensource-manager sites lists them", text)
	case 1:
		return found[0], nil
	}
	return store.Site{}, fmt.Errorf("%q is the name of site %d and the id of site %q: say id:%d or id:%d",
		text, found[0].ID, found[1].Name, found[0].ID, found[1].ID)
}
