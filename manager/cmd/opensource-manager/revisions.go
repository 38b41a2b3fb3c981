package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"opensource.internal/manager/internal/revision"
	"opensource.internal/manager/internal/show"
	"opensource.internal/manager/internal/snapshot"
	"opensource.internal/manager/internal/store"
)

type revisionsCommands struct {
	List    revisionsList    `cmd:"" default:"withargs" help:"List the revisions of a site, the latest first."`
	Show    revisionsShow    `cmd:"" help:"Print the snapshot of a revision: byte for byte as agents get it, unless at a terminal."`
	Diff    revisionsDiff    `cmd:"" help:"Compare two revisions, by record and by rendered file."`
	Restore revisionsRestore `cmd:"" help:"Set the inventory of a site back to a revision."`
}

// Help is shown by --help.
func (revisionsCommands) Help() string {
	return `Every snapshot that agents got is a revision, with who changed what.

  opensource-manager revisions lab
  opensource-manager revisions diff lab 12            with the one before
  opensource-manager revisions diff lab 12 --from 7
  opensource-manager revisions show lab 7 | jq .nginx
  opensource-manager revisions restore lab 7 --dry-run`
}

// ofSite is the site that a command is about.
type ofSite struct {
	Site string `arg:"" help:"The site, by id or by name."`
}

func (o ofSite) find(e *environmentOf, s *store.Store) (store.Site, error) {
	return findSite(e, s, o.Site)
}

// withSite runs work on a site and what is published of it.
func (e *environmentOf) withSite(o ofSite, work func(*store.Store, *snapshot.Cache, store.Site) error) error {
	return e.withStore(func(s *store.Store) error {
		site, err := o.find(e, s)
		if err != nil {
			return err
		}
		return work(s, snapshot.NewCache(s), site)
	})
}

type revisionsList struct {
	ofSite
	Limit int  `default:"20" help:"How many at most; 0 for all." placeholder:"N"`
	JSON  bool `name:"json" help:"Print JSON."`
}

// Run lists revisions.
func (c revisionsList) Run(e *environmentOf) error {
	if c.Limit < 0 || c.Limit > store.MaxLimit {
		return usageError{fmt.Errorf("--limit: %d is not from 0 to %d", c.Limit, store.MaxLimit)}
	}
	return e.withSite(c.ofSite, func(s *store.Store, snapshots *snapshot.Cache, site store.Site) error {
		_, current, err := snapshots.Served(e, site.ID)
		if err != nil {
			return err
		}
		agents, _, err := s.ListAgents(e, store.AgentFilter{SiteID: site.ID}, store.ListOptions{Limit: store.All})
		if err != nil {
			return err
		}
		limit := c.Limit
		if limit == 0 {
			limit = store.All
		}
		rows, total, err := s.ListRevisions(e, store.RevisionFilter{SiteID: site.ID}, store.ListOptions{Limit: limit})
		if err != nil {
			return err
		}
		shown := shownAs(rows, show.RevisionOf(current, agents))
		if c.JSON {
			return e.printJSON(shown)
		}
		if err := printRevisions(e.stdout, shown); err != nil {
			return err
		}
		return printPin(e.stdout, current.Pin, int(total)-len(shown))
	})
}

func printRevisions(out io.Writer, revisions []show.SiteRevision) error {
	t := newTable(out, "NUMBER", "TIME", "CHANGED BY", "CHANGES", "NOTE", "STATE")
	for _, r := range revisions {
		by := strings.Join(r.ChangedBy, ", ")
		if r.PublishedBy != nil {
			by = strings.TrimPrefix(by+", published by "+*r.PublishedBy, ", ")
		}
		note := ""
		if r.Note != nil {
			note = *r.Note
		}
		t.row(r.Number, r.CreatedAt.Format(time.RFC3339), by, r.Changes, note, strings.Join(statesOf(r), ", "))
	}
	return t.flush()
}

// statesOf are what is special about a revision.
func statesOf(r show.SiteRevision) []string {
	var states []string
	if r.Pinned {
		states = append(states, "pinned")
	} else if r.Current {
		states = append(states, "current")
	}
	if len(r.RunningOn) > 0 {
		states = append(states, "runs on "+strings.Join(r.RunningOn, ", "))
	}
	return states
}

// printPin says what a list of revisions has no column for.
func printPin(out io.Writer, pin *store.Pin, more int) error {
	if more > 0 {
		fmt.Fprintf(out, "and %d more: --limit 0 lists all\n", more)
	}
	if pin == nil {
		return nil
	}
	_, err := fmt.Fprintln(out, pinWords(*pin))
	return err
}

func pinWords(pin store.Pin) string {
	return printable(fmt.Sprintf("Pinned to revision %d by %s at %s UTC: %s", pin.Revision, pin.PinnedBy, pin.PinnedAt.UTC().Format(time.DateTime), pin.Reason))
}

type revisionsShow struct {
	ofSite
	Number int64 `arg:"" help:"The number of the revision."`
}

// Run prints a snapshot.
func (c revisionsShow) Run(e *environmentOf) error {
	return e.withSite(c.ofSite, func(s *store.Store, _ *snapshot.Cache, site store.Site) error {
		row, err := s.GetRevision(e, site.ID, c.Number)
		if err != nil {
			return namedRevision(err, c.Number)
		}
		if terminal, ok := e.stdout.(*os.File); ok && isTerminal(terminal) {
			return e.printJSON(json.RawMessage(row.Data))
		}
		_, err = e.stdout.Write(row.Data) // no line after it: its digest is the tag
		return err
	})
}

func namedRevision(err error, number int64) error {
	if errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("there is no revision %d of this site, or it is not kept any more", number)
	}
	return err
}

func (e *environmentOf) compare(snapshots *snapshot.Cache, siteID int64, from, to snapshot.Version) (show.Difference, error) {
	host, err := snapshots.Host(e, siteID)
	if err != nil {
		return show.Difference{}, err
	}
	return show.DifferenceOf(from, to, host, version), nil
}

type revisionsDiff struct {
	ofSite
	Number  int64 `arg:"" help:"The number of the revision."`
	From    int64 `help:"Number of the revision to compare with; the one before if not given." placeholder:"N"`
	NoFiles bool  `help:"Leave out the diffs of the files."`
	JSON    bool  `name:"json" help:"Print JSON."`
}

// Run compares two revisions.
func (c revisionsDiff) Run(e *environmentOf) error {
	return e.withSite(c.ofSite, func(_ *store.Store, snapshots *snapshot.Cache, site store.Site) error {
		to, err := snapshots.Revision(e, site.ID, c.Number)
		if err != nil {
			return namedRevision(err, c.Number)
		}
		from, err := snapshots.Before(e, site.ID, c.Number)
		if c.From != 0 {
			from, err = snapshots.Revision(e, site.ID, c.From)
			err = namedRevision(err, c.From)
		}
		if err != nil {
			return err
		}
		compared, err := e.compare(snapshots, site.ID, from, to)
		if err != nil {
			return err
		}
		if c.JSON {
			return e.printJSON(compared)
		}
		return printDifference(e.stdout, compared, !c.NoFiles)
	})
}

// printDifference writes a difference for people.
func printDifference(out io.Writer, d show.Difference, files bool) error {
	fmt.Fprintf(out, "From %s to %s: %s.\n", versionName(d.From, "nothing"), versionName(d.To, "what the inventory has now"), d.Summary)
	for _, change := range d.Changes {
		printChange(out, change)
	}
	fmt.Fprintln(out)
	for _, words := range d.Impact.Words {
		fmt.Fprintln(out, printable(words))
	}
	for _, assumption := range d.Host.Assumptions {
		fmt.Fprintln(out, "Note:", printable(assumption))
	}
	if files {
		for _, file := range d.Files {
			fmt.Fprintf(out, "\n%s", file.Diff)
		}
	}
	return nil
}

func versionName(number *int64, other string) string {
	if number == nil {
		return other
	}
	return fmt.Sprintf("revision %d", *number)
}

var signs = map[revision.Action]string{revision.Added: "+", revision.Changed: "~", revision.Removed: "-"}

func printChange(out io.Writer, change revision.Change) {
	fmt.Fprintf(out, "\n%s %s %s", signs[change.Action], revision.Noun(change.Resource), printable(change.Name))
	if change.Former != "" {
		fmt.Fprintf(out, " (was %s)", printable(change.Former))
	}
	fmt.Fprintln(out)
	for _, field := range change.Fields {
		switch change.Action {
		case revision.Added:
			fmt.Fprintf(out, "    %s: %s\n", field.Name, value(field.To))
		case revision.Removed:
			fmt.Fprintf(out, "    %s: %s\n", field.Name, value(field.From))
		default:
			fmt.Fprintf(out, "    %s: %s → %s\n", field.Name, value(field.From), value(field.To))
		}
	}
}

func value(v any) string {
	if v == nil {
		return "not set"
	}
	return printable(fmt.Sprint(v))
}
