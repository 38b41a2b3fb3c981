package notify

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/events"
	"opensource.internal/manager/internal/prose"
	"opensource.internal/manager/internal/store"
)

// The families of episodes. What is of one family and about the same thing is
// one episode: a certificate is expiring or expired, not both.
const (
	apply       = "apply"
	certificate = "certificate"
	guard       = "guard"
	quarantine  = "quarantine"
)

// kinds are the kinds of events that begin an episode: messages have a heading
// for each.
func kinds() []events.Kind {
	return slices.DeleteFunc(events.Kinds(), func(kind events.Kind) bool {
		return !slices.ContainsFunc(headings, func(h heading) bool { return h.kind == kind })
	})
}

// Telling is a kind of event that targets are told of.
type Telling struct {
	Kind  events.Kind
	Words string
}

// Tellings are all that there are, the worst first.
func Tellings() []Telling {
	var all []Telling
	for _, h := range headings {
		all = append(all, Telling{h.kind, strings.ToUpper(h.words[:1]) + h.words[1:]})
	}
	return all
}

// meaning is what an event begins and ends. It is pure.
func meaning(e store.Event) []store.EpisodeChange {
	one := func(family, subject string, ends bool) []store.EpisodeChange {
		return []store.EpisodeChange{{Family: family, Subject: subject, Ends: ends, Summary: e.Summary}}
	}
	switch e.Kind {
	case events.Offline:
		return one(store.FamilyOffline, "", false)
	case events.Back:
		return one(store.FamilyOffline, "", true)
	case events.ApplyFailed, events.Stuck:
		return one(apply, word(e.Detail, "service"), false)
	case events.ApplyRecovered:
		return one(apply, word(e.Detail, "service"), true)
	case events.GuardHeld:
		return one(guard, "", false)
	case events.GuardReleased:
		return one(guard, "", true)
	case events.Quarantined, events.QuarantineCleared:
		return each(e, quarantine, "records", e.Kind == events.QuarantineCleared, func(record store.Values) (subject, begun, over string) {
			name := word(record, "kind") + " " + word(record, "name")
			service := word(e.Detail, "service")
			return leftOut(service, word(record, "kind"), word(record, "name"), number(record, "id")),
				fmt.Sprintf("%s: %s is left out%s", service, name, because(word(record, "reason"))),
				"no longer left out: " + name
		})
	case events.VolumeFailed, events.VolumeReady:
		return each(e, store.FamilyVolume, "volumes", e.Kind == events.VolumeReady, func(volume store.Values) (subject, begun, over string) {
			name := fmt.Sprintf("volume %s of %s", word(volume, "name"), word(volume, "container"))
			return strconv.FormatInt(number(volume, "id"), 10), name + " cannot be provided" + because(word(volume, "message")), name + ": ready"
		})
	case events.CertificateExpiring, events.CertificateExpired, events.CertificateFaulty, events.CertificateRecovered:
		return each(e, certificate, "certificates", e.Kind == events.CertificateRecovered, func(pair store.Values) (subject, begun, over string) {
			domain := word(pair, "domain")
			over = "certificate of " + domain + ": in order again"
			if word(pair, "state") == "" {
				over = "certificate of " + domain + ": not used any more"
			}
			return domain, ofCertificate(e.Kind, pair), over
		})
	}
	return nil
}

// leftOut is the subject of a record that is left out.
func leftOut(service, kind, name string, id int64) string {
	return fmt.Sprintf("%s %s %s %d", service, kind, name, id)
}

// ofCertificate says what is wrong with a certificate, and what to do: the files
// are on the agent's host.
func ofCertificate(kind events.Kind, pair store.Values) string {
	domain := word(pair, "domain")
	files := fmt.Sprintf("/etc/ssl/certs/%[1]s.crt and /etc/ssl/private/%[1]s.key on that host", domain)
	end := ""
	if at, err := time.Parse(time.RFC3339, word(pair, "notAfter")); err == nil {
		end = " on " + prose.Minute(at)
	}
	switch kind {
	case events.CertificateExpiring:
		return fmt.Sprintf("the certificate of %s expires%s: renew %s", domain, cmp.Or(end, " soon"), files)
	case events.CertificateExpired:
		return fmt.Sprintf("the certificate of %s expired%s, browsers refuse it: renew %s", domain, end, files)
	}
	state := cmp.Or(map[string]string{
		string(checkin.CertificateMissing): "is missing", string(checkin.CertificateMismatch): "does not go with its key",
		string(checkin.CertificateUnreadable): "cannot be read",
	}[word(pair, "state")], "is "+word(pair, "state"))
	served := ""
	if fallback, _ := pair["fallback"].(bool); fallback {
		served = ", a self-signed one is served"
	}
	return fmt.Sprintf("the certificate of %s %s%s: look at %s", domain, state, served, files)
}

// each is a change for every item that an event lists. Of very many it lists
// only the first ones; that others are over is seen from the reports.
func each(e store.Event, family, list string, ends bool, describe func(store.Values) (subject, begun, over string)) []store.EpisodeChange {
	items, _ := e.Detail[list].([]any)
	var changes []store.EpisodeChange
	for _, item := range items {
		values, _ := item.(map[string]any)
		subject, summary, over := describe(values)
		if ends {
			summary = over
		}
		changes = append(changes, store.EpisodeChange{Family: family, Subject: subject, Ends: ends, Summary: summary})
	}
	return changes
}

// ending is how an episode has ended according to what its agent reports now,
// and empty if it goes on or nothing is known. It is pure.
func ending(e store.Episode, report checkin.Request) string {
	switch e.Family {
	case apply:
		switch service, reported := report.Services[e.Subject]; {
		case !reported:
			return e.Subject + ": is not reported any more"
		case service.Working():
			return e.Subject + ": works again"
		}
	case quarantine:
		for name, service := range report.Services {
			for _, q := range service.Quarantined {
				if leftOut(name, q.Kind, q.Name, q.ID) == e.Subject {
					return ""
				}
			}
		}
		return "no longer so: " + e.Summary
	case certificate:
		switch pair, used := report.Certificates[e.Subject]; {
		case used && pair.State == checkin.CertificateOK:
			return "certificate of " + e.Subject + ": in order again"
		case !used && report.Agent != nil: // older agents tell nothing of certificates
			return "certificate of " + e.Subject + ": not used any more"
		}
	case guard:
		if report.Guard == nil {
			return "holds back no configuration any more"
		}
	}
	return ""
}

func word(values store.Values, name string) string {
	text, _ := values[name].(string)
	return text
}

// number is one that JSON has brought, which makes a float64 of it.
func number(values store.Values, name string) int64 {
	value, _ := values[name].(float64)
	return int64(value)
}

func because(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}
