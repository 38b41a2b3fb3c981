package api_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/events"
	"opensource.internal/manager/servertest"
)

type eventLine struct {
	ID, SiteID, AgentID               int64
	Hostname, Kind, Severity, Summary string
	Detail                            map[string]any
}

func eventsOf(t *testing.T, s *servertest.Server, path string) []string {
	t.Helper()
	var kinds []string
	for _, e := range servertest.Data[[]eventLine](t, s.Call(t, "GET", path, nil)) {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

func TestEventsOfCheckIns(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	site := s.Create(t, "/sites", object{"name": "lab"})
	tell := func(hostname string, service checkin.ServiceReport) {
		t.Helper()
		request := checkin.Request{
			SiteID: site, Hostname: hostname, CurrentTime: 1, Services: map[string]checkin.ServiceReport{"nginx": service},
			Agent: &checkin.AgentInfo{Version: "1.0"},
		}
		if answer := s.Call(t, "POST", "/agents", request); answer.Status != http.StatusOK {
			t.Fatalf("%d %s", answer.Status, answer.Body)
		}
	}
	fine := checkin.ServiceReport{State: "active", LastApply: "success", Outcome: "applied"}
	refused := checkin.ServiceReport{State: "active", LastApply: "failure", Outcome: "rejected", Message: "nginx: [emerg] bad port\nnginx: test failed"}
	for _, service := range []checkin.ServiceReport{fine, fine, refused, refused, fine, fine} {
		tell("edge", service)
	}
	tell("other", fine)
	want := []string{"first_seen", "apply_recovered", "apply_failed", "first_seen"}
	if diff := cmp.Diff(want, eventsOf(t, s, "/events")); diff != "" {
		t.Error(diff)
	}
	edge := servertest.Data[[]struct{ ID int64 }](t, s.Call(t, "GET", "/agents?hostname=edge", nil))[0].ID
	ofEdge := fmt.Sprintf("/agents/%d/events", edge)
	if diff := cmp.Diff(want[1:], eventsOf(t, s, ofEdge)); diff != "" {
		t.Error(diff)
	}
	for path, want := range map[string]int{
		"/events?siteId=1": 4, "/events?siteId=9": 0, fmt.Sprintf("/events?agentId=%d", edge): 3, "/events?severity=error": 1,
		"/events?kind=first_seen": 2, "/events?limit=1": 1, "/events?since=2020-01-01T00:00:00Z": 4, "/events?until=2020-01-01T00:00:00Z": 0,
		ofEdge + "?kind=apply_failed": 1, ofEdge + "?offset=2": 1,
	} {
		if got := eventsOf(t, s, path); len(got) != want {
			t.Errorf("%s: %v", path, got)
		}
	}
	failed := servertest.Data[[]eventLine](t, s.Call(t, "GET", "/events?kind=apply_failed", nil))[0]
	if failed.Hostname != "edge" || failed.SiteID != site || failed.Severity != "error" || failed.Detail["service"] != "nginx" ||
		failed.Detail["message"] != refused.Message {
		t.Errorf("%+v", failed)
	}
	for _, path := range []string{"/events?kind=party", "/events?severity=none", "/events?since=now", "/events?agent=1"} {
		if answer := s.Call(t, "GET", path, nil); answer.Status != 422 {
			t.Errorf("%s: %d %s", path, answer.Status, answer.Body)
		}
	}
	if answer := s.Call(t, "GET", "/agents/99/events", nil); answer.Status != 404 {
		t.Errorf("agent 99: %d %s", answer.Status, answer.Body)
	}
	for _, kind := range events.Kinds() {
		if answer := s.Call(t, "GET", "/events?kind="+string(kind), nil); answer.Status != 200 {
			t.Errorf("%s: %d %s", kind, answer.Status, answer.Body)
		}
	}
}
