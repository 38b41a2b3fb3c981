package api_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"opensource.internal/manager/servertest"
)

// The description is a promise: here every operation that it has is driven
// against a real manager, with the requests that it shows as examples. What is
// answered is held against the description by servertest, with every request of
// every test.
//
// A new operation is driven by itself if its path has ids that world knows and
// its body an example. Else it needs a line in ids or in drivers.

// world is a manager with one record of every kind, all of other names than
// the examples have.
type world struct {
	*servertest.Server
	// ids are those that take the place of {id}, by the collection before it.
	ids map[string]int64
}

func newWorld(t testing.TB) *world {
	s := servertest.Start(t, servertest.Options{})
	w := &world{s, map[string]int64{}}
	w.ids["sites"] = s.Create(t, "/sites", object{
		"name": "home", "internalDomain": "home.internal", "dhcpRange": "192.0.2.100,192.0.2.200",
		"subnetMask": "255.255.255.0", "gateway": "192.0.2.1", "dnsForwarders": "9.9.9.9",
	})
	w.ids["nodes"] = s.Create(t, "/sites/1/nodes", object{"name": "pve0"})
	w.ids["containers"] = s.Create(t, "/sites/1/containers", object{"nodeId": w.ids["nodes"], "hostname": "db"})
	w.ids["external-domains"] = s.Create(t, "/external-domains", object{"name": "example.org"})
	w.ids["services"] = s.Create(t, "/containers/1/services", object{
		"type": "http", "internalPort": 80, "externalHostname": "db", "externalDomainId": w.ids["external-domains"],
	})
	w.ids["volumes"] = s.Create(t, "/containers/1/volumes", object{"name": "old", "mountPath": "/old", "mode": "ro"})
	w.ids["users"] = s.Create(t, "/users", object{"name": "eve", "role": "viewer", "password": "correct horse battery"})
	w.ids["api-keys"] = s.Create(t, "/api-keys", object{"name": "old", "role": "viewer"})
	w.ids["enrollments"] = s.Create(t, "/sites/1/enrollments", object{})
	w.ids["notification-targets"] = s.Create(t, "/notification-targets", object{"name": "old", "url": "generic+http://127.0.0.1:1/hook"})
	w.ids["notification-silences"] = s.Create(t, "/notification-silences", object{"siteId": 1, "until": "2126-12-01T06:00:00Z"})
	if answer := s.Call(t, "POST", "/agents", object{"siteId": 1, "hostname": "gate", "currentTime": 1, "ipv4Address": nil, "services": object{}}); answer.Status != 200 {
		t.Fatalf("check in: %d %s", answer.Status, answer.Body)
	}
	w.ids["revisions"] = 1 // the first check-in has made it
	w.ids["agents"] = int64(servertest.Data[[]object](t, s.Call(t, "GET", "/agents", nil))[0]["id"].(float64))
	return w
}

// drivers drive what cannot be driven with ids and examples alone.
var drivers = map[string]func(*testing.T, *world) servertest.Answer{
	"POST /enroll": func(t *testing.T, w *world) servertest.Answer {
		made := servertest.Data[struct{ Token string }](t, w.Call(t, "POST", "/sites/1/enrollments", object{}))
		return w.Do(t, "POST", "/api/v1/enroll", object{"token": made.Token, "hostname": "gateway"}, nil)
	},
	"GET /live": func(t *testing.T, w *world) servertest.Answer { // a stream has no end
		request, err := http.NewRequestWithContext(t.Context(), "GET", w.URL+"/api/v1/live", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("X-Api-Key", w.AdminKey)
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		begin := make([]byte, 12)
		if _, err := io.ReadFull(answer.Body, begin); err != nil || string(begin) != "retry: 2000\n" {
			t.Errorf("the stream begins with %q, %v", begin, err)
		}
		return servertest.Answer{Status: answer.StatusCode, Header: answer.Header, Body: begin}
	},
	"POST /session/password": func(t *testing.T, w *world) servertest.Answer {
		who := object{"name": "carol", "role": "viewer", "password": "correct horse battery"}
		w.Create(t, "/users", who)
		signedIn := w.Do(t, "POST", "/api/v1/session", object{"name": who["name"], "password": who["password"]}, nil)
		var cookies []string
		for _, cookie := range (&http.Response{Header: signedIn.Header}).Cookies() {
			cookies = append(cookies, cookie.Name+"="+cookie.Value)
		}
		return w.Do(t, "POST", "/api/v1/session/password", object{
			"currentPassword": who["password"], "newPassword": "another horse battery",
		}, http.Header{"Cookie": {strings.Join(cookies, "; ")}})
	},
}

var idOf = regexp.MustCompile(`/([^/{}]+)/\{[^/{}]+\}`)

// path puts ids into the path of an operation.
func (w *world) path(t testing.TB, o servertest.Operation) string {
	t.Helper()
	return idOf.ReplaceAllStringFunc(o.Path, func(part string) string {
		collection := idOf.FindStringSubmatch(part)[1]
		id, known := w.ids[collection]
		if !known {
			t.Fatalf("%s %s is documented, but nothing drives it: give newWorld an id of %q, or add it to drivers", o.Method, o.Path, collection)
		}
		return fmt.Sprintf("/%s/%d", collection, id)
	})
}

// requests are the bodies that the description shows, or none.
func requests(o servertest.Operation) []string {
	if o.RequestBody == nil {
		return []string{""}
	}
	return examplesOf(o.RequestBody.Content["application/json"])
}

func examplesOf(media servertest.Media) []string {
	var all []string
	if media.Example != nil {
		all = append(all, string(media.Example))
	}
	for _, example := range media.Examples {
		all = append(all, string(example.Value))
	}
	slices.Sort(all)
	return all
}

func (w *world) drive(t *testing.T, o servertest.Operation) {
	if drive, own := drivers[o.Method+" "+o.Path]; own {
		wantSuccess(t, o, "", drive(t, w))
		return
	}
	path := w.path(t, o)
	if hasParameter(o, "query", "cascade") {
		path += "?cascade=true"
	}
	for _, body := range requests(o) {
		if o.RequestBody != nil && body == "" {
			t.Errorf("%s %s is documented, but its body has no example", o.Method, o.Path)
		}
		wantSuccess(t, o, body, w.Call(t, o.Method, path, bodyOrNone(body)))
	}
}

func bodyOrNone(body string) any {
	if body == "" {
		return nil
	}
	return body
}

func wantSuccess(t *testing.T, o servertest.Operation, body string, answer servertest.Answer) {
	t.Helper()
	if answer.Status/100 != 2 {
		t.Errorf("%s %s, driven with what its description shows as an example (%s), is refused: %d %s", o.Method, o.Path, body, answer.Status, answer.Body)
	}
	if answer.Status == http.StatusOK && o.Method == http.MethodGet && o.Responses["304"].Description != "" && answer.Header.Get("ETag") == "" {
		t.Errorf("%s %s has no ETag", o.Method, o.Path)
	}
	if _, made := o.Responses["201"].Headers["Location"]; made && answer.Header.Get("Location") == "" {
		t.Errorf("%s %s has no Location", o.Method, o.Path)
	}
}

func hasParameter(o servertest.Operation, in, name string) bool {
	for _, parameter := range o.Parameters {
		if parameter.In == in && parameter.Name == name {
			return true
		}
	}
	return false
}

// inOrder sorts operations so that each finds what it needs: records are made
// first and deleted last, those that others belong to at the very end.
func inOrder(operations []servertest.Operation) []servertest.Operation {
	methods := []string{"POST", "GET", "PUT", "PATCH", "DELETE"}
	late := []string{"/session", "/containers/{id}", "/nodes/{id}", "/external-domains/{id}", "/sites/{id}"}
	sorted := slices.Clone(operations)
	slices.SortStableFunc(sorted, func(a, b servertest.Operation) int {
		return cmp.Or(
			cmp.Compare(slices.Index(methods, a.Method), slices.Index(methods, b.Method)),
			cmp.Compare(slices.Index(late, a.Path), slices.Index(late, b.Path)),
			-cmp.Compare(len(a.Path), len(b.Path)),
		)
	})
	return sorted
}

func TestEveryOperationDoesWhatIsDescribed(t *testing.T) {
	w := newWorld(t)
	operations := inOrder(w.Describe(t).Operations)
	if len(operations) < 45 {
		t.Fatalf("only %d operations are described", len(operations))
	}
	for _, operation := range operations {
		t.Run(operation.ID, func(t *testing.T) { w.drive(t, operation) })
	}
}

// Every operation is asked in every way that it has to refuse; servertest looks
// whether the answer is documented.
func TestEveryOperationRefusesAsDescribed(t *testing.T) {
	w := newWorld(t)
	for _, o := range w.Describe(t).Operations {
		if isStream(o) {
			continue
		}
		try := func(what string, status int, path string, body any, header http.Header) {
			t.Helper()
			if header.Get("X-Api-Key") == "" {
				header.Set("X-Api-Key", w.AdminKey)
			}
			answer := w.Do(t, o.Method, "/api/v1"+path, body, header)
			if answer.Status != status {
				t.Errorf("%s %s, %s: %d, want %d: %s", o.Method, o.Path, what, answer.Status, status, answer.Body)
			} else if status >= 400 {
				servertest.Error(t, answer)
			}
		}
		path, body := w.path(t, o), bodyOrNone(requests(o)[0])
		if o.Security == nil {
			try("with a wrong key", 401, path, body, http.Header{"X-Api-Key": {"osk_wrong"}})
		}
		if o.Path == "/agents" && o.Method == "POST" {
			continue // of an older contract: tested on its own
		}
		try("with an unknown parameter", 422, path+"?nonsense=1", body, http.Header{})
		if strings.Contains(o.Path, "{") && o.Method != "POST" {
			try("without such a record", 404, idOf.ReplaceAllString(o.Path, "/$1/999999"), body, http.Header{})
		}
		if o.RequestBody != nil {
			try("with a form", 415, path, "a=b", http.Header{"Content-Type": {"application/x-www-form-urlencoded"}})
			try("with broken JSON", 400, path, `{"a":`, http.Header{})
			try("with a list", 422, path, `[]`, http.Header{})
			try("with an unknown field", 422, path, `{"nonsense":1}`, http.Header{})
			try("with a field twice", 422, path, `{"nonsense":1,"nonsense":1}`, http.Header{})
			huge := 2 << 20
			if strings.HasSuffix(o.Path, "/manifest") {
				huge = 9 << 20
			}
			try("with a huge body", 413, path, `{"name":"`+strings.Repeat("a", huge)+`"}`, http.Header{})
		}
		if hasParameter(o, "header", "If-Match") {
			try("with an old tag", 412, path, body, http.Header{"If-Match": {`"old"`}})
		}
		if hasParameter(o, "header", "If-None-Match") {
			try("with *", 304, path, body, http.Header{"If-None-Match": {"*"}})
		}
	}
}

// Whoever has tried too many wrong keys is told to wait, wherever they go on.
func TestEveryOperationRefusesWhoIsLockedOut(t *testing.T) {
	w := newWorld(t)
	wrong := http.Header{"X-Api-Key": {"osk_wrong"}}
	for range 100 {
		if w.Do(t, "GET", "/api/v1/sites", nil, wrong).Status == 429 {
			break
		}
	}
	for _, o := range w.Describe(t).Operations {
		if o.Security != nil {
			continue // needs no key
		}
		answer := w.Do(t, o.Method, "/api/v1"+w.path(t, o), bodyOrNone(requests(o)[0]), wrong)
		if fault := servertest.Error(t, answer); answer.Status != 429 || fault.Code != "too_many_requests" || answer.Header.Get("Retry-After") == "" {
			t.Errorf("%s %s: %d %s", o.Method, o.Path, answer.Status, answer.Body)
		}
	}
}

// isStream reports whether an operation answers without end.
func isStream(o servertest.Operation) bool {
	_, stream := o.Responses["200"].Content["text/event-stream"]
	return stream
}

func TestExamplesAreValid(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	description := s.Describe(t)
	for _, o := range description.Operations {
		validate := func(media map[string]servertest.Media, way ...string) {
			t.Helper()
			for contentType, content := range media {
				examples := examplesOf(content)
				if len(examples) == 0 {
					t.Errorf("%s %s: no example of %v", o.Method, o.Path, way)
				}
				if contentType != "application/json" {
					continue
				}
				for _, example := range examples {
					way := append(append([]string{"paths", o.Path, strings.ToLower(o.Method)}, way...), "content", contentType, "schema")
					if err := description.Validate([]byte(example), way...); err != nil {
						t.Errorf("%s %s: the example %s is not valid: %v", o.Method, o.Path, example, err)
					}
				}
			}
		}
		if o.RequestBody != nil {
			validate(o.RequestBody.Content, "requestBody")
		}
		for status, response := range o.Responses {
			validate(response.Content, "responses", status)
			wantCodesOf(t, o, status, response.Content["application/json"])
		}
	}
}

// wantCodesOf holds the examples of errors against the table of errors: each has
// the status that its code has, and words that say more than the table does.
func wantCodesOf(t *testing.T, o servertest.Operation, status string, shown servertest.Media) {
	t.Helper()
	if status < "400" {
		return
	}
	guide, err := os.ReadFile("../../../docs/usage/api.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, example := range examplesOf(shown) {
		var answer struct {
			Error *struct{ Code, Message string }
		}
		if err := json.Unmarshal([]byte(example), &answer); err != nil || answer.Error == nil {
			continue // what is not ready answers with its record
		}
		row := fmt.Sprintf("| %s | `%s` | ", status, answer.Error.Code)
		if !strings.Contains(string(guide), row) {
			t.Errorf("%s %s: an example of %s has the code %s", o.Method, o.Path, status, answer.Error.Code)
		}
		if strings.Contains(string(guide), row+answer.Error.Message) {
			t.Errorf("%s %s: the example of %s is no message but the table's words: %s", o.Method, o.Path, answer.Error.Code, answer.Error.Message)
		}
	}
}

func TestEveryListHasPagesAndASearch(t *testing.T) {
	w := newWorld(t)
	for _, o := range w.Describe(t).Operations {
		if !hasParameter(o, "query", "limit") {
			continue
		}
		path := w.path(t, o)
		var list struct {
			Data []object
			Meta struct{ Total, Limit, Offset int }
		}
		get := func(query string) servertest.Answer {
			t.Helper()
			answer := w.Call(t, "GET", path+query, nil)
			list.Data, list.Meta.Total = nil, -1
			if err := json.Unmarshal(answer.Body, &list); answer.Status == 200 && err != nil {
				t.Fatal(err)
			}
			return answer
		}
		if get(""); list.Meta.Limit != 50 || list.Meta.Total < len(list.Data) {
			t.Errorf("GET %s: %+v", o.Path, list.Meta)
		}
		if answer := get("?limit=1&offset=1000&sort=-id"); answer.Status != 200 || len(list.Data) != 0 || list.Meta.Offset != 1000 {
			t.Errorf("GET %s beyond the end: %d %s", o.Path, answer.Status, answer.Body)
		}
		if answer := get("?q=no%25such_thing"); answer.Status != 200 || len(list.Data) != 0 || list.Meta.Total != 0 {
			t.Errorf("GET %s cannot be searched: give its list() the columns to search in: %d %s", o.Path, answer.Status, answer.Body)
		}
		if answer := get("?sort=nonsense"); answer.Status != 422 {
			t.Errorf("GET %s sorted by nonsense: %d", o.Path, answer.Status)
		}
	}
}

// Every path is asked with every method, in every state of the body. Whatever
// comes back is JSON of ours, and no fault of the manager.
func TestEveryMethodOnEveryPath(t *testing.T) {
	w := newWorld(t)
	operations := w.Describe(t).Operations
	paths := map[string][]string{} // path with ids → methods
	for _, o := range operations {
		paths[w.path(t, o)] = append(paths[w.path(t, o)], o.Method)
		if isStream(o) {
			paths[w.path(t, o)] = append(paths[w.path(t, o)], "stream")
		}
	}
	for _, other := range []string{"", "/", "/nope", "/sites/", "/sites//", "/sites/1/nope", "/sites/..", "/sites/%2e%2e/x", "/openapi.json", "/docs", "/%00", "/sites/%ff", "/sites/1%2f2"} {
		paths[other] = nil
	}
	methods := []string{"OPTIONS", "TRACE", "PROPFIND", "BREW", "get", "HEAD", "GET", "PUT", "PATCH", "POST", "DELETE"}
	for path, known := range paths {
		for _, method := range methods {
			if slices.Contains(known, "stream") && (method == "GET" || method == "HEAD") || method == "DELETE" && path == "/session" {
				continue
			}
			for _, body := range []any{nil, `{}`, `[`, "\xff\x00", `null`} {
				answer := w.Call(t, method, path, body)
				if answer.Status >= 500 {
					t.Errorf("%s %s %v: %d %s", method, path, body, answer.Status, answer.Body)
				}
				if answer.Status >= 400 && method != "HEAD" {
					servertest.Error(t, answer)
				}
				if len(known) > 0 && !slices.Contains(known, method) && method != "HEAD" {
					wantAllow(t, method, path, known, answer)
				}
			}
		}
	}
}

func wantAllow(t *testing.T, method, path string, known []string, answer servertest.Answer) {
	t.Helper()
	want := 405
	if method == "OPTIONS" {
		want = 204
	}
	allowed := strings.Split(answer.Header.Get("Allow"), ", ")
	for _, m := range append([]string{"OPTIONS"}, known...) {
		if m != "stream" && !slices.Contains(allowed, m) {
			t.Errorf("%s %s: Allow %v, which lacks %s", method, path, allowed, m)
		}
	}
	if answer.Status != want {
		t.Errorf("%s %s: %d, want %d", method, path, answer.Status, want)
	}
}

// HEAD is answered as GET, without the body (RFC 9110 section 9.3.2).
func TestHeadIsGetWithoutABody(t *testing.T) {
	w := newWorld(t)
	for _, o := range w.Describe(t).Operations {
		if o.Method != "GET" || isStream(o) {
			continue
		}
		path := w.path(t, o)
		get, head := w.Call(t, "GET", path, nil), w.Call(t, "HEAD", path, nil)
		if head.Status != get.Status || len(head.Body) > 0 || head.Header.Get("ETag") != get.Header.Get("ETag") || head.Header.Get("Content-Type") != get.Header.Get("Content-Type") {
			t.Errorf("HEAD %s: %d %v %q", path, head.Status, head.Header, head.Body)
		}
	}
}
