package main

import (
	"fmt"
	"slices"
	"time"

	"opensource.internal/manager/internal/events"
	"opensource.internal/manager/internal/show"
	"opensource.internal/manager/internal/store"
)

type eventsCommand struct {
	Site     string          `help:"Only those of this site; a deleted one by its id." placeholder:"SITE"`
	Agent    string          `help:"Only those of the agent with this host name." placeholder:"HOST"`
	Kind     events.Kind     `complete:"first_seen,offline,back,apply_failed,stuck,apply_recovered,drift,quarantined,quarantine_cleared,volume_failed,volume_ready,certificate_expiring,certificate_expired,certificate_faulty,certificate_recovered,guard_held,guard_released,hold_begun,hold_ended,agent_updated,events_left_out" help:"Only this, such as offline or apply_failed." placeholder:"KIND"`
	Severity events.Severity `enum:",info,warning,error" default:"" complete:"info,warning,error" help:"Only info, warning or error." placeholder:"SEVERITY"`
	Follow   bool            `help:"Go on with what happens from now on, until Ctrl-C."`
	lastOnes
	JSON bool `name:"json" help:"Print JSON; with --follow one line each."`
}

// Run shows the last events, and those to come.
func (c eventsCommand) Run(e *environmentOf) error {
	if c.Kind != "" && !slices.Contains(events.Kinds(), c.Kind) {
		return usageError{fmt.Errorf("--kind: %q is none of %v", c.Kind, events.Kinds())}
	}
	opts, err := c.options()
	if err != nil {
		return err
	}
	filter := store.EventFilter{Hostname: c.Agent, Kind: c.Kind, Severity: c.Severity, Since: c.Since.Time}
	return e.withStore(func(s *store.Store) error {
		var err error
		if filter.SiteID, err = formerSiteIDOf(e, s, c.Site); err != nil {
			return err
		}
		// What is followed comes after what is there now, whether or not that is shown.
		newest, _, err := s.ListEvents(e, store.EventFilter{}, store.ListOptions{Limit: 1})
		if err != nil {
			return err
		}
		rows, total, err := s.ListEvents(e, filter, opts)
		if err != nil {
			return err
		}
		slices.Reverse(rows)
		if !c.Follow {
			return c.print(e, rows, total)
		}
		for _, row := range newest {
			filter.After = row.ID
		}
		return c.follow(e, s, filter, rows)
	})
}

func (c eventsCommand) print(e *environmentOf, rows []store.Event, total int64) error {
	if c.JSON {
		return e.printJSON(shownAs(rows, show.EventOf))
	}
	t := newTable(e.stdout, "TIME", "SITE", "HOST", "SEVERITY", "KIND", "WHAT")
	for _, row := range rows {
		t.row(row.At.UTC().Format(time.RFC3339), row.SiteID, row.Hostname, row.Severity, row.Kind, row.Summary)
	}
	if err := t.flush(); err != nil {
		return err
	}
	return e.tellOfMore(len(rows), total)
}

// followInterval is how often new events are looked for.
const followInterval = time.Second

// follow prints events as they come, a line each, until the context ends.
func (c eventsCommand) follow(e *environmentOf, s *store.Store, filter store.EventFilter, rows []store.Event) error {
	e.onOneLine = true
	ticker := time.NewTicker(followInterval)
	defer ticker.Stop()
	for {
		for _, row := range rows {
			filter.After = max(filter.After, row.ID)
			if err := c.printOne(e, row); err != nil {
				return err
			}
		}
		select {
		case <-ticker.C:
		case <-e.Done():
			return nil
		}
		var err error
		if rows, _, err = s.ListEvents(e, filter, store.ListOptions{Limit: store.All, Sort: "id"}); err != nil {
			if e.Err() != nil {
				return nil // the query was cut off by Ctrl-C
			}
			return err
		}
	}
}

func (c eventsCommand) printOne(e *environmentOf, row store.Event) error {
	if c.JSON {
		return e.printJSON(show.EventOf(row))
	}
	_, err := fmt.Fprintf(e.stdout, "%s  site %d  %s  %-7s  %s  %s\n", row.At.UTC().Format(time.RFC3339), row.SiteID,
		printable(row.Hostname), row.Severity, row.Kind, printable(row.Summary))
	return err
}
