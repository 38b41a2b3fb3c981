package notify

import (
	"cmp"
	"fmt"
	"slices"

	"opensource.internal/manager/internal/events"
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
		return each(e, quarantine, "records", e.Kind == events.QuarantineCleared, func(record store.Values) (string, string) {
			name := word(record, "kind") + " " + word(record, "name")
			subject := fmt.Sprintf("%s %s %v", word(e.Detail, "service"), name, record["id"])
			return subject, fmt.Sprintf("%s: %s is left out%s", word(e.Detail, "service"), name, because(record, "reason"))
		})
	case events.VolumeFailed, events.VolumeReady:
		return each(e, store.FamilyVolume, "volumes", e.Kind == events.VolumeReady, func(volume store.Values) (string, string) {
			return fmt.Sprint(volume["id"]), fmt.Sprintf("volume %s of %s cannot be provided%s", word(volume, "name"), word(volume, "container"), because(volume, "message"))
		})
	case events.CertificateExpiring, events.CertificateExpired, events.CertificateFaulty, events.CertificateRecovered:
		return each(e, certificate, "certificates", e.Kind == events.CertificateRecovered, func(pair store.Values) (string, string) {
			domain := word(pair, "domain")
			return domain, fmt.Sprintf("certificate of %s: %s%s", domain, word(pair, "state"), because(pair, "notAfter"))
		})
	}
	return nil
}

// each is a change for every item that an event lists. Of very many it lists
// only the first ones; when very many are well again, all are.
func each(e store.Event, family, list string, ends bool, describe func(store.Values) (subject, summary string)) []store.EpisodeChange {
	items, _ := e.Detail[list].([]any)
	total, _ := e.Detail["total"].(float64)
	if ends && int(total) > len(items) {
		return []store.EpisodeChange{{Family: family, Ends: true, All: true, Summary: e.Summary}}
	}
	var changes []store.EpisodeChange
	for _, item := range items {
		values, _ := item.(map[string]any)
		subject, summary := describe(values)
		if ends {
			summary = cmp.Or(map[string]string{
				quarantine: "no longer left out: " + word(values, "kind") + " " + word(values, "name"), certificate: "certificate of " + subject + ": in order again",
				store.FamilyVolume: "volume " + word(values, "name") + " of " + word(values, "container") + ": ready",
			}[family], e.Summary)
		}
		changes = append(changes, store.EpisodeChange{Family: family, Subject: subject, Ends: ends, Summary: summary})
	}
	return changes
}

func word(values store.Values, name string) string {
	text, _ := values[name].(string)
	return text
}

func because(values store.Values, name string) string {
	if text := word(values, name); text != "" {
		return ": " + text
	}
	return ""
}
