package dashboard

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/idna"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/prose"
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

// fact is one line of what an agent told about its host.
type fact struct{ Name, Value string }

type serviceView struct {
	Name       string
	State      string
	StateClass string
	ApplyClass string
	Applied    string
	AppliedAt  time.Time
	Message    string
	Held       string
	Drifted    string // when files were found edited
	DriftedAt  time.Time
	Restored   bool // the edit was undone
	Drift      []checkin.Drift
}

type volumeView struct {
	Path    string
	Status  string
	Class   string
	Message string
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

// describeService puts a report into words. Ahead is how far the agent's clock is
// ahead of now.
func describeService(name string, report checkin.ServiceReport, now time.Time, ahead time.Duration) serviceView {
	view := serviceView{
		Name: name, State: cmp.Or(report.State, checkin.StateUnknown), StateClass: stateClass(report.State),
		ApplyClass: applyClass(report), Message: report.Message,
	}
	if report.Unwanted() || len(report.Quarantined) > 0 && inForce(report.Outcome) {
		view.Message = "" // it repeats what is listed as left out, or is no news
	}
	if report.AppliedAt != nil {
		view.AppliedAt = report.AppliedAt.UTC()
		view.Applied = toldTime(view.AppliedAt, now)
	}
	if h := report.Hold; h != nil {
		view.Held = describeHold(*h, now, ahead)
		if report.Outcome == checkin.OutcomeHeld {
			view.Message = "" // it repeats the hold
		}
	}
	return view
}

// outcomes say what became of a configuration: in a word where there is little
// room, as what happened, and of a failure what it means.
var outcomes = map[checkin.Outcome]struct{ word, happened, meaning string }{
	checkin.OutcomeUnchanged: {"in force", "In force", ""},
	checkin.OutcomeApplied:   {"in force", "In force", ""},
	checkin.OutcomeSkipped:   {"not managed", "Not managed", ""},
	checkin.OutcomeHeld:      {"on hold", "On hold", ""},
	checkin.OutcomeRejected: {
		"rejected", "Refused before anything was changed",
		"Refused before anything was changed: the previous configuration goes on.",
	},
	checkin.OutcomeRolledBack: {
		"rolled back", "Did not work, and was taken back",
		"The new configuration did not come alive: the previous one runs again.",
	},
	checkin.OutcomeStuck: {
		"stuck", "Did not work, and going back failed too",
		"Going back to the previous configuration failed, too. Somebody has to look at the host: opensource-agent status.",
	},
}

// clockAhead is how far an agent's clock is ahead, if that is worth telling.
func clockAhead(a store.Agent) time.Duration {
	if a.ClockSkewMS == nil {
		return 0
	}
	ahead := time.Duration(*a.ClockSkewMS) * time.Millisecond
	if ahead.Abs() <= store.SkewWorthTelling {
		return 0
	}
	return ahead
}

// toldTime is a time that an agent has told of something it did.
func toldTime(at, now time.Time) string {
	words := at.UTC().Format(humanTime)
	if isAhead(at, now) {
		words += ", ahead of the manager's clock"
	}
	return words
}

// isAhead reports whether what is said to have been is yet to come.
func isAhead(at, now time.Time) bool { return at.Sub(now) > store.SkewWorthTelling }

// maxReason is how much is shown of what somebody on a host gave as a reason, in
// bytes.
const maxReason = 300

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
		words += ", by " + prose.Cut(h.By, maxReason)
	}
	if h.Reason != "" {
		words += ": " + prose.Cut(h.Reason, maxReason)
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

// applyClass says how the latest apply is to be felt about.
func applyClass(report checkin.ServiceReport) string {
	switch {
	case report.Outcome == checkin.OutcomeHeld:
		return warn
	case report.Unwanted():
		return neutral
	case report.Outcome == checkin.OutcomeSkipped:
		return warn
	case report.Failing():
		return bad
	case len(report.Quarantined) > 0:
		return warn
	case report.Working():
		return good
	}
	return neutral
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

// recordNames are the first records that were refused.
func recordNames(items []checkin.QuarantinedItem) string {
	var names []string
	for _, item := range items[:min(len(items), maxLinks)] {
		names = append(names, item.Kind+" "+readable(item.Name))
	}
	if more := len(items) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
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

// shortTag is enough of a tag to tell it from others.
func shortTag(etag string) string {
	tag := strings.Trim(etag, `"`)
	if len(tag) > 12 {
		tag = tag[:12]
	}
	return tag
}

// hostWarnings are about the check-in itself.
func hostWarnings(a store.Agent) []string {
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
	return all
}

func certificateWarnings(a store.Agent, now time.Time) []string {
	var all []string
	for _, domain := range slices.Sorted(maps.Keys(a.Report.Certificates)) {
		if warning := certificateWarning(domain, a.Report.Certificates[domain], now); warning != "" {
			all = append(all, warning)
		}
	}
	return all
}

func certificateWarning(domain string, c checkin.Certificate, now time.Time) string {
	state := c.StateAt(now)
	if state == checkin.CertificateOK && !c.Fallback {
		return ""
	}
	words := fmt.Sprintf("Certificate of %s: %s", readable(domain), state)
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
