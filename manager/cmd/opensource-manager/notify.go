package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"opensource.internal/manager/internal/events"
	"opensource.internal/manager/internal/notify"
	"opensource.internal/manager/internal/prose"
	"opensource.internal/manager/internal/show"
	"opensource.internal/manager/internal/store"
)

type notifyCommands struct {
	Targets   notifyTargets   `cmd:"" help:"List who is told what is wrong with agents."`
	Add       notifyAdd       `cmd:"" help:"Add somebody to tell. The URL comes from stdin."`
	Remove    notifyRemove    `cmd:"" help:"Tell somebody nothing any more."`
	Test      notifyTest      `cmd:"" help:"Send a test message now."`
	Silence   notifySilence   `cmd:"" help:"Tell nobody of a site until a time."`
	Silences  notifySilences  `cmd:"" help:"List the sites of which nobody is told."`
	Unsilence notifyUnsilence `cmd:"" help:"Tell of a site again."`
}

type notifyTargets struct {
	JSON bool `name:"json" help:"Print JSON."`
}

// Run lists all targets.
func (c notifyTargets) Run(e *environmentOf) error {
	return e.withStore(func(s *store.Store) error {
		rows, _, err := s.ListNotificationTargets(e, store.NotificationTargetFilter{}, store.ListOptions{Limit: store.All})
		if err != nil {
			return err
		}
		if c.JSON {
			return e.printJSON(shownAs(rows, show.NotificationTargetOf))
		}
		table := newTable(e.stdout, "ID", "NAME", "SERVICE", "TELLS", "SITES", "STATE")
		for _, row := range rows {
			table.row(row.ID, row.Name, notify.ServiceName(row.URL), tells(row), sitesOf(row), stateOf(row))
		}
		return table.flush()
	})
}

func tells(t store.NotificationTarget) string {
	what := "everything"
	if len(t.Kinds) > 0 {
		what = strings.Join(t.Kinds, ",")
	}
	if t.Severity == events.Error {
		what += " (errors)"
	}
	return what
}

func sitesOf(t store.NotificationTarget) string {
	if len(t.SiteIDs) == 0 {
		return "all"
	}
	var ids []string
	for _, id := range t.SiteIDs {
		ids = append(ids, strconv.FormatInt(id, 10))
	}
	return strings.Join(ids, ",")
}

func stateOf(t store.NotificationTarget) string {
	switch {
	case !t.Enabled:
		return "disabled"
	case t.Failures == 1:
		return fmt.Sprintf("failed %s: %s", prose.Minute(*t.FailedAt), t.LastError)
	case t.Failures > 1:
		return fmt.Sprintf("failed %d times, last %s: %s", t.Failures, prose.Minute(*t.FailedAt), t.LastError)
	case t.SentAt != nil:
		return "delivered " + prose.Minute(*t.SentAt)
	}
	return "nothing to tell yet"
}

type notifyAdd struct {
	Name     string   `arg:"" help:"What to call it."`
	Kind     []string `help:"Only these kinds of events: offline, apply_failed … (docs/usage/notifications.md)." placeholder:"KIND"`
	Site     []string `help:"Only these sites." placeholder:"SITE"`
	Severity string   `enum:"warning,error" default:"warning" help:"The least that is told: warning or error."`
	URLFile  string   `name:"url-file" help:"File with the URL, instead of stdin." placeholder:"FILE"`
	JSON     bool     `name:"json" help:"Print JSON."`
}

// Help explains where the URL comes from.
func (notifyAdd) Help() string {
	return "The URL names a service, its server and a secret, such as smtp://USER:PASSWORD@mail.example.com:587/?from=a@example.com&to=b@example.com " +
		"or ntfy://ntfy.example.com/TOPIC. It is one line of stdin, or of a file: everybody on the host can read a command line. It is never shown again."
}

// Run adds a target.
func (c notifyAdd) Run(e *environmentOf) error {
	url, err := c.readURL(e)
	if err != nil {
		return err
	}
	wanted := store.NotificationTarget{Name: c.Name, URL: url, Kinds: c.Kind, Severity: events.Severity(c.Severity), Enabled: true}
	if err := notify.Check(&wanted); err != nil {
		return usageError{err}
	}
	return e.withStore(func(s *store.Store) error {
		for _, text := range c.Site {
			siteID, err := siteIDOf(e, s, text)
			if err != nil {
				return err
			}
			wanted.SiteIDs = append(wanted.SiteIDs, siteID)
		}
		row, err := s.CreateNotificationTarget(e, wanted)
		var invalid *store.InvalidError
		if errors.As(err, &invalid) {
			return usageError{err}
		}
		if err != nil {
			return err
		}
		return e.say(c.JSON, show.NotificationTargetOf(row), fmt.Sprintf("created notification target %d (%s, %s)", row.ID, row.Name, notify.ServiceName(row.URL)))
	})
}

// maxURLLine is more than any URL needs, in bytes.
const maxURLLine = 8 << 10

func (c notifyAdd) readURL(e *environmentOf) (string, error) {
	from := e.stdin
	if c.URLFile != "" {
		file, err := os.Open(c.URLFile)
		if err != nil {
			return "", usageError{fmt.Errorf("--url-file: %w", err)}
		}
		defer file.Close()
		from = file
	} else if terminal, ok := e.stdin.(*os.File); ok && isTerminal(terminal) {
		fmt.Fprint(e.stderr, "URL: ")
	}
	line, err := bufio.NewReader(io.LimitReader(from, maxURLLine)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("read the URL: %w", err)
	}
	return strings.TrimSpace(line), nil
}

// say prints what was done, for scripts or for people.
func (e *environmentOf) say(asJSON bool, value any, words string) error {
	if asJSON {
		return e.printJSON(value)
	}
	_, err := fmt.Fprintln(e.stdout, printable(words))
	return err
}

// named is a target on the command line.
type named struct {
	Target string `arg:"" help:"Name or id of the target."`
	JSON   bool   `name:"json" help:"Print JSON."`
}

func (n named) find(e *environmentOf, s *store.Store) (store.NotificationTarget, error) {
	rows, _, err := s.ListNotificationTargets(e, store.NotificationTargetFilter{Name: n.Target}, store.ListOptions{})
	if err == nil && len(rows) == 1 {
		return rows[0], nil
	}
	id, noID := strconv.ParseInt(n.Target, 10, 64)
	if err == nil && noID == nil {
		var row store.NotificationTarget
		if row, err = s.GetNotificationTarget(e, id); err == nil {
			return row, nil
		}
	}
	if err == nil || errors.Is(err, store.ErrNotFound) {
		err = fmt.Errorf("there is no notification target %q", n.Target)
	}
	return store.NotificationTarget{}, err
}

type notifyRemove struct{ named }

// Run deletes a target.
func (c notifyRemove) Run(e *environmentOf) error {
	return e.withStore(func(s *store.Store) error {
		row, err := c.find(e, s)
		if err != nil {
			return err
		}
		if err := s.DeleteNotificationTarget(e, row.ID); err != nil {
			return err
		}
		return e.say(c.JSON, show.NotificationTargetOf(row), fmt.Sprintf("removed notification target %d (%s)", row.ID, row.Name))
	})
}

type notifyTest struct{ named }

// testWait is longer than any service's own bound.
const testWait = 20 * time.Second

// Run sends a test message.
func (c notifyTest) Run(e *environmentOf) error {
	return e.withStore(func(s *store.Store) error {
		row, err := c.find(e, s)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(e, testWait)
		defer cancel()
		reason, err := notify.New(notify.Options{Store: s, Log: e.log, Link: e.config.AgentsPage()}).Test(ctx, row)
		if err != nil {
			return err
		}
		if reason != "" {
			return fmt.Errorf("%s was not reached: %s", row.Name, printable(reason))
		}
		return e.say(c.JSON, map[string]any{"delivered": true, "target": row.Name}, "delivered a test message to "+row.Name)
	})
}

type notifySilence struct {
	ofSite
	Until  future `xor:"end" required:"" help:"When it ends, such as 2026-12-01T06:00:00Z, 2026-12-01 or 7d." placeholder:"WHEN"`
	For    string `xor:"end" required:"" help:"How long it lasts, such as 90m or 7d." placeholder:"DURATION"`
	Reason string `help:"Why, for the others."`
	JSON   bool   `name:"json" help:"Print JSON."`
}

// Run silences a site; a silence that it has is replaced.
func (c notifySilence) Run(e *environmentOf) error {
	until := c.Until.Time
	if c.For != "" {
		span, err := spanOf("--for", c.For)
		if err != nil {
			return err
		}
		until = time.Now().Add(span)
	}
	return e.withStore(func(s *store.Store) error {
		site, err := c.find(e, s)
		if err != nil {
			return err
		}
		row, err := s.SilenceSite(e, store.NotificationSilence{SiteID: site.ID, Until: until.UTC().Truncate(time.Second), Reason: c.Reason, CreatedBy: store.ActorOf(e).Name})
		var invalid *store.InvalidError
		if errors.As(err, &invalid) {
			return usageError{err}
		}
		if err != nil {
			return err
		}
		return e.say(c.JSON, show.NotificationSilenceOf(row), fmt.Sprintf("nobody is told of site %q until %s", site.Name, prose.Minute(row.Until)))
	})
}

type notifySilences struct {
	JSON bool `name:"json" help:"Print JSON."`
}

// Run lists the silences that last.
func (c notifySilences) Run(e *environmentOf) error {
	return e.withStore(func(s *store.Store) error {
		rows, _, err := s.ListNotificationSilences(e, store.NotificationSilenceFilter{}, store.ListOptions{Limit: store.All, Sort: "siteId"})
		if err != nil {
			return err
		}
		if c.JSON {
			return e.printJSON(shownAs(rows, show.NotificationSilenceOf))
		}
		table := newTable(e.stdout, "SITE", "UNTIL", "REASON", "BY")
		for _, row := range rows {
			table.row(row.SiteID, prose.Minute(row.Until), row.Reason, row.CreatedBy)
		}
		return table.flush()
	})
}

type notifyUnsilence struct {
	ofSite
	JSON bool `name:"json" help:"Print JSON."`
}

// Run ends the silence of a site.
func (c notifyUnsilence) Run(e *environmentOf) error {
	return e.withStore(func(s *store.Store) error {
		site, err := c.find(e, s)
		if err != nil {
			return err
		}
		rows, _, err := s.ListNotificationSilences(e, store.NotificationSilenceFilter{SiteID: site.ID}, store.ListOptions{})
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			return fmt.Errorf("site %q is not silenced", site.Name)
		}
		if err := s.EndNotificationSilence(e, rows[0].ID); err != nil {
			return err
		}
		return e.say(c.JSON, show.NotificationSilenceOf(rows[0]), fmt.Sprintf("site %q is no longer silenced", site.Name))
	})
}
