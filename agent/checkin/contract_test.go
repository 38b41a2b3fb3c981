package checkin

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func example(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func compact(t *testing.T, data []byte) string {
	t.Helper()
	var out bytes.Buffer
	if err := json.Compact(&out, data); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestRequestExamplesRoundTrip(t *testing.T) {
	for _, name := range []string{"request.json", "request-older-agent.json"} {
		t.Run(name, func(t *testing.T) {
			data := example(t, name)
			var r Request
			if err := json.Unmarshal(data, &r); err != nil {
				t.Fatal(err)
			}
			got, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			// Maps are written in the order of their keys, so compare values.
			var want, have any
			if err := json.Unmarshal(data, &want); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(got, &have); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, have); diff != "" {
				t.Errorf("the example does not survive (-want +got):\n%s", diff)
			}
		})
	}
}

// data returns the snapshot inside an example answer.
func data(t *testing.T, name string) []byte {
	t.Helper()
	var envelope struct {
		Data json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(example(t, name), &envelope); err != nil {
		t.Fatal(err)
	}
	return envelope.Data
}

func TestSnapshotExampleIsWhatEncodeWrites(t *testing.T) {
	want := data(t, "answer.json")
	snapshot, err := ParseSnapshot(want)
	if err != nil {
		t.Fatal(err)
	}
	got, etag, err := Encode(snapshot)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(compact(t, want), string(got)); diff != "" {
		t.Errorf("key order or form differs (-want +got):\n%s", diff)
	}
	if etag != ETag(got) || !ValidETag(etag) || len(etag) != 66 {
		t.Errorf("etag = %s", etag)
	}
}

func TestOlderManagerSnapshots(t *testing.T) {
	snapshot, err := ParseSnapshot(data(t, "answer-older-manager.json"))
	if err != nil {
		t.Fatal(err)
	}
	if snapshot.Site.Volumes != nil || snapshot.Site.DNSRecords != nil {
		t.Error("absent lists must stay nil: not managed")
	}
	if snapshot.Site.Nodes[0].Containers[0].MACAddress != "" {
		t.Error("a null MAC address must read as unset")
	}
	unknown, err := ParseSnapshot(data(t, "answer-older-manager-unknown-site.json"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Bootstrap(), unknown); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestBootstrapBytes(t *testing.T) {
	got, _, err := Encode(Bootstrap())
	if err != nil {
		t.Fatal(err)
	}
	want := compact(t, data(t, "answer-older-manager-unknown-site.json"))
	if string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestUnsetScalarsAreNull(t *testing.T) {
	site := Site{ID: 1, Nodes: []Node{{Name: "pve1", Containers: []Container{{Hostname: "web", IPv4Address: "192.0.2.101"}}}}, DNSRecords: []DNSRecord{}, Volumes: []Volume{}}
	got, _, err := Encode(Snapshot{Site: &site, NGINX: Bootstrap().NGINX})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"site":{"id":1,"name":null,"internalDomain":null,"dhcpRange":null,"subnetMask":null,"gateway":null,"dnsForwarders":null,` +
		`"nodes":[{"name":"pve1","ipv4Address":null,"containers":[{"hostname":"web","ipv4Address":"192.0.2.101","macAddress":null}]}],` +
		`"dnsRecords":[],"volumes":[]},"nginx":{"httpServices":[],"streamServices":[],"externalDomains":[]}}`
	if string(got) != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}

func TestParseSnapshotRefuses(t *testing.T) {
	const lists = `"httpServices":[],"streamServices":[],"externalDomains":[]`
	for name, body := range map[string]string{
		"nothing":              ``,
		"null":                 `null`,
		"a list":               `[]`,
		"no site":              `{"nginx":{` + lists + `}}`,
		"no nginx":             `{"site":null}`,
		"nginx null":           `{"site":null,"nginx":null}`,
		"missing list":         `{"site":null,"nginx":{"httpServices":[],"streamServices":[]}}`,
		"null list":            `{"site":null,"nginx":{"httpServices":null,"streamServices":[],"externalDomains":[]}}`,
		"list is an object":    `{"site":null,"nginx":{"httpServices":{},"streamServices":[],"externalDomains":[]}}`,
		"no nodes":             `{"site":{"id":1},"nginx":{` + lists + `}}`,
		"null nodes":           `{"site":{"id":1,"nodes":null},"nginx":{` + lists + `}}`,
		"node w/o containers":  `{"site":{"id":1,"nodes":[{"name":"a"}]},"nginx":{` + lists + `}}`,
		"id is text":           `{"site":{"id":"1","nodes":[]},"nginx":{` + lists + `}}`,
		"port is text":         `{"site":null,"nginx":{"httpServices":[{"internalPort":"80"}],"streamServices":[],"externalDomains":[]}}`,
		"uid with a fraction":  `{"site":{"id":1,"nodes":[],"volumes":[{"id":1,"uid":1.5}]},"nginx":{` + lists + `}}`,
		"something after it":   `{"site":null,"nginx":{` + lists + `}} {}`,
		"cut off":              `{"site":null,"nginx":{` + lists,
		"an error in disguise": `{"error":"x"}`,
		"too many objects":     `{"site":null,"nginx":{` + lists + `},"x":[{}` + strings.Repeat(",{}", MaxObjects) + `]}`,
	} {
		t.Run(name, func(t *testing.T) {
			if s, err := ParseSnapshot([]byte(body)); err == nil {
				t.Errorf("accepted as %+v", s)
			}
		})
	}
}

// A mode of another form must cost its volume, not the whole snapshot.
func TestModesOfAnotherFormAreReadAsText(t *testing.T) {
	for sent, want := range map[string]VolumeMode{
		`"rw"`: "rw", `"ro"`: "ro", `"RW"`: "RW", `"0755"`: "0755", `""`: "", "null": "",
		"755": "755", "493": "493", "7.5e2": "7.5e2", "true": "true", `["rw"]`: `["rw"]`, `{"rw": 1}`: `{"rw": 1}`,
	} {
		snapshot, err := ParseSnapshot([]byte(`{"site":{"id":1,"nodes":[],"volumes":[{"id":2,"hostPath":"/a/b","mode":` + sent + `}]},
			"nginx":{"httpServices":[],"streamServices":[],"externalDomains":[]}}`))
		if err != nil {
			t.Errorf("mode %s: %v", sent, err)
			continue
		}
		got := snapshot.Site.Volumes[0].Mode
		if _, err := DirectoryMode(string(got)); got != want || (err == nil) != (want == "rw" || want == "ro") {
			t.Errorf("mode %s was read as %q, want %q; as a mode: %v", sent, got, want, err)
		}
	}
}

func TestParseSnapshotIgnoresUnknownFields(t *testing.T) {
	body := `{"site":null,"later":{"x":1},"nginx":{"httpServices":[],"streamServices":[],"externalDomains":[],"later":[]}}`
	if _, err := ParseSnapshot([]byte(body)); err != nil {
		t.Error(err)
	}
}

func TestMatchETag(t *testing.T) {
	const etag = `"abc"`
	for header, want := range map[string]bool{
		`"abc"`:                     true,
		`W/"abc"`:                   true,
		`"zzz", W/"abc"`:            true,
		`"zzz","abc"`:               true,
		``:                          false,
		`*`:                         false,
		`abc`:                       false,
		`"ABC"`:                     false,
		`w/"abc"`:                   false,
		`"zzz"`:                     false,
		`""`:                        false,
		`"abc`:                      false,
		string(make([]byte, 8<<10)): false,
	} {
		if got := MatchETag(header, etag); got != want {
			t.Errorf("MatchETag(%.40q) = %v, want %v", header, got, want)
		}
	}
	if MatchETag("", "") || MatchETag(`""`, `""`) {
		t.Error("an empty tag must match nothing")
	}
}

func TestValidETag(t *testing.T) {
	for _, bad := range []string{"", `"`, `""`, "abc", "\"a\nb\"", `"a"b"`, `"a b"`, "\"\x7f\"", `W/abc`} {
		if ValidETag(bad) {
			t.Errorf("ValidETag(%q) = true", bad)
		}
	}
}

func TestCleanMessage(t *testing.T) {
	for _, test := range []struct{ name, in, want string }{
		{"plain", " nginx: ok\n", "nginx: ok"},
		{"escape sequence", "red \x1b[31m", `red \x1b[31m`},
		{"NUL", "a\x00b", `a\x00b`},
		{"bad UTF-8", "a\xffb", "a\uFFFDb"},
		{"lines and tabs stay", "a\n\tb", "a\n\tb"},
		{"C1 control", "a\u0085b", `a\u0085b`},
		{"line separator", "a\u2028b", `a\u2028b`},
		{"writing turned around", "a\u202eb\u2066c", `a\u202eb\u2066c`},
	} {
		if got := CleanMessage(test.in, 100); got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
	long := CleanMessage(string(bytes.Repeat([]byte("ä"), 10_000))+"verdict", MaxMessage)
	if len(long) > MaxMessage || !json.Valid([]byte(`"`+long+`"`)) || long[len(long)-7:] != "verdict" {
		t.Errorf("a long message became %d bytes ending %q", len(long), long[len(long)-10:])
	}
}
