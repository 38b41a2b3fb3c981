package status

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"opensource.internal/agent/checkin"
	"opensource.internal/agent/internal/pass"
)

// Write tells the status in words, with times of this host's time zone.
func (s Status) Write(out io.Writer) error {
	t := text{now: s.At}
	t.site(s)
	for _, service := range s.Services {
		t.service(service)
	}
	t.volumes(s.Volumes)
	t.certificates(s.Certificates)
	t.probes(s.Probes)
	t.rest(s)
	_, err := io.WriteString(out, t.String())
	return err
}

// text is what was written so far.
type text struct {
	strings.Builder
	now time.Time
}

// line writes a line. What comes from elsewhere is made fit for a terminal.
func (t *text) line(format string, args ...any) {
	t.WriteString(checkin.CleanMessage(fmt.Sprintf(format, args...), checkin.MaxMessage) + "\n")
}

// paragraph is line, after an empty one.
func (t *text) paragraph(format string, args ...any) {
	t.WriteByte('\n')
	t.line(format, args...)
}

// below writes one or more lines, indented, under what they belong to.
func (t *text) below(format string, args ...any) {
	said := checkin.CleanMessage(fmt.Sprintf(format, args...), checkin.MaxMessage)
	t.WriteString("  " + strings.ReplaceAll(said, "\n", "\n    ") + "\n")
}

func (t *text) site(s Status) {
	switch {
	case s.Snapshot == nil:
		t.line("no site: no snapshot of the manager was ever accepted")
	case s.Site == nil:
		t.line("no site: the manager does not know it yet")
	default:
		t.line("site %d %s: %s", s.Site.ID, s.Site.Name, t.inForce(s))
	}
	if s.Snapshot != nil {
		t.below("snapshot%s accepted %s", after(" ", ShortTag(s.Snapshot.ETag)), t.ago(s.Snapshot.AcceptedAt))
	}
	if s.Running != nil && s.Running.ETag != s.Snapshot.tag() {
		t.below("the last one that was in force as a whole is %s, since %s", ShortTag(s.Running.ETag), t.ago(s.Running.Since))
	}
	if s.Guard != nil {
		t.below("snapshot %s is held back: it removes %s", ShortTag(s.Guard.ETag), pass.Removals(*s.Guard))
	}
	t.lastPass(s.LastPass)
	if s.NextPass != nil {
		t.below("next pass by the timer in %s", span(s.NextPass.Sub(t.now)))
	} else if s.timerAsked && (s.LastPass == nil || !s.LastPass.Running) {
		t.below("no next pass: the timer is stopped (systemctl start %s)", timer)
	}
}

func (s *Snapshot) tag() string {
	if s == nil {
		return ""
	}
	return s.ETag
}

func (t *text) inForce(s Status) string {
	switch {
	case s.ExitCode == pass.NeedsAPerson:
		return "needs a person"
	case s.ExitCode != pass.Settled:
		return "not all of it is in force"
	case s.Running != nil && s.Running.ETag == s.Snapshot.tag():
		return "all in force since " + t.ago(s.Running.Since)
	}
	return "not in force as a whole yet"
}

func (t *text) lastPass(last *LastPass) {
	if last == nil {
		return
	}
	if last.Running {
		t.below("a pass is running")
	}
	switch {
	case last.EndedAt == nil:
	case last.Signal != nil:
		t.below("last pass by the timer was killed by signal %d %s", *last.Signal, t.ago(*last.EndedAt))
	default:
		t.below("last pass by the timer ended %s with %d: %s", t.ago(*last.EndedAt), *last.ExitCode, pass.Code(*last.ExitCode))
	}
}

func (t *text) service(s Service) {
	t.paragraph("%s: %s, %s", s.Name, s.State, t.outcome(s))
	if s.Hold != nil {
		t.below("held for another %s, until %s%s%s", span(s.Hold.Until.Sub(t.now)), local(s.Hold.Until), after(" by ", s.Hold.By), after(": ", s.Hold.Reason))
	}
	for _, left := range s.Quarantined {
		what := "left out"
		if left.KeptPrevious {
			what = "its previous version stays"
		}
		t.below("%s: %s: %s", what, pass.RecordName(left), left.Reason)
	}
	if s.Message != "" && len(s.Quarantined) == 0 && s.Outcome != checkin.OutcomeHeld && s.Outcome != checkin.OutcomeSkipped {
		t.below("%s", s.Message)
	}
	if f := s.Failure; f != nil {
		what := "failing"
		if len(s.Quarantined) > 0 {
			what = "refused"
		}
		t.below("%s%s, tried %s, again %s", what, after(" since ", t.since(f.Since)), times(f.Count), t.next(f.Next))
	}
	for _, drift := range s.Drift {
		if !s.Outcome.Failed() {
			t.below("was edited by somebody else and restored: %s", drift.Path)
		}
	}
	for _, path := range s.Edited {
		t.below("edited by somebody else: %s", path)
	}
	if s.CutShort {
		t.below("a pass was cut short: the next one finishes or undoes what it has begun")
	}
}

// outcome says what became of the latest apply.
func (t *text) outcome(s Service) string {
	applied := ""
	if s.AppliedAt != nil {
		applied = ", applied " + t.ago(*s.AppliedAt)
	}
	switch s.Outcome {
	case checkin.OutcomeUnchanged, checkin.OutcomeApplied:
		switch len(s.Quarantined) {
		case 0:
		case 1:
			return "in force but for one record" + applied
		default:
			return fmt.Sprintf("in force but for %d records%s", len(s.Quarantined), applied)
		}
		return "in force" + applied
	case checkin.OutcomeSkipped:
		return s.Message
	case checkin.OutcomeRejected:
		return "the new configuration was refused, the one before stays" + applied
	case checkin.OutcomeRolledBack:
		return "the new configuration failed and was undone, the one before is in force" + applied
	case checkin.OutcomeStuck:
		return "the new configuration failed, and so did undoing it: needs a person"
	case checkin.OutcomeHeld:
		return "held" + applied
	}
	return "nothing was ever applied"
}

func (t *text) volumes(volumes map[string]checkin.VolumeReport) {
	if len(volumes) == 0 {
		return
	}
	failed := 0
	for _, volume := range volumes {
		if !volume.Applied {
			failed++
		}
	}
	t.paragraph("volumes: %d ready, %d failed", len(volumes)-failed, failed)
	for _, id := range slices.SortedFunc(maps.Keys(volumes), byNumber) {
		switch volume := volumes[id]; {
		case !volume.Applied:
			t.below("%s failed: %s", id, volume.Message)
		case volume.Message != "":
			t.below("%s ready: %s", id, volume.Message)
		}
	}
}

// byNumber orders decimal numbers.
func byNumber(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}

func (t *text) certificates(certificates map[string]Certificate) {
	if len(certificates) == 0 {
		return
	}
	t.paragraph("certificates")
	for _, domain := range slices.Sorted(maps.Keys(certificates)) {
		c := certificates[domain]
		line := fmt.Sprintf("%s: %s", domain, c.State)
		if c.NotAfter != nil {
			line += fmt.Sprintf(", until %s (%s)", local(*c.NotAfter), t.from(*c.NotAfter))
		}
		if c.Fallback {
			line += ", the self-signed one is served instead"
		}
		t.below("%s%s", line, after("\n", c.Note))
	}
}

// maxProbes is how many probes that fail are listed.
const maxProbes = 20

func (t *text) probes(probes map[string]Probe) {
	if len(probes) == 0 {
		return
	}
	var failing []string
	var latest time.Time
	for _, name := range slices.Sorted(maps.Keys(probes)) {
		if probes[name].Hop != checkin.HopNone {
			failing = append(failing, name)
		}
		if at := probes[name].At; at.After(latest) {
			latest = at
		}
	}
	t.paragraph("site probes: %d of %d services can be reached, probed %s", len(probes)-len(failing), len(probes), t.ago(latest))
	for i, name := range failing {
		if i == maxProbes {
			t.below("and %d more: status --json has them all", len(failing)-i)
			return
		}
		t.below("%s: %s: %s", name, probes[name].Hop, probes[name].Message)
	}
}

func (t *text) rest(s Status) {
	if len(s.Agent.Templates) > 0 {
		t.paragraph("templates of this host: %s", strings.Join(s.Agent.Templates, ", "))
	}
	if len(s.Warnings) > 0 {
		t.paragraph("not found out")
	}
	for _, warning := range s.Warnings {
		t.below("%s", warning)
	}
}

// ShortTag is enough of a tag to tell it from others.
func ShortTag(etag string) string {
	const enough = 12
	etag = strings.Trim(etag, `"`)
	if len(etag) > enough {
		etag = etag[:enough] + "…"
	}
	return etag
}

// after puts a word before something, if there is something.
func after(word, something string) string {
	if something == "" {
		return ""
	}
	return word + something
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

func local(at time.Time) string { return at.Local().Format("2006-01-02 15:04:05 MST") }

// ago is a time that has passed, such as "2026-12-01 10:00:00 CET (5 min ago)".
func (t *text) ago(at time.Time) string {
	return fmt.Sprintf("%s (%s ago)", local(at), span(t.now.Sub(at)))
}

// since is ago, or nothing for a time that is not known.
func (t *text) since(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return t.ago(at)
}

// from says how far a time is from now.
func (t *text) from(at time.Time) string {
	if at.Before(t.now) {
		return span(t.now.Sub(at)) + " ago"
	}
	return "in " + span(at.Sub(t.now))
}

// next is when something is tried again.
func (t *text) next(at time.Time) string {
	if !at.After(t.now) {
		return "in the next pass"
	}
	return "in " + span(at.Sub(t.now))
}

// span is a duration in the two units that matter. One below zero, of a clock
// that was set back, is none.
func span(d time.Duration) string {
	const day = 24 * time.Hour
	d = max(d, 0)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d < day:
		return fmt.Sprintf("%d h %d min", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%d d %d h", d/day, d%day/time.Hour)
}
