package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"opensource.internal/manager/servertest"
)

type restored struct {
	DryRun   bool
	ETag     string
	Changes  []struct{ Action, Kind, Name string }
	Left     []string
	Revision *int64
	Held     bool
}

func TestARevisionIsRestored(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	site := s.Create(t, "/sites", object{"name": "lab"})
	node := s.Create(t, "/sites/1/nodes", object{"name": "pve1"})
	container := s.Create(t, "/sites/1/containers", object{"nodeId": node, "hostname": "web", "ipv4Address": "192.0.2.101", "owner": "alice"})
	s.Create(t, fmt.Sprintf("/containers/%d/volumes", container), object{"name": "data", "mountPath": "/data", "mode": "rw"})
	ssh := s.Create(t, fmt.Sprintf("/containers/%d/services", container), object{"type": "transport", "internalPort": 22, "protocol": "tcp"})
	first := mustCall(t, s, "GET", "/sites/1/snapshot", nil)
	was := mustCall(t, s, "GET", fmt.Sprintf("/services/%d", ssh), nil)
	mustCall(t, s, "DELETE", fmt.Sprintf("/containers/%d?cascade=true", container), nil)

	const path = "/sites/1/revisions/1/restore"
	dry := servertest.Data[restored](t, mustCall(t, s, "POST", path+"?dryRun=true", nil))
	if !dry.DryRun || len(dry.Changes) != 3 || dry.Changes[0].Action != "create" || dry.Changes[0].Name != "web" || dry.Revision != nil {
		t.Errorf("%+v", dry)
	}
	// Somebody else changes the site after it was looked at.
	mustCall(t, s, "PATCH", fmt.Sprintf("/nodes/%d", node), object{"name": "pve2"})
	wantError(t, s.Call(t, "POST", path, object{"etag": dry.ETag}), 409, "conflict")
	matching := func(tag string) servertest.Answer {
		return s.Do(t, "POST", "/api/v1"+path, nil, http.Header{"X-Api-Key": {s.AdminKey}, "If-Match": {tag}})
	}
	wantError(t, matching(dry.ETag), 412, "precondition_failed")
	wantError(t, s.Call(t, "GET", fmt.Sprintf("/containers/%d", container), nil), 404, "not_found")
	dry = servertest.Data[restored](t, mustCall(t, s, "POST", path+"?dryRun=true", object{}))
	if answer := matching(dry.ETag); answer.Status != 200 {
		t.Fatalf("%d %s", answer.Status, answer.Body)
	}
	now := mustCall(t, s, "GET", "/sites/1/snapshot", nil)
	if now.Header.Get("ETag") != first.Header.Get("ETag") {
		t.Errorf("agents get %s", now.Body)
	}
	got := mustCall(t, s, "GET", fmt.Sprintf("/services/%d", ssh), nil)
	if servertest.Data[object](t, got)["externalPort"] != servertest.Data[object](t, was)["externalPort"] {
		t.Errorf("%s became %s", was.Body, got.Body)
	}
	if last := listed(t, s, site)[0]; last.Number != 3 || *last.Note != "set back to revision 1" {
		t.Errorf("%+v", last)
	}
	wantError(t, s.Call(t, "POST", "/sites/1/revisions/99/restore", nil), 404, "not_found")
}

func TestARestoreThatIsRefusedSaysWhy(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	s.Create(t, "/sites", object{"name": "lab"})
	s.Create(t, "/sites", object{"name": "attic"})
	domain := s.Create(t, "/external-domains", object{"name": "example.com"})
	service := object{"type": "http", "internalPort": 80, "externalHostname": "app", "externalDomainId": domain}
	for _, site := range []int{1, 2} {
		s.Create(t, fmt.Sprintf("/sites/%d/nodes", site), object{"name": "pve1"})
		s.Create(t, fmt.Sprintf("/sites/%d/containers", site), object{"nodeId": site, "hostname": "web", "ipv4Address": "192.0.2.101"})
	}
	id := s.Create(t, "/containers/1/services", service)
	mustCall(t, s, "GET", "/sites/1/revisions", nil)
	mustCall(t, s, "DELETE", fmt.Sprintf("/services/%d", id), nil)
	s.Create(t, "/containers/2/services", service)
	answer := s.Call(t, "POST", "/sites/1/revisions/1/restore", nil)
	wantError(t, answer, 409, "conflict")
	if !strings.Contains(string(answer.Body), `service http app.example.com of container \"web\"`) {
		t.Errorf("%s", answer.Body)
	}
}

func wantError(t *testing.T, answer servertest.Answer, status int, code string) {
	t.Helper()
	if answer.Status != status || servertest.Error(t, answer).Code != code {
		t.Errorf("%d %s, want %d %s", answer.Status, answer.Body, status, code)
	}
}
