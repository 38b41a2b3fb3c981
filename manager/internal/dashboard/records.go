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
	"unicode/utf8"

	"github.com/a-h/templ"

	"opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/store"
)

// What the pages of all records of the inventory share: lists, facts, and what
// happens to a form.

// cell is what is said of a record in a table or beside a name.
type cell struct {
	Text  string
	Link  string    // below the prefix, if there is a page about it
	Class string    // if it is a badge: good, warn, bad, or "neutral"
	Copy  string    // the id of the text, if it has a button that copies it
	Note  string    // muted, below
	Parts []crumb   // instead of Text: words, some of which lead somewhere
	Lines [][]crumb // the same, each below the one before
	// At is the moment that Text tells, and Passed whether it was: its age goes on.
	At     time.Time
	Passed bool
}

// nothing reports whether there is nothing to be said.
func (c cell) nothing() bool { return c.Text == "" && c.Note == "" && len(c.Parts)+len(c.Lines) == 0 }

// when is a moment as people read it, empty if there is none.
func (v *visit) when(at *time.Time) cell {
	if at == nil {
		return cell{}
	}
	c := cell{At: at.UTC(), Passed: !at.After(v.Now)}
	if c.Text = "in " + span(at.Sub(v.Now)); c.Passed {
		c.Text = ago(v.Now.Sub(*at))
	}
	return c
}

// detail is a fact about a record.
type detail struct {
	Name string
	cell
	Wide bool // may be long: has a line of its own
}

// details are the fields of a record as facts.
func details(fields []*field) []detail {
	var all []detail
	for _, f := range fields {
		all = append(all, detail{Name: f.Label, cell: cell{Text: f.words()}})
	}
	return all
}

// words are the value as people read it, empty if it is not set.
func (f *field) words() string {
	if f.Kind == choiceInput || f.Kind == checkInput || f.Kind == severalInput {
		return f.shown(f.Value)
	}
	return f.Value
}

// pageSize is how many rows of a list are on a page.
const pageSize = 50

// listing is one page of a list of records.
type listing struct {
	Title   string // of the table, for who cannot see it
	Columns []column
	Rows    []row
	Total   int64
	Hint    string   // what can be searched for
	Empty   string   // what is said if there is nothing
	New     crumb    // the button for another one, if the visitor may make one
	Filters []*field // what else to choose by
	Also    crumb    // leads to what is not listed unless asked for; its path is an address of the list

	Search, Sort string
	Page         int
}

// column is one of a list. Sort is what the store sorts it by, if it can.
type column struct{ Title, Sort string }

// row is one record of a list. The first cell names it.
type row struct {
	ID    string
	Cells []cell
}

// listing is the page of a list that the address asks for.
func (v *visit) listing(title string, columns ...column) *listing {
	l := &listing{Title: title, Columns: columns, Search: searchable(v.Query("q"))}
	l.Page, _ = strconv.Atoi(v.Query("page")) // 0 if it is none
	l.Page = min(max(l.Page, 1), 1_000_000)
	for _, c := range columns {
		if sort := v.Query("sort"); c.Sort != "" && strings.TrimPrefix(sort, "-") == c.Sort {
			l.Sort = sort
		}
	}
	return l
}

// searchable is a text without what no database can look for.
func searchable(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, ""), "\x00", "")
}

func (l *listing) options() store.ListOptions {
	return store.ListOptions{Limit: pageSize, Offset: (l.Page - 1) * pageSize, Search: l.Search, Sort: l.Sort}
}

// chosen reports whether the list shows only some of what there is.
func (l *listing) chosen() bool { return l.Search != "" || l.filtered() }

// filtered reports whether something but the search chooses what the list shows.
func (l *listing) filtered() bool {
	return slices.ContainsFunc(l.Filters, func(f *field) bool { return f.Value != "" })
}

// address is that of the list, sorted otherwise, or of another page of it.
func (l *listing) address(sort string, page int) templ.SafeURL {
	query := url.Values{}
	if l.Search != "" {
		query.Set("q", l.Search)
	}
	for _, f := range l.Filters {
		if f.Value != "" {
			query.Set(f.Name, f.Value)
		}
	}
	if sort != "" {
		query.Set("sort", sort)
	}
	if page > 1 {
		query.Set("page", strconv.Itoa(page))
	}
	return templ.SafeURL("?" + query.Encode())
}

// with is the address of the first page of the list by another choice of a filter.
func (l *listing) with(f *field, value string) templ.SafeURL {
	chosen := f.Value
	defer func() { f.Value = chosen }()
	f.Value = value
	return l.address(l.Sort, 1)
}

// sorted is how a column is sorted: "ascending", "descending" or "none".
func (l *listing) sorted(c column) string {
	switch l.Sort {
	case c.Sort:
		return "ascending"
	case "-" + c.Sort:
		return "descending"
	}
	return "none"
}

// turned is how a column is to be sorted by a click on it.
func (l *listing) turned(c column) string {
	if l.Sort == c.Sort {
		return "-" + c.Sort
	}
	return c.Sort
}

func (l *listing) pages() int { return int((l.Total + pageSize - 1) / pageSize) }

// shown says which rows are on the page.
func (l *listing) shown() string {
	first := int64(l.Page-1)*pageSize + 1
	if first > l.Total {
		return fmt.Sprintf("There is no page %d of this list.", l.Page)
	}
	return fmt.Sprintf("%d to %d of %d", first, min(first+pageSize-1, l.Total), l.Total)
}

// done is what a form has done.
type done struct {
	Path string // where one sees it
	Text string
	Site int64 // the site whose configuration has changed, 0 if there is none
}

// fill shows a form, and has what was typed into it saved.
func (v *visit) fill(p page, f *form, save func(typed url.Values) (done, error)) error {
	if v.Request.Method != http.MethodPost {
		return v.show(http.StatusOK, p, recordForm(p, f))
	}
	typed, err := v.typed()
	if err != nil {
		return err
	}
	result, err := save(typed)
	if status := f.refused(err); status != 0 {
		return v.show(status, p, recordForm(p, f))
	}
	if err != nil {
		return err
	}
	return v.finish(result)
}

// confirm names what goes with a record, and has it deleted once that was seen.
func (v *visit) confirm(p page, view vanishing, remove func() (done, error)) error {
	if v.Request.Method != http.MethodPost {
		view.Version = version(view.Groups)
		return v.show(http.StatusOK, p, deletion(p, view))
	}
	typed, err := v.typed()
	if err != nil {
		return err
	}
	if !view.seen(typed) {
		return v.show(http.StatusConflict, p, deletion(p, view))
	}
	result, err := remove()
	if err != nil {
		return err
	}
	return v.finish(result)
}

// finish sends the browser on, and says there what was done.
func (v *visit) finish(result done) error {
	f := flash{Text: result.Text, Site: result.Site}
	if f.Site != 0 {
		waits, any, err := v.d.waits(v.Request.Context(), f.Site)
		if err != nil || waits && !any {
			f.Site = 0 // what was done is done, it only leads nowhere
		}
		f.Waits = waits
	}
	v.setFlash(f)
	v.d.goTo(v.Context, result.Path)
	return nil
}

// waits reports whether agents of a site do not get what is changed at once, and
// whether there is any such change.
func (d *dashboard) waits(ctx context.Context, siteID int64) (waits, any bool, err error) {
	site, err := d.store.GetSite(ctx, siteID)
	if err != nil {
		return false, false, err
	}
	pin, err := d.store.GetPin(ctx, siteID)
	if err != nil || pin == nil && site.Publishing != inventory.PublishManual {
		return false, false, err
	}
	changes, err := d.snapshots.Waiting(ctx, siteID)
	return true, changes > 0, err
}

// then is where a form leads: to a page that has sent the visitor to it first,
// because it needs what is made there.
func (v *visit) then(path string) string {
	if wanted := v.Query("then"); wanted != "" && next(wanted) == wanted {
		return wanted
	}
	return path
}

// withThen is the address of a form that leads back to where it was needed.
func withThen(path, then string) string {
	return path + "?" + url.Values{"then": {then}}.Encode()
}

// saved says what has become of the fields of a record.
func saved(path, what string, siteID int64, before, after []*field) done {
	var changes []string
	for i, now := range after {
		if was := before[i]; was.Value != now.Value {
			changes = append(changes, fmt.Sprintf("%s: %s (was: %s)", now.Label, brief(now.shown(now.Value)), brief(was.shown(was.Value))))
		}
	}
	if len(changes) == 0 {
		return done{Path: path, Text: fmt.Sprintf("Nothing was changed of the %s.", what)}
	}
	return done{path, fmt.Sprintf("The %s was saved. %s.", what, strings.Join(changes, "; ")), siteID}
}

// brief cuts a text that would be too long to be read in passing.
func brief(text string) string {
	const most = 80
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-1]) + "…"
}
