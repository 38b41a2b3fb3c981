package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/auth"
	"opensource.internal/manager/servertest"
)

type confirmed struct {
	SiteID            int64
	ETag              string
	Revision          int64
	RemovalsConfirmed bool
}

// published is the snapshot of a site as one of its managers has it.
func published(t *testing.T, s *servertest.Server, site int64) (snapshot checkin.Snapshot, etag string) {
	t.Helper()
	answer := s.Call(t, "GET", fmt.Sprintf("/sites/%d/snapshot", site), nil)
	return servertest.Data[checkin.Snapshot](t, answer), answer.Header.Get("ETag")
}

func TestConfirmRemovals(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	i := fill(t, s)
	path := fmt.Sprintf("/sites/%d/confirm-removals", i.site)
	before, tag := published(t, s, i.site)

	first := servertest.Data[confirmed](t, s.Call(t, "POST", path, object{"etag": tag}))
	after, newTag := published(t, s, i.site)
	if first != (confirmed{SiteID: i.site, ETag: newTag, Revision: 2, RemovalsConfirmed: true}) || newTag == tag {
		t.Errorf("answer %+v, the snapshot's tag was %s and is %s", first, tag, newTag)
	}
	if !after.RemovalsConfirmed {
		t.Error("the snapshot does not say that removals are confirmed")
	}
	after.RemovalsConfirmed = false
	if _, etag, err := checkin.Encode(after); err != nil || etag != tag {
		t.Errorf("the content is not the same: %+v, before %+v, %v", after, before, err)
	}

	// Again, in every form in which people give the tag, or none.
	bare := strings.Trim(tag, `"`)
	for _, body := range []any{nil, "", object{}, object{"etag": nil}, object{"etag": tag}, object{"etag": newTag}, object{"etag": "W/" + tag}, object{"etag": bare}} {
		if again := servertest.Data[confirmed](t, s.Call(t, "POST", path, body)); again != first {
			t.Errorf("again with %v: %+v", body, again)
		}
	}

	if answer := s.Call(t, "PATCH", fmt.Sprintf("/containers/%d", i.container), object{"macAddress": nil}); answer.Status != 200 {
		t.Fatal(answer.Status)
	}
	changed, _ := published(t, s, i.site)
	if changed.RemovalsConfirmed {
		t.Error("the next change of the inventory does not take it back")
	}
	answer := s.Call(t, "POST", path, object{"etag": tag})
	if fault := servertest.Error(t, answer); answer.Status != 409 || fault.Fields["etag"] == "" {
		t.Errorf("what was seen is not what is there: %d %s", answer.Status, answer.Body)
	}
	if now, _ := published(t, s, i.site); now.RemovalsConfirmed {
		t.Error("a refused confirmation confirms")
	}
}

func TestConfirmRemovalsRefuses(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	i := fill(t, s)
	path := fmt.Sprintf("/sites/%d/confirm-removals", i.site)
	for _, test := range []struct {
		path, body string
		status     int
		field      string
	}{
		{"/sites/999/confirm-removals", ``, 404, ""},
		{"/sites/0/confirm-removals", ``, 404, ""},
		{"/sites/x/confirm-removals", ``, 404, ""},
		{path, `{`, 400, ""},
		{path, `[]`, 422, "body"},
		{path, `null`, 422, "body"},
		{path, `{"etag": 5}`, 422, "etag"},
		{path, `{"etag": ""}`, 422, "etag"},
		{path, `{"etag": "\"\""}`, 422, "etag"},
		{path, `{"etag": "*"}`, 409, "etag"},
		{path, `{"etag": "a\nb"}`, 422, "etag"},
		{path, `{"etag": "\"a\", \"b\""}`, 422, "etag"},
		{path, `{"etag": "` + strings.Repeat("a", 300) + `"}`, 422, "etag"},
		{path, `{"etag": "` + strings.Repeat("a", 64) + `"}`, 409, "etag"},
		{path, `{"tag": "x"}`, 422, "tag"},
	} {
		answer := s.Call(t, "POST", test.path, test.body)
		fault := servertest.Error(t, answer)
		if answer.Status != test.status || test.field != "" && fault.Fields[test.field] == "" {
			t.Errorf("%s %s: %d %s", test.path, test.body, answer.Status, answer.Body)
		}
	}
	if snapshot, _ := published(t, s, i.site); snapshot.RemovalsConfirmed {
		t.Error("a refused request confirms")
	}
	for role, key := range map[string]string{
		"viewer": s.Key(t, auth.NewKey{Name: "v", Role: auth.RoleViewer}),
		"agent":  s.Key(t, auth.NewKey{Name: "a", Role: auth.RoleAgent, SiteID: i.site}),
	} {
		if answer := s.Do(t, "POST", "/api/v1"+path, nil, http.Header{"X-Api-Key": {key}}); answer.Status != 403 {
			t.Errorf("%s: %d", role, answer.Status)
		}
	}
}

// TestConfirmedRemovalsReachTheAgentOnce follows an agent through a mass
// removal, with two managers on one database.
func TestConfirmedRemovalsReachTheAgentOnce(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	second := servertest.Start(t, servertest.Options{Database: s.Database})
	i := fill(t, s)
	if answer := s.Call(t, "DELETE", fmt.Sprintf("/volumes/%d", i.volume), nil); answer.Status != 204 {
		t.Fatal(answer.Status) // while one is pending nothing is answered with 304
	}
	checkIn := func(to *servertest.Server, etag string) (status int, tag string, removalsConfirmed bool) {
		t.Helper()
		answer := to.Do(t, "POST", "/api/v1/agents", object{
			"siteId": i.site, "hostname": "agent", "currentTime": 1771234560,
			"services": object{"nginx": object{"state": "active", "lastApply": "success"}},
			"guard":    object{"removed": 6, "total": 8, "kind": "services", "etag": etag},
		}, http.Header{"X-Api-Key": {s.AdminKey}, "If-None-Match": {etag}})
		if answer.Status == 304 {
			return 304, answer.Header.Get("ETag"), false
		}
		return answer.Status, answer.Header.Get("ETag"), servertest.Data[checkin.Snapshot](t, answer).RemovalsConfirmed
	}
	_, held, _ := checkIn(second, "")
	if status, _, _ := checkIn(second, held); status != 304 {
		t.Fatalf("the agent that holds the content back gets it again: %d", status)
	}
	servertest.Data[confirmed](t, s.Call(t, "POST", fmt.Sprintf("/sites/%d/confirm-removals", i.site), object{"etag": held}))
	status, confirmedTag, is := checkIn(second, held)
	if status != 200 || !is || confirmedTag == held {
		t.Errorf("through the other manager: %d %s, confirmed is %v", status, confirmedTag, is)
	}
	if status, _, _ := checkIn(s, confirmedTag); status != 304 {
		t.Errorf("the two managers do not agree: %d", status)
	}
	if answer := second.Call(t, "DELETE", fmt.Sprintf("/services/%d", i.transport), nil); answer.Status != 204 {
		t.Fatal(answer.Status)
	}
	for _, manager := range []*servertest.Server{s, second} {
		if status, _, is := checkIn(manager, confirmedTag); status != 200 || is {
			t.Errorf("after the next change: %d, confirmed is %v", status, is)
		}
	}
}

func TestManyConfirmAtOnce(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	second := servertest.Start(t, servertest.Options{Database: s.Database})
	i := fill(t, s)
	_, tag := published(t, s, i.site)
	answers := make([]confirmed, 20)
	var group sync.WaitGroup
	for n := range answers {
		manager := []*servertest.Server{s, second}[n%2]
		group.Go(func() {
			answer := manager.Do(t, "POST", fmt.Sprintf("/api/v1/sites/%d/confirm-removals", i.site), object{"etag": tag}, http.Header{"X-Api-Key": {s.AdminKey}})
			if answer.Status != 200 {
				t.Errorf("%d %s", answer.Status, answer.Body)
				return
			}
			answers[n] = servertest.Data[confirmed](t, answer)
		})
	}
	group.Wait()
	for _, answer := range answers {
		if answer != answers[0] || answer.Revision != 2 {
			t.Errorf("one was told %+v, another %+v", answers[0], answer)
		}
	}
}
