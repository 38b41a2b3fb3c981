package dashboard_test

import (
	"fmt"
	"html"
	"strings"
	"testing"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/servertest"
)

func TestPinsAndWaitingChangesAreShown(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	site := s.Create(t, "/sites", object{"name": "lab", "publishing": "manual"})
	path := fmt.Sprintf("/sites/%d", site)
	checkIn(t, s, checkin.Request{SiteID: site, Hostname: "agent", Services: map[string]checkin.ServiceReport{}})
	cookie := signIn(t, s)
	shows := func(want string, not ...string) {
		t.Helper()
		raw := string(refresh(t, s, "/agents", cookie).Body)
		if strings.Contains(raw, "<b>") {
			t.Error("a reason is taken for markup")
		}
		page := html.UnescapeString(raw)
		if !strings.Contains(page, want) {
			t.Errorf("%q is not in\n%s", want, page)
		}
		for _, other := range not {
			if strings.Contains(page, other) {
				t.Errorf("%q is in the page", other)
			}
		}
	}
	call := func(method, path string, body any) {
		t.Helper()
		if answer := s.Call(t, method, path, body); answer.Status/100 != 2 {
			t.Fatalf("%s %s: %d %s", method, path, answer.Status, answer.Body)
		}
	}
	shows("agent", "published.", "Pinned")
	s.Create(t, path+"/nodes", object{"name": "pve1"})
	shows("1 change waits to be published.")
	s.Create(t, path+"/nodes", object{"name": "pve2"})
	shows("2 changes wait to be published.")
	call("POST", path+"/pin", object{"reason": "the <b>router</b> is replaced"})
	shows("Pinned to revision 1 by test admin")
	shows("the <b>router</b> is replaced (2 changes wait until it is unpinned)")
	call("DELETE", path+"/pin", nil)
	call("POST", path+"/publish", nil)
	shows("agent", "published.", "Pinned")
}
