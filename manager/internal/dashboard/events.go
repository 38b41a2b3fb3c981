package dashboard

import (
	"fmt"
	"net/http"

	"opensource.internal/manager/internal/events"
	"opensource.internal/manager/internal/store"
)

// listEvents is what happened to all agents.
func (d *dashboard) listEvents(v *visit) error {
	l := v.listing("Events, the newest first", column{"When", "at"}, column{"Agent", ""}, column{"Site", ""}, column{"What", ""}, column{"Told", ""})
	var kinds []option
	for _, kind := range events.Kinds() {
		kinds = append(kinds, option{string(kind), kindWords(kind)})
	}
	var filter store.EventFilter
	site, err := d.siteFilter(v, &filter.SiteID)
	if err != nil {
		return err
	}
	host := (&field{Name: "host", Label: "Host", Kind: textInput}).of(v)
	kind := (&field{Name: "kind", Label: "What", Kind: choiceInput, Options: anyOf("All", kinds...)}).of(v)
	severity := (&field{Name: "severity", Label: "Severity", Kind: choiceInput, Options: anyOf("All", option{"error", "Errors"}, option{"warning", "Warnings"}, option{"info", "The rest"})}).of(v)
	l.Filters = []*field{site, host, kind, severity, v.past("since", "Since", &filter.Since).hint("Such as 2026-01-31, or 24h"), v.past("until", "Until", &filter.Until)}
	filter.Hostname, filter.Kind, filter.Severity = host.Value, events.Kind(kind.Value), events.Severity(severity.Value)
	l.Empty = "Nothing has happened yet. What agents tell, and when they fall silent, is listed here."
	if !l.faulty() {
		if err := d.readEvents(v, l, filter); err != nil && !l.refused(err, "agent", "host") {
			return err
		}
	}
	p := v.page("Events", "/events")
	p.Topics = []string{"events"}
	return v.show(http.StatusOK, p, listPage(p, l))
}

func (d *dashboard) readEvents(v *visit, l *listing, filter store.EventFilter) error {
	rows, total, err := d.store.ListEvents(v.Request.Context(), filter, l.options())
	if err != nil {
		return err
	}
	l.Total = total
	sites, err := d.siteNames(v)
	if err != nil {
		return err
	}
	var ids []int64
	for _, e := range rows {
		ids = append(ids, e.AgentID)
	}
	agents, err := d.store.AgentsByID(v.Request.Context(), ids)
	if err != nil {
		return err
	}
	there := map[int64]bool{}
	for _, a := range agents {
		there[a.ID] = true
	}
	for i, shown := range describeEvents(rows, v.Now) {
		e := rows[i]
		agent := cell{Text: e.Hostname, Link: agentPath(e.AgentID)}
		if !there[e.AgentID] {
			agent = cell{Text: e.Hostname, Note: "no longer listed"}
		}
		what := cell{Text: shown.Kind, Class: shown.Class}
		if what.Class == "" {
			what.Class = "neutral"
		}
		l.Rows = append(l.Rows, row{fmt.Sprintf("event-%d", e.ID), []cell{v.when(&e.At), agent, siteWithin(e.SiteID, sites), what, {Text: e.Summary}}})
	}
	return nil
}
