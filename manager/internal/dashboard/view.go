package dashboard

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/idna"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/auth"
	"opensource.internal/manager/internal/store"
)

const (
	machineTime = time.RFC3339
	humanTime   = "2006-01-02 15:04:05 UTC"
)

// The classes of the style sheet: how something is to be felt about.
const (
	good    = "good"
	warn    = "warn"
	bad     = "bad"
	neutral = ""
)

// skewWorthTelling is how far an agent's clock may be off without a word.
const skewWorthTelling = 30 * time.Second

// agentList is everything the page shows, in words.
type agentList struct {
	Agents     []agentView
	Now        time.Time
	ManagerURL string
	NoSites    bool
}

type agentView struct {
	ID            int64
	Host          string
	Site          string
	Address       string
	Version       string
	Running       string
	Status        string
	StatusClass   string
	Class         string // of the whole card
	Age           string
	LastSeen      time.Time
	Warnings      []string
	Held          string     // why it does not get what the inventory has
	HoldsBack     bool       // a configuration that removes too much
	Guard         *guardView // how it stands with that
	Services      []serviceView
	Probes        probesView
	Volumes       []volumeView
	FailedVolumes int
	HostSummary   string
	HostFacts     []fact
}

// fact is one line of what an agent told about its host.
type fact struct{ Name, Value string }

type serviceView struct {
	Name        string
	State       string
	StateClass  string
	Apply       string
	ApplyClass  string
	Applied     string
	AppliedAt   time.Time
	Behind      string // what it was given and does not run
	Meaning     string // of an outcome that not everybody knows
	Message     string
	Held        string
	Quarantined []quarantinedView
	Drifted     string // when files were found edited
	DriftedAt   time.Time
	Restored    bool // the edit was undone
	Drift       []checkin.Drift
}

type quarantinedView struct {
	Record       string
	Reason       string
	KeptPrevious bool
}

type volumeView struct {
	Path    string
	Status  string
	Class   string
	Message string
}

type count struct {
	N     int
	Word  string
	Class string
}

// readAgents reads all agents with what the page says about them to somebody.
func (d *dashboard) readAgents(ctx context.Context, who auth.Principal, now time.Time) (agentList, error) {
	all := store.ListOptions{Limit: store.All}
	agents, _, err := d.store.ListAgents(ctx, store.AgentFilter{}, all)
	if err != nil {
		return agentList{}, fmt.Errorf("list agents: %w", err)
	}
	sites, _, err := d.store.ListSites(ctx, store.SiteFilter{}, all)
	if err != nil {
		return agentList{}, fmt.Errorf("list sites: %w", err)
	}
	volumes, _, err := d.store.ListVolumes(ctx, store.VolumeFilter{}, all)
	if err != nil {
		return agentList{}, fmt.Errorf("list volumes: %w", err)
	}

	names := map[int64]string{}
	for _, s := range sites {
		names[s.ID] = s.Name
	}
	bySite := map[int64][]store.Volume{}
	for _, v := range volumes {
		bySite[v.SiteID] = append(bySite[v.SiteID], v)
	}
	confirmed, err := d.confirmedRemovals(ctx)
	if err != nil {
		return agentList{}, err
	}
	held, err := d.held(ctx, sites, now)
	if err != nil {
		return agentList{}, err
	}
	list := agentList{Now: now.UTC(), NoSites: len(sites) == 0}
	for _, a := range agents {
		view := describe(a, names[a.SiteID], bySite[a.SiteID], now)
		view.Held = held[a.SiteID]
		if view.Guard, err = d.describeGuard(ctx, a, confirmed, now); err != nil {
			return agentList{}, err
		}
		if view.Guard != nil && view.Guard.Confirmable && who.Role.CanWrite() {
			view.Guard.Link = d.removalsOf(a.ID)
		}
		list.Agents = append(list.Agents, view)
	}
	slices.SortStableFunc(list.Agents, func(a, b agentView) int {
		return cmp.Or(strings.Compare(a.Site, b.Site), strings.Compare(a.Host, b.Host))
	})
	return list, nil
}

// describe puts one agent into words.
func describe(a store.Agent, site string, volumes []store.Volume, now time.Time) agentView {
	view := agentView{
		ID: a.ID, Host: a.Hostname, Site: fmt.Sprintf("%s (%d)", site, a.SiteID), Address: string(a.Report.IPv4Address),
		Age: ago(a.Age(now)), LastSeen: a.LastSeenAt.UTC(), Running: running(a.Report.Running),
		Warnings: warnings(a, now), HoldsBack: a.Report.Guard != nil,
	}
	if a.Report.Agent != nil {
		view.Version = a.Report.Agent.Version
	}
	drift := a.Drift.Recent(now)
	for _, name := range slices.Sorted(maps.Keys(a.Report.Services)) {
		service := describeService(name, a.Report.Services[name], now, clockAhead(a))
		if found, ok := drift[name]; ok {
			service.DriftedAt, service.Drifted, service.Drift = found.At.UTC(), ago(max(0, now.Sub(found.At))), found.Files
			service.Restored = found.Restored
		}
		view.Services = append(view.Services, service)
	}
	view.Probes = describeProbes(a.Report.Probes)
	view.HostSummary, view.HostFacts = describeHost(a.Report.Request)
	for _, v := range volumes {
		view.Volumes = append(view.Volumes, describeVolume(v))
		if v.Status == store.VolumeFailed {
			view.FailedVolumes++
		}
	}
	view.Status, view.StatusClass = string(a.Presence(now)), presenceClass(a.Presence(now))
	if view.Class = view.StatusClass; view.Class == good {
		view.Class = view.worst()
	}
	return view
}

func presenceClass(p store.Presence) string {
	switch p {
	case store.Online:
		return good
	case store.Late:
		return warn
	}
	return bad
}

// worst is how an agent that is online is to be felt about.
func (a agentView) worst() string {
	class := good
	if len(a.Warnings)+len(a.Probes.Failing) > 0 || a.HoldsBack {
		class = warn
	}
	for _, s := range a.Services {
		if s.StateClass == bad || s.ApplyClass == bad {
			return bad
		}
		if s.StateClass == warn || s.ApplyClass == warn || len(s.Quarantined) > 0 {
			class = warn
		}
	}
	if a.FailedVolumes > 0 {
		return bad
	}
	return class
}

// describeService puts a report into words. Ahead is how far the agent's clock is
// ahead of now.
func describeService(name string, report checkin.ServiceReport, now time.Time, ahead time.Duration) serviceView {
	view := serviceView{
		Name: name, State: cmp.Or(report.State, checkin.StateUnknown), StateClass: stateClass(report.State),
		Message: report.Message, Meaning: meanings[report.Outcome],
	}
	view.Apply, view.ApplyClass = applied(report)
	if len(report.Quarantined) > 0 && inForce(report.Outcome) {
		view.Message = "" // it repeats what is listed as left out
	}
	if report.AppliedAt != nil {
		view.AppliedAt = report.AppliedAt.UTC()
		view.Applied = view.AppliedAt.Format(humanTime)
	}
	if got, runs := report.ReceivedETag, report.RunningETag; got != "" && runs != "" && !checkin.SameETag(got, runs) {
		view.Behind = "runs " + shortTag(runs) + ", was given " + shortTag(got)
	}
	if h := report.Hold; h != nil {
		view.Held = describeHold(*h, now, ahead)
		if report.Outcome == checkin.OutcomeHeld {
			view.Message = "" // it repeats the hold
		}
	}
	for _, q := range report.Quarantined {
		record := q.Kind + " " + readable(q.Name)
		if q.ID != 0 {
			record += " (" + strconv.FormatInt(q.ID, 10) + ")"
		}
		view.Quarantined = append(view.Quarantined, quarantinedView{Record: record, Reason: q.Reason, KeptPrevious: q.KeptPrevious})
	}
	return view
}

// meanings explain the outcomes that somebody may have to act on.
var meanings = map[checkin.Outcome]string{
	checkin.OutcomeRejected:   "Refused before anything was changed: the previous configuration goes on.",
	checkin.OutcomeRolledBack: "The new configuration did not come alive: the previous one runs again.",
	checkin.OutcomeStuck:      "Going back to the previous configuration failed, too. Somebody has to look at the host: opensource-agent status.",
}

// clockAhead is how far an agent's clock is ahead, if that is worth telling.
func clockAhead(a store.Agent) time.Duration {
	if a.ClockSkewMS == nil {
		return 0
	}
	ahead := time.Duration(*a.ClockSkewMS) * time.Millisecond
	if ahead.Abs() <= skewWorthTelling {
		return 0
	}
	return ahead
}

// describeHold says how long a service is held on, why and by whom. A hold ends
// by the agent's clock; the page shows times by the manager's.
func describeHold(h checkin.Hold, now time.Time, ahead time.Duration) string {
	until := h.Until.Add(-ahead)
	left := until.Sub(now.Truncate(time.Second)) // holds are of whole seconds
	words := "On hold for " + countdown(left) + " more, until "
	if left <= 0 {
		words = "Was on hold until "
	}
	words += until.UTC().Format(humanTime)
	if h.By != "" {
		words += ", by " + h.By
	}
	if h.Reason != "" {
		words += ": " + h.Reason
	}
	if left <= 0 {
		words += ". The next pass goes on."
	}
	return words
}

func stateClass(state string) string {
	switch state {
	case "active":
		return good
	case "failed":
		return bad
	case "inactive", "activating", "deactivating", "reloading":
		return warn
	}
	return neutral
}

// applied says how the latest apply ended.
func applied(report checkin.ServiceReport) (words, class string) {
	words, class = "last apply: "+string(cmp.Or(report.LastApply, checkin.ApplyUnknown)), neutral
	switch {
	case report.Failing():
		class = bad
	case len(report.Quarantined) > 0:
		class = warn
	case report.Working():
		class = good
	}
	switch n := len(report.Quarantined); {
	case report.Outcome == checkin.OutcomeHeld:
		return "on hold, " + words, warn
	case report.Outcome == checkin.OutcomeSkipped:
		class = warn
	case n > 0 && inForce(report.Outcome):
		return fmt.Sprintf("last apply: %s, %s", report.Outcome, refused(report.Quarantined)), warn
	}
	if report.Outcome != "" {
		words += ", " + strings.ReplaceAll(string(report.Outcome), "_", " ")
	}
	return words, class
}

// refused counts the records that are not in force as they were sent.
func refused(items []checkin.QuarantinedItem) string {
	kept := 0
	for _, item := range items {
		if item.KeptPrevious {
			kept++
		}
	}
	var words []string
	if left := len(items) - kept; left > 0 {
		words = append(words, fmt.Sprintf("%d left out", left))
	}
	if kept > 0 {
		words = append(words, fmt.Sprintf("%d kept as before", kept))
	}
	return strings.Join(words, ", ")
}

// inForce reports whether a service runs what it was sent, records that were
// left out apart.
func inForce(outcome checkin.Outcome) bool {
	return outcome == checkin.OutcomeApplied || outcome == checkin.OutcomeUnchanged
}

func describeVolume(v store.Volume) volumeView {
	view := volumeView{Path: v.HostPath, Status: string(v.Status), Message: v.StatusMessage}
	switch v.Status {
	case store.VolumeReady:
		view.Class = good
	case store.VolumeFailed:
		view.Class = bad
	}
	return view
}

func running(r *checkin.Running) string {
	if r == nil {
		return ""
	}
	return fmt.Sprintf("%s since %s", shortTag(r.ETag), r.Since.UTC().Format(humanTime))
}

// shortTag is enough of a tag to tell it from others.
func shortTag(etag string) string {
	tag := strings.Trim(etag, `"`)
	if len(tag) > 12 {
		tag = tag[:12]
	}
	return tag
}

// warnings are what does not belong to a service or volume.
func warnings(a store.Agent, now time.Time) []string {
	var all []string
	if a.Report.Fault != nil {
		all = append(all, "Its last report could not be read.")
	}
	switch ahead := clockAhead(a); {
	case a.ClockSkewMS == nil:
		all = append(all, "Its clock could not be read from the check-in.")
	case ahead > 0:
		all = append(all, "Its clock is "+span(ahead)+" ahead of the manager's.")
	case ahead < 0:
		all = append(all, "Its clock is "+span(-ahead)+" behind the manager's.")
	}
	for _, domain := range slices.Sorted(maps.Keys(a.Report.Certificates)) {
		if warning := certificateWarning(domain, a.Report.Certificates[domain], now); warning != "" {
			all = append(all, warning)
		}
	}
	return all
}

func certificateWarning(domain string, c checkin.Certificate, now time.Time) string {
	if c.State == checkin.CertificateOK && !c.Fallback {
		return ""
	}
	words := fmt.Sprintf("Certificate of %s: %s", readable(domain), c.State)
	if c.NotAfter != nil {
		if left := c.NotAfter.Sub(now); left > 0 {
			words += ", valid for " + span(left) + " more"
		} else {
			words += ", since " + span(-left)
		}
	}
	if c.Fallback {
		words += "; the self-signed one is served instead"
	}
	return words + "."
}

// readable shows an internationalised name as people write it, beside the form
// it is served under: two that look alike stay apart.
func readable(name string) string {
	written, err := idna.Display.ToUnicode(name)
	if err != nil || written == name {
		return name
	}
	return written + " (" + name + ")"
}

// counts sums the list up.
func (l agentList) counts() []count {
	numbers := map[string]int{}
	trouble := 0
	for _, a := range l.Agents {
		numbers[a.Status]++
		if a.Status == string(store.Online) && a.Class != good {
			trouble++
		}
	}
	var counts []count
	for _, c := range []count{
		{numbers[string(store.Online)], "online", good},
		{trouble, "of them with problems", warn},
		{numbers[string(store.Late)], "late", warn},
		{numbers[string(store.Offline)], "offline", bad},
	} {
		if c.N > 0 {
			counts = append(counts, c)
		}
	}
	return counts
}

// restored says what became of an edit. Those that are made while a service is
// held are not told.
func (s serviceView) restored() string {
	when := ""
	if s.Held != "" {
		when = " before the hold"
	}
	if s.Restored {
		return when + " and restored"
	}
	return when + ", and not restored"
}

// anchor is the id of a part of the card.
func (a agentView) anchor(part string) string { return fmt.Sprintf("agent-%d-%s", a.ID, part) }

func (a agentView) volumeSummary() string {
	numbers := map[string]int{}
	for _, v := range a.Volumes {
		numbers[v.Status]++
	}
	var parts []string
	for _, status := range []store.VolumeStatus{store.VolumeReady, store.VolumePending, store.VolumeFailed} {
		if n := numbers[string(status)]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, status))
		}
	}
	return "Volumes: " + strings.Join(parts, ", ")
}

func ago(d time.Duration) string {
	if d < time.Second {
		return "just now"
	}
	return span(d) + " ago"
}

// span is a duration in its largest unit, as people say it.
func span(d time.Duration) string {
	if d > time.Minute {
		d = d.Round(time.Minute)
	}
	for _, unit := range []struct {
		length time.Duration
		name   string
	}{{24 * time.Hour, "day"}, {time.Hour, "hour"}, {time.Minute, "minute"}} {
		if n := d / unit.length; n >= 1 {
			if n == 1 {
				return "1 " + unit.name
			}
			return fmt.Sprintf("%d %ss", n, unit.name)
		}
	}
	return fmt.Sprintf("%d s", d/time.Second)
}

// countdown is a time that is left, in its two largest units.
func countdown(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", max(0, d)/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d < 24*time.Hour:
		return fmt.Sprintf("%d h %d min", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%d d %d h", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
}
