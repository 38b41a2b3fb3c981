package dashboard

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/prose"
	"opensource.internal/manager/internal/revision"
	"opensource.internal/manager/internal/snapshot"
	"opensource.internal/manager/internal/store"
)

// revisionsPerPage is how many are listed at once.
const revisionsPerPage = 25

// arrivalsEvery is how often the page is fetched on which a change arrives.
const arrivalsEvery = 5 * time.Second

func revisionsPath(siteID int64) string { return sitePath(siteID) + "/revisions" }

func revisionPath(siteID, number int64) string {
	return fmt.Sprintf("%s/%d", revisionsPath(siteID), number)
}

// pendingPath is where one sees what the inventory has and agents do not get.
func pendingPath(siteID int64) string { return sitePath(siteID) + "/pending" }

func pinPath(siteID, number int64) string {
	return fmt.Sprintf("%s/pin?revision=%d", sitePath(siteID), number)
}

// diffPath is where two revisions are compared; 0 is what the inventory has now.
func diffPath(siteID, from, to int64) string {
	path := fmt.Sprintf("%s/diff?from=%d", sitePath(siteID), from)
	if to != 0 {
		path += fmt.Sprintf("&to=%d", to)
	}
	return path
}

// belowSite is above the pages about a site's revisions.
func belowSite(s store.Site, more ...crumb) []crumb {
	return append([]crumb{sitesCrumb, {s.Name, sitePath(s.ID)}}, more...)
}

func belowRevisions(s store.Site) []crumb {
	return belowSite(s, crumb{"Revisions", revisionsPath(s.ID)})
}

// revisionsView is the list of a site's revisions, and how far the latest change
// has come.
type revisionsView struct {
	SiteID   int64
	Held     string // why agents do not get what the inventory has
	Pinned   bool
	Waiting  int // changes that agents do not get
	Manual   bool
	Current  int64
	Arrival  arrivalsView
	Rows     []revisionRow
	Newer    string // addresses of the neighbouring pages
	Older    string
	Shown    string
	CanWrite bool
}

type revisionRow struct {
	Number    int64
	At, Age   string
	ChangedBy string
	Published string // by whom, if somebody had to
	Changes   string
	Note      string
	RunsOn    []string
	Current   bool
	Pinned    bool
}

func (d *dashboard) revisions(v *visit) error {
	ctx := v.Request.Context()
	s, err := d.siteOf(v)
	if err != nil {
		return err
	}
	_, current, err := d.snapshots.Served(ctx, s.ID) // what was changed since the last check-in is a revision by then
	if err != nil {
		return err
	}
	agents, _, err := d.store.ListAgents(ctx, store.AgentFilter{SiteID: s.ID}, store.ListOptions{Limit: store.All, Sort: "hostname"})
	if err != nil {
		return err
	}
	view := revisionsView{SiteID: s.ID, Pinned: current.Pin != nil, Manual: s.Publishing == inventory.PublishManual, Current: current.Number, CanWrite: v.canWrite()}
	if view.Pinned || view.Manual {
		if view.Waiting, err = d.snapshots.Waiting(ctx, s.ID); err != nil {
			return err
		}
		view.Held = describeHeld(current.Pin, view.Waiting, v.Now)
	}
	if view.Arrival, err = d.arrivals(v, s, current, agents); err != nil {
		return err
	}
	if err := d.listRevisions(v, &view, current, agents); err != nil {
		return err
	}
	p := v.page("Revisions", "/sites", belowSite(s)...)
	p.Topics, p.Every = []string{"site:" + strconv.FormatInt(s.ID, 10)}, arrivalsEvery
	return v.show(http.StatusOK, p, revisionsPage(p, view))
}

// listRevisions reads the page of the list that the address names.
func (d *dashboard) listRevisions(v *visit, view *revisionsView, current *snapshot.Current, agents []store.Agent) error {
	page, _ := strconv.Atoi(v.Query("page"))
	page = min(max(page, 1), 1_000_000)
	skipped := (page - 1) * revisionsPerPage
	rows, total, err := d.store.ListRevisions(v.Request.Context(), store.RevisionFilter{SiteID: view.SiteID},
		store.ListOptions{Limit: revisionsPerPage, Offset: skipped, Sort: "-number"})
	if err != nil {
		return err
	}
	for _, r := range rows {
		view.Rows = append(view.Rows, describeRevision(r, current, agents, v.Now))
	}
	at := func(page int) string { return fmt.Sprintf("%s?page=%d", revisionsPath(view.SiteID), page) }
	if page > 1 {
		view.Newer = at(page - 1)
	}
	if int64(skipped+len(rows)) < total && len(rows) > 0 {
		view.Older = at(page + 1)
	}
	view.Shown = fmt.Sprintf("%d to %d of %d", skipped+1, skipped+len(rows), total)
	return nil
}

func describeRevision(r store.Revision, current *snapshot.Current, agents []store.Agent, now time.Time) revisionRow {
	row := revisionRow{
		Number: r.Number, At: r.CreatedAt.UTC().Format(machineTime), Age: ago(max(0, now.Sub(r.CreatedAt))),
		ChangedBy: strings.Join(r.ChangedBy, ", "), Published: r.PublishedBy, Changes: r.Summary.String(), Note: r.Note,
		Current: r.Number == current.Number, Pinned: current.Pin != nil && current.Pin.Revision == r.Number,
	}
	for _, a := range agents {
		if a.Report.Running != nil && checkin.SameETag(a.Report.Running.ETag, r.ETag) {
			row.RunsOn = append(row.RunsOn, a.Hostname)
		}
	}
	return row
}

// revisionView is one revision with its content.
type revisionView struct {
	SiteID   int64
	Row      revisionRow
	At       string
	Tag      string
	Former   int64 // the revision before that is kept, 0 if none is
	Groups   []recordGroup
	CanWrite bool
}

// recordGroup are the records of a kind in a snapshot, as a table.
type recordGroup struct {
	Title   string
	Columns []string
	Rows    [][]string
	More    int // that are not listed
}

func (d *dashboard) revision(v *visit) error {
	ctx := v.Request.Context()
	s, err := d.siteOf(v)
	if err != nil {
		return err
	}
	row, err := d.revisionOf(v, s)
	if err != nil {
		return err
	}
	_, current, err := d.snapshots.Served(ctx, s.ID)
	if err != nil {
		return err
	}
	agents, _, err := d.store.ListAgents(ctx, store.AgentFilter{SiteID: s.ID}, store.ListOptions{Limit: store.All, Sort: "hostname"})
	if err != nil {
		return err
	}
	content, err := checkin.ParseSnapshot(row.Data)
	if err != nil {
		return err
	}
	before, err := d.snapshots.Before(ctx, s.ID, row.Number)
	if err != nil {
		return err
	}
	view := revisionView{
		SiteID: s.ID, Row: describeRevision(row, current, agents, v.Now), At: row.CreatedAt.UTC().Format(humanTime),
		Tag: strings.Trim(row.ETag, `"`), Former: before.Number, Groups: contentOf(content), CanWrite: v.canWrite(),
	}
	p := v.page(revisionName(row.Number), "/sites", belowRevisions(s)...)
	return v.show(http.StatusOK, p, revisionPage(p, view))
}

// revisionOf is the revision of the address.
func (d *dashboard) revisionOf(v *visit, s store.Site) (store.Revision, error) {
	number, err := strconv.ParseInt(v.Param("number"), 10, 64)
	if err != nil || number <= 0 {
		return store.Revision{}, store.ErrNotFound
	}
	return d.store.GetRevision(v.Request.Context(), s.ID, number)
}

// revisionName is how a version of a site is called; 0 is that of the inventory.
func revisionName(number int64) string {
	if number == 0 {
		return "Inventory now"
	}
	return fmt.Sprintf("Revision %d", number)
}

// maxListed is how many records of a kind, and how many changes, are listed.
const maxListed = 200

// contentOf lists the records of a snapshot: all that it has against none.
func contentOf(s checkin.Snapshot) []recordGroup {
	var groups []recordGroup
	var kind revision.Resource
	for _, record := range revision.Compare(checkin.Bootstrap(), s) {
		if record.Resource != kind {
			kind = record.Resource
			groups = append(groups, recordGroup{Title: titles[kind]})
		}
		groups[len(groups)-1].add(record)
	}
	return groups
}

func (g *recordGroup) add(record revision.Change) {
	if len(g.Rows) == maxListed {
		g.More++
		return
	}
	row := make([]string, len(g.Columns))
	for _, field := range record.Fields {
		label := fieldLabel(field.Name)
		at := slices.Index(g.Columns, label)
		if at < 0 {
			at = len(g.Columns)
			g.Columns, row = append(g.Columns, label), append(row, "")
		}
		row[at] = shownValue(field.To)
	}
	g.Rows = append(g.Rows, row)
}

// cells are a row's, as many as there are columns.
func (g recordGroup) cells(row []string) []string {
	return append(slices.Clone(row), make([]string, len(g.Columns)-len(row))...)
}

var titles = map[revision.Resource]string{
	revision.Site: "Site", revision.Node: "Nodes", revision.Container: "Containers", revision.HTTPService: "HTTP services",
	revision.TransportService: "TCP and UDP services", revision.DNSRecord: "SRV records", revision.Volume: "Volumes", revision.ExternalDomain: "External domains",
}

// fieldLabels are what the fields of a snapshot are called in forms.
var fieldLabels = map[string]string{
	"name": "Name", "internalDomain": "Internal domain", "dhcpRange": "DHCP range", "subnetMask": "Subnet mask", "gateway": "Gateway",
	"dnsForwarders": "DNS forwarders", "http3": "HTTP/3", "removalsConfirmed": "Removals confirmed", "ipv4Address": "IPv4 address",
	"hostname": "Host name", "node": "Node", "macAddress": "MAC address", "host": "Public name", "container.ipv4Address": "Container's address",
	"internalPort": "Port in the container", "backendProtocol": "Protocol to the container", "authRequired": "Sign-in required",
	"authServer": "Sign-in server", "protocol": "Protocol", "externalPort": "External port", "type": "Type", "target": "Target", "port": "Port",
	"hostPath": "Folder on the host", "mode": "Mode", "uid": "Owner (uid)", "gid": "Group (gid)",
}

func fieldLabel(name string) string {
	if label, known := fieldLabels[name]; known {
		return label
	}
	return name
}

// shownValue is a value of a snapshot as people read it; "" is not set.
func shownValue(value any) string {
	switch value := value.(type) {
	case nil:
		return ""
	case bool:
		return yesOrNo(value, "yes", "no")
	case string:
		return written(value)
	}
	return fmt.Sprint(value)
}

// written shows an internationalised name as readable does, and leaves what is
// none as it is.
func written(name string) string {
	if !strings.Contains(name, "xn--") {
		return name
	}
	return readable(name)
}

// agentsOf says who gets a change of a site.
func (d *dashboard) agentsOf(ctx context.Context, s store.Site, now time.Time) (string, error) {
	agents, _, err := d.store.ListAgents(ctx, store.AgentFilter{SiteID: s.ID}, store.ListOptions{Limit: store.All, Sort: "hostname"})
	if err != nil || len(agents) == 0 {
		return "No agent has checked in for this site yet.", err
	}
	var names []string
	offline := 0
	for _, a := range agents {
		names = append(names, a.Hostname)
		if a.Presence(now) == store.Offline {
			offline++
		}
	}
	words := prose.Counted(len(agents), "agent") + ": " + prose.Some(names)
	switch {
	case offline == len(agents) && offline == 1:
		words += ". It is offline."
	case offline > 0:
		words += fmt.Sprintf(". %d of %d offline.", offline, len(agents))
	}
	return words, nil
}

// changesPath is where a revision is compared with the one before.
func changesPath(siteID, number int64) string {
	return fmt.Sprintf("%s/diff?from=before&to=%d", sitePath(siteID), number)
}
