package dashboard

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/prose"
	"opensource.internal/manager/internal/store"
)

const (
	// agentsEvery is how often the list is fetched if nothing happens: the times of
	// check-ins in it move.
	agentsEvery = 10 * time.Second
	// agentsOnPage is how many agents a page of the list has.
	agentsOnPage = 50
	// maxSiteChoice is how many sites can be chosen from. Of more, one is found by
	// the search, or by its own page.
	maxSiteChoice = 100
	// maxNote is how much of a note is in the list, in bytes. The agent's page has
	// all of it.
	maxNote = 160
)

// agentsQuery is what the address of the list says about it.
type agentsQuery struct {
	Search string
	State  string
	Site   int64
	Sort   string
	Group  bool
	Page   int // from 1
}

func agentsQueryOf(v *visit) agentsQuery {
	search := strings.ReplaceAll(strings.ToValidUTF8(v.Query("q"), ""), "\x00", "") // which no database takes
	q := agentsQuery{Search: strings.TrimSpace(search), State: v.Query("state"), Sort: v.Query("sort"), Group: v.Query("group") == "site"}
	q.Site, _ = strconv.ParseInt(v.Query("site"), 10, 64)
	q.Page, _ = strconv.Atoi(v.Query("page"))
	q.Page = min(max(1, q.Page), 1_000_000)
	return q
}

// path is the address of the list.
func (q agentsQuery) path() string {
	values := url.Values{}
	set := func(name, value string, worth bool) {
		if worth {
			values.Set(name, value)
		}
	}
	set("q", q.Search, q.Search != "")
	set("state", q.State, q.State != "")
	set("site", strconv.FormatInt(q.Site, 10), q.Site > 0)
	set("sort", q.Sort, q.Sort != "")
	set("group", "site", q.Group)
	set("page", strconv.Itoa(q.Page), q.Page > 1)
	if len(values) == 0 {
		return "/agents"
	}
	return "/agents?" + values.Encode()
}

// with is the address of the first page of a list that differs.
func (q agentsQuery) with(change func(*agentsQuery)) string {
	q.Page = 1
	change(&q)
	return q.path()
}

func (q agentsQuery) options() store.OverviewOptions {
	return store.OverviewOptions{
		SiteID: q.Site, State: store.AgentState(q.State), Search: q.Search, Sort: q.Sort, BySite: q.Group,
		Limit: agentsOnPage, Offset: (q.Page - 1) * agentsOnPage,
	}
}

// agentsView is the list, in words.
type agentsView struct {
	Query     agentsQuery
	CanWrite  bool
	FirstSite int64 // 0 if there is no site
	NoAgent   bool  // has ever checked in

	Counts  []stateCount
	Sites   []option // to choose from; empty if there are too many
	Columns []sortColumn
	Groups  []agentGroup
	Chosen  string // what the list is about, if not all
	From    int
	To      int
	Total   int64
	Earlier string
	Later   string
}

// stateCount is how many agents are in a state, and the way to them.
type stateCount struct {
	N           int64
	Word, Class string
	Path        string
	Current     bool
}

// sortColumn is a heading that the list can be sorted by, if it has a path.
type sortColumn struct {
	Title, Path, Sorted string
}

// ariaSort says how a column is sorted, for who cannot see it.
func (c sortColumn) ariaSort() string { return cmp.Or(c.Sorted, "none") }

// agentGroup are agents that belong together: those of a site, or all.
type agentGroup struct {
	SiteID int64
	Site   string // empty for all
	Rows   []agentRow
}

// agentRow is one agent.
type agentRow struct {
	ID, SiteID          int64
	Host, Site          string
	Class               string
	Status, StatusClass string
	Failing             bool
	LastSeen            time.Time
	Age                 string
	Address, Version    string
	Services            []serviceCell
	Revision            revisionCell
	Volumes             []badge
	Notes               []note
}

type badge struct{ Text, Class string }

// serviceCell is how a managed service is, and how its last apply ended.
type serviceCell struct {
	Name  string
	State badge
	Apply badge
	At    *time.Time // when what runs was applied
	Age   string
}

// revisionCell is what an agent runs, against what it is given.
type revisionCell struct {
	Badge badge
	Words string
	Since *time.Time
	Age   string
}

// note is what else is to be known.
type note struct {
	Badge badge
	Text  string
	Link  string // to a page of an administrator
	Do    string // what is done there
	ID    string // of the link
}

func (d *dashboard) agents(v *visit) error {
	view, err := d.readAgents(v, agentsQueryOf(v))
	if err != nil {
		return err
	}
	p := v.page("Agents", "/agents")
	p.Topics, p.Every = []string{"sites", "agents", "events"}, agentsEvery
	return v.show(http.StatusOK, p, agentsPage(p, view))
}

// readAgents reads a page of the list.
func (d *dashboard) readAgents(v *visit, q agentsQuery) (agentsView, error) {
	ctx := v.Request.Context()
	sites, total, err := d.store.ListSites(ctx, store.SiteFilter{}, store.ListOptions{Sort: "name", Limit: maxSiteChoice})
	if err != nil {
		return agentsView{}, fmt.Errorf("list sites: %w", err)
	}
	list, err := d.store.OverviewAgents(ctx, q.options())
	if err != nil {
		return agentsView{}, err
	}
	view := agentsView{
		Query: q, CanWrite: v.canWrite(), NoAgent: list.Any == 0,
		Counts: stateCounts(q, list), Columns: sortColumns(q), Total: list.Total,
	}
	for _, s := range sites {
		view.FirstSite = cmp.Or(view.FirstSite, s.ID)
		if total <= maxSiteChoice {
			view.Sites = append(view.Sites, option{strconv.FormatInt(s.ID, 10), s.Name})
		}
	}
	if view.Chosen, err = d.chosen(ctx, q); err != nil {
		return view, err
	}
	view.turn(len(list.Rows))
	about, err := d.aboutSites(v, list.Rows)
	if err != nil {
		return view, err
	}
	for _, r := range list.Rows {
		row, err := d.describeRow(v, r, about)
		if err != nil {
			return view, err
		}
		view.add(row)
	}
	return view, nil
}

// chosen says what the list is about, if that is not all agents.
func (d *dashboard) chosen(ctx context.Context, q agentsQuery) (string, error) {
	var words []string
	if q.State != "" {
		words = append(words, stateWords[store.AgentState(q.State)].word)
	}
	if q.Site > 0 {
		s, err := d.store.GetSite(ctx, q.Site)
		if err != nil {
			return "", err
		}
		words = append(words, "in site "+s.Name)
	}
	if q.Search != "" {
		words = append(words, "with “"+q.Search+"”")
	}
	return strings.Join(words, ", "), nil
}

// turn sets the ways to the pages before and after this one, which has some rows.
func (view *agentsView) turn(rows int) {
	q := view.Query
	view.From = (q.Page-1)*agentsOnPage + 1
	view.To = view.From + rows - 1
	if q.Page > 1 {
		view.Earlier = q.with(func(q *agentsQuery) { q.Page = view.Query.Page - 1 })
	}
	if int64(view.To) < view.Total && rows > 0 {
		view.Later = q.with(func(q *agentsQuery) { q.Page = view.Query.Page + 1 })
	}
}

// add puts a row into its group, which is the last one if there is one.
func (view *agentsView) add(row agentRow) {
	group := agentGroup{}
	if view.Query.Group {
		group = agentGroup{SiteID: row.SiteID, Site: row.Site}
	}
	if n := len(view.Groups); n == 0 || view.Groups[n-1].SiteID != group.SiteID {
		view.Groups = append(view.Groups, group)
	}
	last := &view.Groups[len(view.Groups)-1]
	last.Rows = append(last.Rows, row)
}

// stateWords are what the states are called.
var stateWords = map[store.AgentState]struct{ word, class string }{
	store.AgentState(store.Online):  {"online", good},
	store.AgentState(store.Late):    {"late", warn},
	store.AgentState(store.Offline): {"offline", bad},
	store.StateFailing:              {"failing", bad},
	store.StateBehind:               {"behind", warn},
	store.StateWarning:              {"with warnings", warn},
	store.StateHeld:                 {"held or pinned", warn},
}

func stateCounts(q agentsQuery, list store.AgentOverview) []stateCount {
	counts := []stateCount{{N: list.All, Word: "in all", Path: q.with(func(q *agentsQuery) { q.State = "" }), Current: q.State == ""}}
	for _, state := range store.AgentStates {
		c := stateCount{N: list.Counts[state], Word: stateWords[state].word, Current: q.State == string(state)}
		if c.N > 0 {
			c.Class = stateWords[state].class
		}
		c.Path = q.with(func(q *agentsQuery) { q.State = string(state) })
		counts = append(counts, c)
	}
	return counts
}

// columns are the headings, with what each sorts by, and how at first.
var columns = []struct{ title, sort string }{
	{"Agent", "host"},
	{"State", "state"},
	{"Last seen", "-seen"},
	{"Site", "site"},
	{"Version", "version"},
	{"Services", "-services"},
	{"Revision", "-revision"},
	{"Volumes", ""},
	{"To note", ""},
}

// sortColumns are the headings. The one that the list is sorted by turns it around.
func sortColumns(q agentsQuery) []sortColumn {
	var all []sortColumn
	field, descending := strings.CutPrefix(cmp.Or(q.Sort, "state"), "-")
	for _, c := range columns {
		next, name := c.sort, strings.TrimPrefix(c.sort, "-")
		column := sortColumn{Title: c.title}
		if name == field {
			column.Sorted, next = "ascending", "-"+name
			if descending {
				column.Sorted, next = "descending", name
			}
		}
		if next != "" {
			column.Path = q.with(func(q *agentsQuery) { q.Sort = next })
		}
		all = append(all, column)
	}
	return all
}

// siteWords are what is to be said of the sites of a page.
type siteWords struct {
	held      map[int64]note
	confirmed map[int64]store.ConfirmedRemovals
}

// aboutSites reads what keeps agents of the sites of a page from the latest
// content.
func (d *dashboard) aboutSites(v *visit, rows []store.AgentRow) (siteWords, error) {
	words := siteWords{held: map[int64]note{}}
	guarded := false
	for _, r := range rows {
		guarded = guarded || r.Report.Guard != nil
		if _, done := words.held[r.SiteID]; done || r.Pin == nil && r.Publishing != inventory.PublishManual {
			continue
		}
		waiting, err := d.waiting(v.Request.Context(), r.SiteID)
		if err != nil {
			return words, err
		}
		text := describeHeld(r.Pin, waiting, v.Now)
		is := badge{"waiting", neutral}
		if r.Pin != nil {
			is = badge{"pinned", warn}
		}
		words.held[r.SiteID] = note{Badge: is, Text: text}
	}
	if !guarded {
		return words, nil
	}
	var err error
	words.confirmed, err = d.confirmedRemovals(v.Request.Context())
	return words, err
}

func (d *dashboard) describeRow(v *visit, r store.AgentRow, about siteWords) (agentRow, error) {
	presence := r.Presence(v.Now)
	row := agentRow{
		ID: r.ID, SiteID: r.SiteID, Host: r.Hostname, Site: r.Site, Address: r.Address(), Version: r.Summary.Version,
		Status: string(presence), StatusClass: presenceClass(presence), Failing: r.Failing,
		LastSeen: r.LastSeenAt.UTC(), Age: ago(r.Age(v.Now)), Revision: describeRunning(r, v.Now), Volumes: countVolumes(r.Volumes),
	}
	switch {
	case presence == store.Offline || r.Failing:
		row.Class = bad
	case presence == store.Late || r.Behind || r.Warning:
		row.Class = warn
	default:
		row.Class = good
	}
	for _, name := range slices.Sorted(maps.Keys(r.Report.Services)) {
		row.Services = append(row.Services, describeServiceCell(name, r.Report.Services[name], v.Now))
	}
	guard, err := d.describeGuard(v.Request.Context(), r.Agent, about.confirmed, v.Now)
	if err != nil {
		return row, err
	}
	if guard != nil {
		n := note{Badge: badge{"held back", warn}, Text: removes(*r.Report.Guard) + ". " + guard.Next}
		if guard.Confirmable && v.canWrite() {
			n.Text, n.Link, n.Do, n.ID = removes(*r.Report.Guard), agentPath(r.ID)+"/removals", "Look and confirm…", fmt.Sprintf("agent-%d-removals", r.ID)
		}
		row.Notes = append(row.Notes, n)
	}
	if held := about.held[r.SiteID]; held.Text != "" {
		held.Link, held.Do, held.ID = pendingPath(r.SiteID), "Look…", fmt.Sprintf("agent-%d-pending", r.ID)
		row.Notes = append(row.Notes, held)
	}
	row.Notes = append(row.Notes, notesOf(r.Agent, v.Now)...)
	for i := range row.Notes {
		row.Notes[i].Text = prose.Cut(row.Notes[i].Text, maxNote)
	}
	return row, nil
}

// notesOf is what an agent itself told that is neither of a service's state nor of
// volumes.
func notesOf(a store.Agent, now time.Time) []note {
	var notes []note
	for _, name := range slices.Sorted(maps.Keys(a.Report.Services)) {
		report := a.Report.Services[name]
		if report.Hold != nil {
			notes = append(notes, note{Badge: badge{name + " on hold", warn}, Text: describeHold(*report.Hold, now, clockAhead(a))})
		}
		if report.Outcome == checkin.OutcomeSkipped && report.Message != "" && !report.Unwanted() {
			notes = append(notes, note{Badge: badge{name, warn}, Text: report.Message})
		}
		if n := len(report.Quarantined); n > 0 {
			notes = append(notes, note{Badge: badge{name + ": " + refused(report.Quarantined), warn}, Text: recordNames(report.Quarantined)})
		}
	}
	if pairs := certificateWarnings(a, now); len(pairs) > 0 {
		class := warn
		if slices.ContainsFunc(describeCertificates(a.Report.Certificates, now), func(c certificateView) bool { return c.Class == bad }) {
			class = bad // as on the agent's page
		}
		notes = append(notes, note{Badge: badge{prose.Counted(len(pairs), "certificate"), class}, Text: strings.Join(pairs, " ")})
	}
	for _, w := range hostWarnings(a) {
		notes = append(notes, note{Badge: badge{"check-in", warn}, Text: w})
	}
	if probes := describeProbes(a.Report.Probes); len(probes.Failing) > 0 {
		notes = append(notes, note{Badge: badge{probes.Summary, warn}})
	}
	if len(a.Drift.Recent(now)) > 0 {
		notes = append(notes, note{Badge: badge{"edited on the host", neutral}})
	}
	return notes
}

func describeServiceCell(name string, report checkin.ServiceReport, now time.Time) serviceCell {
	cell := serviceCell{Name: name, State: badge{cmp.Or(report.State, checkin.StateUnknown), stateClass(report.State)}}
	switch {
	case report.Failing():
		cell.Apply = badge{"apply failed", bad}
		if report.Outcome.Failed() {
			cell.Apply.Text = outcomes[report.Outcome].word
		}
	case report.Outcome == checkin.OutcomeHeld:
		cell.Apply = badge{"on hold", warn}
	case report.Unwanted():
		cell.Apply = badge{"not managed", neutral}
	case report.Outcome == checkin.OutcomeSkipped:
		cell.Apply = badge{"not managed", warn}
	case len(report.Quarantined) > 0:
		cell.Apply = badge{refused(report.Quarantined), warn}
	case !report.Working():
		cell.Apply = badge{"last apply unknown", neutral}
	}
	switch {
	case report.AppliedAt == nil || cell.Apply.Text != "":
	case isAhead(*report.AppliedAt, now):
		cell.Apply = badge{"applied ahead of the manager's clock", neutral}
	default:
		at := report.AppliedAt.UTC()
		cell.At, cell.Age = &at, ago(max(0, now.Sub(at)))
	}
	return cell
}

// describeRunning says what an agent runs of what was published.
func describeRunning(r store.AgentRow, now time.Time) revisionCell {
	cell := revisionCell{}
	switch {
	case r.Published == 0:
		cell.Words = "none published"
		return cell
	case !r.Behind && r.Running == 0:
		cell.Words = "not reported"
		return cell
	case !r.Behind:
		cell.Badge, cell.Words = badge{"in sync", good}, strconv.FormatInt(r.Running, 10)
		return cell
	case r.None:
		cell.Badge, cell.Words = badge{"behind", warn}, fmt.Sprintf("none in force as a whole, not %d", r.Published)
	case r.Running == 0:
		cell.Badge, cell.Words = badge{"behind", warn}, fmt.Sprintf("runs another, not %d", r.Published)
	case r.Running > r.Published:
		cell.Badge, cell.Words = badge{"not back yet", warn}, fmt.Sprintf("runs %d, pinned to %d", r.Running, r.Published)
	default:
		cell.Badge, cell.Words = badge{fmt.Sprintf("%d behind", r.Published-r.Running), warn}, fmt.Sprintf("runs %d, not %d", r.Running, r.Published)
	}
	if r.BehindSince != nil {
		at := r.BehindSince.UTC()
		cell.Since, cell.Age = &at, ago(max(0, now.Sub(at)))
	}
	return cell
}

func countVolumes(counts map[store.VolumeStatus]int) []badge {
	var all []badge
	for _, c := range []struct {
		status store.VolumeStatus
		class  string
	}{{store.VolumeFailed, bad}, {store.VolumePending, neutral}, {store.VolumeReady, good}} {
		if n := counts[c.status]; n > 0 {
			all = append(all, badge{fmt.Sprintf("%d %s", n, c.status), c.class})
		}
	}
	return all
}
