package server_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"opensource.internal/manager/servertest"
)

// TestEventsOfAnAgentThatAlternates lets an agent tell one manager that it fails
// and the other one that it is well. Each happened once, also if a manager takes
// for old news what was news in between.
func TestEventsOfAnAgentThatAlternates(t *testing.T) {
	m := startTwo(t)
	tell := func(to *servertest.Server, outcome string) {
		t.Helper()
		lastApply := "success"
		if outcome == "rejected" {
			lastApply = "failure"
		}
		answer := to.Do(t, "POST", "/api/v1/agents", object{
			"siteId": m.site, "hostname": "edge", "currentTime": time.Now().Unix(),
			"services": object{"nginx": object{"state": "active", "lastApply": lastApply, "outcome": outcome}},
		}, http.Header{"X-Api-Key": {m.key}})
		if answer.Status != 200 {
			t.Fatalf("%d %s", answer.Status, answer.Body)
		}
	}
	events := func() []string {
		t.Helper()
		var kinds []string
		for _, e := range servertest.Data[[]struct{ Kind string }](t, m.b.Call(t, "GET", "/events?sort=id", nil)) {
			kinds = append(kinds, e.Kind)
		}
		return kinds
	}
	for _, outcome := range []string{"applied", "rejected", "applied"} {
		for range 3 {
			tell(m.a, outcome)
			tell(m.b, outcome)
		}
	}
	want := []string{"first_seen", "apply_failed", "apply_recovered"}
	if diff := cmp.Diff(want, events()); diff != "" {
		t.Fatal(diff)
	}

	// The first manager remembers "applied", and does not know that the agent has
	// said something else since. Its next heartbeats find out.
	tell(m.b, "rejected")
	want = append(want, "apply_failed", "apply_recovered")
	for late := time.Now().Add(30 * time.Second); len(events()) < len(want) && time.Now().Before(late); {
		tell(m.a, "applied")
	}
	tell(m.b, "applied")
	if diff := cmp.Diff(want, events()); diff != "" {
		t.Error(diff)
	}
}
