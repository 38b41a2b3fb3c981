package api_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"opensource.internal/manager/internal/auth"
	"opensource.internal/manager/servertest"
)

type auditLine struct {
	ID    int64
	Actor struct {
		Kind      string
		ID        int64
		Name      string
		Address   string
		RequestID string
	}
	Action, Resource, Name string
	ResourceID, SiteID     int64
	Before, After          map[string]any
	Times                  int64
}

func auditOf(t *testing.T, s *servertest.Server, query string) []auditLine {
	t.Helper()
	return servertest.Data[[]auditLine](t, s.Call(t, "GET", "/audit"+query, nil))
}

func TestTimesAreShownByExample(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	for path, field := range map[string]string{"/events?since=junk": "since", "/audit?until=yesterday": "until"} {
		answer := s.Call(t, "GET", path, nil)
		if fault := servertest.Error(t, answer); answer.Status != 422 || fault.Fields[field] != "must be a time such as 2026-01-31T12:00:00Z" {
			t.Errorf("%s: %d %s", path, answer.Status, answer.Body)
		}
	}
	answer := s.Call(t, "POST", "/api-keys", object{"name": "x", "role": "viewer", "expiresAt": "tomorrow"})
	if fault := servertest.Error(t, answer); fault.Fields["expiresAt"] != "must be a time such as 2026-01-31T12:00:00Z" {
		t.Errorf("%d %s", answer.Status, answer.Body)
	}
}

func TestAuditOfRequests(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	site := s.Create(t, "/sites", object{"name": "lab"})
	node := s.Create(t, fmt.Sprintf("/sites/%d/nodes", site), object{"name": "pve1"})
	answer := s.Call(t, "PATCH", fmt.Sprintf("/nodes/%d", node), object{"ipv4Address": "192.0.2.10"})
	if answer.Status != 200 {
		t.Fatalf("%d %s", answer.Status, answer.Body)
	}
	got := auditOf(t, s, "?resource=node&action=update")
	if len(got) != 1 {
		t.Fatalf("%+v", got)
	}
	entry := got[0]
	if entry.Actor.Kind != "key" || entry.Actor.Name != "test admin" || entry.Actor.ID == 0 || entry.Actor.Address != "127.0.0.1" ||
		entry.Actor.RequestID != answer.Header.Get("X-Request-Id") || entry.ResourceID != node || entry.SiteID != site || entry.Times != 1 {
		t.Errorf("%+v", entry)
	}
	want := []map[string]any{{"ipv4Address": ""}, {"ipv4Address": "192.0.2.10"}}
	if diff := cmp.Diff(want, []map[string]any{entry.Before, entry.After}); diff != "" {
		t.Error(diff)
	}
	if answer := s.Call(t, "DELETE", fmt.Sprintf("/sites/%d?cascade=true", site), nil); answer.Status != 204 {
		t.Fatalf("%d %s", answer.Status, answer.Body)
	}
	var lines []string
	for _, e := range auditOf(t, s, "?limit=3") {
		lines = append(lines, e.Action+" "+e.Resource)
	}
	if diff := cmp.Diff([]string{"delete site", "delete node", "update node"}, lines); diff != "" {
		t.Error(diff)
	}
	for query, want := range map[string]int{
		"?actor=test+admin": 5, "?actor=ada": 0, "?kind=system": 1, "?kind=user": 0, "?siteId=1": 5, "?resource=node&id=1": 3,
		"?q=PVE1": 3, "?since=2020-01-01T00:00:00Z": 6, "?until=2020-01-01T00:00:00Z": 0, "?q=" + answer.Header.Get("X-Request-Id"): 1,
	} {
		if got := auditOf(t, s, query); len(got) != want {
			t.Errorf("%s: %d entries, want %d", query, len(got), want)
		}
	}
	for _, query := range []string{"?since=yesterday", "?kind=ghost", "?id=0", "?limit=501", "?nonsense=1", "?sort=actor"} {
		if answer := s.Call(t, "GET", "/audit"+query, nil); answer.Status != 422 {
			t.Errorf("%s: %d %s", query, answer.Status, answer.Body)
		}
	}
}

// What there can be nothing of is refused by its name.
func TestLogsOfWhatIsNotThere(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	for path, want := range map[string]string{
		"/audit?action=deleted":      "key_created",
		"/audit?resource=containers": "external_domain",
		"/events?agentId=7":          "there is no agent 7",
		"/events?kind=off":           "offline",
	} {
		if answer := s.Call(t, "GET", path, nil); answer.Status != 422 || !strings.Contains(string(answer.Body), want) {
			t.Errorf("%s: %d %s", path, answer.Status, answer.Body)
		}
	}
}

func TestAuditOfSignIns(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	if _, err := auth.CreateUser(t.Context(), s.Store, "ada", auth.RoleAdmin, "correct horse battery"); err != nil {
		t.Fatal(err)
	}
	signIn := func(name, password string) servertest.Answer {
		t.Helper()
		return s.Do(t, "POST", "/api/v1/session", object{"name": name, "password": password}, nil)
	}
	const typedByMistake = "my secret as a name"
	signIn("ada", "wrong password")
	signIn("ada", "wrong password")
	signIn(typedByMistake, "ada")
	answer := signIn("ada", "correct horse battery")
	if answer.Status != http.StatusCreated {
		t.Fatalf("%d %s", answer.Status, answer.Body)
	}
	var cookies []string
	for _, set := range answer.Header["Set-Cookie"] {
		cookie, _, _ := strings.Cut(set, ";")
		cookies = append(cookies, cookie)
	}
	if out := s.Do(t, "DELETE", "/api/v1/session", nil, http.Header{"Cookie": {strings.Join(cookies, "; ")}}); out.Status != 204 {
		t.Fatalf("%d %s", out.Status, out.Body)
	}
	entries := auditOf(t, s, "?resource=session")
	slices.Reverse(entries)
	var failures int64
	var lines []string
	for _, e := range entries {
		if e.Actor.Address != "127.0.0.1" {
			t.Errorf("%+v", e)
		}
		if e.Action == "sign_in_failed" {
			failures += e.Times
			if e.Actor.Kind != "unknown" || e.Actor.Name != "" || e.Name != "ada" && e.Name != "" {
				t.Errorf("%+v", e)
			}
			continue
		}
		lines = append(lines, fmt.Sprint(e.Action, " of ", e.Name, " by ", e.Actor.Kind, " ", e.Actor.Name))
	}
	if diff := cmp.Diff([]string{"sign_in of ada by user ada", "sign_out of ada by user ada"}, lines); diff != "" || failures != 3 {
		t.Errorf("%d failures %s", failures, diff)
	}
	all := string(s.Call(t, "GET", "/audit", nil).Body)
	for _, secret := range []string{typedByMistake, "wrong password", "argon2", "horse"} {
		if strings.Contains(all, secret) {
			t.Errorf("%q is in the audit log", secret)
		}
	}
}

// Addresses of people are nothing for viewers; events are.
func TestWhoReadsLogs(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	site := s.Create(t, "/sites", object{"name": "lab"})
	viewer := s.Key(t, auth.NewKey{Name: "viewer", Role: auth.RoleViewer})
	agent := s.Key(t, auth.NewKey{Name: "agent", Role: auth.RoleAgent, SiteID: site})
	for key, want := range map[string][]int{"": {401, 401}, viewer: {403, 200}, agent: {403, 403}, s.AdminKey: {200, 200}} {
		header := http.Header{}
		if key != "" {
			header.Set("X-Api-Key", key)
		}
		got := []int{s.Do(t, "GET", "/api/v1/audit", nil, header).Status, s.Do(t, "GET", "/api/v1/events", nil, header).Status}
		if !slices.Equal(got, want) {
			t.Errorf("audit and events: %v, want %v", got, want)
		}
	}
}
