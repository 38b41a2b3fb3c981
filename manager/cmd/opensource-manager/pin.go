package main

import (
	"errors"
	"fmt"

	"opensource.internal/manager/internal/show"
	"opensource.internal/manager/internal/snapshot"
	"opensource.internal/manager/internal/store"
)

// pinsOf are the pins of all sites, by site.
func pinsOf(e *environmentOf, s *store.Store) (map[int64]*show.Pin, error) {
	rows, err := s.ListPins(e)
	if err != nil {
		return nil, err
	}
	return show.PinsOf(rows), nil
}

type pinCommand struct {
	ofSite
	Revision int64  `arg:"" optional:"" help:"The number of a revision; the one that agents get now if not given."`
	Reason   string `required:"" help:"Is shown wherever the site is, until it is unpinned." placeholder:"TEXT"`
	JSON     bool   `name:"json" help:"Print JSON."`
}

// Help is shown by --help.
func (pinCommand) Help() string {
	return `Gives a site's agents a revision from their next check-in on, whatever is changed
or published, until the site is unpinned. The inventory stays as it is.

  opensource-manager revisions lab
  opensource-manager pin lab 7 --reason "8 breaks sign-in"`
}

// Run pins a site.
func (c pinCommand) Run(e *environmentOf) error {
	if c.Revision < 0 {
		return usageError{errors.New("the numbers of revisions begin with 1")}
	}
	return e.withSite(c.ofSite, func(_ *store.Store, snapshots *snapshot.Cache, site store.Site) error {
		pin, err := snapshots.Pin(e, site.ID, c.Revision, c.Reason)
		if err != nil {
			return byFlag(err)
		}
		if c.JSON {
			return e.printJSON(show.PinOf(&pin))
		}
		return printPin(e.stdout, &pin, 0)
	})
}

type unpinCommand struct {
	ofSite
	JSON bool `name:"json" help:"Print JSON."`
}

// Run unpins a site.
func (c unpinCommand) Run(e *environmentOf) error {
	return e.withSite(c.ofSite, func(s *store.Store, snapshots *snapshot.Cache, site store.Site) error {
		unpinned, err := s.UnpinSite(e, site.ID)
		if err != nil {
			return err
		}
		_, current, err := snapshots.Served(e, site.ID)
		if err != nil {
			return err
		}
		if c.JSON {
			return e.printJSON(map[string]any{"siteId": site.ID, "revision": current.Number, "etag": current.ETag})
		}
		words := "Unpinned"
		if !unpinned {
			words = fmt.Sprintf("Site %q is not pinned", site.Name)
		}
		_, err = fmt.Fprintf(e.stdout, "%s: agents get revision %d.\n", printable(words), current.Number)
		return err
	})
}
