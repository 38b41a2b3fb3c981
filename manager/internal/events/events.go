// Package events turns what agents report into what has happened: it compares a
// report with the one before and says in plain words what is new. It is pure.
package events

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/prose"
)

// Kind is what has happened.
type Kind string

// The kinds of events. What ends something has a kind of its own.
const (
	FirstSeen            Kind = "first_seen"
	Offline              Kind = "offline"
	Back                 Kind = "back"
	ApplyFailed          Kind = "apply_failed"
	Stuck                Kind = "stuck" // a rollback failed: needs a person
	ApplyRecovered       Kind = "apply_recovered"
	Drift                Kind = "drift"
	Quarantined          Kind = "quarantined"
	QuarantineCleared    Kind = "quarantine_cleared"
	VolumeFailed         Kind = "volume_failed"
	VolumeReady          Kind = "volume_ready"
	CertificateExpiring  Kind = "certificate_expiring"
	CertificateExpired   Kind = "certificate_expired"
	CertificateFaulty    Kind = "certificate_faulty" // missing, mismatched or unreadable
	CertificateRecovered Kind = "certificate_recovered"
	GuardHeld            Kind = "guard_held"
	GuardReleased        Kind = "guard_released"
	HoldBegun            Kind = "hold_begun"
	HoldEnded            Kind = "hold_ended"
	AgentUpdated         Kind = "agent_updated"
	LeftOut              Kind = "events_left_out" // there were too many
)

// Severity is how much an event wants somebody's attention.
type Severity string

// The severities.
const (
	Info    Severity = "info"
	Warning Severity = "warning"
	Error   Severity = "error"
)

// severities are those that are not Info.
var severities = map[Kind]Severity{
	Offline: Error, ApplyFailed: Error, Stuck: Error, VolumeFailed: Error, CertificateExpired: Error, CertificateFaulty: Error,
	Drift: Warning, Quarantined: Warning, CertificateExpiring: Warning, GuardHeld: Warning, LeftOut: Warning,
}

// Kinds are all kinds of events.
func Kinds() []Kind {
	return []Kind{
		FirstSeen, Offline, Back, ApplyFailed, Stuck, ApplyRecovered, Drift, Quarantined, QuarantineCleared,
		VolumeFailed, VolumeReady, CertificateExpiring, CertificateExpired, CertificateFaulty, CertificateRecovered,
		GuardHeld, GuardReleased, HoldBegun, HoldEnded, AgentUpdated, LeftOut,
	}
}

// Event is something that has happened to an agent or its site.
type Event struct {
	Kind     Kind
	Severity Severity
	Summary  string // one line for people
	Detail   Detail
}

// Detail is what there is to know beyond the summary, by JSON name. It is small:
// texts are cut, and of long lists only the beginning is in it.
type Detail map[string]any

// The sizes of an event: of the summary and of the texts in the detail in bytes,
// of lists in items.
const (
	maxSummary = 300
	maxText    = 2 << 10
	maxItems   = 20
)

func event(kind Kind, detail Detail, format string, args ...any) Event {
	summary := strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", " ")
	return Event{Kind: kind, Severity: cmp.Or(severities[kind], Info), Summary: prose.Cut(summary, maxSummary), Detail: detail}
}

// OfNewAgent is that an agent has checked in for the first time.
func OfNewAgent(report checkin.Request) Event {
	if version := versionOf(report); version != "" {
		return event(FirstSeen, Detail{"version": version}, "checked in for the first time, version %s", version)
	}
	return event(FirstSeen, nil, "checked in for the first time")
}

// OfSilence is that nothing was heard of an agent since a moment.
func OfSilence(lastSeen time.Time) Event {
	return event(Offline, Detail{"lastSeenAt": lastSeen.UTC()}, "has not checked in since %s", prose.Minute(lastSeen))
}

// OfReturn is that an agent checks in again that was offline.
func OfReturn(lastSeen, at time.Time) Event {
	return event(Back, Detail{"lastSeenAt": lastSeen.UTC()}, "checks in again, after %s", words(at.Sub(lastSeen)))
}

// OfTooMany is that no more events of a site are kept for a while.
func OfTooMany(number int, period time.Duration) Event {
	return event(LeftOut, nil, "more than %d events of this site within %s: further ones are left out until there are fewer", number, words(period))
}

// Between is what has happened between two reports of an agent. Equal ones have
// nothing in between; before the first there is the zero value.
func Between(before, after checkin.Request) []Event {
	var list []Event
	names := maps.Clone(before.Services)
	if names == nil {
		names = map[string]checkin.ServiceReport{}
	}
	maps.Copy(names, after.Services)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		was := before.Services[name]
		is, reported := after.Services[name]
		if !reported {
			list = append(list, ofAbsence(name, was)...)
			continue
		}
		list = append(list, ofApply(name, was, is)...)
		list = append(list, ofDrift(name, was, is)...)
		list = append(list, ofQuarantine(name, was, is)...)
		list = append(list, ofHold(name, was.Hold, is.Hold)...)
	}
	list = append(list, ofCertificates(before, after)...)
	list = append(list, ofGuard(before.Guard, after.Guard)...)
	return append(list, ofVersion(versionOf(before), versionOf(after))...)
}

// outcomes are those that failed, in words.
var outcomes = map[checkin.Outcome]string{
	checkin.OutcomeRejected:   "the new configuration was refused, the one before stays in force",
	checkin.OutcomeRolledBack: "the new configuration did not work, the one before is in force again",
	checkin.OutcomeStuck:      "the new configuration did not work, and going back failed: look at the host",
}

func ofApply(name string, was, is checkin.ServiceReport) []Event {
	stuck := is.Outcome == checkin.OutcomeStuck
	kind := ApplyFailed
	switch {
	case stuck && was.Outcome != checkin.OutcomeStuck:
		kind = Stuck
	case is.Failing() && !was.Failing():
	case is.Outcome.Failed() && !stuck && is.ReceivedETag != was.ReceivedETag: // another configuration that fails
	case was.Failing() && is.Outcome == checkin.OutcomeSkipped:
		return []Event{event(ApplyRecovered, Detail{"service": name}, "%s: there is nothing to manage any more%s", name, quoted(is.Message))}
	case was.Failing() && is.Working():
		return []Event{event(ApplyRecovered, Detail{"service": name, "etag": is.RunningETag}, "%s: the configuration is in force again", name)}
	default:
		return nil
	}
	detail := Detail{"service": name, "outcome": is.Outcome, "message": text(is.Message), "etag": is.ReceivedETag}
	return []Event{event(kind, detail, "%s: %s%s", name, cmp.Or(outcomes[is.Outcome], "the last apply failed"), quoted(is.Message))}
}

// ofAbsence ends what was wrong with a service of which an agent says nothing
// any more: it is no trouble that could be looked after.
func ofAbsence(name string, was checkin.ServiceReport) []Event {
	var list []Event
	if was.Failing() {
		list = append(list, event(ApplyRecovered, Detail{"service": name}, "%s: is not reported any more", name))
	}
	if gone := was.Quarantined; len(gone) > 0 {
		detail := Detail{"service": name, "records": records(gone), "total": len(gone)}
		list = append(list, event(QuarantineCleared, detail, "%s: is not reported any more, nor what was left out: %s", name, naming(gone)))
	}
	if was.Hold != nil {
		list = append(list, event(HoldEnded, Detail{"service": name}, "%s: is not reported any more, nor its hold", name))
	}
	return list
}

func ofDrift(name string, was, is checkin.ServiceReport) []Event {
	if len(is.Drift) == 0 || slices.Equal(was.Drift, is.Drift) {
		return nil
	}
	var paths []string
	var diffs []Detail
	left := maxText
	for _, drift := range is.Drift[:min(len(is.Drift), maxItems)] {
		paths = append(paths, drift.Path)
		diff := prose.Cut(drift.Diff, left)
		left -= len(diff)
		diffs = append(diffs, Detail{"path": prose.Cut(drift.Path, maxSummary), "diff": diff})
	}
	done := "restored"
	if is.Outcome.Failed() {
		done = "not restored, since the service refuses what was to take their place"
	}
	return []Event{event(Drift, Detail{"service": name, "files": diffs, "restored": !is.Outcome.Failed()},
		"%s: edited on the host and %s: %s", name, done, strings.Join(paths, ", "))}
}

type item struct {
	kind string
	id   int64
	name string
}

func ofQuarantine(name string, was, is checkin.ServiceReport) []Event {
	added, gone := without(is.Quarantined, was.Quarantined), without(was.Quarantined, is.Quarantined)
	var list []Event
	if len(added) > 0 {
		detail := Detail{"service": name, "records": records(added), "total": len(added)}
		list = append(list, event(Quarantined, detail, "%s: left out %s, the rest is in force%s", name, naming(added), quoted(added[0].Reason)))
	}
	if len(gone) > 0 {
		detail := Detail{"service": name, "records": records(gone), "total": len(gone)}
		list = append(list, event(QuarantineCleared, detail, "%s: no longer left out: %s", name, naming(gone)))
	}
	return list
}

func without(all, others []checkin.QuarantinedItem) []checkin.QuarantinedItem {
	known := map[item]bool{}
	for _, q := range others {
		known[item{q.Kind, q.ID, q.Name}] = true
	}
	var rest []checkin.QuarantinedItem
	for _, q := range all {
		if !known[item{q.Kind, q.ID, q.Name}] {
			rest = append(rest, q)
		}
	}
	return rest
}

func records(items []checkin.QuarantinedItem) []Detail {
	var list []Detail
	for _, q := range items[:min(len(items), maxItems)] {
		list = append(list, Detail{"kind": q.Kind, "id": q.ID, "name": prose.Cut(q.Name, maxSummary), "reason": prose.Cut(q.Reason, maxSummary), "keptPrevious": q.KeptPrevious})
	}
	return list
}

func naming(items []checkin.QuarantinedItem) string {
	var names []string
	for _, q := range items {
		names = append(names, q.Kind+" "+q.Name)
	}
	return prose.Some(names)
}

func ofHold(name string, was, is *checkin.Hold) []Event {
	switch {
	case is == nil && was == nil,
		is != nil && was != nil && is.Until.Equal(was.Until) && is.By == was.By && is.Reason == was.Reason:
		return nil
	case is == nil:
		return []Event{event(HoldEnded, Detail{"service": name}, "%s: the hold has ended, changes are applied again", name)}
	}
	detail := Detail{"service": name, "until": is.Until.UTC(), "by": is.By, "reason": text(is.Reason)}
	return []Event{event(HoldBegun, detail, "%s: held by %s until %s%s", name, cmp.Or(is.By, "somebody"), prose.Minute(is.Until), quoted(is.Reason))}
}

// certificateKinds are what states of certificates mean; other ones say nothing.
var certificateKinds = map[checkin.CertificateState]Kind{
	checkin.CertificateOK: CertificateRecovered, checkin.CertificateExpiring: CertificateExpiring, checkin.CertificateExpired: CertificateExpired,
	checkin.CertificateMissing: CertificateFaulty, checkin.CertificateMismatch: CertificateFaulty, checkin.CertificateUnreadable: CertificateFaulty,
}

var certificateWords = map[Kind]string{
	CertificateExpiring: "about to expire", CertificateExpired: "expired", CertificateFaulty: "cannot be used",
	CertificateRecovered: "in order again",
}

// ofCertificates is one event for all domains to which the same has happened.
func ofCertificates(before, after checkin.Request) []Event {
	domains := map[Kind][]string{}
	for domain, is := range after.Certificates {
		was, known := before.Certificates[domain]
		kind := certificateKinds[is.State]
		if is.State == was.State || kind == "" || kind == CertificateRecovered && (!known || certificateKinds[was.State] == "") {
			continue
		}
		domains[kind] = append(domains[kind], domain)
	}
	// What is not used any more is no trouble any more. Agents of an earlier
	// generation say nothing about certificates at all.
	for domain, was := range before.Certificates {
		_, still := after.Certificates[domain]
		if kind := certificateKinds[was.State]; !still && after.Agent != nil && kind != "" && kind != CertificateRecovered {
			domains[CertificateRecovered] = append(domains[CertificateRecovered], domain)
		}
	}
	var list []Event
	for _, kind := range []Kind{CertificateExpired, CertificateFaulty, CertificateExpiring, CertificateRecovered} {
		if names := domains[kind]; len(names) > 0 {
			slices.Sort(names)
			list = append(list, ofCertificate(kind, names, after.Certificates))
		}
	}
	return list
}

func ofCertificate(kind Kind, names []string, certificates map[string]checkin.Certificate) Event {
	var shown []string
	var details []Detail
	for i, domain := range names {
		is, used := certificates[domain]
		words := domain
		switch {
		case !used:
			words += " (not used any more)"
		case kind == CertificateFaulty:
			words += " (" + string(is.State) + ")"
		case kind != CertificateRecovered && is.NotAfter != nil:
			words += " (" + prose.Minute(*is.NotAfter) + ")"
		}
		shown = append(shown, words)
		if i < maxItems {
			details = append(details, Detail{"domain": domain, "state": is.State, "notAfter": is.NotAfter, "fallback": is.Fallback})
		}
	}
	what := "certificate "
	if len(names) > 1 {
		what = "certificates "
	}
	return event(kind, Detail{"certificates": details, "total": len(names)}, "%s%s: %s", what, certificateWords[kind], prose.Some(shown))
}

func ofGuard(was, is *checkin.Guard) []Event {
	switch {
	case is == nil && was == nil, is != nil && was != nil && is.ETag == was.ETag:
		return nil
	case is == nil:
		return []Event{event(GuardReleased, nil, "holds back no configuration any more")}
	}
	kind := "records"
	switch is.Kind {
	case checkin.GuardServices:
		kind = "services"
	case checkin.GuardReservations:
		kind = "DHCP reservations"
	}
	detail := Detail{"removed": is.Removed, "total": is.Total, "kind": is.Kind, "etag": is.ETag}
	return []Event{event(GuardHeld, detail, "holds back a configuration that removes %d of %d %s, until an administrator confirms it", is.Removed, is.Total, kind)}
}

func ofVersion(was, is string) []Event {
	if was == is || was == "" || is == "" {
		return nil
	}
	return []Event{event(AgentUpdated, Detail{"from": was, "to": is}, "the agent's version is %s, it was %s", is, was)}
}

func versionOf(report checkin.Request) string {
	if report.Agent == nil {
		return ""
	}
	return report.Agent.Version
}

// Volume is a volume whose state has changed.
type Volume struct {
	ID        int64
	Name      string
	Container string // its host name
	Message   string
}

// OfVolumes is what has happened to volumes: one event for all that failed, and
// one for all that are ready.
func OfVolumes(failed, ready []Volume) []Event {
	var list []Event
	if len(failed) > 0 {
		list = append(list, event(VolumeFailed, ofVolumes(failed), "%s: cannot be provided%s", volumes(failed), quoted(failed[0].Message)))
	}
	if len(ready) > 0 {
		list = append(list, event(VolumeReady, ofVolumes(ready), "%s: ready", volumes(ready)))
	}
	return list
}

func volumes(list []Volume) string {
	var names []string
	for _, v := range list {
		names = append(names, fmt.Sprintf("%s of %s", v.Name, v.Container))
	}
	if len(list) == 1 {
		return "volume " + names[0]
	}
	return "volumes " + prose.Some(names)
}

func ofVolumes(list []Volume) Detail {
	var details []Detail
	for _, v := range list[:min(len(list), maxItems)] {
		details = append(details, Detail{"id": v.ID, "name": prose.Cut(v.Name, maxSummary), "container": prose.Cut(v.Container, maxSummary), "message": prose.Cut(v.Message, maxSummary)})
	}
	return Detail{"volumes": details, "total": len(list)}
}
