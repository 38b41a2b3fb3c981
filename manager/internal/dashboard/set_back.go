package dashboard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"opensource.internal/manager/internal/auth"
	"opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/manifest"
	"opensource.internal/manager/internal/prose"
	"opensource.internal/manager/internal/store"
)

func setBackPath(siteID, number int64) string { return revisionPath(siteID, number) + "/set-back" }

func undoPath(siteID int64) string { return sitePath(siteID) + "/undo" }

// setBackView asks before the inventory becomes again what it was.
type setBackView struct {
	SiteID, Number int64
	At, Age        string
	Summary        string
	Publishing     string   // when agents get it
	Reasons        []string // why it cannot be done
	Left           []string // what it does not touch
	Changes        []setBackChange
	More           int // changes that are not listed
	Command        string
	Form           *form
	Diff           differenceView // what it means for agents
	Changed        bool           // it is not what was looked at
}

// setBackChange is what becomes of one record.
type setBackChange struct {
	changeView
	Note string
}

// changed reports whether the record is there now, too, and stays.
func (c setBackChange) changed() bool { return c.Action == setBackWords[manifest.Update].Word }

// undo leads to what takes the last change of a site back: to the latest revision,
// or, if the inventory has nothing else, to the one before.
func (d *dashboard) undo(v *visit) error {
	ctx := v.Request.Context()
	s, err := d.siteOf(v)
	if err != nil {
		return err
	}
	if _, _, err := d.snapshots.Served(ctx, s.ID); err != nil { // what was changed since the last check-in is a revision by then
		return err
	}
	latest, _, err := d.store.ListRevisions(ctx, store.RevisionFilter{SiteID: s.ID}, store.ListOptions{Limit: 1, Sort: "-number"})
	if err != nil {
		return err
	}
	number := latest[0].Number // there is one: agents get it
	report, err := manifest.SetBack(ctx, d.store, s.ID, number, manifest.SetBackOptions{DryRun: true})
	var refused *manifest.RefusedError
	if err != nil && !errors.As(err, &refused) {
		return err
	}
	if err == nil && len(report.Changes) == 0 {
		since, err := d.store.ChangedSince(ctx, latest[0])
		if err != nil {
			return err
		}
		if since { // by what no revision brings back, such as how the site is published
			return v.goTo(setBackPath(s.ID, number), "")
		}
		before, err := d.snapshots.Before(ctx, s.ID, number)
		if err != nil {
			return err
		}
		number = cmp.Or(before.Number, number)
	}
	return v.goTo(setBackPath(s.ID, number), "")
}

// askSetBack shows what it would change to set the inventory back.
func (d *dashboard) askSetBack(v *visit) error {
	s, row, err := d.setBackOf(v)
	if err != nil {
		return err
	}
	return d.showSetBack(v, http.StatusOK, s, row, false)
}

// setBack does exactly what was looked at.
func (d *dashboard) setBack(v *visit) error {
	s, row, err := d.setBackOf(v)
	if err != nil {
		return err
	}
	typed, err := v.typed()
	if err != nil {
		return err
	}
	ctx, seen := v.Request.Context(), cmp.Or(typed.Get("version"), "nothing")
	report, err := manifest.SetBack(ctx, d.store, s.ID, row.Number, manifest.SetBackOptions{Seen: seen})
	var refused *manifest.RefusedError
	var other *store.ConflictError
	if errors.As(err, &refused) || errors.As(err, &other) {
		return d.showSetBack(v, http.StatusConflict, s, row, true)
	}
	if err != nil {
		return err
	}
	auth.RequestOf(ctx).Logger().Info("inventory set back", "site", s.ID, "revision", row.Number, "changes", len(report.Changes), "by", v.Who.Name)
	words := fmt.Sprintf("The inventory is set back to revision %d.", row.Number)
	switch {
	case len(report.Changes) == 0:
		words = fmt.Sprintf("Nothing was changed: the inventory is what it was at revision %d.", row.Number)
	case report.Revision != nil:
		words += fmt.Sprintf(" Agents get it as revision %d: below you see it arrive.", *report.Revision)
	default:
		words += " " + describeSetBackWaiting(s, nil)
	}
	return v.goTo(revisionsPath(s.ID), words)
}

func (d *dashboard) setBackOf(v *visit) (s store.Site, row store.Revision, err error) {
	if s, err = d.siteOf(v); err == nil {
		row, err = d.revisionOf(v, s)
	}
	return s, row, err
}

func (d *dashboard) showSetBack(v *visit, status int, s store.Site, row store.Revision, changed bool) error {
	ctx := v.Request.Context()
	view := setBackView{
		SiteID: s.ID, Number: row.Number, At: row.CreatedAt.UTC().Format(machineTime), Age: ago(max(0, v.Now.Sub(row.CreatedAt))), Changed: changed,
		Command: fmt.Sprintf("sudo opensource-manager revisions restore %d %d --dry-run", s.ID, row.Number),
		Form:    &form{Cancel: revisionsPath(s.ID)},
	}
	report, err := manifest.SetBack(ctx, d.store, s.ID, row.Number, manifest.SetBackOptions{DryRun: true})
	var refused *manifest.RefusedError
	switch {
	case errors.As(err, &refused):
		view.Reasons = refused.Reasons
	case err != nil:
		return err
	default:
		if err := d.describeSetBack(ctx, v, &view, s, row, report); err != nil {
			return err
		}
	}
	title := fmt.Sprintf("Set the inventory back to revision %d?", row.Number)
	p := v.page(title, "/sites", belowRevisions(s)...)
	return v.show(status, p, setBackPage(p, view))
}

func (d *dashboard) describeSetBack(ctx context.Context, v *visit, view *setBackView, s store.Site, row store.Revision, report *manifest.SetBackReport) error {
	view.Left, view.Form.Version, view.Form.Submit = report.Left, report.ETag, "Set the inventory back"
	view.Summary = countSetBack(report.Changes)
	view.More = max(0, len(report.Changes)-maxListed)
	for _, c := range report.Changes[:len(report.Changes)-view.More] {
		view.Changes = append(view.Changes, describeSetBackChange(c))
	}
	served, current, err := d.snapshots.Served(ctx, s.ID)
	if err != nil {
		return err
	}
	view.Publishing = "Agents get the outcome with their next check-in, as a new revision."
	if report.Held {
		view.Publishing = describeSetBackWaiting(s, current.Pin)
	}
	to, err := d.snapshots.Revision(ctx, s.ID, row.Number)
	if err != nil {
		return err
	}
	to.Snapshot.RemovalsConfirmed, served.Snapshot.RemovalsConfirmed = false, false // that was a word for another day
	if view.Diff, err = d.compare(ctx, s, served, to); err != nil {
		return err
	}
	view.Diff.Changes, view.Diff.More = nil, 0 // the records are listed as the inventory has them
	view.Diff.Agents, err = d.agentsOf(ctx, s, v.Now)
	return err
}

// describeSetBackWaiting says what agents wait for.
func describeSetBackWaiting(s store.Site, pin *store.Pin) string {
	switch {
	case pin != nil:
		return fmt.Sprintf("The site is pinned to revision %d: agents get the outcome when it is unpinned.", pin.Revision)
	case s.Publishing == inventory.PublishManual:
		return "The site is published by hand: agents get the outcome when you publish it."
	}
	return "The site is pinned: agents get the outcome when it is unpinned."
}

var setBackWords = map[manifest.Action]struct{ Word, Class string }{
	manifest.Create: {"comes back", good}, manifest.Update: {"changed", warn}, manifest.Delete: {"deleted", bad},
}

// byID are the fields that the API names by an id, and manifests by a name.
var byID = map[string]string{"node": "nodeId", "externalDomain": "externalDomainId", "defaultSite": "defaultSiteId", "container": "containerId"}

// serviceNouns are what services are called, by the first word of their names in
// manifests.
var serviceNouns = map[string]string{"http": "HTTP service", "transport": "TCP/UDP service", "dns": "SRV record"}

func describeSetBackChange(c manifest.Change) setBackChange {
	resource := map[string]string{"external domain": "external_domain"}[c.Kind]
	resource = cmp.Or(resource, c.Kind)
	view := setBackChange{Note: c.Note}
	noun, name := resourceNames[resource], c.Name
	if kind, rest, _ := strings.Cut(name, " "); c.Kind == "service" {
		noun, name = serviceNouns[kind], rest
	}
	view.Title = strings.ToUpper(noun[:1]) + noun[1:] + " " + written(name)
	if c.Container != "" {
		view.Title += " of container " + c.Container
	}
	view.Action, view.Class = setBackWords[c.Action].Word, setBackWords[c.Action].Class
	for _, f := range c.Fields {
		change := changedField{Label: labelIn(resource, cmp.Or(byID[f.Field], f.Field))}
		if byID[f.Field] != "" {
			change.From, change.To = shownValue(f.Old), shownValue(f.New)
		} else {
			change.From, change.To = setBackValue(resource, f.Field, f.Old), setBackValue(resource, f.Field, f.New)
		}
		view.Fields = append(view.Fields, change)
	}
	return view
}

// setBackValue is "" for what is not set.
func setBackValue(resource, name string, value any) string {
	if value == nil {
		return ""
	}
	return valueIn(resource, name, value)
}

// countSetBack counts what becomes of records; "" if nothing does.
func countSetBack(changes []manifest.Change) string {
	counts := map[manifest.Action]int{}
	for _, c := range changes {
		counts[c.Action]++
	}
	var words []string
	for _, of := range []struct {
		action    manifest.Action
		one, many string
	}{{manifest.Create, "comes back", "come back"}, {manifest.Update, "is changed", "are changed"}, {manifest.Delete, "is deleted", "are deleted"}} {
		if n := counts[of.action]; n > 0 {
			verb := of.many
			if n == 1 {
				verb = of.one
			}
			words = append(words, prose.Counted(n, "record")+" "+verb)
		}
	}
	return strings.Join(words, ", ")
}
