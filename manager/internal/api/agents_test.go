package api_test

import (
	"fmt"
	"strings"
	"testing"

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
	db := storetest.Raw(t, s.Config.Database)
	for _, damage := range []string{`'{"services":{"nginx":{"state":"act'`, `''`, `'{"services":7}'`, `x'ff00'`, `5`} {
		if _, err := db.Exec("UPDATE agents SET report = " + damage + " WHERE id = 1"); err != nil {
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
