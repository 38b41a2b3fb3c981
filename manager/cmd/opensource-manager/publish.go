package main

import (
	"errors"
	"fmt"
	"strings"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/show"
	"opensource.internal/manager/internal/snapshot"
	"opensource.internal/manager/internal/store"
)

type pendingCommand struct {
	ofSite
	NoFiles bool `help:"Leave out the diffs of the files."`
	JSON    bool `name:"json" help:"Print JSON."`
}

// Help is shown by --help.
func (pendingCommand) Help() string {
	return `What the inventory has and agents do not get, since the site is published by hand
or pinned; and whom it concerns.`
}

// Run shows what waits.
func (c pendingCommand) Run(e *environmentOf) error {
	return e.withSite(c.ofSite, func(_ *store.Store, snapshots *snapshot.Cache, site store.Site) error {
		served, current, err := snapshots.Served(e, site.ID)
		if err != nil {
			return err
		}
		now, err := snapshots.Inventory(e, site.ID)
		if err != nil {
			return err
		}
		shown := show.Pending{Waiting: len(snapshot.Unpublished(served, now)), Pin: show.PinOf(current.Pin)}
		if shown.Difference, err = e.compare(snapshots, site.ID, served, now); err != nil {
			return err
		}
		if shown.Published, err = snapshots.PublishedAs(e, site.ID, now); err != nil {
			return err
		}
		if c.JSON {
			return e.printJSON(shown)
		}
		if current.Pin != nil {
			fmt.Fprintln(e.stdout, pinWords(*current.Pin))
		}
		if shown.Waiting == 0 {
			_, err = fmt.Fprintln(e.stdout, "Nothing waits: agents get what the inventory has.")
			return err
		}
		if err := printDifference(e.stdout, shown.Difference, !c.NoFiles); err != nil {
			return err
		}
		if current.Pin != nil {
			_, err = fmt.Fprintln(e.stdout, "\nNothing of this reaches agents before the site is unpinned.")
			return err
		}
		_, err = fmt.Fprintf(e.stdout, "\nTo publish exactly this: opensource-manager publish %s --etag %s\n", quotedForShell(c.Site), strings.Trim(now.ETag, `"`))
		return err
	})
}

// quotedForShell is a word that a shell takes as it is.
func quotedForShell(word string) string {
	plain := func(r rune) bool {
		return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || strings.ContainsRune("._-", r)
	}
	if strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

type publishCommand struct {
	ofSite
	ETag string `name:"etag" help:"Tag of what was looked at, as pending shows it: other content is not published." placeholder:"TAG"`
	Note string `help:"Is kept with the revision." placeholder:"TEXT"`
	JSON bool   `name:"json" help:"Print JSON."`
}

// Help is shown by --help.
func (publishCommand) Help() string {
	return `Publishes what the inventory of a site has now. Agents of a pinned site get it when
the site is unpinned.

  opensource-manager pending lab
  opensource-manager publish lab --note "the wiki moves"`
}

// Run publishes.
func (c publishCommand) Run(e *environmentOf) error {
	seen, err := seenTag(c.ETag)
	if err != nil {
		return err
	}
	return e.withSite(c.ofSite, func(s *store.Store, snapshots *snapshot.Cache, site store.Site) error {
		row, published, err := snapshots.Publish(e, site.ID, seen, c.Note)
		if err != nil {
			return byFlag(err)
		}
		pin, err := s.GetPin(e, site.ID)
		if err != nil {
			return err
		}
		if c.JSON {
			return e.printJSON(map[string]any{"siteId": site.ID, "revision": row.Number, "etag": row.ETag, "published": published, "pin": show.PinOf(pin)})
		}
		if published {
			fmt.Fprintf(e.stdout, "Revision %d is published: %s.\n", row.Number, row.Summary)
		} else {
			fmt.Fprintf(e.stdout, "Nothing waits: revision %d has what the inventory has.\n", row.Number)
		}
		return printPin(e.stdout, pin, 0)
	})
}

// seenTag is the tag of what was looked at, "" if none is given.
func seenTag(flag string) (string, error) {
	seen := flag
	if seen != "" && !strings.Contains(seen, `"`) {
		seen = `"` + seen + `"` // as a shell leaves it
	}
	if seen != "" && !checkin.ValidETag(seen) {
		return "", usageError{fmt.Errorf("--etag: %q is not a tag", flag)}
	}
	return seen, nil
}

// byFlag makes what is wrong with a value a mistake of the command line.
func byFlag(err error) error {
	var invalid *store.InvalidError
	if errors.As(err, &invalid) {
		return usageError{err}
	}
	return err
}
