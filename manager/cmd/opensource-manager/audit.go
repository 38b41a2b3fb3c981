package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"opensource.internal/manager/internal/show"
	"opensource.internal/manager/internal/store"
)

type auditCommand struct {
	Site     string `help:"Only what belongs to this site; to a deleted one by its id." placeholder:"SITE"`
	Actor    string `help:"Only what this user, key or person on the command line did." placeholder:"NAME"`
	Action   string `complete:"create,update,delete,sign_in,sign_in_failed,sign_out,password_changed,sessions_ended,key_created,key_revoked,confirm_removals,pin,unpin,publish,restore" help:"Only this, such as delete or sign_in_failed." placeholder:"ACTION"`
	Resource string `complete:"site,node,container,service,volume,external_domain,agent,user,api_key,session,enrollment,notification_target,notification_silence,database" help:"Only records of this kind, such as container." placeholder:"KIND"`
	Text     string `name:"text" help:"Only what has this text in a name, an address, a request id or a value." placeholder:"TEXT"`
	lastOnes
	JSON bool `name:"json" help:"Print JSON."`
}

// lastOnes choose how much of a log is shown.
type lastOnes struct {
	Since past `help:"Only from this moment on: 24h or 7d ago, or a time such as 2026-01-31T08:00:00Z." placeholder:"WHEN"`
	Limit int  `default:"100" help:"How many at most, the newest; 0 for all (default 100)." placeholder:"N"`
}

func (l lastOnes) options() (store.ListOptions, error) {
	switch {
	case l.Limit < 0:
		return store.ListOptions{}, usageError{fmt.Errorf("--limit: %d is negative", l.Limit)}
	case l.Limit == 0:
		return store.ListOptions{Limit: store.All}, nil
	}
	return store.ListOptions{Limit: l.Limit}, nil
}

// Run shows the last entries.
func (c auditCommand) Run(e *environmentOf) error {
	opts, err := c.options()
	if err != nil {
		return err
	}
	if action := store.Action(c.Action); action != "" && !slices.Contains(store.Actions(), action) {
		return usageError{fmt.Errorf("--action: %q is none of %v", c.Action, store.Actions())}
	}
	if c.Resource != "" && !slices.Contains(store.Resources(), c.Resource) {
		return usageError{fmt.Errorf("--resource: %q is none of %v", c.Resource, store.Resources())}
	}
	opts.Search = c.Text
	return e.withStore(func(s *store.Store) error {
		siteID, err := formerSiteIDOf(e, s, c.Site)
		if err != nil {
			return err
		}
		rows, total, err := s.ListAudit(e, store.AuditFilter{
			SiteID: siteID, Actor: c.Actor, Action: store.Action(c.Action), Resource: c.Resource, Since: c.Since.Time,
		}, opts)
		if err != nil {
			return err
		}
		slices.Reverse(rows)
		if c.JSON {
			return e.printJSON(shownAs(rows, show.AuditOf))
		}
		return printAudit(e, rows, total)
	})
}

func printAudit(e *environmentOf, rows []store.AuditEntry, total int64) error {
	t := newTable(e.stdout, "TIME", "WHO", "FROM", "ACTION", "WHAT", "SITE", "CHANGES")
	for _, r := range rows {
		action := string(r.Action)
		if r.Times > 1 {
			action += fmt.Sprintf(" (%d times)", r.Times)
		}
		t.row(r.At.UTC().Format(time.RFC3339), whoOf(r.Actor), r.Actor.Address, action,
			strings.TrimSpace(r.Resource+" "+r.Name), numberOf(r.SiteID), changesOf(r))
	}
	if err := t.flush(); err != nil {
		return err
	}
	return e.tellOfMore(len(rows), total)
}

// tellOfMore says, beside the list, that it is not all.
func (e *environmentOf) tellOfMore(shown int, total int64) error {
	if int64(shown) >= total {
		return nil
	}
	_, err := fmt.Fprintf(e.stderr, "the last %d of %d; --limit 0 shows all\n", shown, total)
	return err
}

// whoOf names who it was, and what sort of somebody unless it is a person who
// has signed in.
func whoOf(actor store.Actor) string {
	switch {
	case actor.Kind == store.ActorUser:
		return actor.Name
	case actor.Name == "":
		return string(actor.Kind)
	}
	return fmt.Sprintf("%s (%s)", actor.Name, actor.Kind)
}

func numberOf(id int64) string {
	if id == 0 {
		return ""
	}
	return strconv.FormatInt(id, 10)
}

// changesOf are the new values on one line, after the old ones of an update.
func changesOf(r store.AuditEntry) string {
	var changes []string
	for _, name := range slices.Sorted(maps.Keys(r.After)) {
		change := name + ": " + valueOf(r.After[name])
		if before, changed := r.Before[name]; changed {
			change = name + ": " + valueOf(before) + " → " + valueOf(r.After[name])
		}
		changes = append(changes, change)
	}
	return strings.Join(changes, ", ")
}

func valueOf(value any) string {
	text, _ := json.Marshal(value) // it came from JSON
	return string(text)
}
