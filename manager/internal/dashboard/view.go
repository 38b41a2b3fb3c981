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
	Services      []serviceView
	Volumes       []volumeView
	FailedVolumes int
}

type serviceView struct {
	Name        string
	State       string
	StateClass  string
	Apply       string
	ApplyClass  string
	Applied     string
	AppliedAt   time.Time
	Message     string
	Held        string
	Quarantined []quarantinedView
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

// readAgents reads all agents with what the page says about them.
func (d *dashboard) readAgents(ctx context.Context, now time.Time) (agentList, error) {
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
	list := agentList{Now: now.UTC(), NoSites: len(sites) == 0}
	for _, a := range agents {
		list.Agents = append(list.Agents, describe(a, names[a.SiteID], bySite[a.SiteID], now))
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
		Warnings: warnings(a, now),
	}
	if a.Report.Agent != nil {
		view.Version = a.Report.Agent.Version
	}
	for _, name := range slices.Sorted(maps.Keys(a.Report.Services)) {
		view.Services = append(view.Services, describeService(name, a.Report.Services[name]))
	}
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
	if len(a.Warnings) > 0 {
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

func describeService(name string, report checkin.ServiceReport) serviceView {
	view := serviceView{
		Name: name, State: cmp.Or(report.State, checkin.StateUnknown), StateClass: stateClass(report.State),
		Message: report.Message, Drift: report.Drift,
	}
	view.Apply, view.ApplyClass = applied(report)
	if len(report.Quarantined) > 0 && inForce(report.Outcome) {
		view.Message = "" // it repeats what is listed as left out
	}
	if report.AppliedAt != nil {
		view.AppliedAt = report.AppliedAt.UTC()
		view.Applied = view.AppliedAt.Format(humanTime)
	}
	if h := report.Hold; h != nil {
		view.Held = fmt.Sprintf("Held by %s until %s: %s", h.By, h.Until.UTC().Format(humanTime), h.Reason)
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
	switch report.LastApply {
	case checkin.ApplySuccess:
		class = good
	case checkin.ApplyFailure:
		class = bad
	}
	if report.Outcome != "" {
		words += ", " + strings.ReplaceAll(string(report.Outcome), "_", " ")
	}
	if report.Outcome == checkin.OutcomeSkipped || report.Outcome == checkin.OutcomeHeld {
		class = warn
	}
	if n := len(report.Quarantined); n > 0 && inForce(report.Outcome) {
		return fmt.Sprintf("last apply: %s, %d left out", report.Outcome, n), warn
	}
	return words, class
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
	tag := strings.Trim(r.ETag, `"`)
	if len(tag) > 12 {
		tag = tag[:12]
	}
	return fmt.Sprintf("%s since %s", tag, r.Since.UTC().Format(humanTime))
}

// warnings are what does not belong to a service or volume.
func warnings(a store.Agent, now time.Time) []string {
	var all []string
	if a.Report.Fault != nil {
		all = append(all, "Its last report could not be read.")
	}
	switch {
	case a.ClockSkewMS == nil:
		all = append(all, "Its clock could not be read from the check-in.")
	default:
		skew := time.Duration(*a.ClockSkewMS) * time.Millisecond
		if skew > skewWorthTelling {
			all = append(all, "Its clock is "+span(skew)+" ahead of the manager's.")
		} else if skew < -skewWorthTelling {
			all = append(all, "Its clock is "+span(-skew)+" behind the manager's.")
		}
	}
	for _, domain := range slices.Sorted(maps.Keys(a.Report.Certificates)) {
		if warning := certificateWarning(domain, a.Report.Certificates[domain], now); warning != "" {
			all = append(all, warning)
		}
	}
	if g := a.Report.Guard; g != nil {
		all = append(all, fmt.Sprintf("Held back: the new configuration would remove %d of %d records.", g.Removed, g.Total))
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
