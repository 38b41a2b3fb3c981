package dashboard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/events"
	"opensource.internal/manager/internal/prose"
	"opensource.internal/manager/internal/store"
)

var agentsCrumb = crumb{"Agents", "/agents"}

func agentPath(id int64) string { return fmt.Sprintf("/agents/%d", id) }

// agentPage is all about one agent, in words.
type agentPage struct {
	ID                  int64
	SiteID              int64
	Site                string
	Status, StatusClass string
	Failing             bool
	Age                 string
	LastSeen, FirstSeen time.Time
	Facts               []fact
	Published           namedRevision // what the site's agents are to run
	PublishedAt         time.Time
	InForce             namedRevision // what runs as a whole
	InForceSince        string
	Problems            []problem
	Services            []serviceDetail
	Certificates        []certificateView
	Volumes             []volumeRow
	VolumeSummary       string
	Probes              probesView
	Host                []fact
	Strip               strip
	Events              []eventRow
	OlderEvents         int64
	CanWrite            bool
}

// serviceDetail is one managed service: what it was given, what happened to
// that, and what it runs.
type serviceDetail struct {
	serviceView
	ID       string // on the page: the name is the agent's word
	Received namedRevision
	Happened string
	Runs     namedRevision
	Excerpts []excerpt // what the message points at
	Records  []recordView
	More     int // records that are not shown
}

// namedRevision says which revision something is.
type namedRevision struct {
	Words  string
	Number int64 // 0 if it is none that is kept
	Path   string
}

// recordView is a record that is not in force as it was sent.
type recordView struct {
	recordLink
	ID           string // on the page
	Reason       string
	KeptPrevious bool
	Foreign      bool // the line that is refused is of no template that the manager knows
	Excerpts     []excerpt
}

type certificateView struct {
	Domain   string
	State    string
	Class    string
	Date     string // what is known of it
	Ends     *time.Time
	Fallback bool
}

type volumeRow struct {
	ID int64
	volumeView
	lastChange // of one that has failed
}

type eventRow struct {
	ID      int64
	At      time.Time
	Age     string
	Class   string
	Kind    string
	Summary string
}

// eventsOnPage is how many events the page of an agent shows.
const eventsOnPage = 15

func (d *dashboard) agent(v *visit) error {
	a, err := d.agentOf(v)
	if err != nil {
		return err
	}
	view, err := d.readAgent(v, a)
	if err != nil {
		return err
	}
	p := v.page(a.Hostname, "/agents", agentsCrumb)
	p.Topics, p.Every = []string{fmt.Sprintf("agent:%d", a.ID), fmt.Sprintf("site:%d", a.SiteID)}, agentsEvery
	return v.show(http.StatusOK, p, agentDetails(p, view))
}

// agentOf is the agent of the address.
func (d *dashboard) agentOf(v *visit) (store.Agent, error) {
	id, err := v.id()
	if err != nil {
		return store.Agent{}, err
	}
	return d.store.GetAgent(v.Request.Context(), id)
}

// readAgent puts all that is known of an agent into words.
func (d *dashboard) readAgent(v *visit, a store.Agent) (agentPage, error) {
	ctx := v.Request.Context()
	site, err := d.store.GetSite(ctx, a.SiteID)
	if err != nil {
		return agentPage{}, err
	}
	volumes, _, err := d.store.ListVolumes(ctx, store.VolumeFilter{SiteID: a.SiteID}, store.ListOptions{Limit: store.All})
	if err != nil {
		return agentPage{}, err
	}
	view := agentPage{
		ID: a.ID, SiteID: a.SiteID, Site: site.Name, Age: ago(a.Age(v.Now)), LastSeen: a.LastSeenAt.UTC(), FirstSeen: a.FirstSeenAt.UTC(),
		Status: string(a.Presence(v.Now)), StatusClass: presenceClass(a.Presence(v.Now)), CanWrite: v.canWrite(),
		Probes: describeProbes(a.Report.Probes), Certificates: describeCertificates(a.Report.Certificates, v.Now),
	}
	view.Facts = []fact{{"Address", string(a.Report.IPv4Address)}, {"Checks in from", a.PeerAddress}, {"Version", ""}}
	if a.Report.Agent != nil {
		view.Facts[2].Value = a.Report.Agent.Version
	}
	view.Host = describeHost(a.Report.Request, v.Now)
	r := d.readerOf(ctx, a)
	for _, volume := range volumes {
		row := volumeRow{ID: volume.ID, volumeView: describeVolume(volume)}
		if volume.Status == store.VolumeFailed {
			if row.lastChange, err = r.lastChange(store.Ref{Resource: "volume", ID: volume.ID}); err != nil {
				return view, err
			}
		}
		view.Volumes = append(view.Volumes, row)
	}
	view.VolumeSummary = summaryOf(volumes)
	view.Failing = a.Summary.Severity == store.Failing || slices.ContainsFunc(view.Volumes, func(row volumeRow) bool { return row.Class == bad })

	if view.Published, view.PublishedAt, err = r.published(); err != nil {
		return view, err
	}
	if running := a.Report.Running; running != nil {
		view.InForceSince = toldTime(running.Since, v.Now)
		if view.InForce, err = r.named(running.ETag); err != nil {
			return view, err
		}
	}
	if view.Services, err = r.services(v.Now); err != nil {
		return view, err
	}
	if view.Problems, err = d.problemsOf(v, a, site, view); err != nil {
		return view, err
	}
	if view.Strip, err = d.stripOf(ctx, a, v.Now); err != nil {
		return view, err
	}
	rows, total, err := d.store.ListEvents(ctx, store.EventFilter{AgentID: a.ID}, store.ListOptions{Limit: eventsOnPage})
	view.Events, view.OlderEvents = describeEvents(rows, v.Now), total-int64(len(rows))
	return view, err
}

func summaryOf(volumes []store.Volume) string {
	counts := map[store.VolumeStatus]int{}
	for _, volume := range volumes {
		counts[volume.Status]++
	}
	var parts []string
	for _, status := range []store.VolumeStatus{store.VolumeReady, store.VolumePending, store.VolumeFailed} {
		if n := counts[status]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, status))
		}
	}
	return strings.Join(parts, ", ")
}

// agentReader reads what is kept of what an agent speaks of.
type agentReader struct {
	d     *dashboard
	ctx   context.Context //nolint:containedctx // it lives for one answer
	agent store.Agent
	known map[string]store.Revision // by tag
}

func (d *dashboard) readerOf(ctx context.Context, a store.Agent) *agentReader {
	return &agentReader{d: d, ctx: ctx, agent: a, known: map[string]store.Revision{}}
}

// revision is the one of a tag; its number is 0 if this manager does not have it.
func (r *agentReader) revision(etag string) (store.Revision, error) {
	if known, ok := r.known[etag]; ok || etag == "" {
		return known, nil
	}
	row, err := r.d.store.RevisionByETag(r.ctx, r.agent.SiteID, etag)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return row, err
	}
	r.known[etag] = row
	return row, nil
}

// named says which revision a tag is.
func (r *agentReader) named(etag string) (namedRevision, error) {
	row, err := r.revision(etag)
	switch {
	case err != nil || etag == "":
		return namedRevision{Words: "not told"}, err
	case row.Number == 0:
		return namedRevision{Words: fmt.Sprintf("a configuration that this manager has not kept (%s)", shortTag(etag))}, nil
	}
	return r.numbered(row.Number), nil
}

func (r *agentReader) numbered(number int64) namedRevision {
	return namedRevision{fmt.Sprintf("revision %d", number), number, revisionPath(r.agent.SiteID, number)}
}

// published is what the agents of the site get now, and since when.
func (r *agentReader) published() (namedRevision, time.Time, error) {
	_, current, err := r.d.snapshots.Served(r.ctx, r.agent.SiteID)
	if errors.Is(err, store.ErrNotFound) {
		return namedRevision{}, time.Time{}, nil // deleted meanwhile
	}
	if err != nil {
		return namedRevision{}, time.Time{}, fmt.Errorf("read what site %d is given: %w", r.agent.SiteID, err)
	}
	if current.Pin != nil {
		return r.numbered(current.Number), current.Pin.PinnedAt, nil
	}
	row, err := r.revision(current.ETag)
	return r.numbered(current.Number), row.CreatedAt, err
}

// services describes each service that was reported.
func (r *agentReader) services(now time.Time) ([]serviceDetail, error) {
	var list []serviceDetail
	drift := r.agent.Drift.Recent(now)
	for _, name := range slices.Sorted(maps.Keys(r.agent.Report.Services)) {
		report := r.agent.Report.Services[name]
		one := serviceDetail{ID: fmt.Sprintf("service-%d", len(list)+1), serviceView: describeService(name, report, now, clockAhead(r.agent)), Happened: happened(report)}
		if heldBackBy(r.agent.Report.Guard, report) {
			one.Happened, one.ApplyClass = "Held back", warn
		}
		if found, ok := drift[name]; ok {
			one.DriftedAt, one.Drifted, one.Drift = found.At.UTC(), ago(max(0, now.Sub(found.At))), found.Files
			one.Restored = found.Restored
		}
		var err error
		if one.Received, err = r.named(report.ReceivedETag); err != nil {
			return nil, err
		}
		if one.Runs, err = r.named(report.RunningETag); err != nil {
			return nil, err
		}
		if err := r.addLines(&one, name, report); err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	return list, nil
}

// heldBackBy reports whether a service does not run what it was given because that
// removes too much.
func heldBackBy(guard *checkin.Guard, report checkin.ServiceReport) bool {
	if guard == nil || !inForce(report.Outcome) || report.ReceivedETag == "" || checkin.SameETag(report.ReceivedETag, report.RunningETag) {
		return false
	}
	return guard.ETag == "" || checkin.SameETag(guard.ETag, report.ReceivedETag)
}

// happened says what became of what a service was given last.
func happened(report checkin.ServiceReport) string {
	words := outcomes[report.Outcome].happened
	if words == "" {
		words = map[checkin.LastApply]string{checkin.ApplySuccess: "In force", checkin.ApplyFailure: "Failed"}[report.LastApply]
	}
	if len(report.Quarantined) > 0 && inForce(report.Outcome) {
		words += ", " + refused(report.Quarantined)
	}
	return cmp.Or(words, "Not told")
}

func describeCertificates(reported map[string]checkin.Certificate, now time.Time) []certificateView {
	var list []certificateView
	for _, domain := range slices.Sorted(maps.Keys(reported)) {
		c := reported[domain]
		state := c.StateAt(now)
		view := certificateView{Domain: readable(domain), State: string(state), Class: bad, Ends: c.NotAfter, Fallback: c.Fallback}
		switch {
		case state == checkin.CertificateOK && !c.Fallback:
			view.Class = good
		case state == checkin.CertificateExpiring:
			view.Class = warn
		}
		if c.NotAfter != nil {
			left := c.NotAfter.Sub(now)
			view.Date = "for " + span(max(left, 0)) + " more"
			if left <= 0 {
				view.Date = "ended " + ago(-left)
			}
		}
		list = append(list, view)
	}
	return list
}

// kindWords is a kind of event as people say it.
func kindWords(kind events.Kind) string {
	switch kind {
	case events.Quarantined:
		return "left out"
	case events.QuarantineCleared:
		return "no longer left out"
	case events.Drift:
		return "edited on the host"
	case events.LeftOut:
		return "too many events"
	}
	return strings.ReplaceAll(string(kind), "_", " ")
}

func describeEvents(rows []store.Event, now time.Time) []eventRow {
	var list []eventRow
	for _, e := range rows {
		row := eventRow{ID: e.ID, At: e.At.UTC(), Age: ago(max(0, now.Sub(e.At))), Kind: kindWords(e.Kind), Summary: e.Summary}
		switch e.Severity {
		case events.Error:
			row.Class = bad
		case events.Warning:
			row.Class = warn
		}
		list = append(list, row)
	}
	return list
}

// eventsAtOnce is how many events a page of all of them has.
const eventsAtOnce = 50

// agentEventsView is a page of all events of an agent.
type agentEventsView struct {
	ID           int64
	Events       []eventRow
	Words        string
	Newer, Older string // addresses
}

func (d *dashboard) agentEvents(v *visit) error {
	a, err := d.agentOf(v)
	if err != nil {
		return err
	}
	offset := 0
	if n, err := strconv.Atoi(v.Query("from")); err == nil && n > 0 {
		offset = n
	}
	rows, total, err := d.store.ListEvents(v.Request.Context(), store.EventFilter{AgentID: a.ID}, store.ListOptions{Limit: eventsAtOnce, Offset: offset})
	if err != nil {
		return err
	}
	view := agentEventsView{ID: a.ID, Events: describeEvents(rows, v.Now), Words: "No event is kept."}
	at := func(from int) string { return fmt.Sprintf("%s/events?from=%d", agentPath(a.ID), max(0, from)) }
	if len(rows) > 0 {
		view.Words = fmt.Sprintf("%d to %d of %s, the newest first", offset+1, offset+len(rows), prose.Counted(int(total), "event"))
	}
	if offset > 0 {
		view.Newer = at(offset - eventsAtOnce)
	}
	if int64(offset+len(rows)) < total {
		view.Older = at(offset + eventsAtOnce)
	}
	p := v.page("Events of "+a.Hostname, "/agents", agentsCrumb, crumb{a.Hostname, agentPath(a.ID)})
	p.Topics = []string{fmt.Sprintf("agent:%d", a.ID)}
	return v.show(http.StatusOK, p, agentEventList(p, view))
}

// askForgetAgent says what vanishes with an agent.
func (d *dashboard) askForgetAgent(v *visit) error {
	a, view, err := d.vanishingAgent(v)
	if err != nil {
		return err
	}
	view.Version = version(view.Groups)
	return d.showForgetting(v, http.StatusOK, a, view)
}

func (d *dashboard) forgetAgent(v *visit) error {
	a, view, err := d.vanishingAgent(v)
	if err != nil {
		return err
	}
	typed, err := v.typed()
	if err != nil {
		return err
	}
	if !view.seen(typed) {
		return d.showForgetting(v, http.StatusConflict, a, view)
	}
	if err := d.store.DeleteAgent(v.Request.Context(), a.ID); err != nil {
		return err
	}
	return v.goTo("/agents", fmt.Sprintf("The agent %s was removed.", a.Hostname))
}

func (d *dashboard) showForgetting(v *visit, status int, a store.Agent, view vanishing) error {
	p := v.page("Remove the agent?", "/agents", agentsCrumb, crumb{a.Hostname, agentPath(a.ID)})
	return v.show(status, p, deletion(p, view))
}

func (d *dashboard) vanishingAgent(v *visit) (store.Agent, vanishing, error) {
	a, err := d.agentOf(v)
	if err != nil {
		return a, vanishing{}, err
	}
	view := vanishing{What: fmt.Sprintf("agent %q", a.Hostname), Cancel: agentPath(a.ID)}
	view.add("What the manager knows of it", []string{"its last report", "what is open of it in notifications"})
	view.Keeps = "Its events stay, and so does all that belongs to its site. What runs on its host goes on until somebody stops it there, " +
		"and its API key stays valid until it is revoked. As long as it checks in, it appears here again."
	return a, view, nil
}

// hasMore reports whether there is more to tell of a service than its line and
// what to do: of a hold there is not.
func (s serviceDetail) hasMore() bool {
	return s.Message != "" || len(s.Records)+len(s.Drift) > 0
}

func (e excerpt) hasFaulty() bool {
	return slices.ContainsFunc(e.Lines, func(l excerptLine) bool { return l.Faulty })
}

// diffLine is a line of a unified diff.
type diffLine struct{ Text, Class string }

func diffLines(diff string) []diffLine {
	var lines []diffLine
	for line := range strings.Lines(diff) {
		line = strings.TrimSuffix(line, "\n")
		class := ""
		switch {
		case strings.HasPrefix(line, "+++") || strings.HasPrefix(line, "---") || strings.HasPrefix(line, "@@"):
			class = "head"
		case strings.HasPrefix(line, "+"):
			class = "added"
		case strings.HasPrefix(line, "-"):
			class = "removed"
		}
		lines = append(lines, diffLine{line, class})
	}
	return lines
}
