package main

import (
	"fmt"
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
