package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/auth"
	"opensource.internal/manager/internal/store/storetest"
	"opensource.internal/manager/servertest"
)

type shownRevision struct {
	Number      int64
	ETag        string
	ChangedBy   []string
	PublishedBy *string
	Note        *string
	Summary     map[string]struct{ Added, Changed, Removed int }
	Changes     string
	Current     bool
	Pinned      bool
	RunningOn   []string
	Data        json.RawMessage
}

type shownDiff struct {
	From, To *int64
	ETag     string
	Changes  []struct {
		Action, Resource, Name string
		Fields                 []struct {
			Name     string
			From, To any
		}
	}
	Files []struct{ Service, Path, Diff string }
	Host  struct {
		Agent, NGINX string
		Assumptions  []string
	}
	Impact struct {
		NGINX, DNSMasq string
		Words          []string
	}
	Waiting   int
	Published *int64
	Pin       *shownPin
}

type shownPin struct {
	Revision int64
	Reason   string
	PinnedBy string
}

func listed(t *testing.T, s *servertest.Server, site int64) []shownRevision {
	t.Helper()
	return servertest.Data[[]shownRevision](t, s.Call(t, "GET", fmt.Sprintf("/sites/%d/revisions", site), nil))
}

func pendingOf(t *testing.T, s *servertest.Server, site int64) shownDiff {
	t.Helper()
	return servertest.Data[shownDiff](t, s.Call(t, "GET", fmt.Sprintf("/sites/%d/pending", site), nil))
}

// askAs is one check-in of a site's agent that holds a snapshot.
func askAs(t *testing.T, s *servertest.Server, site int64, etag string, more object) (status int, got string, snapshot checkin.Snapshot) {
	t.Helper()
	body := object{
		"siteId": site, "hostname": "agent", "currentTime": 1771234560, "ipv4Address": nil,
		"services": object{"nginx": object{"state": "active", "lastApply": "success"}},
		"agent":    object{"version": "test", "templates": []string{}},
		"host":     object{"os": "Debian 12", "nginx": object{"version": "1.22.1", "http3": false, "stream": true}, "dnsmasq": object{"version": "2.90"}, "ipv6": true},
	}
	for name, value := range more {
		body[name] = value
	}
	answer := s.Do(t, "POST", "/api/v1/agents", body, http.Header{"X-Api-Key": {s.AdminKey}, "If-None-Match": {etag}})
	if answer.Status == http.StatusOK {
		snapshot = servertest.Data[checkin.Snapshot](t, answer)
	}
	return answer.Status, answer.Header.Get("ETag"), snapshot
}

// must is a call that has to succeed.
func mustCall(t *testing.T, s *servertest.Server, method, path string, body any) servertest.Answer {
	t.Helper()
	answer := s.Call(t, method, path, body)
	if answer.Status/100 != 2 {
		t.Fatalf("%s %s: %d %s", method, path, answer.Status, answer.Body)
	}
	return answer
}

func TestRevisionsNameWhoChangedWhat(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	i := fill(t, s)
	_, first, _ := askAs(t, s, i.site, "", nil)
	ada := s.Key(t, auth.NewKey{Name: "ada", Role: auth.RoleAdmin})
	change := func(key, path string, body any) {
		t.Helper()
		if answer := s.Do(t, "PATCH", "/api/v1"+path, body, http.Header{"X-Api-Key": {key}}); answer.Status != 200 {
			t.Fatalf("%s: %d %s", path, answer.Status, answer.Body)
		}
	}
	change(ada, fmt.Sprintf("/services/%d", i.http), object{"internalPort": 8081})
	change(s.AdminKey, fmt.Sprintf("/containers/%d", i.container), object{"macAddress": nil})
	change(ada, fmt.Sprintf("/containers/%d", i.container), object{"owner": "bob"}) // no agent sees that
	change(ada, fmt.Sprintf("/external-domains/%d", i.domain), object{"authServer": "http://198.51.100.7:4180"})
	other := s.Create(t, "/sites", object{"name": "other"})
	change(s.Key(t, auth.NewKey{Name: "eve", Role: auth.RoleAdmin}), fmt.Sprintf("/sites/%d", other), object{"gateway": "192.0.2.1"})

	list := listed(t, s, i.site)
	if len(list) != 2 || list[0].Number != 2 || !list[0].Current || list[1].Current || list[1].ETag != first {
		t.Fatalf("%+v", list)
	}
	if diff := cmp.Diff([]string{"ada (key)", "test admin (key)"}, list[0].ChangedBy); diff != "" {
		t.Error(diff)
	}
	if list[0].PublishedBy != nil || list[0].Changes != "1 container changed, 1 HTTP service changed" || list[0].Summary["httpService"].Changed != 1 {
		t.Errorf("%+v", list[0])
	}
	if !strings.HasPrefix(list[1].Changes, "site added, 1 node added, 1 container added") {
		t.Errorf("the first one: %q", list[1].Changes)
	}

	page := s.Call(t, "GET", fmt.Sprintf("/sites/%d/revisions?limit=1&offset=1", i.site), nil)
	if one := servertest.Data[[]shownRevision](t, page); len(one) != 1 || one[0].Number != 1 || !strings.Contains(string(page.Body), `"total":2`) {
		t.Errorf("%s", page.Body)
	}
	shown := servertest.Data[shownRevision](t, s.Call(t, "GET", fmt.Sprintf("/sites/%d/revisions/1", i.site), nil))
	if checkin.ETag(shown.Data) != first {
		t.Errorf("the data is not what the agent got: %s", shown.Data)
	}
}

func TestRevisionsAreCompared(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	i := fill(t, s)
	askAs(t, s, i.site, "", nil)
	mustCall(t, s, "PATCH", fmt.Sprintf("/services/%d", i.http), object{"internalPort": 8081})
	askAs(t, s, i.site, "", nil)
	mustCall(t, s, "DELETE", fmt.Sprintf("/services/%d", i.transport), nil)
	askAs(t, s, i.site, "", nil)

	get := func(query string) shownDiff {
		t.Helper()
		return servertest.Data[shownDiff](t, mustCall(t, s, "GET", fmt.Sprintf("/sites/%d/revisions/%s", i.site, query), nil))
	}
	d := get("2/diff")
	if *d.From != 1 || *d.To != 2 || len(d.Changes) != 1 || d.Changes[0].Name != "app.example.com" || len(d.Changes[0].Fields) != 1 ||
		d.Changes[0].Fields[0].From != 8080.0 || d.Changes[0].Fields[0].To != 8081.0 {
		t.Errorf("%+v", d.Changes)
	}
	if len(d.Files) != 1 || !strings.Contains(d.Files[0].Diff, "8081") || d.Impact.NGINX != "reload" || d.Impact.DNSMasq != "none" || d.Host.NGINX != "1.22.1" {
		t.Errorf("%+v %+v", d.Files, d.Impact)
	}
	if d := get("3/diff?from=1"); len(d.Changes) != 2 {
		t.Errorf("from 1 to 3: %+v", d.Changes)
	}
	if back := get("1/diff?from=3"); len(back.Changes) != 2 || back.Changes[1].Action != "added" {
		t.Errorf("from 3 to 1: %+v", back.Changes)
	}
	if d := get("1/diff"); d.From != nil || len(d.Changes) != 8 {
		t.Errorf("the first one: %+v", d.Changes)
	}
	if d := get("2/diff?from=2"); len(d.Changes)+len(d.Files) != 0 {
		t.Errorf("with itself: %+v", d)
	}
	for path, status := range map[string]int{"9/diff": 404, "0/diff": 404, "9": 404, "2/diff?from=9": 422, "2/diff?from=x": 422, "2/diff?to=1": 422} {
		if answer := s.Call(t, "GET", fmt.Sprintf("/sites/%d/revisions/%s", i.site, path), nil); answer.Status != status {
			t.Errorf("%s: %d %s", path, answer.Status, answer.Body)
		}
	}
	if answer := s.Call(t, "GET", "/sites/99/revisions", nil); answer.Status != 404 {
		t.Errorf("no such site: %d", answer.Status)
	}
}

func TestPreview(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	i := fill(t, s)
	type shown struct {
		Revision *int64
		Host     struct {
			Agent, NGINX string
			Assumptions  []string
		}
		Services []struct {
			Name  string
			Files []struct{ Path, Content string }
		}
	}
	get := func(query string) shown {
		t.Helper()
		return servertest.Data[shown](t, s.Call(t, "GET", fmt.Sprintf("/sites/%d/preview%s", i.site, query), nil))
	}
	if p := get(""); p.Host.Agent != "" || !strings.Contains(p.Host.Assumptions[0], "Debian 13 is assumed") || !strings.Contains(p.Services[0].Files[0].Content, "http2 on") {
		t.Errorf("%+v", p.Host)
	}
	askAs(t, s, i.site, "", nil)
	mustCall(t, s, "PATCH", fmt.Sprintf("/services/%d", i.http), object{"internalPort": 8081})
	for query, port := range map[string]string{"": ":8081", "?revision=1": ":8080"} {
		p := get(query)
		if p.Host.Agent != "agent" || p.Host.NGINX != "1.22.1" || len(p.Services) != 2 || len(p.Services[1].Files) != 5 ||
			!strings.Contains(p.Services[0].Files[0].Content, port) || strings.Contains(p.Services[0].Files[0].Content, "http2 on") {
			t.Errorf("%s: %+v", query, p.Host)
		}
	}
	if len(listed(t, s, i.site)) != 2 {
		t.Error("looking at it published something else than the list does")
	}
	for path, status := range map[string]int{fmt.Sprintf("/sites/%d/preview?revision=9", i.site): 422, "/sites/99/preview": 404} {
		if answer := s.Call(t, "GET", path, nil); answer.Status != status {
			t.Errorf("%s: %d %s", path, answer.Status, answer.Body)
		}
	}
}

// TestPinnedSite follows an agent through a pin, with a second manager on the
// same database.
func TestPinnedSite(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	second := servertest.Start(t, servertest.Options{Database: s.Database})
	i := fill(t, s)
	pinPath := fmt.Sprintf("/sites/%d/pin", i.site)
	results := object{"volumes": object{fmt.Sprint(i.volume): object{"applied": true}}}
	_, old, _ := askAs(t, s, i.site, "", results)
	mustCall(t, s, "PATCH", fmt.Sprintf("/services/%d", i.http), object{"internalPort": 8081})
	_, newer, _ := askAs(t, s, i.site, old, nil)

	pinned := servertest.Data[shownPin](t, mustCall(t, s, "POST", pinPath, object{"revision": 1, "reason": " 8081 does not answer "}))
	want := shownPin{Revision: 1, Reason: "8081 does not answer", PinnedBy: "test admin"}
	if pinned != want {
		t.Errorf("%+v", pinned)
	}
	for _, manager := range []*servertest.Server{s, second} {
		if status, got, snapshot := askAs(t, manager, i.site, newer, nil); status != 200 || got != old || snapshot.NGINX.HTTPServices[0].InternalPort != 8080 {
			t.Errorf("the pinned revision: %d %s", status, got)
		}
		if status, _, _ := askAs(t, manager, i.site, old, nil); status != 304 {
			t.Errorf("an agent that has it: %d", status)
		}
	}
	mustCall(t, second, "PATCH", fmt.Sprintf("/services/%d", i.http), object{"internalPort": 8082})
	for _, manager := range []*servertest.Server{s, second} {
		if status, got, _ := askAs(t, manager, i.site, old, nil); status != 304 || got != old {
			t.Errorf("after a change of the inventory: %d %s", status, got)
		}
		for _, path := range []string{"/sites", fmt.Sprintf("/sites/%d", i.site), "/agents", "/agents/1"} {
			if answer := manager.Call(t, "GET", path, nil); !strings.Contains(string(answer.Body), `"reason":"8081 does not answer"`) {
				t.Errorf("%s does not show the pin: %s", path, answer.Body)
			}
		}
	}
	list := listed(t, s, i.site)
	if len(list) != 2 || !list[1].Current || !list[1].Pinned || list[0].Current {
		t.Errorf("%+v", list)
	}
	if p := pendingOf(t, second, i.site); p.Waiting != 1 || *p.From != 1 || p.To != nil || p.Pin == nil || *p.Pin != want || p.Published != nil || p.Changes[0].Fields[0].To != 8082.0 {
		t.Errorf("%+v", p)
	}

	mustCall(t, second, "DELETE", pinPath, nil)
	for _, manager := range []*servertest.Server{s, second} {
		if status, got, snapshot := askAs(t, manager, i.site, old, nil); status != 200 || got == old || got == newer || snapshot.NGINX.HTTPServices[0].InternalPort != 8082 {
			t.Errorf("after unpinning: %d %s", status, got)
		}
	}
	mustCall(t, s, "DELETE", pinPath, nil) // again
	if answer := s.Call(t, "DELETE", "/sites/99/pin", nil); answer.Status != 404 {
		t.Errorf("no such site: %d", answer.Status)
	}
	if list := listed(t, second, i.site); len(list) != 3 || !list[0].Current || slices.ContainsFunc(list, func(r shownRevision) bool { return r.Pinned }) {
		t.Errorf("%+v", list)
	}
	mustCall(t, s, "DELETE", fmt.Sprintf("/sites/%d?cascade=true", i.site), nil)
}

func TestPinRefuses(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	i := fill(t, s)
	path := fmt.Sprintf("/sites/%d/pin", i.site)
	_, tag, _ := askAs(t, s, i.site, "", nil)
	for _, test := range []struct {
		path   string
		body   any
		status int
		field  string
	}{
		{path, object{}, 422, "reason"},
		{path, object{"reason": ""}, 422, "reason"},
		{path, object{"reason": " \n"}, 422, "reason"},
		{path, object{"reason": strings.Repeat("x", 501)}, 422, "reason"},
		{path, object{"reason": "a\x00b"}, 422, "reason"},
		{path, object{"reason": "x", "revision": 9}, 422, "revision"},
		{path, object{"reason": "x", "revision": 0}, 422, "revision"},
		{path, object{"reason": "x", "revision": -1}, 422, "revision"},
		{path, object{"reason": "x", "revision": "1"}, 422, "revision"},
		{path, object{"reason": "x", "number": 1}, 422, "number"},
		{"/sites/99/pin", object{"reason": "x"}, 404, ""},
		{"/sites/99/pin", object{"reason": "x", "revision": 1}, 404, ""},
	} {
		answer := s.Call(t, "POST", test.path, test.body)
		if fault := servertest.Error(t, answer); answer.Status != test.status || test.field != "" && fault.Fields[test.field] == "" {
			t.Errorf("%v: %d %s", test.body, answer.Status, answer.Body)
		}
	}
	for _, key := range []string{s.Key(t, auth.NewKey{Name: "v", Role: auth.RoleViewer}), s.Key(t, auth.NewKey{Name: "a", Role: auth.RoleAgent, SiteID: i.site})} {
		for _, what := range []string{"pin", "publish"} {
			if answer := s.Do(t, "POST", fmt.Sprintf("/api/v1/sites/%d/%s", i.site, what), object{"reason": "x"}, http.Header{"X-Api-Key": {key}}); answer.Status != 403 {
				t.Errorf("%s: %d", what, answer.Status)
			}
		}
	}
	if status, got, _ := askAs(t, s, i.site, "", nil); status != 200 || got != tag || listed(t, s, i.site)[0].Pinned {
		t.Error("a refused pin pins")
	}
	// Without a number it is what agents get now.
	if pinned := servertest.Data[shownPin](t, mustCall(t, s, "POST", path, object{"reason": "freeze"})); pinned.Revision != 1 {
		t.Errorf("%+v", pinned)
	}
}

// TestVolumesOfAPinnedSite: what an agent says about a volume in another form
// than the inventory has says nothing about it, and what it cannot know of does
// not keep it from its 304.
func TestVolumesOfAPinnedSite(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	i := fill(t, s)
	volumes := fmt.Sprintf("/containers/%d/volumes", i.container)
	gone := s.Create(t, volumes, object{"name": "gone", "mountPath": "/gone", "mode": "rw"})
	untold := s.Create(t, volumes, object{"name": "untold", "mountPath": "/untold", "mode": "rw"})
	ready := func(ids ...int64) object {
		results := object{}
		for _, id := range ids {
			results[fmt.Sprint(id)] = object{"applied": true}
		}
		return object{"volumes": results}
	}
	_, old, _ := askAs(t, s, i.site, "", ready(i.volume, gone))
	mustCall(t, s, "POST", fmt.Sprintf("/sites/%d/pin", i.site), object{"reason": "test"})
	mustCall(t, s, "PATCH", fmt.Sprintf("/volumes/%d", i.volume), object{"mode": "ro"})
	mustCall(t, s, "DELETE", fmt.Sprintf("/volumes/%d", gone), nil)
	young := s.Create(t, volumes, object{"name": "young", "mountPath": "/young", "mode": "rw"})

	if status, _, _ := askAs(t, s, i.site, old, nil); status != 200 {
		t.Errorf("a volume of the pinned revision was not told of: %d", status)
	}
	if status, got, _ := askAs(t, s, i.site, old, ready(i.volume, gone, untold)); status != 304 || got != old {
		t.Errorf("everything of the pinned revision was told: %d", status)
	}
	state := func(id int64) string {
		t.Helper()
		return servertest.Data[struct{ Status string }](t, s.Call(t, "GET", fmt.Sprintf("/volumes/%d", id), nil)).Status
	}
	for id, want := range map[int64]string{i.volume: "pending", untold: "ready", young: "pending"} {
		if got := state(id); got != want {
			t.Errorf("volume %d is %s, want %s", id, got, want)
		}
	}
	if strings.Contains(s.Log.String(), "ignored results") {
		t.Error("a result for a volume of the pinned revision is taken for a fault")
	}
	askAs(t, s, i.site, old, ready(999))
	if !strings.Contains(s.Log.String(), "ignored results") {
		t.Error("a result for somebody else's volume is not told")
	}

	mustCall(t, s, "DELETE", fmt.Sprintf("/sites/%d/pin", i.site), nil)
	_, now, snapshot := askAs(t, s, i.site, old, nil)
	if len(snapshot.Site.Volumes) != 3 || snapshot.Site.Volumes[0].Mode != "ro" {
		t.Errorf("%+v", snapshot.Site.Volumes)
	}
	if status, _, _ := askAs(t, s, i.site, now, ready(i.volume, untold, young)); status != 304 || state(i.volume) != "ready" || state(young) != "ready" {
		t.Errorf("after unpinning: %d, %s, %s", status, state(i.volume), state(young))
	}
}

func TestPublishedByHand(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	second := servertest.Start(t, servertest.Options{Database: s.Database})
	i := fill(t, s)
	site, publish := fmt.Sprintf("/sites/%d", i.site), fmt.Sprintf("/sites/%d/publish", i.site)
	mustCall(t, s, "PATCH", site, object{"publishing": "manual"})
	results := object{"volumes": object{fmt.Sprint(i.volume): object{"applied": true}}}
	_, old, snapshot := askAs(t, s, i.site, "", results)
	if len(snapshot.NGINX.HTTPServices) != 1 {
		t.Error("what was there before is not published")
	}
	if p := pendingOf(t, s, i.site); p.Waiting != 0 || len(p.Changes) != 0 || *p.Published != 1 {
		t.Errorf("nothing has changed: %+v", p)
	}
	mustCall(t, s, "PATCH", fmt.Sprintf("/services/%d", i.http), object{"externalHostname": "wiki"})
	mustCall(t, s, "PATCH", fmt.Sprintf("/containers/%d", i.container), object{"macAddress": "02:00:00:00:00:77"})
	for _, manager := range []*servertest.Server{s, second} {
		if status, got, _ := askAs(t, manager, i.site, old, nil); status != 304 || got != old {
			t.Errorf("before it is published: %d %s", status, got)
		}
	}
	answer := s.Call(t, "GET", site+"/pending", nil)
	looked := servertest.Data[shownDiff](t, answer)
	want := []string{
		"nginx is reloaded: open connections stay.", "dnsmasq reads its files again, without a restart.",
		"1 host name added: wiki.example.com.", "1 host name removed: app.example.com.", "1 DHCP reservation changed: web.",
	}
	if diff := cmp.Diff(want, looked.Impact.Words); diff != "" || looked.Waiting != 2 || answer.Header.Get("ETag") != looked.ETag {
		t.Errorf("waiting %d, tag %s: %s", looked.Waiting, answer.Header.Get("ETag"), diff)
	}

	mustCall(t, second, "PATCH", fmt.Sprintf("/services/%d", i.transport), object{"internalPort": 23})
	refused := s.Call(t, "POST", publish, object{"etag": looked.ETag})
	if fault := servertest.Error(t, refused); refused.Status != 409 || fault.Fields["etag"] == "" {
		t.Errorf("other content than was looked at: %d %s", refused.Status, refused.Body)
	}
	withMatch := func(tag string, body any) servertest.Answer {
		return s.Do(t, "POST", "/api/v1"+publish, body, http.Header{"X-Api-Key": {s.AdminKey}, "If-Match": {tag}})
	}
	for _, tag := range []string{looked.ETag, "junk", `"a", "b"`} {
		if answer := withMatch(tag, nil); answer.Status != 412 || servertest.Error(t, answer).Code != "precondition_failed" {
			t.Errorf("If-Match %s: %d %s", tag, answer.Status, answer.Body)
		}
	}
	for _, body := range []object{{"note": "\n"}, {"note": strings.Repeat("x", 501)}, {"etag": "x y"}, {"notes": "x"}} {
		if answer := s.Call(t, "POST", publish, body); answer.Status != 422 {
			t.Errorf("%v: %d %s", body, answer.Status, answer.Body)
		}
	}
	if status, _, _ := askAs(t, second, i.site, old, nil); status != 304 {
		t.Error("a refused request publishes")
	}

	answer = withMatch(pendingOf(t, s, i.site).ETag, object{"note": "the wiki moves"})
	published := servertest.Data[struct {
		Revision  int64
		ETag      string
		Published bool
	}](t, answer)
	for _, manager := range []*servertest.Server{second, s} {
		if status, got, snapshot := askAs(t, manager, i.site, old, nil); status != 200 || got != published.ETag || snapshot.NGINX.HTTPServices[0].ExternalHostname != "wiki" {
			t.Errorf("after it was published: %d %s", status, got)
		}
	}
	list := listed(t, s, i.site)
	if len(list) != 2 || list[0].Number != published.Revision || *list[0].PublishedBy != "test admin" || *list[0].Note != "the wiki moves" ||
		!cmp.Equal(list[0].ChangedBy, []string{"test admin (key)"}) {
		t.Errorf("%+v", list)
	}
	// Again there is nothing to publish.
	if again := servertest.Data[struct {
		Revision  int64
		Published bool
	}](t, mustCall(t, s, "POST", publish, nil)); again.Revision != published.Revision || again.Published || !published.Published {
		t.Errorf("%+v", again)
	}
	// By itself again, everything goes out.
	mustCall(t, s, "PATCH", fmt.Sprintf("/services/%d", i.transport), object{"internalPort": 24})
	mustCall(t, second, "PATCH", site, object{"publishing": nil})
	if status, _, snapshot := askAs(t, s, i.site, published.ETag, nil); status != 200 || snapshot.NGINX.StreamServices[0].InternalPort != 24 {
		t.Errorf("published by itself: %d", status)
	}
	if answer := s.Call(t, "PATCH", site, object{"publishing": "never"}); answer.Status != 422 || servertest.Error(t, answer).Fields["publishing"] == "" {
		t.Errorf("%d %s", answer.Status, answer.Body)
	}
}

// A site that is published by hand from its first day hands out nothing but what
// was published: its agent gets the empty site.
func TestPublishedByHandFromTheFirstDay(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	site := s.Create(t, "/sites", object{"name": "lab", "publishing": "manual"})
	s.Create(t, fmt.Sprintf("/sites/%d/nodes", site), object{"name": "pve1"})
	_, tag, snapshot := askAs(t, s, site, "", nil)
	if snapshot.Site == nil || len(snapshot.Site.Nodes) != 0 {
		t.Errorf("%+v", snapshot.Site)
	}
	if p := pendingOf(t, s, site); p.Waiting != 1 || p.Changes[0].Resource != "node" {
		t.Errorf("%+v", p)
	}
	mustCall(t, s, "POST", fmt.Sprintf("/sites/%d/publish", site), nil)
	if status, _, snapshot := askAs(t, s, site, tag, nil); status != 200 || len(snapshot.Site.Nodes) != 1 {
		t.Errorf("%d %+v", status, snapshot.Site)
	}
}

// A change that is refused publishes nothing, as one that begins to publish by
// hand would.
func TestARefusedChangePublishesNothing(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	i := fill(t, s)
	if answer := s.Call(t, "PATCH", fmt.Sprintf("/sites/%d", i.site), object{"publishing": "manual", "gateway": "junk"}); answer.Status != 422 {
		t.Fatalf("%d %s", answer.Status, answer.Body)
	}
	var kept int
	if err := storetest.Raw(t, s.Database).QueryRow("SELECT count(*) FROM revisions").Scan(&kept); err != nil || kept != 0 {
		t.Errorf("%d revisions, %v", kept, err)
	}
}

// While a site is pinned a new revision is made ready behind the pin, so that
// unpinning leads to it and not by way of the broken one.
func TestPublishBehindAPin(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	i := fill(t, s)
	site := fmt.Sprintf("/sites/%d", i.site)
	mustCall(t, s, "PATCH", site, object{"publishing": "manual"})
	service := fmt.Sprintf("/services/%d", i.http)
	results := object{"volumes": object{fmt.Sprint(i.volume): object{"applied": true}}}
	_, old, _ := askAs(t, s, i.site, "", results)
	mustCall(t, s, "PATCH", service, object{"internalPort": 1})
	mustCall(t, s, "POST", site+"/publish", nil)
	mustCall(t, s, "POST", site+"/pin", object{"revision": 1, "reason": "port 1 was wrong"})
	mustCall(t, s, "PATCH", service, object{"internalPort": 8090})
	published := servertest.Data[struct {
		Revision int64
		Pin      *shownPin
	}](t, mustCall(t, s, "POST", site+"/publish", nil))
	if published.Revision != 3 || published.Pin == nil || published.Pin.Revision != 1 {
		t.Errorf("%+v", published)
	}
	if status, got, _ := askAs(t, s, i.site, old, nil); status != 304 || got != old {
		t.Errorf("still pinned: %d %s", status, got)
	}
	if p := pendingOf(t, s, i.site); p.Waiting != 1 || p.Published == nil || *p.Published != 3 {
		t.Errorf("%+v", p)
	}
	mustCall(t, s, "DELETE", site+"/pin", nil)
	if _, _, snapshot := askAs(t, s, i.site, old, nil); snapshot.NGINX.HTTPServices[0].InternalPort != 8090 {
		t.Errorf("%+v", snapshot.NGINX.HTTPServices)
	}
}

// Confirming removals is about what agents get, pinned or published, not about
// what the inventory has by now.
func TestConfirmRemovalsOfHeldRevisions(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	i := fill(t, s)
	site := fmt.Sprintf("/sites/%d", i.site)
	results := object{"volumes": object{fmt.Sprint(i.volume): object{"applied": true}}}
	_, old, _ := askAs(t, s, i.site, "", results)
	mustCall(t, s, "POST", site+"/pin", object{"reason": "test"})
	mustCall(t, s, "PATCH", fmt.Sprintf("/services/%d", i.http), object{"internalPort": 8081})

	done := servertest.Data[confirmed](t, mustCall(t, s, "POST", site+"/confirm-removals", object{"etag": old}))
	status, tag, snapshot := askAs(t, s, i.site, old, nil)
	if status != 200 || tag != done.ETag || !snapshot.RemovalsConfirmed || snapshot.NGINX.HTTPServices[0].InternalPort != 8080 || done.Revision != 2 {
		t.Errorf("%d, %+v, %+v", status, done, snapshot.NGINX)
	}
	if list := listed(t, s, i.site); !list[0].Current || !list[0].Pinned || *list[0].Note != "removals confirmed" {
		t.Errorf("%+v", list)
	}
	if again := servertest.Data[confirmed](t, mustCall(t, s, "POST", site+"/confirm-removals", object{"etag": old})); again != done {
		t.Errorf("again: %+v", again)
	}
	if answer := s.Call(t, "POST", site+"/confirm-removals", object{"etag": checkin.ETag([]byte("x"))}); answer.Status != 409 {
		t.Errorf("other content: %d", answer.Status)
	}
	// That word was for then: nobody pins it again.
	refused := s.Call(t, "POST", site+"/pin", object{"revision": 2, "reason": "again"})
	if fault := servertest.Error(t, refused); refused.Status != 409 || !strings.Contains(fault.Fields["revision"], "pin revision 1") {
		t.Errorf("%d %s", refused.Status, refused.Body)
	}
	mustCall(t, s, "DELETE", site+"/pin", nil)
	if _, _, snapshot := askAs(t, s, i.site, tag, nil); snapshot.RemovalsConfirmed || snapshot.NGINX.HTTPServices[0].InternalPort != 8081 {
		t.Errorf("after unpinning: %+v", snapshot)
	}

	// Of a site that is published by hand.
	mustCall(t, s, "PATCH", site, object{"publishing": "manual"})
	_, old, _ = askAs(t, s, i.site, "", nil)
	mustCall(t, s, "PATCH", fmt.Sprintf("/services/%d", i.http), object{"internalPort": 8082})
	servertest.Data[confirmed](t, mustCall(t, s, "POST", site+"/confirm-removals", object{"etag": old}))
	if _, _, snapshot := askAs(t, s, i.site, old, nil); !snapshot.RemovalsConfirmed || snapshot.NGINX.HTTPServices[0].InternalPort != 8081 {
		t.Errorf("published by hand: %+v", snapshot)
	}
	if p := pendingOf(t, s, i.site); p.Waiting != 1 {
		t.Errorf("waiting: %+v", p.Changes)
	}
	mustCall(t, s, "POST", site+"/publish", nil)
	if _, _, snapshot := askAs(t, s, i.site, "", nil); snapshot.RemovalsConfirmed || snapshot.NGINX.HTTPServices[0].InternalPort != 8082 {
		t.Errorf("the next one: %+v", snapshot)
	}
}

// A pin takes a confirmation back: what runs by the time it ends is something
// else.
func TestAPinTakesAConfirmationBack(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	i := fill(t, s)
	site := fmt.Sprintf("/sites/%d", i.site)
	askAs(t, s, i.site, "", nil)
	mustCall(t, s, "POST", site+"/confirm-removals", nil)
	mustCall(t, s, "POST", site+"/pin", object{"revision": 1, "reason": "test"})
	mustCall(t, s, "DELETE", site+"/pin", nil)
	if snapshot, _ := published(t, s, i.site); snapshot.RemovalsConfirmed {
		t.Error("the confirmation outlived the pin")
	}
}
