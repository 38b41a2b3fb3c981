package api_test

import (
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"opensource.internal/manager/servertest"
)

// Foreign input of every kind goes through the real server. servertest fails on
// any answer that is not documented; here no answer may be a fault of the
// manager. What is described later is fuzzed by itself.

// hostile are bodies that have gone wrong somewhere.
var hostile = []string{
	"", "null", "[]", "0", `""`, "{", `{"":""}`, "{}{}", "\xef\xbb\xbf{}", "\xff", "{\x00}", `{"name":"\ud800"}`, `{"name":"\u0000"}`,
	`{"name":"a","name":"b"}`, `{"name":1e999}`, `{"id":99999999999999999999}`, `{"name":{"name":{"name":null}}}`,
	`{"__proto__":{"a":1}}`, `{"name":"` + strings.Repeat("é", 300) + `"}`, `{"siteId":-1}`, `{"siteId":0}`, `{"expiresAt":"never"}`,
	`{"expiresAt":"9999-12-31T23:59:59Z"}`, `{"expiresAt":"-0001-01-01T00:00:00Z"}`, strings.Repeat("[", 9000),
}

// writes are the operations with a body, and their paths in a world.
func writes(t testing.TB, w *world) (operations []servertest.Operation, paths []string) {
	for _, o := range w.Describe(t).Operations {
		if o.RequestBody != nil && !isStream(o) {
			operations, paths = append(operations, o), append(paths, w.path(t, o))
		}
	}
	return operations, paths
}

func FuzzWriteBodies(f *testing.F) {
	w := newWorld(f)
	operations, paths := writes(f, w)
	for n, o := range operations {
		for _, body := range append(requests(o), hostile...) {
			f.Add(uint(n), []byte(body))
		}
	}
	f.Fuzz(func(t *testing.T, n uint, body []byte) {
		at := n % uint(len(operations))
		answer := w.Call(t, operations[at].Method, paths[at], string(body))
		if answer.Status >= 500 {
			t.Errorf("%s %s %q: %d %s", operations[at].Method, paths[at], body, answer.Status, answer.Body)
		}
		if answer.Status < 300 && !utf8.Valid(body) {
			t.Errorf("%s %s took what is not UTF-8: %q", operations[at].Method, paths[at], body)
		}
	})
}

func FuzzQueries(f *testing.F) {
	w := newWorld(f)
	var paths []string
	for _, o := range w.Describe(f).Operations {
		if o.Method != "GET" || isStream(o) {
			continue
		}
		paths = append(paths, w.path(f, o))
		for _, parameter := range o.Parameters {
			if parameter.In == "query" {
				for _, value := range []string{"1", "", "-1", "a", "%00", "%ff", "%", "x&" + parameter.Name + "=y", "2026-01-01T00:00:00Z", strings.Repeat("9", 40)} {
					f.Add(uint(len(paths)-1), parameter.Name+"="+value)
				}
			}
		}
	}
	f.Fuzz(func(t *testing.T, n uint, query string) {
		path := paths[n%uint(len(paths))]
		if strings.ContainsAny(query, "# \x7f") || strings.ContainsFunc(query, func(r rune) bool { return r < ' ' || r > '~' }) || !validEscapes(query) {
			return // the client itself refuses or escapes these
		}
		if answer := w.Call(t, "GET", path+"?"+query, nil); answer.Status >= 500 && path != "/health" {
			t.Errorf("GET %s?%s: %d %s", path, query, answer.Status, answer.Body)
		}
	})
}

// validEscapes reports whether a URL with this query can be sent at all.
func validEscapes(query string) bool {
	_, err := http.NewRequest(http.MethodGet, "http://192.0.2.1/?"+query, nil)
	return err == nil
}

func FuzzIfMatch(f *testing.F) {
	w := newWorld(f)
	for _, tags := range []string{"", "*", `"a"`, `W/"a"`, `"a`, `"a", "b"`, `"a"b`, `,,,`, `"a-gzip"`, strings.Repeat(`"a",`, 500), "\t", `"` + strings.Repeat("a", 5000)} {
		f.Add(tags)
	}
	f.Fuzz(func(t *testing.T, tags string) {
		if strings.ContainsFunc(tags, func(r rune) bool { return r < ' ' && r != '\t' || r > '~' }) || len(tags) > 16<<10 {
			return // not sent by the client
		}
		for _, header := range []string{"If-Match", "If-None-Match"} {
			answer := with(t, w.Server, "PATCH", "/sites/1", "{}", header, tags)
			known := strings.TrimSpace(tags) == "*"
			want := map[string]int{"If-Match": 412, "If-None-Match": 200}[header]
			if known {
				want = map[string]int{"If-Match": 200, "If-None-Match": 412}[header]
			}
			if answer.Status != want {
				t.Errorf("%s: %q: %d, want %d", header, tags, answer.Status, want)
			}
		}
	})
}
