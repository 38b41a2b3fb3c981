package manifest_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"opensource.internal/manager/internal/manifest"
	"opensource.internal/manager/internal/store/storetest"
)

// site is a manifest with a site, and further lines from line 3 on.
const site = "version: 1\nsite: {name: lab}\n"

func TestFaults(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string
	}{
		{"nothing", "", []string{"site.yaml: there is no document in it"}},
		{"a comment", "# nothing\n", []string{"site.yaml: there is no document in it"}},
		{"a list", "- a\n", []string{"site.yaml:1:1: has to be a mapping of fields, not a list"}},
		{"a word", "hello", []string{"site.yaml:1:1: has to be a mapping of fields, not a word or number"}},
		{"no version", "site: {name: lab}\n", []string{"site.yaml:1:1: version: is required: 1 is the version of this format"}},
		{"another version", "version: 2\n", []string{"site.yaml:1:10: version: 2 is not a version that this program knows: 1"}},
		{"a version in quotes", "version: \"1\"\n", []string{"site.yaml:1:10: version: has to be a number: write it without quotes"}},
		{"no site", "version: 1\nnodes: [{name: a}]\n", []string{"site.yaml:1:1: site: is required where there are nodes or containers: at least its name"}},
		{"no name", "version: 1\nsite:\n  gateway: 192.0.2.1\n", []string{"site.yaml:3:3: site.name: is required"}},
		{"a name that is null", "version: 1\nsite:\n  name:\n", []string{"site.yaml:3:9: site.name: is required"}},
		{
			"unknown fields", site + "node: []\ncontainers:\n  - hostname: web\n    ipAddress: 192.0.2.1\n    hostPath: /x\n    node: a\n",
			[]string{
				"site.yaml:3:1: node: there is no such field; did you mean nodes?",
				"site.yaml:6:5: containers[0].ipAddress: there is no such field; did you mean ipv4Address?",
				"site.yaml:7:5: containers[0].hostPath: is decided when the volume is created and stays: leave it out",
				`site.yaml:8:11: containers[0].node: there is no node "a"`,
			},
		},
		{
			"ids", site + "nodes: [{name: n, id: 4}]\ncontainers: [{hostname: web, nodeId: 4}]\n",
			[]string{
				"site.yaml:3:19: nodes[0].id: records are known by their names here: leave it out",
				"site.yaml:4:30: containers[0].nodeId: records are known by their names here: write node: NAME",
			},
		},
		{
			"wrong kinds", site + "nodes: {name: n}\ncontainers:\n  - web\n  - hostname: [a]\n  - hostname: c\n    services:\n      - {type: http, internalPort: x, authRequired: yes, externalHostname: {}}\n",
			[]string{
				"site.yaml:3:8: nodes: has to be a list, not a mapping of fields",
				"site.yaml:5:5: containers[0]: has to be a mapping of fields, not a word or number",
				"site.yaml:6:5: containers[1].node: is required",
				"site.yaml:6:15: containers[1].hostname: has to be a text, not a list",
				"site.yaml:7:5: containers[2].node: is required",
				"site.yaml:9:9: containers[2].services[0].externalDomain: is required",
				`site.yaml:9:36: containers[2].services[0].internalPort: "x" is not a whole number above 0`,
				`site.yaml:9:53: containers[2].services[0].authRequired: "yes" is neither true nor false`,
				"site.yaml:9:76: containers[2].services[0].externalHostname: has to be a text, not a mapping of fields",
			},
		},
		{
			"values", site + "nodes: [{name: n, type: vmware}]\ncontainers:\n  - hostname: wéb\n    node: n\n    ipv4Address: 192.0.2.300\n    macAddress: 02\n",
			[]string{
				`site.yaml:3:25: nodes[0].type: "vmware" is not a type of node: "proxmox" or "none"`,
				`site.yaml:5:15: containers[0].hostname: "w\u00e9b" is not a host name: only letters, digits and hyphens are allowed`,
				`site.yaml:7:18: containers[0].ipv4Address: "192.0.2.300" is not an IPv4 address such as 192.0.2.10`,
				`site.yaml:8:17: containers[0].macAddress: "02" is not a MAC address such as 02:00:00:00:00:01`,
			},
		},
		{
			"twice", site + "nodes:\n  - name: n\n  - name: N\ncontainers:\n  - {hostname: n, node: n}\n  - {hostname: a, node: n, volumes: [{name: x, mountPath: /a, mode: rw}, {name: x, mountPath: /b, mode: rw}]}\n",
			[]string{
				`site.yaml:5:11: nodes[1].name: the name "n" is already in use by nodes[0] in line 4`,
				`site.yaml:7:16: containers[0].hostname: the name "n" is already in use by nodes[0] in line 4`,
				`site.yaml:8:81: containers[1].volumes[1].name: the container has a volume "x" already in line 8`,
			},
		},
		{
			"constraints", site + `externalDomains: [{name: example.com, defaultSite: lap}]
nodes:
  - {name: n, ipv4Address: 192.0.2.1}
containers:
  - hostname: a
    node: n
    ipv4Address: 192.0.2.1
    services:
      - {type: http, internalPort: 80, externalHostname: a, externalDomain: exampl.com}
      - {type: transport, internalPort: 80, protocol: tcp, externalPort: 443}
      - {type: transport, internalPort: 80, protocol: tcp, externalPort: 3001}
  - hostname: b
    node: n
    macAddress: 02:00:00:00:00:01
    services:
      - {type: transport, internalPort: 80, protocol: tcp, externalPort: 8080}
      - {type: transport, internalPort: 81, protocol: tcp, externalPort: 8080}
  - {hostname: c, node: n, macAddress: 02-00-00-00-00-01}
`,
			[]string{
				`site.yaml:3:52: externalDomains[0].defaultSite: there is no site "lap"; did you mean lab?`,
				`site.yaml:9:18: containers[0].ipv4Address: the address 192.0.2.1 is already in use in this site (node "n")`,
				`site.yaml:11:77: containers[0].services[0].externalDomain: there is no external domain "exampl.com"; did you mean example.com?; one that is new has to be listed in externalDomains`,
				`site.yaml:12:74: containers[0].services[1].externalPort: port 443 is reserved for the host itself`,
				`site.yaml:13:74: containers[0].services[2].externalPort: port 3001 is reserved for the host itself`,
				`site.yaml:19:74: containers[1].services[1].externalPort: tcp port 8080 is already in use in this site (container "b")`,
				`site.yaml:20:40: containers[2].macAddress: the MAC address 02:00:00:00:00:01 is already in use in this site (container "b")`,
			},
		},
		{
			"settings that do not go with the site", "version: 1\nsite:\n  name: lab\n  gateway: 192.0.2.1\n  dhcpRange: 192.0.2.100,192.0.2.200\n  subnetMask: 255.255.255.0\nnodes:\n  - name: a\n    ipv4Address: 192.0.2.1\n  - name: b\n    ipv4Address: 192.0.2.255\n",
			[]string{
				"site.yaml:9:18: nodes[0].ipv4Address: 192.0.2.1 is the site's gateway",
				"site.yaml:11:18: nodes[1].ipv4Address: 192.0.2.255 is the first or last address of 192.0.2.0/24, which no host can have",
			},
		},
		{
			"its own auth server", site + "externalDomains:\n  - name: example.com\n    authServer: https://app.example.com\nnodes: [{name: n}]\ncontainers:\n  - hostname: a\n    node: n\n    services:\n      - type: http\n        internalPort: 80\n        externalHostname: app\n        externalDomain: example.com\n        authRequired: true\n",
			[]string{"site.yaml:15:23: containers[0].services[0].authRequired: app.example.com is the authServer of its own domain: sign-in would ask itself for ever"},
		},
		{
			"no ports left", "version: 1\nsite: {name: lab, portRange: 4000-4001}\nnodes: [{name: n}]\ncontainers:\n  - hostname: a\n    node: n\n    services:\n      - {type: transport, protocol: tcp, internalPort: 1}\n      - {type: transport, protocol: tcp, internalPort: 2}\n      - {type: transport, protocol: tcp, internalPort: 3, externalPort: 4000}\n",
			[]string{"site.yaml:9:9: containers[0].services[1].externalPort: every tcp port of the site's portRange 4000-4001 is in use: widen it or name a port"},
		},
		{
			"nothing that only follows", "version: 1\nsite:\n  name: lab\n  gatway: 192.0.2.1\nexternalDomains: [{name: example.com, defaultSite: lab}]\nnodes: [{name: n}, {name: m, type: x}]\ncontainers:\n" +
				"  - {hostname: a, node: n, services: [{type: http, internalPort: 1, externalHostname: a, externalDomain: example.com}], volumes: [{name: a, mountPath: /a, mode: rw}]}\n  - {hostname: b, node: m}\n",
			[]string{
				"site.yaml:4:3: site.gatway: there is no such field; did you mean gateway?",
				`site.yaml:6:36: nodes[1].type: "x" is not a type of node: "proxmox" or "none"`,
			},
		},
		{
			"a fault beside others",
			"version: 1\nsite:\n  name: lab\n  gatway: 192.0.2.1\n  portRange: x\nnodes:\n  - {name: n, colour: red, type: vmware, ipv4Address: 192.0.2.5}\ncontainers:\n" +
				"  - hostname: a\n    node: n\n    owner: [x]\n    ipv4Address: 192.0.2.5\n    macAddress: 02\n    services:\n" +
				"      - {type: transport, internalPort: 1, protocol: tcp, externalPort: 8080}\n" +
				"      - {type: transport, internalPort: yes, protocol: sctp, externalPort: 443}\n" +
				"  - {hostname: b, node: n, services: [{type: transport, internalPort: 1, protocol: tcp, externalPort: 8080, prt: 1}]}\n" +
				"  - {hostname: c, node: n, sevices: [], services: [{type: transport, internalPort: 1, protocol: tcp, externalPort: 8080}]}\n",
			[]string{
				"site.yaml:4:3: site.gatway: there is no such field; did you mean gateway?",
				`site.yaml:5:14: site.portRange: "x" is not a range of ports such as 2000-2999, from 1 to 65535`,
				"site.yaml:7:15: nodes[0].colour: there is no such field: one of ipv4Address, name, type",
				`site.yaml:7:34: nodes[0].type: "vmware" is not a type of node: "proxmox" or "none"`,
				"site.yaml:11:12: containers[0].owner: has to be a text, not a list",
				`site.yaml:12:18: containers[0].ipv4Address: the address 192.0.2.5 is already in use in this site (node "n")`,
				`site.yaml:13:17: containers[0].macAddress: "02" is not a MAC address such as 02:00:00:00:00:01`,
				`site.yaml:16:41: containers[0].services[1].internalPort: "yes" is not a whole number above 0`,
				`site.yaml:16:56: containers[0].services[1].protocol: "sctp" is not a protocol: "tcp" or "udp"`,
				"site.yaml:16:76: containers[0].services[1].externalPort: port 443 is reserved for the host itself",
				"site.yaml:17:109: containers[1].services[0].prt: there is no such field: one of authRequired, backendProtocol, dnsName, externalDomain, externalHostname, externalPort, internalPort, protocol, recordType, type",
				"site.yaml:18:28: containers[2].sevices: there is no such field; did you mean services?",
				`site.yaml:18:116: containers[2].services[0].externalPort: tcp port 8080 is already in use in this site (container "b")`,
			},
		},
		{"not closed", site + "nodes: [{name: a}\n", []string{"site.yaml:3:8: sequence end token ']' not found"}},
		{"a wrong indentation", site + "nodes:\n  - name: a\n   type: none\n", nil},
		{"a key twice", site + "nodes: []\nnodes: []\n", nil},
		{"a tab", site + "nodes:\n\t- name: a\n", []string{"site.yaml:4:1: there is a tab: YAML is indented with blanks"}},
		{"a tag", site + "nodes: !!binary abc\n", []string{"site.yaml:3:8: a manifest has no Tag"}},
		{"an unknown alias", site + "nodes: *n\n", []string{"site.yaml:3:8: there is no anchor &n before this"}},
		{"an alias of itself", site + "nodes: &n [*n]\n", nil},
		{"no text", site + "nodes: \xff\n", []string{"site.yaml:3: the file is not UTF-8 text"}},
		{"nested", site + "nodes: " + strings.Repeat("[", 100) + "\n", []string{"site.yaml:3:24: nested deeper than any manifest (16 levels)"}},
		{"nested in lists", site + strings.Repeat("- ", 100_000), []string{"site.yaml:3:33: nested deeper than any manifest (16 levels)"}},
		{"too large", strings.Repeat("#", manifest.MaxSize+1), []string{"site.yaml: 8388609 bytes, more than 8388608"}},
		{"many aliases", laughs(), nil},
		{"many fields", site + "nodes:\n  - {" + manyFields(100) + "}\n", nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := storetest.Open(t)
			begun := time.Now()
			_, err := apply(t, s, test.text, manifest.Options{})
			var found *manifest.FaultsError
			if !errors.As(err, &found) || len(found.Faults) == 0 {
				t.Fatalf("not refused: %v", err)
			}
			if test.want != nil {
				wantFaults(t, err, test.want...)
			} else if fault := found.Faults[0]; fault.Line < 3 || fault.Column == 0 {
				t.Errorf("no place: %v", err)
			}
			if left := export(t, s); left != "" {
				t.Errorf("it was written:\n%s", left)
			}
			t.Log(found.Faults[0], time.Since(begun))
		})
	}
}

// A container that cannot be tried does not let the node go on which it is.
func TestAFaultBesideWhatIsPruned(t *testing.T) {
	s := storetest.Open(t)
	mustApply(t, s, site+"nodes: [{name: old}]\ncontainers: [{hostname: a, node: old}]\n", manifest.Options{})
	_, err := apply(t, s, site+"nodes: [{name: new}]\ncontainers: [{hostname: a, node: knew}]\n", manifest.Options{Prune: true})
	wantFaults(t, err, `site.yaml:4:34: containers[0].node: there is no node "knew"; did you mean new?`)
}

// Some editors begin a file with a mark that is no part of it.
func TestByteOrderMark(t *testing.T) {
	for format, text := range map[manifest.Format]string{
		manifest.YAML: "\ufeffversion: 1\nsite: {name: lab, gatway: x}\n", manifest.JSON: "\ufeff{\"version\": 1,\n\"site\": {\"name\": \"lab\", \"gatway\": 1}}",
	} {
		manifests, err := manifest.Read("f", []byte(text), format)
		if err != nil {
			t.Errorf("%s: %v", format, err)
			continue
		}
		_, err = manifest.Apply(t.Context(), storetest.Open(t), manifests, manifest.Options{})
		if err == nil || !strings.HasPrefix(err.Error(), "f:2:") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", format, err)
		}
	}
}

// laughs is a small file that means a huge one.
func laughs() string {
	var b strings.Builder
	b.WriteString("version: 1\nsite: {name: lab}\nnodes:\n  - &a0 {name: a}\n")
	for i := range 10 {
		fmt.Fprintf(&b, "  - &a%d [%s]\n", i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i), 20), ","))
	}
	return b.String()
}

func manyFields(n int) string {
	var fields []string
	for i := range n {
		fields = append(fields, fmt.Sprintf("f%d: 1", i))
	}
	return strings.Join(fields, ", ")
}

func TestAliasesAndMerging(t *testing.T) {
	s := storetest.Open(t)
	mustApply(t, s, site+`nodes: [{name: n}]
containers:
  - &base
    hostname: a
    node: n
    owner: alice
    services: &ssh [{type: transport, protocol: tcp, internalPort: 22}]
  - <<: *base
    hostname: b
  - {hostname: c, node: n, services: *ssh}
`, manifest.Options{})
	got := export(t, s)
	if strings.Count(got, "owner: alice") != 2 || strings.Count(got, "internalPort: 22") != 3 {
		t.Error(got)
	}
}

// What YAML would take for something else is what is written.
func TestWordsAreWhatTheyLookLike(t *testing.T) {
	s := storetest.Open(t)
	mustApply(t, s, "version: 1\nsite: {name: 007}\nnodes: [{name: no}, {name: 1e3}, {name: 'true'}]\ncontainers: [{hostname: 0x10, node: no, owner: null}]\n", manifest.Options{})
	got := export(t, s)
	for _, line := range []string{`name: "007"`, `name: "no"`, `name: "1e3"`, `name: "true"`, `hostname: "0x10"`} {
		if !strings.Contains(got, line) {
			t.Errorf("%s is not in\n%s", line, got)
		}
	}
	if again := mustApply(t, s, got, manifest.Options{Prune: true}); again != "no changes\n" {
		t.Error(again)
	}
}

func TestJSONIsStrict(t *testing.T) {
	for text, want := range map[string]string{
		"":                 "site.json: there is no document in it",
		"{\"version\": 1,": "site.json:1:15: not JSON: it ends too early",
		"{\n  \"version\": 1,\n  \"site\": {\"name\": 7}\n}":                        "site.json:3:20: site.name: has to be a text, not a number",
		"{\n  \"version\": 1,\n  \"version\": 1\n}":                                 "site.json:3:3: version: is given twice",
		"{\n  \"version\": 1.0\n}":                                                  `site.json:2:14: version: "1.0" is not a whole number above 0`,
		"{\n  \"version\": 1,\n  \"site\": {\"name\": \"é\", \"gatewa\": \"x\"}\n}": "site.json:3:25: site.gatewa: there is no such field; did you mean gateway?",
		"{\n  \"version\": 1,\n  nodes: []\n}":                                      "site.json:3:3: not JSON: invalid character 'n'",
		strings.Repeat("[", 100):                                                    "site.json:1:18: nested deeper than any manifest (16 levels)",
	} {
		manifests, err := manifest.Read("site.json", []byte(text), manifest.JSON)
		if err == nil {
			_, err = manifest.Apply(t.Context(), storetest.Open(t), manifests, manifest.Options{})
		}
		var found *manifest.FaultsError
		if !errors.As(err, &found) || !strings.HasPrefix(found.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// Nobody's file may crash the manager or keep it busy.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{lab, site, "a: &a [*a]", "? a\n: b", "{a: {<<: *b}}", "- - - -", "a: |\n  x", "%YAML 1.2\n---\na", "\"\\x\"", "!t &a *a"} {
		f.Add(seed, true)
		f.Add(seed, false)
	}
	f.Add(`{"version": 1, "site": {"name": "x"}}`, true)
	f.Fuzz(func(t *testing.T, text string, asJSON bool) {
		format := manifest.YAML
		if asJSON {
			format = manifest.JSON
		}
		manifests, err := manifest.Read("f", []byte(text), format)
		var found *manifest.FaultsError
		if err != nil && !errors.As(err, &found) {
			t.Fatalf("not faults: %v", err)
		}
		if err == nil && len(manifests) == 0 {
			t.Fatal("neither manifests nor faults")
		}
	})
}
