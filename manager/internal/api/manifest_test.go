package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"opensource.internal/manager/internal/auth"
	"opensource.internal/manager/servertest"
)

const labManifest = `version: 1
site:
  name: lab
nodes:
  - name: pve1
containers:
  - hostname: web
    node: pve1
    ipv4Address: 192.0.2.10
`

// manifests sends and gets manifests of a site.
type manifests struct {
	*servertest.Server
	path string
}

func newManifests(t *testing.T) manifests {
	s := servertest.Start(t, servertest.Options{})
	return manifests{s, fmt.Sprintf("/api/v1/sites/%d/manifest", s.Create(t, "/sites", object{"name": "lab"}))}
}

func (m manifests) put(t *testing.T, query, text string, header http.Header) servertest.Answer {
	t.Helper()
	all := http.Header{"X-Api-Key": {m.AdminKey}, "Content-Type": {"application/yaml"}}
	for name, values := range header {
		all[name] = values
	}
	return m.Do(t, "PUT", m.path+query, text, all)
}

func (m manifests) get(t *testing.T, accept string) servertest.Answer {
	t.Helper()
	answer := m.Do(t, "GET", m.path, nil, http.Header{"X-Api-Key": {m.AdminKey}, "Accept": {accept}})
	if answer.Status != 200 || answer.Header.Get("Etag") == "" {
		t.Fatalf("%d %s", answer.Status, answer.Body)
	}
	return answer
}

type report struct {
	DryRun  bool
	Changes []struct{ Action, Kind, Name string }
	Kept    []struct{ Kind, Name string }
}

func TestManifestOverTheAPI(t *testing.T) {
	m := newManifests(t)
	dry := m.put(t, "?dryRun=true", labManifest, nil)
	if got := servertest.Data[report](t, dry); !got.DryRun || len(got.Changes) != 2 || dry.Header.Get("Etag") != m.get(t, "").Header.Get("Etag") {
		t.Errorf("dry run: %s", dry.Body)
	}
	if got := string(m.get(t, "*/*").Body); got != "version: 1\nsite:\n  name: lab\n" {
		t.Errorf("a dry run wrote %s", got)
	}
	done := m.put(t, "", labManifest, nil)
	if got := servertest.Data[report](t, done); got.DryRun || len(got.Changes) != 2 || got.Changes[1].Name != "web" {
		t.Errorf("%s", done.Body)
	}
	asYAML, asJSON := m.get(t, "application/yaml"), m.get(t, "application/json")
	if string(asYAML.Body) != labManifest || asYAML.Header.Get("Content-Type") != "application/yaml" || asJSON.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%v %s", asYAML.Header, asYAML.Body)
	}
	if tag := asYAML.Header.Get("Etag"); tag != done.Header.Get("Etag") || tag != asJSON.Header.Get("Etag") {
		t.Errorf("tags differ: %s", tag)
	}
	for contentType, body := range map[string]string{"application/yaml": string(asYAML.Body), "application/json; charset=utf-8": string(asJSON.Body)} {
		again := m.put(t, "?prune=true", body, http.Header{"Content-Type": {contentType}})
		if got := servertest.Data[report](t, again); len(got.Changes) != 0 {
			t.Errorf("taken back as %s: %s", contentType, again.Body)
		}
	}
	pruned := m.put(t, "?prune=true", "version: 1\nsite: {name: attic}\n", nil) // and renamed: the path says which site it is
	if got := servertest.Data[report](t, pruned); len(got.Changes) != 3 {
		t.Errorf("%s", pruned.Body)
	}
	if got := string(m.get(t, "").Body); got != "version: 1\nsite:\n  name: attic\n" {
		t.Errorf("pruned: %s", got)
	}
}

func TestTwoEditorsOfAManifest(t *testing.T) {
	m := newManifests(t)
	seen := m.get(t, "application/json").Header.Get("Etag")
	first := m.put(t, "", labManifest, http.Header{"If-Match": {seen}})
	if first.Status != 200 {
		t.Fatalf("%d %s", first.Status, first.Body)
	}
	second := m.put(t, "", strings.Replace(labManifest, "web", "db", 1), http.Header{"If-Match": {seen}})
	if fault := servertest.Error(t, second); second.Status != 412 || fault.Code != "precondition_failed" {
		t.Errorf("%d %s", second.Status, second.Body)
	}
	if string(m.get(t, "").Body) != labManifest {
		t.Error("the second editor changed it")
	}
	tried := m.put(t, "?dryRun=true&prune=true", strings.Replace(labManifest, "web", "db", 1), http.Header{"If-Match": {first.Header.Get("Etag")}})
	if tried.Status != 200 || string(m.get(t, "").Body) != labManifest {
		t.Errorf("a conditional dry run: %d %s", tried.Status, tried.Body)
	}
}

func TestManifestFaults(t *testing.T) {
	m := newManifests(t)
	jsonType := http.Header{"Content-Type": {"application/json"}}
	for name, test := range map[string]struct {
		text   string
		header http.Header
		status int
		code   string
		fields map[string]string
	}{
		"values": {
			strings.Replace(labManifest, "    node: pve1\n    ipv4Address: 192.0.2.10", "    node: pve2\n    ipv4Address: 192.0.2.400", 1), nil, 422, "validation_failed",
			map[string]string{
				"containers[0].node":        `there is no node "pve2"; did you mean pve1? (line 8, column 11)`,
				"containers[0].ipv4Address": `"192.0.2.400" is not an IPv4 address such as 192.0.2.10 (line 9, column 18)`,
			},
		},
		"unknown field":    {"version: 1\nsite: {name: lab, gatway: x}\n", nil, 422, "validation_failed", map[string]string{"site.gatway": "there is no such field; did you mean gateway? (line 2, column 19)"}},
		"not YAML":         {"version: [1\n", nil, 400, "malformed_manifest", map[string]string{"manifest": "sequence end token ']' not found (line 1, column 10)"}},
		"not JSON":         {"version: 1\n", jsonType, 400, "malformed_manifest", nil},
		"nothing":          {"", nil, 400, "", nil},
		"two sites":        {labManifest + "---\n" + labManifest, nil, 422, "validation_failed", map[string]string{"site": "has to be there once: this is the manifest of one site"}},
		"no site":          {"version: 1\nexternalDomains: []\n", nil, 422, "validation_failed", map[string]string{"site": "has to be there once: this is the manifest of one site"}},
		"a form":           {"version=1", http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, 415, "unsupported_media_type", nil},
		"too large":        {strings.Repeat("#", 8<<20+1), nil, 413, "too_large", nil},
		"another's name":   {"version: 1\nsite: {name: other}\n", nil, 422, "validation_failed", map[string]string{"site.name": `the name "other" is already in use (site "other") (line 2, column 14)`}},
		"an unknown query": {labManifest, http.Header{"X-Query": {"?prun=true"}}, 422, "validation_failed", nil},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "another's name" {
				m.Create(t, "/sites", object{"name": "other"})
			}
			query := test.header.Get("X-Query")
			answer := m.put(t, query, test.text, test.header)
			fault := servertest.Error(t, answer)
			if answer.Status != test.status || test.code != "" && fault.Code != test.code {
				t.Errorf("%d %s", answer.Status, answer.Body)
			}
			for field, want := range test.fields {
				if fault.Fields[field] != want {
					t.Errorf("%s: %q, want %q", field, fault.Fields[field], want)
				}
			}
		})
	}
	if got := string(m.get(t, "").Body); got != "version: 1\nsite:\n  name: lab\n" {
		t.Errorf("it was written: %s", got)
	}
	missing := manifests{m.Server, "/api/v1/sites/99/manifest"}
	if answer := missing.put(t, "", labManifest, nil); answer.Status != 404 {
		t.Errorf("no such site: %d %s", answer.Status, answer.Body)
	}
	viewer := m.Key(t, auth.NewKey{Name: "viewer", Role: auth.RoleViewer})
	for method, want := range map[string]int{"GET": 200, "PUT": 403} {
		answer := m.Do(t, method, m.path, nil, http.Header{"X-Api-Key": {viewer}})
		if answer.Status != want {
			t.Errorf("a viewer's %s: %d", method, answer.Status)
		}
	}
}

// A site with more than any record's body.
func TestLargeManifest(t *testing.T) {
	m := newManifests(t)
	var b strings.Builder
	b.WriteString(labManifest)
	for i := range 500 {
		fmt.Fprintf(&b, "  - hostname: c%d\n    node: pve1\n    ipv4Address: 10.0.%d.%d\n", i, i/250, i%250+1)
	}
	if got := servertest.Data[report](t, m.put(t, "", b.String(), nil)); len(got.Changes) != 502 {
		t.Errorf("%d changes", len(got.Changes))
	}
	if got := string(m.get(t, "").Body); got != b.String() {
		t.Error("it is not what was sent")
	}
}
