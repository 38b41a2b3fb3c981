package api_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/store/storetest"
	"opensource.internal/manager/servertest"
)

// TestDamagedReportHidesNoOtherAgent: what is stored of one agent cannot be
// read, and everything else goes on.
func TestDamagedReportHidesNoOtherAgent(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	site := s.Create(t, "/sites", object{"name": "lab"})
	checkIn := func(name string) {
		t.Helper()
		body := fmt.Sprintf(`{"siteId":%d,"hostname":%q,"services":{"nginx":{"state":"active","lastApply":"success"}}}`, site, name)
		if answer := s.Call(t, "POST", "/agents", body); answer.Status != 200 {
			t.Fatalf("%d %s", answer.Status, answer.Body)
		}
	}
	checkIn("one")
	checkIn("two")
	db := storetest.Raw(t, s.Database)
	for _, damage := range []string{`'{"services":{"nginx":{"state":"act'`, `''`, `'{"services":7}'`, `x'ff00'`, `5`} {
		if _, err := db.Exec("UPDATE agents SET report = " + damage + ", drift = " + damage + " WHERE id = 1"); err != nil {
			t.Fatal(err)
		}
		agents := servertest.Data[[]object](t, s.Call(t, "GET", "/agents", nil))
		if len(agents) != 2 || agents[0]["note"] != "its last report could not be read" || len(agents[0]["services"].(object)) != 0 {
			t.Errorf("%s: %v", damage, agents)
		}
		if agents[1]["note"] != nil || len(agents[1]["services"].(object)) != 1 {
			t.Errorf("%s: the other agent: %v", damage, agents[1])
		}
		one := servertest.Data[object](t, s.Call(t, "GET", "/agents/1", nil))
		if one["hostname"] != "one" || one["note"] == nil {
			t.Errorf("%s: %v", damage, one)
		}
	}
	if got := strings.Count(s.Log.String(), "cannot be read"); got != 1 || !strings.Contains(s.Log.String(), "agent=1 ") {
		t.Errorf("logged %d times", got)
	}
	if answer := s.Call(t, "PATCH", fmt.Sprintf("/sites/%d", site), object{"dhcpRange": "192.0.2.100,192.0.2.200"}); answer.Status == 500 {
		t.Errorf("the site cannot be changed: %s", answer.Body)
	}
	checkIn("one")
	if one := servertest.Data[object](t, s.Call(t, "GET", "/agents/1", nil)); one["note"] != nil || len(one["services"].(object)) != 1 {
		t.Errorf("after a good check-in: %v", one)
	}
}

// TestAnAgentShowsAllThatItTold: no optional field gets lost on the way from a
// check-in to whoever asks.
func TestAnAgentShowsAllThatItTold(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	i := fill(t, s)
	var told object
	if err := json.Unmarshal([]byte(`{
		"ipv4Address": "198.51.100.5",
		"services": {"nginx": {
			"state": "active", "lastApply": "success", "message": "words", "outcome": "held", "receivedEtag": "\"a\"", "runningEtag": "\"b\"",
			"appliedAt": "2026-02-16T09:35:30Z", "quarantined": [{"kind": "http", "id": 3, "name": "app.example.com", "reason": "why", "keptPrevious": true}],
			"drift": [{"path": "/etc/nginx/nginx.conf", "diff": "-a"}], "hold": {"until": "2026-02-16T11:35:30Z", "reason": "upgrade", "by": "root"}}},
		"agent": {"version": "1", "machineId": "m", "templates": ["nginx/nginx.conf.tmpl"], "pass": {"startedAt": "2026-02-16T09:36:00Z", "durationMs": 12, "rounds": 1}},
		"host": {"os": "Debian", "nginx": {"version": "1.26.3", "http3": true, "stream": true}, "dnsmasq": {"version": "2.91"}, "ipv6": true, "userNamespace": true, "diskFreeBytes": 5},
		"running": {"etag": "\"b\"", "since": "2026-02-16T09:00:00Z"},
		"certificates": {"example.com": {"state": "ok", "notAfter": "2026-05-01T00:00:00Z", "fallback": true}},
		"guard": {"removed": 6, "total": 8, "kind": "services", "etag": "\"a\""},
		"probes": {"app.example.com": {"hop": "backend", "message": "refused"}, "wiki.example.com": {"hop": ""}}}`), &told); err != nil {
		t.Fatal(err)
	}
	request := maps.Clone(told)
	request["siteId"], request["hostname"], request["currentTime"] = i.site, "agent", 1771234560
	if answer := s.Call(t, "POST", "/agents", request); answer.Status != 200 {
		t.Fatalf("%d %s", answer.Status, answer.Body)
	}
	fields := reflect.TypeFor[checkin.Request]()
	for n := range fields.NumField() {
		name, _, _ := strings.Cut(fields.Field(n).Tag.Get("json"), ",")
		if _, is := request[name]; !is && name != "volumes" { // which are shown with the volumes
			t.Errorf("this test tells nothing of %s", name)
		}
	}
	agents := servertest.Data[[]object](t, s.Call(t, "GET", "/agents", nil))
	shown := servertest.Data[object](t, s.Call(t, "GET", fmt.Sprintf("/agents/%v", agents[0]["id"]), nil))
	drift := shown["drift"].(object)["nginx"].(object)
	if diff := cmp.Diff([]any{object{"path": "/etc/nginx/nginx.conf", "diff": "-a"}}, drift["files"]); diff != "" || drift["at"] == nil {
		t.Errorf("drift: %v %s", drift, diff)
	}
	for name := range shown {
		if _, is := told[name]; !is {
			delete(shown, name)
		}
	}
	if diff := cmp.Diff(told, shown); diff != "" {
		t.Errorf("(-told +shown):\n%s", diff)
	}
}

// TestDriftStaysWhenItIsNotToldAgain: an agent tells it with one check-in.
func TestDriftStaysWhenItIsNotToldAgain(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	i := fill(t, s)
	for _, drift := range []any{[]object{{"path": "/etc/dnsmasq.conf", "diff": "-a"}}, nil} {
		answer := s.Call(t, "POST", "/agents", object{
			"siteId": i.site, "hostname": "agent", "services": object{"dnsmasq": object{"state": "active", "lastApply": "success", "drift": drift}},
		})
		if answer.Status != 200 {
			t.Fatal(answer.Status)
		}
		agent := servertest.Data[[]object](t, s.Call(t, "GET", "/agents", nil))[0]
		if kept := agent["drift"].(object)["dnsmasq"]; kept == nil {
			t.Errorf("after a check-in that tells %v there is none", drift)
		}
	}
}
