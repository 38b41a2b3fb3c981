package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/show"
	"opensource.internal/manager/internal/store"
)

type sitesCommand struct {
	JSON bool `name:"json" help:"Print JSON."`
}

// Run lists the sites.
func (c sitesCommand) Run(e *environmentOf) error {
	return e.withStore(func(s *store.Store) error {
		rows, _, err := s.ListSites(e, store.SiteFilter{}, store.ListOptions{Limit: store.All})
		if err != nil {
			return err
		}
		pins, err := pinsOf(e, s)
		if err != nil {
			return err
		}
		if c.JSON {
			return e.printJSON(shownAs(rows, func(row store.Site) show.Site { return show.SiteOf(row, pins[row.ID]) }))
		}
		return printSites(e, s, rows, pins)
	})
}

func printSites(e *environmentOf, s *store.Store, sites []store.Site, pins map[int64]*show.Pin) error {
	agents, _, err := s.ListAgents(e, store.AgentFilter{}, store.ListOptions{Limit: store.All})
	if err != nil {
		return err
	}
	now := time.Now()
	t := newTable(e.stdout, "ID", "NAME", "INTERNAL DOMAIN", "DHCP RANGE", "ONLINE", "REVISION", "PUBLISHED", "CHANGED")
	for _, site := range sites {
		latest, _, err := s.ListRevisions(e, store.RevisionFilter{SiteID: site.ID}, store.ListOptions{Limit: 1, Sort: "-number"})
		if err != nil {
			return err
		}
		number := ""
		if len(latest) > 0 {
			number = strconv.FormatInt(latest[0].Number, 10)
		}
		t.row(site.ID, site.Name, site.InternalDomain, site.DHCPRange, onlineOf(site, agents, now), number, publishedHow(site, pins[site.ID]), since(site.UpdatedAt, now))
	}
	return t.flush()
}

// onlineOf says how many agents of a site are online.
func onlineOf(site store.Site, agents []store.Agent, now time.Time) string {
	all, online := 0, 0
	for _, agent := range agents {
		if agent.SiteID != site.ID {
			continue
		}
		all++
		if agent.Presence(now) == store.Online {
			online++
		}
	}
	return fmt.Sprintf("%d of %d", online, all)
}

// publishedHow says whether agents get the latest revision, and when.
func publishedHow(site store.Site, pin *show.Pin) string {
	how := map[string]string{inventory.PublishAuto: "by itself", inventory.PublishManual: "by hand"}[site.Publishing]
	if pin != nil {
		how = fmt.Sprintf("pinned to %d, %s", pin.Revision, how)
	}
	return how
}

// siteIDOf is the id of the site that an option names, 0 if it is not given.
func siteIDOf(e *environmentOf, s *store.Store, text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	site, err := findSite(e, s, text)
	if errors.Is(err, errNoSite) {
		err = usageError{fmt.Errorf("--site: %w", err)}
	}
	return site.ID, err
}

// formerSiteIDOf is siteIDOf for what outlives its site: an id may be that of a
// site which was deleted.
func formerSiteIDOf(e *environmentOf, s *store.Store, text string) (int64, error) {
	found, err := siteIDOf(e, s, text)
	id, noID := strconv.ParseInt(strings.TrimPrefix(text, "id:"), 10, 64)
	if errors.Is(err, errNoSite) && noID == nil && id > 0 {
		return id, nil
	}
	return found, err
}

// errNoSite is that there is no site of some name or id.
var errNoSite = errors.New("opensource-manager sites lists them")

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
		return store.Site{}, fmt.Errorf("there is no site %q: %w", text, errNoSite)
	case 1:
		return found[0], nil
	}
	return store.Site{}, fmt.Errorf("%q is the name of site %d and the id of site %q: say id:%d or id:%d",
		text, found[0].ID, found[1].Name, found[0].ID, found[1].ID)
}
