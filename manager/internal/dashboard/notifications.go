package dashboard

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"opensource.internal/manager/internal/events"
	"opensource.internal/manager/internal/notify"
	"opensource.internal/manager/internal/prose"
	"opensource.internal/manager/internal/store"
)

var notificationsCrumb = crumb{"Notifications", "/notifications"}

func targetPath(id int64) string { return fmt.Sprintf("/notifications/targets/%d", id) }

// notificationsEvery is how often pages about notifications are fetched: of
// deliveries no event tells.
const notificationsEvery = 10 * time.Second

// wantedTarget is a target as people describe it. Its URL is never shown again.
type wantedTarget struct {
	Name, URL, Severity string
	Kinds, Sites        []string
	Enabled             bool
}

// describeTarget is a target without its URL.
func describeTarget(t store.NotificationTarget) wantedTarget {
	w := wantedTarget{Name: t.Name, Severity: string(t.Severity), Kinds: slices.Clone(t.Kinds), Enabled: t.Enabled}
	for _, id := range t.SiteIDs {
		w.Sites = append(w.Sites, strconv.FormatInt(id, 10))
	}
	return w
}

// apply makes a target what was asked for. A URL that was not typed stays.
func (w wantedTarget) apply(t *store.NotificationTarget) error {
	t.Name, t.Severity, t.Kinds, t.SiteIDs, t.Enabled = w.Name, events.Severity(w.Severity), w.Kinds, nil, w.Enabled
	if w.URL != "" {
		t.URL = w.URL
	}
	for _, site := range w.Sites {
		id, err := strconv.ParseInt(site, 10, 64)
		if err != nil {
			return &store.InvalidError{Fields: map[string]string{"siteIds": "choose some of the list"}}
		}
		t.SiteIDs = append(t.SiteIDs, id)
	}
	return notify.Check(t)
}

func targetFields(sites []option) func(*wantedTarget) []*field {
	var kinds []option
	for _, k := range notify.Tellings() {
		kinds = append(kinds, option{string(k.Kind), k.Words})
	}
	return func(w *wantedTarget) []*field {
		return []*field{
			text("name", "Name", &w.Name).required().hint("Who it is, such as on call"),
			text("url", "URL", &w.URL).hint("Service, server and secret, such as ntfy://ntfy.example.com/TOPIC or smtp://USER:PASSWORD@mail.example.com:587/?from=a@example.com&to=b@example.com. It is never shown again."),
			choice("severity", "Is told of", &w.Severity, option{string(events.Warning), "Warnings and errors"}, option{string(events.Error), "Errors only"}),
			several("kinds", "Kinds", &w.Kinds, kinds...).hint("If none is chosen: all"),
			several("siteIds", "Sites", &w.Sites, sites...).hint("If none is chosen: all, also those to come"),
			check("enabled", "Enabled", &w.Enabled),
		}
	}
}

// notificationsView is who is told, and of what nobody is.
type notificationsView struct {
	Targets  *listing
	Silences []silenceRow
	CanWrite bool
}

type silenceRow struct {
	ID     int64
	Site   cell
	Until  cell
	Reason string
	By     string
}

func (d *dashboard) notifications(v *visit) error {
	ctx := v.Request.Context()
	sites, err := d.siteNames(v)
	if err != nil {
		return err
	}
	view := notificationsView{CanWrite: v.canWrite()}
	if view.Targets, err = d.listTargets(v, sites); err != nil {
		return err
	}
	silences, _, err := d.store.ListNotificationSilences(ctx, store.NotificationSilenceFilter{}, store.ListOptions{Limit: store.All, Sort: "until"})
	if err != nil {
		return err
	}
	for _, s := range silences {
		view.Silences = append(view.Silences, silenceRow{s.ID, cell{Text: sites[s.SiteID], Link: sitePath(s.SiteID)}, v.when(&s.Until), s.Reason, s.CreatedBy})
	}
	p := v.page("Notifications", "/notifications")
	p.Topics, p.Every = []string{"sites"}, notificationsEvery
	return v.show(http.StatusOK, p, notificationsPage(p, view))
}

func (d *dashboard) listTargets(v *visit, sites map[int64]string) (*listing, error) {
	l := v.listing("Who is told", column{"Name", "name"}, column{"Service", ""}, column{"Is told of", ""}, column{"Sites", ""}, column{"State", ""})
	targets, total, err := d.store.ListNotificationTargets(v.Request.Context(), store.NotificationTargetFilter{}, l.options())
	if err != nil {
		return nil, err
	}
	l.Total, l.Empty = total, "Nobody is told yet when something is wrong with an agent. It can be by mail, a webhook, chat or push."
	if v.canWrite() {
		l.New = crumb{"New target", "/notifications/targets/new"}
	}
	for _, t := range targets {
		l.Rows = append(l.Rows, row{fmt.Sprintf("target-%d", t.ID), []cell{
			{Text: t.Name, Link: targetPath(t.ID)}, {Text: notifiedBy(t)}, {Text: toldOf(t)}, {Text: toldSites(t, sites)}, v.targetState(t),
		}})
	}
	return l, nil
}

// notifiedBy is the service of a target's URL, as people know it.
func notifiedBy(t store.NotificationTarget) string {
	name := notify.ServiceName(t.URL)
	if known := map[string]string{"smtp": "mail", "generic": "webhook"}[name]; known != "" {
		return known
	}
	return name
}

// toldOf says in words what a target is told.
func toldOf(t store.NotificationTarget) string {
	words := "everything"
	if len(t.Kinds) > 0 {
		var kinds []string
		for _, k := range notify.Tellings() {
			if slices.Contains(t.Kinds, string(k.Kind)) {
				kinds = append(kinds, strings.ToLower(k.Words[:1])+k.Words[1:])
			}
		}
		words = prose.Some(kinds)
	}
	if t.Severity == events.Error {
		words += " (errors only)"
	}
	return words
}

func toldSites(t store.NotificationTarget, sites map[int64]string) string {
	if len(t.SiteIDs) == 0 {
		return "all"
	}
	var names []string
	for _, id := range t.SiteIDs {
		name := sites[id]
		if name == "" {
			name = fmt.Sprintf("%d (deleted)", id)
		}
		names = append(names, name)
	}
	return prose.Some(names)
}

// targetState says how the latest delivery went.
func (v *visit) targetState(t store.NotificationTarget) cell {
	switch {
	case !t.Enabled:
		return cell{Text: "disabled", Class: "neutral"}
	case t.Failures > 0 && t.FailedAt != nil:
		return cell{Text: "failing", Class: bad, Note: fmt.Sprintf("%s, last %s: %s", prose.Counted(t.Failures, "time"), ago(max(0, v.Now.Sub(*t.FailedAt))), t.LastError)}
	case t.SentAt != nil:
		return cell{Text: "works", Class: good, Note: "last delivery " + ago(max(0, v.Now.Sub(*t.SentAt)))}
	}
	return cell{Text: "nothing sent yet", Class: "neutral"}
}

// targetView is all about one target, but its URL.
type targetView struct {
	Path     string
	Details  []detail
	Fault    string // why a test has failed just now
	Waiting  []telling
	Told     []telling
	Enabled  bool
	CanWrite bool
}

// telling is something that a target was told of, or is about to be.
type telling struct {
	Text string
	Site string
	At   cell
	Over bool
}

func (d *dashboard) target(v *visit) error {
	t, err := d.targetOf(v)
	if err != nil {
		return err
	}
	p := v.page(t.Name, "/notifications", notificationsCrumb)
	p.Topics, p.Every = []string{"events"}, notificationsEvery
	return d.showTarget(v, http.StatusOK, p, t, "")
}

func (d *dashboard) showTarget(v *visit, status int, p page, t store.NotificationTarget, fault string) error {
	sites, err := d.siteNames(v)
	if err != nil {
		return err
	}
	sent := v.when(t.SentAt)
	if t.SentAt == nil {
		sent = cell{Text: "never"}
	}
	set := v.when(&t.URLSetAt)
	view := targetView{Path: targetPath(t.ID), Fault: fault, Enabled: t.Enabled, CanWrite: v.canWrite(), Details: []detail{
		{Name: "State", cell: v.targetState(t), Wide: true},
		{Name: "Service", cell: cell{Text: notifiedBy(t)}},
		{Name: "Last delivery", cell: sent},
		{Name: "URL set", cell: set},
		{Name: "Is told of", cell: cell{Text: toldOf(t)}},
		{Name: "Sites", cell: cell{Text: toldSites(t, sites)}},
	}}
	if view.Waiting, view.Told, err = d.tellings(v, t); err != nil {
		return err
	}
	return v.show(status, p, targetPage(p, view))
}

// tellings are what a target is still to be told, and those it was told of which
// go on.
func (d *dashboard) tellings(v *visit, t store.NotificationTarget) (waiting, told []telling, err error) {
	if t.Enabled {
		due, err := d.store.DueEpisodes(v.Request.Context(), t, time.Time{})
		if err != nil {
			return nil, nil, err
		}
		for _, e := range due {
			if !e.Silenced {
				waiting = append(waiting, v.telling(e))
			}
		}
	}
	known, err := d.store.ToldEpisodes(v.Request.Context(), t.ID)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range known {
		told = append(told, v.telling(e))
	}
	return waiting, told, nil
}

func (v *visit) telling(e store.Due) telling {
	at := &e.OpenedAt
	if e.ClosedAt != nil {
		at = e.ClosedAt
	}
	words := e.Hostname + ": " + e.Summary
	if e.ClosedAt != nil {
		words += ": over"
	}
	return telling{Text: words, Site: e.SiteName, At: v.when(at), Over: e.ClosedAt != nil}
}

func (d *dashboard) newTarget(v *visit) error {
	sites, err := d.siteOptions(v)
	if err != nil {
		return err
	}
	wanted := wantedTarget{Severity: string(events.Warning), Enabled: true}
	f := &form{Fields: targetFields(sites[1:])(&wanted), Submit: "Create the target", Cancel: "/notifications"}
	f.Fields[1].required()
	return v.fill(v.page("New target", "/notifications", notificationsCrumb), f, func(typed url.Values) (done, error) {
		var target store.NotificationTarget
		err := f.read(typed)
		if err == nil {
			err = wanted.apply(&target)
		}
		if err != nil {
			return done{}, err
		}
		row, err := d.store.CreateNotificationTarget(v.Request.Context(), target)
		return done{Path: targetPath(row.ID), Text: "The target was created. Send a test message to see whether it works."}, err
	})
}

func (d *dashboard) editTarget(v *visit) error {
	t, err := d.targetOf(v)
	if err != nil {
		return err
	}
	sites, err := d.siteOptions(v)
	if err != nil {
		return err
	}
	fields := func(w *wantedTarget) []*field {
		all := targetFields(sites[1:])(w)
		all[1].Hint = "If empty, the present one stays: it is never shown. " + all[1].Hint
		return all
	}
	shown := describeTarget(t)
	before := fields(&shown)
	f := &form{Fields: fields(&shown), Version: version(shown), Submit: "Save", Cancel: targetPath(t.ID)}
	return v.fill(v.page("Edit the target", "/notifications", notificationsCrumb, crumb{t.Name, targetPath(t.ID)}), f, func(typed url.Values) (done, error) {
		row, err := d.store.UpdateNotificationTarget(v.Request.Context(), t.ID, func(row *store.NotificationTarget) error {
			wanted := describeTarget(*row)
			if err := changing(f, typed, fields)(&wanted); err != nil {
				return err
			}
			return wanted.apply(row)
		})
		if !row.URLSetAt.Equal(t.URLSetAt) {
			return done{Path: targetPath(t.ID), Text: "The target was saved with its new URL. Send a test message to see whether it works."}, err
		}
		now := describeTarget(row)
		return saved(targetPath(t.ID), "target", 0, before, fields(&now)), err
	})
}

func (d *dashboard) deleteTarget(v *visit) error {
	t, err := d.targetOf(v)
	if err != nil {
		return err
	}
	view := vanishing{What: fmt.Sprintf("target %q", t.Name), Cancel: targetPath(t.ID), Keeps: "It is told nothing any more, and its URL is forgotten."}
	return v.confirm(v.page("Delete the "+view.What+"?", "/notifications", notificationsCrumb, crumb{t.Name, targetPath(t.ID)}), view, func() (done, error) {
		return done{Path: "/notifications", Text: fmt.Sprintf("The target %q was deleted.", t.Name)}, d.store.DeleteNotificationTarget(v.Request.Context(), t.ID)
	})
}

// testPatience bounds how long somebody waits for a test.
const testPatience = 9 * time.Second

// testTarget sends a message now. That a target does not work is what the page
// says.
func (d *dashboard) testTarget(v *visit) error {
	t, err := d.targetOf(v)
	if err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(v.Request.Context(), testPatience)
	defer cancel()
	reason, err := d.notifier.Test(bounded, t)
	if err != nil {
		return err
	}
	if reason == "" {
		return v.goTo(targetPath(t.ID), "The test message was delivered.")
	}
	if t, err = d.targetOf(v); err != nil {
		return err
	}
	return d.showTarget(v, http.StatusOK, v.page(t.Name, "/notifications", notificationsCrumb), t, reason)
}

// wantedSilence is a silence as people describe it.
type wantedSilence struct {
	SiteID int64
	Until  *time.Time
	Reason string
}

func (d *dashboard) newSilence(v *visit) error {
	sites, err := d.siteOptions(v)
	if err != nil {
		return err
	}
	wanted := wantedSilence{}
	wanted.SiteID, _ = strconv.ParseInt(v.Query("site"), 10, 64) // none if it is no number
	sites[0].Label = "Choose a site"
	f := &form{Submit: "Silence the site", Cancel: v.then("/notifications"), Fields: []*field{
		parent("siteId", "Site", &wanted.SiteID, sites...).required(),
		ending("until", "Until", &wanted.Until).required().hint("A time span such as 90m or 2h, or a time such as 2027-01-31T06:00:00Z"),
		text("reason", "Reason", &wanted.Reason).hint("For the others who look here, such as moving house"),
	}}
	return v.fill(v.page("Silence a site", "/notifications", notificationsCrumb), f, func(typed url.Values) (done, error) {
		err := f.read(typed)
		switch {
		case err != nil:
			return done{}, err
		case wanted.SiteID == 0:
			return done{}, &store.InvalidError{Fields: map[string]string{"siteId": "choose a site"}}
		case wanted.Until == nil:
			return done{}, &store.InvalidError{Fields: map[string]string{"until": "is required"}}
		}
		row, err := d.store.SilenceSite(v.Request.Context(), store.NotificationSilence{SiteID: wanted.SiteID, Until: *wanted.Until, Reason: wanted.Reason, CreatedBy: v.Who.Name})
		return done{Path: v.then("/notifications"), Text: "Nobody is told of the site until " + prose.Minute(row.Until) + "."}, err
	})
}

func (d *dashboard) endSilence(v *visit) error {
	id, err := v.id()
	if err != nil {
		return err
	}
	if err := d.store.EndNotificationSilence(v.Request.Context(), id); err != nil {
		return err
	}
	return v.goTo("/notifications", "The silence was ended: what goes on is told now.")
}

// targetOf is the target of the address.
func (d *dashboard) targetOf(v *visit) (store.NotificationTarget, error) {
	id, err := v.id()
	if err != nil {
		return store.NotificationTarget{}, err
	}
	return d.store.GetNotificationTarget(v.Request.Context(), id)
}
