package dashboard

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

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

// actorNames are the same, of one of them.
var actorNames = map[store.ActorKind]string{
	store.ActorKey: "API key", store.ActorCommand: "command line", store.ActorAgent: "agent", store.ActorSystem: "the manager itself", store.ActorUnknown: "unknown",
}

// actionWords are the actions whose names say too little.
var actionWords = map[store.Action]string{
	store.ActionCreate: "created", store.ActionUpdate: "changed", store.ActionDelete: "deleted", store.ActionSignIn: "signed in",
	store.ActionSignInFailed: "could not sign in", store.ActionSignOut: "signed out", store.ActionKeyCreated: "key created", store.ActionKeyRevoked: "key revoked",
	store.ActionConfirmRemovals: "removals confirmed", store.ActionPin: "pinned", store.ActionUnpin: "unpinned", store.ActionPublish: "published", store.ActionRestore: "restored",
}

func actionName(action store.Action) string {
	if words, ok := actionWords[action]; ok {
		return words
	}
	return spaced(string(action))
}

// recordPages are where the records of a kind are shown, by id.
var recordPages = map[string]func(int64) string{
	"site": sitePath, "node": nodePath, "container": containerPath, "service": servicePath, "volume": volumePath,
	"external_domain": domainPath, "agent": agentPath, "api_key": keyPath,
}

// spaced is a name of the API in words.
func spaced(name string) string { return strings.ReplaceAll(name, "_", " ") }

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
	l := v.listing("Audit log, the newest first", column{"When", "at"}, column{"Who", ""}, column{"What", ""}, column{"Changes", ""}, column{"Site", ""}, column{"Request", ""})
	var actions, resources []option
	for _, action := range store.Actions() {
		actions = append(actions, option{string(action), actionName(action)})
	}
	for _, resource := range store.Resources() {
		resources = append(resources, option{resource, spaced(resource)})
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
		names, err := d.siteNames(v)
		if err != nil {
			return err
		}
		for _, e := range entries {
			l.Rows = append(l.Rows, row{fmt.Sprintf("entry-%d", e.ID), v.auditCells(e, names)})
		}
	}
	p := v.page("Audit log", "/audit")
	p.Topics, p.Every = []string{"sites"}, auditEvery
	return v.show(http.StatusOK, p, listPage(p, l))
}

func (v *visit) auditCells(e store.AuditEntry, sites map[int64]string) []cell {
	who := cell{Text: e.Actor.Name, Note: actorNames[e.Actor.Kind]}
	if e.Actor.Address != "" {
		who.Note = strings.TrimSpace(who.Note + " from " + e.Actor.Address)
	}
	if who.Text == "" {
		who.Text = "unknown"
	}
	what := cell{Text: strings.TrimSpace(fmt.Sprintf("%s: %s %s", actionName(e.Action), spaced(e.Resource), quotedName(e.Name)))}
	if e.Resource == "session" {
		what.Text = strings.TrimSpace(actionName(e.Action) + " " + quotedName(e.Name))
	}
	if page := recordPages[e.Resource]; page != nil && e.ResourceID > 0 && e.Action != store.ActionDelete {
		what.Link = page(e.ResourceID)
	}
	if e.Times > 1 {
		what.Note = fmt.Sprintf("%d times within a minute", e.Times)
	}
	at := v.when(&e.At)
	at.Note = e.At.UTC().Format(humanTime)
	return []cell{at, who, what, {Lines: changesOf(e)}, siteWithin(e.SiteID, sites), requestCell(e.Actor.RequestID)}
}

func quotedName(name string) string {
	if name == "" {
		return ""
	}
	return "“" + name + "”"
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

// changesOf are the values that changed, as people read them: field: old → new.
func changesOf(e store.AuditEntry) []string {
	names := map[string]bool{}
	for name := range e.Before {
		names[name] = true
	}
	for name := range e.After {
		names[name] = true
	}
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		was, before := e.Before[name]
		became, after := e.After[name]
		switch {
		case before && after:
			lines = append(lines, fmt.Sprintf("%s: %s → %s", labelOf(name), valueOf(was), valueOf(became)))
		case before:
			lines = append(lines, fmt.Sprintf("%s: was %s", labelOf(name), valueOf(was)))
		default:
			lines = append(lines, fmt.Sprintf("%s: %s", labelOf(name), valueOf(became)))
		}
	}
	return lines
}

// labelOf writes the API's name of a field as words: ipv4Address is "ipv4 address".
func labelOf(name string) string {
	var words strings.Builder
	for _, r := range name {
		if unicode.IsUpper(r) {
			words.WriteRune(' ')
		}
		words.WriteRune(unicode.ToLower(r))
	}
	return words.String()
}

// longValue is how much of a value is shown.
const longValue = 300

func valueOf(value any) string {
	switch value := value.(type) {
	case nil:
		return "not set"
	case string:
		if value == "" {
			return "not set"
		}
		if utf8.RuneCountInString(value) > longValue {
			return string([]rune(value)[:longValue]) + "…"
		}
		return value
	case bool:
		if value {
			return "yes"
		}
		return "no"
	}
	content, _ := json.Marshal(value) // was JSON
	if string(content) == "null" || string(content) == "[]" {
		return "not set"
	}
	return string(content)
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
