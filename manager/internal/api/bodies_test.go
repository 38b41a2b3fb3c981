package api_test

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"opensource.internal/manager/internal/manifest"
	"opensource.internal/manager/servertest"
)

func TestPatchLeavesWhatIsAbsentAndClearsNull(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	i := fill(t, s)
	path := fmt.Sprintf("/containers/%d", i.container)

	patched := servertest.Data[object](t, s.Call(t, "PATCH", path, object{"owner": "bob"}))
	if patched["owner"] != "bob" || patched["macAddress"] != "02:00:00:00:00:01" || patched["hostname"] != "web" {
		t.Errorf("absent fields did not stay: %v", patched)
	}
	patched = servertest.Data[object](t, s.Call(t, "PATCH", path, `{"macAddress": null}`))
	if patched["macAddress"] != nil || patched["ipv4Address"] != "198.51.100.101" {
		t.Errorf("null did not clear: %v", patched)
	}
	if fault := servertest.Error(t, s.Call(t, "PATCH", path, `{"hostname": null}`)); fault.Fields["hostname"] == "" {
		t.Errorf("a name was cleared: %v", fault)
	}
	if same := servertest.Data[object](t, s.Call(t, "PATCH", path, `{}`)); same["owner"] != "bob" {
		t.Errorf("an empty change changed: %v", same)
	}

	domain := fmt.Sprintf("/external-domains/%d", i.domain)
	if cleared := servertest.Data[object](t, s.Call(t, "PATCH", domain, `{"defaultSiteId": null}`)); cleared["defaultSiteId"] != nil {
		t.Errorf("null did not clear the default site: %v", cleared)
	}
	service := fmt.Sprintf("/services/%d", i.http)
	if secured := servertest.Data[object](t, s.Call(t, "PATCH", service, `{"authRequired": true, "type": "http"}`)); secured["authRequired"] != true {
		t.Errorf("service was not changed: %v", secured)
	}
	if fault := servertest.Error(t, s.Call(t, "PATCH", service, `{"type": "dns"}`)); fault.Fields["type"] == "" {
		t.Errorf("the type of a service was changed: %v", fault)
	}
	for path, change := range map[string]string{
		fmt.Sprintf("/sites/%d", i.site): `{"name": "attic"}`, fmt.Sprintf("/nodes/%d", i.node): `{"type": "none"}`,
		fmt.Sprintf("/volumes/%d", i.volume): `{"mode": "ro"}`,
	} {
		if answer := s.Call(t, "PATCH", path, change); answer.Status != 200 {
			t.Errorf("PATCH %s: %d %s", path, answer.Status, answer.Body)
		}
		if answer := s.Call(t, "PATCH", strings.TrimRight(path, "0123456789")+"999", change); answer.Status != 404 {
			t.Errorf("PATCH of a record that is not there: %d %s", answer.Status, answer.Body)
		}
	}
}

func TestBodiesAreReadStrictly(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	i := fill(t, s)
	containers, services := fmt.Sprintf("/sites/%d/containers", i.site), fmt.Sprintf("/containers/%d/services", i.container)
	volumes := fmt.Sprintf("/containers/%d/volumes", i.container)

	for _, test := range []struct {
		name, path, body string
		status           int
		field            string
	}{
		{"malformed", "/sites", `{"name":`, 400, ""},
		{"two values", "/sites", `{"name":"a"}{}`, 400, ""},
		{"empty", "/sites", ``, 400, ""},
		{"a list", "/sites", `[]`, 422, "body"},
		{"null", "/sites", `null`, 422, "body"},
		{"required field missing", "/sites", `{}`, 422, "name"},
		{"required field null", "/sites", `{"name":null}`, 422, "name"},
		{"unknown field", "/sites", `{"name":"a","colour":"red"}`, 422, "colour"},
		{"field in other case", "/sites", `{"name":"a","Gateway":"198.51.100.1"}`, 422, "Gateway"},
		{"host path from a client", volumes, `{"name":"b","mountPath":"/b","mode":"rw","hostPath":"/etc"}`, 422, "hostPath"},
		{"number for text", "/sites", `{"name":5}`, 422, "name"},
		{"text for number", services, `{"type":"transport","internalPort":"22","protocol":"tcp"}`, 422, "internalPort"},
		{"boolean for number", containers, `{"nodeId":true,"hostname":"a"}`, 422, "nodeId"},
		{"text for boolean", services, `{"type":"http","internalPort":80,"externalHostname":"b","externalDomainId":1,"authRequired":"true"}`, 422, "authRequired"},
		{"fraction", services, `{"type":"transport","internalPort":22.5,"protocol":"tcp"}`, 422, "internalPort"},
		{"whole number as a fraction", services, `{"type":"transport","internalPort":22.0,"protocol":"tcp"}`, 422, "internalPort"},
		{"huge number", services, `{"type":"transport","internalPort":1e300,"protocol":"tcp"}`, 422, "internalPort"},
		{"number beyond 64 bits", containers, `{"nodeId":99999999999999999999,"hostname":"a"}`, 422, "nodeId"},
		{"reserved port", services, `{"type":"transport","internalPort":22,"protocol":"tcp","externalPort":443}`, 422, "externalPort"},
		{"port zero", services, `{"type":"transport","internalPort":22,"protocol":"tcp","externalPort":0}`, 422, "externalPort"},
		{"mode as number", volumes, `{"name":"b","mountPath":"/b","mode":755}`, 422, "mode"},
		{"mode as octal text", volumes, `{"name":"b","mountPath":"/b","mode":"0755"}`, 422, "mode"},
		{"mode in capitals", volumes, `{"name":"b","mountPath":"/b","mode":"RW"}`, 422, "mode"},
		{"underscore in a name", containers, fmt.Sprintf(`{"nodeId":%d,"hostname":"web_1"}`, i.node), 422, "hostname"},
		{"injection", services, `{"type":"http","internalPort":80,"externalHostname":"app; return 200 owned; #","externalDomainId":1}`, 422, "externalHostname"},
		{"taken name", containers, fmt.Sprintf(`{"nodeId":%d,"hostname":"WEB"}`, i.node), 409, "hostname"},
		{"taken address", containers, fmt.Sprintf(`{"nodeId":%d,"hostname":"b","ipv4Address":"198.51.100.101"}`, i.node), 409, "ipv4Address"},
		{"taken public name", services, fmt.Sprintf(`{"type":"http","internalPort":80,"externalHostname":"app","externalDomainId":%d}`, i.domain), 409, "externalHostname"},
		{"no such node", containers, `{"nodeId":999,"hostname":"b"}`, 422, "nodeId"},
		{"agent key without site", "/api-keys", `{"name":"k","role":"agent"}`, 422, "siteId"},
		{"agent key of no site", "/api-keys", `{"name":"k","role":"agent","siteId":999}`, 422, "siteId"},
		{"admin key with site", "/api-keys", `{"name":"k","role":"admin","siteId":1}`, 422, "siteId"},
		{"unknown role", "/api-keys", `{"name":"k","role":"root"}`, 422, "role"},
		{"half a surrogate pair", "/sites", `{"name":"a\ud800"}`, 422, "name"},
		{"not UTF-8", "/sites", "{\"name\":\"a\xff\"}", 400, ""},
		{"in UTF-16", "/sites", "{\x00\"\x00n\x00", 400, ""},
		{"byte order mark", "/sites", "\xef\xbb\xbf{\"name\":\"a\"}", 400, ""},
		{"NUL", containers, fmt.Sprintf(`{"nodeId":%d,"hostname":"a","owner":"b\u0000"}`, i.node), 422, "owner"},
		{"trailing text", "/sites", `{"name":"a"} x`, 400, ""},
		{"trailing comma", "/sites", `{"name":"a",}`, 400, ""},
		{"comment", "/sites", `{"name":"a"/**/}`, 400, ""},
		{"not a number", "/sites", `{"name":NaN}`, 400, ""},
		{"field given twice", "/sites", `{"name":"a","name":"b"}`, 422, "name"},
		{"field given twice, once escaped", "/sites", `{"name":"a","\u006eame":"b"}`, 422, "name"},
		{"inner field given twice", "/sites", `{"name":{"a":[{"b":1,"b":2}]}}`, 422, "name.a[0].b"},
		{"deep", "/sites", `{"name":` + strings.Repeat("[", 4000) + strings.Repeat("]", 4000) + `}`, 400, ""},
		{"deep and open", "/sites", strings.Repeat(`{"name":`, 1500), 400, ""},
		{"nameless key", "/api-keys", `{"name":" ","role":"admin"}`, 422, "name"},
		{"short password", "/users", `{"name":"u","role":"admin","password":"short"}`, 422, "password"},
		{"agent as a person", "/users", `{"name":"u","role":"agent","password":"long enough to do"}`, 422, "role"},
	} {
		t.Run(test.name, func(t *testing.T) {
			answer := s.Call(t, "POST", test.path, test.body)
			fault := servertest.Error(t, answer)
			if answer.Status != test.status {
				t.Fatalf("status %d, want %d: %s", answer.Status, test.status, answer.Body)
			}
			if test.field != "" && fault.Fields[test.field] == "" {
				t.Errorf("field %s is not named: %s", test.field, answer.Body)
			}
			for _, leak := range []string{"json:", "unmarshal", "invalid character", "EOF", "SQL", "UNIQUE"} {
				if strings.Contains(string(answer.Body), leak) {
					t.Errorf("answer tells about the inside: %s", answer.Body)
				}
			}
		})
	}
	if list := servertest.Data[[]object](t, s.Call(t, "GET", containers, nil)); len(list) != 1 {
		t.Errorf("a refused request left a record: %v", list)
	}
}

func TestOnlyJSONBodiesAreRead(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	for contentType, status := range map[string]int{
		"application/x-www-form-urlencoded": 415, "multipart/form-data; boundary=x": 415, "text/plain": 415,
		"application/json; charset=utf-8": 201,
	} {
		answer := s.Do(t, "POST", "/api/v1/sites", `{"name":"a"}`, http.Header{"X-Api-Key": {s.AdminKey}, "Content-Type": {contentType}})
		if answer.Status != status {
			t.Errorf("%s: status %d, want %d: %s", contentType, answer.Status, status, answer.Body)
		}
	}
	for coding, status := range map[string]int{"gzip": 415, "br": 415, "identity": 201} {
		answer := s.Do(t, "POST", "/api/v1/sites", `{"name":"`+coding+`"}`, http.Header{"X-Api-Key": {s.AdminKey}, "Content-Encoding": {coding}})
		if answer.Status != status {
			t.Errorf("Content-Encoding %s: status %d, want %d: %s", coding, answer.Status, status, answer.Body)
		}
	}
	// What takes much memory to decode is refused before that, from strangers too.
	huge := `{"a":` + strings.Repeat("[0],", 1<<13) + `0}`
	if answer := s.Do(t, "POST", "/api/v1/session", huge, nil); answer.Status != 413 {
		t.Errorf("sign-in of %d bytes: status %d", len(huge), answer.Status)
	}
	var many []string
	for n := range 1000 {
		many = append(many, fmt.Sprintf(`"f%d":0`, n))
	}
	answer := s.Call(t, "POST", "/sites", "{"+strings.Join(many, ",")+"}")
	if fault := servertest.Error(t, answer); answer.Status != 422 || len(fault.Fields) > 50 || len(answer.Body) > 10<<10 {
		t.Errorf("1000 unknown fields: status %d, %d fields, %d bytes", answer.Status, len(fault.Fields), len(answer.Body))
	}
	large := s.Call(t, "POST", "/sites", `{"name":"`+strings.Repeat("a", 2<<20)+`"}`)
	if fault := servertest.Error(t, large); large.Status != 413 {
		t.Errorf("2 MiB: status %d %v", large.Status, fault)
	}
}

// Nothing of what is far too large is read, whoever sends it and wherever to,
// and nobody waits for the end of what has none.
func TestHugeBodiesAreRefusedEarly(t *testing.T) {
	w := newWorld(t)
	operations, paths := writes(t, w)
	var memory runtime.MemStats
	for n, path := range paths {
		limit := 16 << 10
		switch {
		case path == "/agents":
			limit = 1 << 20
		case strings.HasSuffix(path, "/manifest"):
			limit = manifest.MaxSize
		}
		for name, length := range map[string]int64{"announced": 100 << 20, "chunked": -1} {
			runtime.ReadMemStats(&memory)
			before := memory.TotalAlloc
			sent := &endless{}
			status := w.stream(t, operations[n].Method, "/api/v1"+path, sent, length)
			runtime.ReadMemStats(&memory)
			if status != 413 {
				t.Errorf("%s %s, %s: %d", operations[n].Method, path, name, status)
			}
			const buffers = 12 << 20 // of the kernel
			if sent := sent.bytes.Load(); sent > int64(limit+buffers) {
				t.Errorf("%s %s, %s: %d bytes were taken", operations[n].Method, path, name, sent)
			}
			most := uint64(6*limit + 1<<20) // a buffer grows by steps
			if length > 0 {
				most = 1 << 20 // nothing of it is read
			}
			if taken := memory.TotalAlloc - before; taken > most {
				t.Errorf("%s %s, %s: %d bytes of memory were taken", operations[n].Method, path, name, taken)
			}
		}
	}
	if len(paths) < 20 {
		t.Errorf("only %d operations were tried", len(paths))
	}
}

// stream sends a body that may be without end, and returns the status.
func (w *world) stream(t *testing.T, method, path string, body io.Reader, length int64) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, w.URL+path, body)
	if err != nil {
		t.Fatal(err)
	}
	request.ContentLength = length
	request.Header = http.Header{"X-Api-Key": {w.AdminKey}, "Content-Type": {"application/json"}}
	answer, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Errorf("%s %s: %v", method, path, err)
		return 0
	}
	answer.Body.Close()
	return answer.StatusCode
}

// endless is a body of JSON that does not end.
type endless struct{ bytes atomic.Int64 }

func (e *endless) Read(p []byte) (int, error) {
	for n := range p {
		p[n] = '['
	}
	e.bytes.Add(int64(len(p)))
	return len(p), nil
}

func TestParametersAreReadStrictly(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	i := fill(t, s)
	for query, field := range map[string]string{
		"/agents?siteId=":           "siteId",
		"/agents?siteId=1&siteId=2": "siteId",
		"/agents?siteId=+1":         "siteId",
		"/agents?siteId=%2B1":       "siteId",
		"/agents?siteId=01":         "siteId",
		"/agents?siteId=1.0":        "siteId",
		"/agents?siteId=0x1":        "siteId",
		"/agents?SiteId=1":          "SiteId",
		"/agents?hostname=%00":      "hostname",
		"/agents?hostname=%ff":      "hostname",
		"/agents?hostname=%zz":      "query",
		"/agents?a;b":               "query",
		"/sites?limit=1e1":          "limit",
	} {
		answer := s.Call(t, "GET", query, nil)
		if fault := servertest.Error(t, answer); answer.Status != 422 || fault.Fields[field] == "" {
			t.Errorf("%s: %d %s", query, answer.Status, answer.Body)
		}
	}
	site := fmt.Sprintf("/sites/%d", i.site)
	for _, cascade := range []string{"1", "t", "TRUE", "yes", "", "true&cascade=true"} {
		if answer := s.Call(t, "DELETE", site+"?cascade="+cascade, nil); answer.Status != 422 {
			t.Errorf("cascade=%s: %d %s", cascade, answer.Status, answer.Body)
		}
	}
	for _, id := range []string{"+1", "01", "%31x", "1e0", "٣"} {
		if answer := s.Call(t, "GET", "/sites/"+id, nil); answer.Status != 404 {
			t.Errorf("site %s: %d", id, answer.Status)
		}
	}
}
