package notify

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/events"
	"opensource.internal/manager/internal/store"
)

// stored is an event as the database gives it back.
func stored(t *testing.T, e events.Event) store.Event {
	t.Helper()
	text, err := json.Marshal(e.Detail)
	if err != nil {
		t.Fatal(err)
	}
	row := store.Event{Kind: e.Kind, Severity: e.Severity, Summary: e.Summary}
	if err := json.Unmarshal(text, &row.Detail); err != nil {
		t.Fatal(err)
	}
	return row
}

func TestIDsStayWhole(t *testing.T) {
	volume := []events.Volume{{ID: 12_345_678, Name: "data", Container: "web"}}
	for _, e := range events.OfVolumes(volume, volume) {
		if got := meaning(stored(t, e)); len(got) != 1 || got[0].Subject != "12345678" {
			t.Errorf("%s: %+v", e.Kind, got)
		}
	}
}

func TestWordsOfCertificates(t *testing.T) {
	at := time.Date(2026, 2, 3, 4, 5, 0, 0, time.FixedZone("", -3600))
	for state, want := range map[checkin.CertificateState]string{
		"expiring":   "the certificate of example.com expires on 2026-02-03 05:05 UTC: renew ",
		"expired":    "the certificate of example.com expired on 2026-02-03 05:05 UTC, browsers refuse it: renew ",
		"missing":    "the certificate of example.com is missing, a self-signed one is served: look at ",
		"mismatch":   "the certificate of example.com does not go with its key, a self-signed one is served: look at ",
		"unreadable": "the certificate of example.com cannot be read, a self-signed one is served: look at ",
	} {
		report := checkin.Request{Certificates: map[string]checkin.Certificate{
			"example.com": {State: state, NotAfter: &at, Fallback: state != "expiring" && state != "expired"},
		}}
		want += "/etc/ssl/certs/example.com.crt and /etc/ssl/private/example.com.key on that host"
		list := events.Between(checkin.Request{}, report)
		if got := meaning(stored(t, list[0])); len(got) != 1 || got[0].Summary != want {
			t.Errorf("%s: %+v", state, got)
		}
	}
}

// TestEnding: what an event has begun goes on while the report says so, ends with
// a report of which it is not so any more, and never for want of knowledge.
func TestEnding(t *testing.T) {
	info := &checkin.AgentInfo{Version: "1"}
	nginx := func(s checkin.ServiceReport) checkin.Request {
		return checkin.Request{Agent: info, Services: map[string]checkin.ServiceReport{"nginx": s}}
	}
	pair := func(state checkin.CertificateState) checkin.Request {
		return checkin.Request{Agent: info, Certificates: map[string]checkin.Certificate{"example.com": {State: state}}}
	}
	left := nginx(checkin.ServiceReport{LastApply: "failure", Outcome: "applied", Quarantined: []checkin.QuarantinedItem{{Kind: "http", ID: 3_000_000, Name: "app"}}})
	guard := checkin.Request{Guard: &checkin.Guard{Removed: 3, Total: 4, ETag: "x"}}
	failed := nginx(checkin.ServiceReport{LastApply: "failure", Outcome: "rejected"})
	for name, test := range map[string]struct {
		begun, now checkin.Request
		over       bool
	}{
		"apply goes on":         {failed, failed, false},
		"apply in doubt":        {failed, nginx(checkin.ServiceReport{LastApply: "unknown"}), false},
		"apply works":           {failed, nginx(checkin.ServiceReport{LastApply: "success", Outcome: "unchanged"}), true},
		"service is gone":       {failed, checkin.Request{}, true},
		"held while failing":    {failed, nginx(checkin.ServiceReport{LastApply: "failure", Outcome: "held"}), false},
		"left out":              {left, left, false},
		"not left out":          {left, nginx(checkin.ServiceReport{LastApply: "success", Outcome: "applied"}), true},
		"expired":               {pair("expired"), pair("expired"), false},
		"renewed":               {pair("expired"), pair("ok"), true},
		"not used":              {pair("expired"), checkin.Request{Agent: info}, true},
		"an older agent":        {pair("expired"), checkin.Request{}, false},
		"a state of the future": {pair("expired"), pair("shiny"), false},
		"guard":                 {guard, guard, false},
		"guard let go":          {guard, checkin.Request{}, true},
	} {
		list := events.Between(checkin.Request{}, test.begun)
		changes := meaning(stored(t, list[0]))
		if len(list) != 1 || len(changes) != 1 {
			t.Fatalf("%s: %+v %+v", name, list, changes)
		}
		got := ending(store.Episode{Family: changes[0].Family, Subject: changes[0].Subject, Summary: "x"}, test.now)
		if (got != "") != test.over {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// Of many records an event lists the first few: that these are over says nothing
// of others.
func TestManyThatAreOver(t *testing.T) {
	var items []checkin.QuarantinedItem
	for i := range 30 {
		items = append(items, checkin.QuarantinedItem{Kind: "http", ID: int64(i + 1), Name: "app"})
	}
	report := func(items []checkin.QuarantinedItem) checkin.Request {
		return checkin.Request{Services: map[string]checkin.ServiceReport{"nginx": {LastApply: "failure", Outcome: "applied", Quarantined: items}}}
	}
	ended := map[string]bool{}
	for _, e := range events.Between(report(items), report(items[29:])) {
		for _, change := range meaning(stored(t, e)) {
			ended[change.Subject] = change.Ends
		}
	}
	if diff := cmp.Diff(20, len(ended)); diff != "" || ended["nginx http app 30"] || !ended["nginx http app 1"] {
		t.Error(diff, ended)
	}
}
