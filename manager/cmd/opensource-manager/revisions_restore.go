package main

import (
	"errors"
	"fmt"
	"strings"

	"opensource.internal/manager/internal/manifest"
	"opensource.internal/manager/internal/snapshot"
	"opensource.internal/manager/internal/store"
)

type revisionsRestore struct {
	ofSite
	Number int64  `arg:"" help:"The number of the revision."`
	DryRun bool   `help:"Find out what would change, by doing and undoing it."`
	ETag   string `name:"etag" help:"Tag of what was looked at, as --dry-run shows it: nothing else is done." placeholder:"TAG"`
	JSON   bool   `name:"json" help:"Print JSON."`
}

// Help is shown by --help.
func (revisionsRestore) Help() string {
	return `Makes the inventory of a site again what it was when a revision was made, all of it
in one transaction or nothing. What was deleted since comes back with its ports and
directories, what was added since is deleted. Agents get the outcome as a new
revision, unless the site is pinned or published by hand.

  opensource-manager revisions restore lab 7 --dry-run`
}

// Run sets an inventory back.
func (c revisionsRestore) Run(e *environmentOf) error {
	seen, err := seenTag(c.ETag)
	if err != nil {
		return err
	}
	return e.withSite(c.ofSite, func(s *store.Store, _ *snapshot.Cache, site store.Site) error {
		report, err := manifest.SetBack(e, s, site.ID, c.Number, manifest.SetBackOptions{DryRun: c.DryRun, Seen: seen})
		var refused *manifest.RefusedError
		if errors.As(err, &refused) {
			return fmt.Errorf("nothing was changed: %s", strings.Join(refused.Reasons, "\n"))
		}
		if err != nil {
			return namedRevision(err, c.Number)
		}
		if c.JSON {
			return e.printJSON(report)
		}
		if err := report.Write(e.stdout); err != nil || len(report.Changes) == 0 {
			return err
		}
		_, err = fmt.Fprintln(e.stdout, c.next(report))
		return err
	})
}

// next says what comes after it.
func (c revisionsRestore) next(r *manifest.SetBackReport) string {
	switch {
	case r.DryRun:
		return fmt.Sprintf("To do exactly this: opensource-manager revisions restore %s %d --etag %s", quotedForShell(c.Site), c.Number, strings.Trim(r.ETag, `"`))
	case r.Revision != nil:
		return fmt.Sprintf("The inventory is set back to revision %d. Agents get it as revision %d.", c.Number, *r.Revision)
	}
	return fmt.Sprintf("The inventory is set back to revision %d. That waits: see opensource-manager pending %s", c.Number, quotedForShell(c.Site))
}
