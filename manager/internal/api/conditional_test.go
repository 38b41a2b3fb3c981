package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"opensource.internal/manager/servertest"
)

// with sends a request with the admin key and one more header.
func with(t testing.TB, s *servertest.Server, method, path string, body any, header, value string) servertest.Answer {
	t.Helper()
	return s.Do(t, method, "/api/v1"+path, body, http.Header{"X-Api-Key": {s.AdminKey}, header: {value}})
}

func tagAt(t *testing.T, s *servertest.Server, path string) string {
	t.Helper()
	answer := s.Call(t, "GET", path, nil)
	tag := answer.Header.Get("ETag")
	if answer.Status != 200 || len(tag) < 10 || tag[0] != '"' {
		t.Fatalf("GET %s: %d, ETag %q", path, answer.Status, tag)
	}
	return tag
}

// changes are one change of every kind of record that can be changed.
func (i inventory) changes() map[string]string {
	return map[string]string{
		fmt.Sprintf("/sites/%d", i.site):              `{"name":"attic"}`,
		fmt.Sprintf("/nodes/%d", i.node):              `{"type":"proxmox"}`,
		fmt.Sprintf("/containers/%d", i.container):    `{"owner":"bob"}`,
		fmt.Sprintf("/services/%d", i.http):           `{"internalPort":8081}`,
		fmt.Sprintf("/volumes/%d", i.volume):          `{"mode":"ro"}`,
		fmt.Sprintf("/external-domains/%d", i.domain): `{"defaultSiteId":null}`,
	}
}

func TestOfTwoEditorsOneIsTold(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	for path, change := range fill(t, s).changes() {
		seen := tagAt(t, s, path)
		first := with(t, s, "PATCH", path, change, "If-Match", seen)
		if first.Status != 200 {
			t.Fatalf("PATCH %s with the present tag: %d %s", path, first.Status, first.Body)
		}
		if now := tagAt(t, s, path); now == seen || first.Header.Get("ETag") != now {
			t.Errorf("PATCH %s: tag before %s, answered %s, present %s", path, seen, first.Header.Get("ETag"), now)
		}
		for method, body := range map[string]any{"PATCH": change, "DELETE": nil} {
			second := with(t, s, method, path, body, "If-Match", seen)
			if fault := servertest.Error(t, second); second.Status != 412 || fault.Code != "precondition_failed" {
				t.Errorf("%s %s with an old tag: %d %s", method, path, second.Status, second.Body)
			}
			if got := second.Header.Get("ETag"); got != first.Header.Get("ETag") {
				t.Errorf("%s %s: 412 has the tag %s", method, path, got)
			}
		}
	}
}

// Each of many editors adds a letter to what it has read. With If-Match none is
// lost, however they overlap.
func TestNoUpdateIsLost(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	path := fmt.Sprintf("/containers/%d", fill(t, s).container)
	s.Call(t, "PATCH", path, object{"owner": "x"})
	const editors, edits = 4, 5
	var running sync.WaitGroup
	for range editors {
		running.Go(func() {
			for done := 0; done < edits; {
				shown := s.Call(t, "GET", path, nil)
				owner := servertest.Data[object](t, shown)["owner"].(string)
				answer := with(t, s, "PATCH", path, object{"owner": owner + "x"}, "If-Match", shown.Header.Get("ETag"))
				switch answer.Status {
				case 200:
					done++
				case 412:
				default:
					t.Errorf("%d %s", answer.Status, answer.Body)
					return
				}
			}
		})
	}
	running.Wait()
	if owner := servertest.Data[object](t, s.Call(t, "GET", path, nil))["owner"].(string); len(owner) != 1+editors*edits {
		t.Errorf("%d of %d edits are left", len(owner)-1, editors*edits)
	}
}

func TestFormsOfIfMatch(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	path := fmt.Sprintf("/sites/%d", fill(t, s).site)
	tag := tagAt(t, s, path)
	bare := strings.Trim(tag, `"`)
	for value, status := range map[string]int{
		tag: 200, "*": 200, `"other", ` + tag: 200, `"a,b" , ` + tag + `, "c"`: 200,
		"W/" + tag:                    200, // nginx has compressed the answer
		`"` + bare + `-gzip"`:         200, // Caddy has
		`"other"`:                     412,
		bare:                          412,
		"":                            412,
		`"`:                           412,
		`"other", *`:                  412,
		"w/" + tag:                    412,
		strings.Repeat("x", 8<<10):    412,
		strings.Repeat(`"x",`, 2<<10): 412,
	} {
		if answer := with(t, s, "PATCH", path, `{}`, "If-Match", value); answer.Status != status {
			t.Errorf("If-Match: %.60s: %d, want %d: %s", value, answer.Status, status, answer.Body)
		}
	}
	for value, status := range map[string]int{tag: 412, "W/" + tag: 412, "*": 412, `"other"`: 200} {
		if answer := with(t, s, "PATCH", path, `{}`, "If-None-Match", value); answer.Status != status {
			t.Errorf("PATCH, If-None-Match: %s: %d, want %d", value, answer.Status, status)
		}
	}
	// Two fields are one list (RFC 9110 section 5.3).
	answer := s.Do(t, "PATCH", "/api/v1"+path, `{}`, http.Header{"X-Api-Key": {s.AdminKey}, "If-Match": {`"other"`, tag}})
	if answer.Status != 200 {
		t.Errorf("two fields: %d %s", answer.Status, answer.Body)
	}
	// What would be refused anyway is refused for that.
	if answer := with(t, s, "PATCH", path, `{"name":5}`, "If-Match", `"other"`); answer.Status != 422 {
		t.Errorf("a wrong body: %d", answer.Status)
	}
	if answer := with(t, s, "DELETE", "/sites/999", nil, "If-Match", "*"); answer.Status != 404 {
		t.Errorf("no such record: %d", answer.Status)
	}
	// A refused change is taken back as a whole, and a condition on what has no
	// tag never holds.
	if answer := with(t, s, "POST", "/sites", object{"name": "new"}, "If-Match", tag); answer.Status != 412 {
		t.Errorf("POST: %d %s", answer.Status, answer.Body)
	}
	if answer := with(t, s, "POST", "/sites", object{"name": "new"}, "If-Match", "*"); answer.Status != 201 {
		t.Errorf("POST with *: %d %s", answer.Status, answer.Body)
	}
}

func TestFormsOfIfNoneMatch(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	i := fill(t, s)
	for _, path := range []string{fmt.Sprintf("/sites/%d", i.site), "/sites?limit=1", fmt.Sprintf("/sites/%d/snapshot", i.site), "/openapi.json"} {
		tag := tagAt(t, s, path)
		for value, status := range map[string]int{
			tag: 304, "W/" + tag: 304, "*": 304, `"other",` + tag: 304, `"other"`: 200, "": 200, "junk": 200,
		} {
			answer := with(t, s, "GET", path, nil, "If-None-Match", value)
			if answer.Status != status || (status == 304) != (len(answer.Body) == 0) {
				t.Errorf("GET %s, If-None-Match: %s: %d, want %d", path, value, answer.Status, status)
			}
			if got := answer.Header.Values("ETag"); len(got) != 1 || got[0] != tag {
				t.Errorf("GET %s, If-None-Match: %s: ETag %q, want %s", path, value, got, tag)
			}
		}
	}
}

// A new record has the tag that it is shown with.
func TestNewRecordHasItsTag(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	made := s.Call(t, "POST", "/sites", object{"name": "lab"})
	if got, want := made.Header.Get("ETag"), tagAt(t, s, "/sites/1"); got != want {
		t.Errorf("answered %q, shown with %s", got, want)
	}
	key := s.Call(t, "POST", "/api-keys", object{"name": "k", "role": "viewer"})
	if got := key.Header.Get("ETag"); got != "" {
		t.Errorf("a new key, which is never shown like this again, has the tag %s", got)
	}
}
