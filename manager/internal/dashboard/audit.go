package dashboard

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/store"
)

// auditEvery is how often the audit log is fetched: no event tells of all of it.
const auditEvery = 30 * time.Second

// actors are the sorts of those who do something.
var actors = []option{
	{string(store.ActorUser), "People"},
	{string(store.ActorKey), "API keys"},
	{string(store.ActorCommand), "The command line"},
	{string(store.ActorAgent), "Agents"},
	{string(store.ActorSystem), "The manager itself"},
	{string(store.ActorUnknown), "Somebody unknown"},
}

// spaced is a name of the API in words.
func spaced(name string) string { return strings.ReplaceAll(name, "_", " ") }

// capital begins a text with a capital letter; A to Z will do for words of ours.
func capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// anyOf are the choices of a filter.
func anyOf(all string, options ...option) []option {
	return append([]option{{"", all}}, options...)
}

// past is a filter by a moment that was.
func (v *visit) past(name, label string, at *time.Time) *field {
	f := &field{Name: name, Label: label, Kind: textInput, Value: searchable(v.Query(name))}
	if f.Value == "" {
		return f
	}
	var err error
	if *at, err = inventory.ParseMoment(strings.TrimSpace(f.Value), func(span time.Duration) time.Time { return v.Now.Add(-span) }); err != nil {
		f.Fault = err.Error()
	}
	return f
}

// siteFilter is a filter by a site.
func (d *dashboard) siteFilter(v *visit, id *int64) (*field, error) {
	options, err := d.siteOptions(v)
	if err != nil {
		return nil, err
	}
	options[0].Label = "All"
	f := (&field{Name: "site", Label: "Site", Kind: choiceInput, Options: options}).of(v)
	*id, _ = strconv.ParseInt(f.Value, 10, 64) // 0 if it is none
	return f, nil
}

// auditLog is who did what, for administrators.
func (d *dashboard) auditLog(v *visit) error {
	l := v.listing("Audit log, the newest first", column{"When", "at"}, column{"Who did what", ""}, column{"Changes", ""}, column{"Site", ""}, column{"Request", ""})
	var actions, resources []option
	for _, action := range store.Actions() {
		actions = append(actions, option{string(action), deeds[action].Choice})
	}
	for _, resource := range store.Resources() {
		resources = append(resources, option{resource, capital(resourceNames[resource])})
	}
	var filter store.AuditFilter
	site, err := d.siteFilter(v, &filter.SiteID)
	if err != nil {
		return err
	}
	who := (&field{Name: "actor", Label: "Name of who did it", Kind: textInput}).of(v)
	kind := (&field{Name: "by", Label: "Done by", Kind: choiceInput, Options: anyOf("All", actors...)}).of(v)
	action := (&field{Name: "action", Label: "Action", Kind: choiceInput, Options: anyOf("All", actions...)}).of(v)
	resource := (&field{Name: "resource", Label: "Kind of record", Kind: choiceInput, Options: anyOf("All", resources...)}).of(v)
	l.Filters = []*field{who, kind, action, resource, site, v.past("since", "Since", &filter.Since).hint("Such as 2026-01-31, or 24h"), v.past("until", "Until", &filter.Until)}
	filter.Actor, filter.ActorKind, filter.Action, filter.Resource = who.Value, store.ActorKind(kind.Value), store.Action(action.Value), resource.Value

	l.Hint = "Also a request’s id, an address, or a value"
	l.Empty = "Nothing was done yet."
	if !l.faulty() {
		entries, total, err := d.store.ListAudit(v.Request.Context(), filter, l.options())
		if err != nil {
			return err
		}
		l.Total = total
		teller, err := d.narrate(v, entries)
		if err != nil {
			return err
		}
		for _, e := range entries {
			l.Rows = append(l.Rows, row{fmt.Sprintf("entry-%d", e.ID), v.auditCells(e, teller)})
		}
	}
	p := v.page("Audit log", "/audit")
	p.Topics, p.Every = []string{"sites"}, auditEvery
	return v.show(http.StatusOK, p, listPage(p, l))
}

func (v *visit) auditCells(e store.AuditEntry, n narrator) []cell {
	at := v.when(&e.At)
	at.Note = e.At.UTC().Format(humanTime)
	what := cell{Parts: n.sentence(e)}
	if e.Actor.Address != "" {
		what.Note = "from " + e.Actor.Address
	}
	if e.Times > 1 {
		what.Note = strings.TrimSpace(fmt.Sprintf("%s, %d times within a minute", what.Note, e.Times))
	}
	return []cell{at, what, {Lines: n.changes(e)}, n.site(e), requestCell(e.Actor.RequestID)}
}

func siteWithin(id int64, sites map[int64]string) cell {
	switch name, there := sites[id]; {
	case id == 0:
		return cell{}
	case there:
		return cell{Text: name, Link: sitePath(id)}
	}
	return cell{Text: fmt.Sprintf("site %d, deleted", id)}
}

func requestCell(id string) cell {
	if id == "" {
		return cell{}
	}
	return cell{Text: id, Link: "/audit?q=" + url.QueryEscape(id)}
}

// faulty reports whether something cannot be chosen by as it is.
func (l *listing) faulty() bool {
	return slices.ContainsFunc(l.Filters, func(f *field) bool { return f.Fault != "" })
}

// refused puts a fault of the filters to the one it is about.
func (l *listing) refused(err error, name, filter string) bool {
	var invalid *store.InvalidError
	if !errors.As(err, &invalid) || invalid.Fields[name] == "" {
		return false
	}
	for _, f := range l.Filters {
		if f.Name == filter {
			f.Fault = invalid.Fields[name]
			return true
		}
	}
	return false
}
