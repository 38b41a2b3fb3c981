package manifest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/manifest"
	"opensource.internal/manager/internal/snapshot"
	"opensource.internal/manager/internal/store"
	"opensource.internal/manager/internal/store/storetest"
)

// lab is a site with one of everything.
const lab = `# The lab in the cellar.
version: 1
site:
  name: lab
  internalDomain: lab.internal
  dhcpRange: 192.0.2.100,192.0.2.200
  subnetMask: 255.255.255.0
  gateway: 192.0.2.1
  dnsForwarders: 9.9.9.9,1.1.1.1
externalDomains:
  - name: example.com
    defaultSite: lab
nodes:
  - name: pve1
    ipv4Address: 192.0.2.10
    type: proxmox
containers:
  - hostname: web
    node: pve1
    owner: alice
    ipv4Address: 192.0.2.101
    macAddress: 02:00:00:00:00:01
    services:
      - type: http
        externalHostname: app
        externalDomain: example.com
        internalPort: 8080
      - {type: transport, protocol: tcp, internalPort: 22}
      - type: dns
        dnsName: _sip._tcp
        internalPort: 5060
    volumes:
      - name: data
        mountPath: /var/lib/data
        mode: rw
  - hostname: db
    node: pve1
    ipv4Address: 192.0.2.102
`

func apply(t *testing.T, s *store.Store, text string, o manifest.Options) (*manifest.Report, error) {
	t.Helper()
	return applyIn(t.Context(), s, text, o)
}

func applyIn(ctx context.Context, s *store.Store, text string, o manifest.Options) (*manifest.Report, error) {
	manifests, err := manifest.Read("site.yaml", []byte(text), manifest.YAML)
	if err != nil {
		return nil, err
	}
	return manifest.Apply(ctx, s, manifests, o)
}

// mustApply applies a manifest that has to fit, and returns the report as it is
// printed.
func mustApply(t *testing.T, s *store.Store, text string, o manifest.Options) string {
	t.Helper()
	report, err := apply(t, s, text, o)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return printed(t, report)
}

func printed(t *testing.T, report *manifest.Report) string {
	t.Helper()
	var b strings.Builder
	if err := report.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func wantFaults(t *testing.T, err error, want ...string) {
	t.Helper()
	var found *manifest.FaultsError
	if !errors.As(err, &found) {
		t.Fatalf("not a FaultsError: %v", err)
	}
	if diff := cmp.Diff(want, strings.Split(found.Error(), "\n")); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
}

func export(t *testing.T, s *store.Store) string {
	t.Helper()
	present, err := s.Read(t.Context(), store.Scope{All: true})
	if err != nil {
		t.Fatal(err)
	}
	written, err := manifest.Export(present, true, manifest.YAML)
	if err != nil {
		t.Fatal(err)
	}
	return string(written)
}

// change replaces texts of a manifest; each has to be there.
func change(t *testing.T, text string, pairs ...string) string {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			t.Fatalf("no %q in the manifest", pairs[i])
		}
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

func TestApplyTwice(t *testing.T) {
	s := storetest.Open(t)
	dry := mustApply(t, s, lab, manifest.Options{DryRun: true})
	if left := export(t, s); left != "" {
		t.Fatalf("a dry run wrote:\n%s", left)
	}
	first := mustApply(t, s, lab, manifest.Options{})
	if diff := cmp.Diff(strings.ReplaceAll(dry, " (dry run: nothing was written)", ""), strings.ReplaceAll(first, "site-2", "site-1")); diff != "" {
		t.Errorf("a dry run says something else (-dry +applied):\n%s", diff)
	}
	for _, line := range []string{
		"external domains:\n  + external domain \"example.com\"\n      defaultSite: lab\nsite \"lab\":\n  + site \"lab\"\n      internalDomain: lab.internal\n",
		"  + service http app.example.com of container \"web\"\n      internalPort: 8080\n",
		"  + service transport tcp 2000 to 22 of container \"web\"\n", "      externalPort: 2000\n",
		"      hostPath: /mnt/volumes/site-", "9 created, 0 changed, 0 deleted\n",
	} {
		if !strings.Contains(first, line) {
			t.Errorf("%q is not in\n%s", line, first)
		}
	}
	before := export(t, s)
	for _, o := range []manifest.Options{{}, {Prune: true}, {DryRun: true}} {
		if again := mustApply(t, s, lab, o); again != "no changes\n" {
			t.Errorf("applied again with %+v: %s", o, again)
		}
	}
	if diff := cmp.Diff(before, export(t, s)); diff != "" {
		t.Error(diff)
	}
}

func TestExportIsWhatPeopleWrite(t *testing.T) {
	s := storetest.Open(t)
	mustApply(t, s, lab, manifest.Options{})
	present, err := s.Read(t.Context(), store.Scope{Names: []string{"LAB"}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := manifest.Export(present, false, manifest.YAML)
	if err != nil {
		t.Fatal(err)
	}
	want := change(t, lab, "# The lab in the cellar.\n", "", "02:00:00:00:00:01", `"02:00:00:00:00:01"`,
		"      - {type: transport, protocol: tcp, internalPort: 22}\n",
		"      - type: transport\n        protocol: tcp\n        internalPort: 22\n        externalPort: 2000\n",
		"        mode: rw\n", "        mode: rw\n        # hostPath: /mnt/volumes/site-1/alice/web/data\n")
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	asJSON, err := manifest.Export(present, false, manifest.JSON)
	if err != nil {
		t.Fatal(err)
	}
	manifests, err := manifest.Read("site.json", asJSON, manifest.JSON)
	if err != nil {
		t.Fatal(err)
	}
	report, err := manifest.Apply(t.Context(), s, manifests, manifest.Options{Prune: true})
	if err != nil || report.Changed() {
		t.Errorf("JSON taken back: %+v, %v", report, err)
	}
}

func TestFieldsThatAreAbsentAreNotSet(t *testing.T) {
	s := storetest.Open(t)
	mustApply(t, s, lab, manifest.Options{})
	got := mustApply(t, s, change(t, lab, "    owner: alice\n", "", "    macAddress: 02:00:00:00:00:01\n", "", "    type: proxmox\n", "",
		"    defaultSite: lab\n", "", "  dnsForwarders: 9.9.9.9,1.1.1.1\n", "  dnsForwarders: null\n", "mode: rw", "mode: ro"), manifest.Options{})
	want := `external domains:
  ~ external domain "example.com"
      defaultSite: lab → not set
site "lab":
  ~ site "lab"
      dnsForwarders: 9.9.9.9,1.1.1.1 → not set
  ~ node "pve1"
      type: proxmox → none
  ~ container "web"
      owner: alice → not set
      macAddress: 02:00:00:00:00:01 → not set
  ~ volume "data" of container "web"
      mode: rw → ro
0 created, 5 changed, 0 deleted
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Values that records exchange, or take over from one that goes.
func TestSwaps(t *testing.T) {
	two := `version: 1
site: {name: lab}
nodes:
  - {name: n1, ipv4Address: 192.0.2.11}
  - {name: n2, ipv4Address: 192.0.2.12}
containers:
  - hostname: a
    node: n1
    ipv4Address: 192.0.2.21
    macAddress: 02:00:00:00:00:21
    services: [{type: transport, protocol: tcp, internalPort: 22, externalPort: 2201}]
    volumes: [{name: x, mountPath: /x, mode: rw}, {name: y, mountPath: /y, mode: rw}]
  - hostname: b
    node: n2
    ipv4Address: 192.0.2.22
    macAddress: 02:00:00:00:00:22
    services: [{type: transport, protocol: tcp, internalPort: 22, externalPort: 2202}]
`
	for name, pairs := range map[string][]string{
		"addresses of containers":     {"192.0.2.21", "192.0.2.22", "192.0.2.22", "192.0.2.21"},
		"addresses of nodes":          {"192.0.2.11", "192.0.2.12", "192.0.2.12", "192.0.2.11"},
		"address of both kinds":       {"192.0.2.11", "192.0.2.21", "192.0.2.21", "192.0.2.11"},
		"in a ring":                   {"192.0.2.11", "192.0.2.21", "192.0.2.21", "192.0.2.22", "192.0.2.22", "192.0.2.11"},
		"MAC addresses":               {"00:21", "00:22", "00:22", "00:21"},
		"names of containers":         {"hostname: a", "hostname: b", "hostname: b", "hostname: a"},
		"names of nodes":              {"name: n1", "name: n2", "name: n2", "name: n1"},
		"ports":                       {"2201", "2202", "2202", "2201"},
		"nodes":                       {"node: n1", "node: n2", "node: n2", "node: n1"},
		"mount paths":                 {"/x", "/y", "/y", "/x"},
		"a node that leaves":          {"  - {name: n1, ipv4Address: 192.0.2.11}\n", "  - {name: n3, ipv4Address: 192.0.2.11}\n", "node: n1", "node: n3"},
		"a container named as it":     {"  - {name: n1, ipv4Address: 192.0.2.11}\n", "", "node: n1", "node: n2", "hostname: b", "hostname: n1"},
		"a node named as a container": {"hostname: b", "hostname: c", "name: n2", "name: b", "node: n2", "node: b"},
	} {
		t.Run(name, func(t *testing.T) {
			s := storetest.Open(t)
			mustApply(t, s, two, manifest.Options{})
			swapped := change(t, two, pairs...)
			if got := mustApply(t, s, swapped, manifest.Options{Prune: true}); strings.HasPrefix(got, "no changes") {
				t.Error("nothing was exchanged")
			}
			if again := mustApply(t, s, swapped, manifest.Options{Prune: true}); again != "no changes\n" {
				t.Errorf("applied again: %s", again)
			}
			back := mustApply(t, s, two, manifest.Options{Prune: true})
			if strings.HasPrefix(back, "no changes") {
				t.Errorf("and back: %s", back)
			}
			if strings.Contains(export(t, s), "leaving") || strings.Contains(export(t, s), "moving") {
				t.Error(export(t, s))
			}
		})
	}
}

func TestWhatTheFileDoesNotName(t *testing.T) {
	s := storetest.Open(t)
	mustApply(t, s, lab, manifest.Options{})
	less := `version: 1
site: {name: lab}
nodes: [{name: pve2}]
containers:
  - hostname: web
    node: pve2
    owner: alice
`
	got := mustApply(t, s, less, manifest.Options{})
	want := `site "lab":
  ~ site "lab"
      internalDomain: lab.internal → not set
      dhcpRange: 192.0.2.100,192.0.2.200 → not set
      subnetMask: 255.255.255.0 → not set
      gateway: 192.0.2.1 → not set
      dnsForwarders: 9.9.9.9,1.1.1.1 → not set
  + node "pve2"
      type: none
  ~ container "web"
      node: pve1 → pve2
      ipv4Address: 192.0.2.101 → not set
      macAddress: 02:00:00:00:00:01 → not set
not in the file, kept (--prune deletes it):
  = node "pve1" of site "lab"
  = container "db" of site "lab"
  = service http app.example.com of container "web" of site "lab"
  = service transport tcp 2000 to 22 of container "web" of site "lab"
  = service dns _sip._tcp 5060 of container "web" of site "lab"
  = volume "data" of container "web" of site "lab"
1 created, 2 changed, 0 deleted
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	got = mustApply(t, s, less, manifest.Options{Prune: true})
	want = `site "lab":
  - node "pve1"
  - service http app.example.com of container "web"
  - service transport tcp 2000 to 22 of container "web"
  - service dns _sip._tcp 5060 of container "web"
  - volume "data" of container "web"
      (the directory /mnt/volumes/site-1/alice/web/data stays on the node)
  - container "db"
0 created, 0 changed, 6 deleted
`
	if diff := cmp.Diff(want, strings.ReplaceAll(got, "site-2", "site-1")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, total, err := s.ListExternalDomains(t.Context(), store.ExternalDomainFilter{}, store.ListOptions{}); err != nil || total != 1 {
		t.Errorf("%d external domains, %v", total, err)
	}
	empty := mustApply(t, s, "version: 1\nsite: {name: LAB}\n", manifest.Options{Prune: true})
	if !strings.HasSuffix(empty, "0 created, 1 changed, 2 deleted\n") {
		t.Error(empty)
	}
}

func TestOtherSitesAreLeftAlone(t *testing.T) {
	s := storetest.Open(t)
	other := storetest.NewWorld(t, s, 7)
	before := storetest.Inventory(t, s, other.Site.ID)
	mustApply(t, s, lab, manifest.Options{})
	mustApply(t, s, "version: 1\nsite: {name: lab}\n", manifest.Options{Prune: true})
	if diff := cmp.Diff(before, storetest.Inventory(t, s, other.Site.ID)); diff != "" {
		t.Error(diff)
	}
}

func TestServicesKeepWhatTheyAre(t *testing.T) {
	s := storetest.Open(t)
	mustApply(t, s, lab, manifest.Options{})
	ids := serviceIDs(t, s)
	for _, step := range []struct {
		name, want string
		pairs      []string
	}{
		{"the external port is changed", "      externalPort: 2000 → 2500\n", []string{"internalPort: 22}", "internalPort: 22, externalPort: 2500}"}},
		{"the external port stays if none is named", "no changes\n", nil},
		{
			"the external port is kept for another port inside", "      internalPort: 22 → 2222\n",
			[]string{"internalPort: 22}", "internalPort: 2222, externalPort: 2500}"},
		},
		{
			"an HTTP service moves", "  ~ service http app.example.com of container \"db\"\n      container: web → db\n",
			[]string{
				"internalPort: 22}", "internalPort: 2222}", "      - type: http\n        externalHostname: app\n        externalDomain: example.com\n        internalPort: 8080\n", "",
				"    ipv4Address: 192.0.2.102\n", "    ipv4Address: 192.0.2.102\n    services: [{type: http, externalHostname: APP, externalDomain: Example.com., internalPort: 8080}]\n",
			},
		},
	} {
		if got := mustApply(t, s, change(t, lab, step.pairs...), manifest.Options{}); !strings.Contains(got, step.want) {
			t.Errorf("%s:\n%s", step.name, got)
		}
		if diff := cmp.Diff(ids, serviceIDs(t, s)); diff != "" {
			t.Errorf("%s: not the same services: %s", step.name, diff)
		}
	}
}

func serviceIDs(t *testing.T, s *store.Store) map[int64]inventory.ServiceType {
	t.Helper()
	rows, _, err := s.ListServices(t.Context(), store.ServiceFilter{}, store.ListOptions{Limit: store.All})
	if err != nil {
		t.Fatal(err)
	}
	ids := map[int64]inventory.ServiceType{}
	for _, row := range rows {
		ids[row.ID] = row.Type
	}
	return ids
}

// A volume is where it was made, whatever its container and site are called.
func TestVolumesStayWhereTheyAre(t *testing.T) {
	s := storetest.Open(t)
	mustApply(t, s, lab, manifest.Options{})
	mustApply(t, s, change(t, lab, "owner: alice", "owner: bob", "  gateway", "  volumesRoot: /srv\n  gateway"), manifest.Options{})
	if got := export(t, s); !strings.Contains(got, "# hostPath: /mnt/volumes/site-1/alice/web/data") {
		t.Error(got)
	}
}

func TestSeveralSitesAtOnce(t *testing.T) {
	s := storetest.Open(t)
	text := `version: 1
externalDomains: [{name: example.com, defaultSite: two}]
---
version: 1
site: {name: one}
nodes: [{name: n}]
containers: [{hostname: web, node: n, services: [{type: http, externalHostname: app, externalDomain: example.com, internalPort: 80}]}]
---
version: 1
site: {name: two}
nodes: [{name: n}]
containers: [{hostname: web, node: n, services: [{type: http, externalHostname: www, externalDomain: example.com, internalPort: 80}]}]
`
	mustApply(t, s, text, manifest.Options{})
	mustApply(t, s, change(t, text, "app", "www", "www", "app"), manifest.Options{Prune: true})
	if got := export(t, s); strings.Index(got, "www") > strings.Index(got, "externalHostname: app") {
		t.Errorf("not exchanged:\n%s", got)
	}
	_, err := apply(t, s, text+"---\nversion: 1\nsite: {name: ONE}\nexternalDomains: [{name: example.com}]\n", manifest.Options{Prune: true})
	wantFaults(t, err,
		`site.yaml:15:14: site.name: site "ONE" is described already in line 5`,
		`site.yaml:16:26: externalDomains[0].name: external domain "example.com" is described otherwise in line 2`)
}

// Whoever is later sees what the earlier one did.
func TestConcurrentApplies(t *testing.T) {
	s := storetest.Open(t)
	mustApply(t, s, lab, manifest.Options{})
	errs := make(chan error)
	for i := range 4 {
		go func() {
			_, err := applyIn(t.Context(), s, change(t, lab, "owner: alice", fmt.Sprintf("owner: alice%d", i),
				"hostname: db", fmt.Sprintf("hostname: db%d", i)), manifest.Options{Prune: true})
			errs <- err
		}()
	}
	for range 4 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if got := export(t, s); strings.Count(got, "hostname: db") != 1 || strings.Count(got, "owner: alice") != 1 {
		t.Errorf("a mixture:\n%s", got)
	}
}

func TestChangesAreAudited(t *testing.T) {
	s := storetest.Open(t)
	mustApply(t, s, lab, manifest.Options{})
	ctx := store.WithActor(t.Context(), store.Actor{Kind: store.ActorCommand, Name: "alice"})
	_, err := applyIn(ctx, s, change(t, lab, "192.0.2.101", "192.0.2.102", "192.0.2.102", "192.0.2.101", "name: pve1", "name: pve2", "node: pve1", "node: pve2"), manifest.Options{Prune: true})
	if err != nil {
		t.Fatal(err)
	}
	entries, _, err := s.ListAudit(t.Context(), store.AuditFilter{Actor: "alice"}, store.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, fmt.Sprint(e.Action, " ", e.Resource, " ", e.Name, " ", e.Before["ipv4Address"], " ", e.After["ipv4Address"]))
	}
	want := []string{
		"delete node pve1 192.0.2.10 <nil>", "update container db 192.0.2.102 192.0.2.101",
		"update container web 192.0.2.101 192.0.2.102", "create node pve2 <nil> 192.0.2.10",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What is wrong with a site that exists is all that is told of it.
func TestFaultsOfAStoredSite(t *testing.T) {
	s := storetest.Open(t)
	mustApply(t, s, lab, manifest.Options{})
	_, err := apply(t, s, change(t, lab, "gateway", "gatway", "internalPort: 8080", "internalPort: 80800", "hostname: db", "hostname: web"), manifest.Options{})
	wantFaults(t, err,
		"site.yaml:8:3: site.gatway: there is no such field; did you mean gateway?",
		"site.yaml:27:23: containers[0].services[0].internalPort: 80800 is not a port: 1 to 65535",
		`site.yaml:36:15: containers[1].hostname: the name "web" is already in use by containers[0] in line 18`)
}

// A port that is allocated makes room for the same one named elsewhere.
func TestNamedPortsComeFirst(t *testing.T) {
	s := storetest.Open(t)
	two := site + `nodes: [{name: n}]
containers:
  - {hostname: a, node: n, services: [{type: transport, protocol: tcp, internalPort: 22}]}
  - {hostname: b, node: n, services: [{type: transport, protocol: tcp, internalPort: 22}]}
`
	mustApply(t, s, two, manifest.Options{})
	got := mustApply(t, s, change(t, two, "hostname: b, node: n, services: [{type: transport, protocol: tcp, internalPort: 22",
		"hostname: b, node: n, services: [{type: transport, protocol: tcp, internalPort: 22, externalPort: 2000"), manifest.Options{})
	want := `site "lab":
  ~ service transport tcp 2000 to 22 of container "a"
      externalPort: 2000 → 2001
  ~ service transport tcp 2001 to 22 of container "b"
      externalPort: 2001 → 2000
0 created, 2 changed, 0 deleted
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A file that is applied to a site whose changes wait must not publish them.
func TestApplyLeavesPublishingAsItIs(t *testing.T) {
	s := storetest.Open(t)
	if _, err := apply(t, s, lab, manifest.Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.UpdateSite(t.Context(), 1, func(site *inventory.Site) error { site.Publishing = inventory.PublishManual; return nil }); err != nil {
		t.Fatal(err)
	}
	if _, err := apply(t, s, strings.Replace(lab, "gateway: 192.0.2.1", "gateway: 192.0.2.2", 1), manifest.Options{}); err != nil {
		t.Fatal(err)
	}
	if site, err := s.GetSite(t.Context(), 1); err != nil || site.Publishing != inventory.PublishManual || site.Gateway != "192.0.2.2" {
		t.Errorf("%+v, %v", site, err)
	}
}

// A file that does not speak of publishing publishes nothing by surprise.
func TestPublishingStays(t *testing.T) {
	s := storetest.Open(t)
	mustApply(t, s, "version: 1\nsite: {name: lab, publishing: manual}\n", manifest.Options{})
	if got := mustApply(t, s, site, manifest.Options{}); got != "no changes\n" {
		t.Error(got)
	}
	if got := export(t, s); !strings.Contains(got, "publishing: manual") {
		t.Error(got)
	}
	if got := mustApply(t, s, "version: 1\nsite: {name: lab, publishing: auto}\n", manifest.Options{}); !strings.Contains(got, "publishing: manual → auto") {
		t.Error(got)
	}
}

// What was only tried uses up no ids: the first site is that of the manager's own
// agent.
func TestWhatIsTriedUsesUpNoIDs(t *testing.T) {
	s := storetest.Open(t)
	mustApply(t, s, lab, manifest.Options{DryRun: true})
	if _, err := apply(t, s, strings.Replace(lab, "192.0.2.102", "192.0.2.10", 1), manifest.Options{}); err == nil {
		t.Fatal("one address for two is not refused")
	}
	mustApply(t, s, lab, manifest.Options{})
	ids := func() []int64 {
		t.Helper()
		all, err := s.Read(t.Context(), store.Scope{All: true})
		if err != nil {
			t.Fatal(err)
		}
		return []int64{
			all.Sites[len(all.Sites)-1].ID, all.Domains[len(all.Domains)-1].ID, all.Nodes[len(all.Nodes)-1].ID,
			all.Containers[len(all.Containers)-1].ID, all.Services[len(all.Services)-1].ID, all.Volumes[len(all.Volumes)-1].ID,
		}
	}
	if diff := cmp.Diff([]int64{1, 1, 1, 2, 3, 1}, ids()); diff != "" {
		t.Error(diff)
	}
	// Also where there are some already.
	two := change(t, lab, "name: lab\n", "name: two\n", "example.com", "example.org", "defaultSite: lab", "defaultSite: two")
	mustApply(t, s, two, manifest.Options{DryRun: true})
	mustApply(t, s, two, manifest.Options{})
	if diff := cmp.Diff([]int64{2, 2, 2, 4, 6, 2}, ids()); diff != "" {
		t.Error(diff)
	}
}

// What a file changes beside publishing waits already, in a new site too: there
// is a revision from before to compare it with.
func TestPublishingByHandBeginsWithTheFile(t *testing.T) {
	s := storetest.Open(t)
	const settings = "version: 1\nsite: {name: lab, gateway: 192.0.2.1, publishing: %s}\n"
	mustApply(t, s, fmt.Sprintf(settings, "auto"), manifest.Options{})
	ada := store.WithActor(t.Context(), store.Actor{Kind: store.ActorUser, Name: "ada"})
	byHand := strings.Replace(fmt.Sprintf(settings, "manual"), "2.1", "2.2", 1) + "nodes: [{name: pve1}]\n"
	published := func(siteID int64) []store.Revision {
		t.Helper()
		rows, _, err := s.ListRevisions(t.Context(), store.RevisionFilter{SiteID: siteID}, store.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return rows
	}
	if _, err := applyIn(ada, s, byHand, manifest.Options{DryRun: true}); err != nil {
		t.Fatal(err)
	}
	if rows := published(1); len(rows) != 0 {
		t.Fatalf("a dry run: %+v", rows)
	}
	for _, text := range []string{byHand, strings.Replace(byHand, "lab", "new", 1)} {
		if _, err := applyIn(ada, s, text, manifest.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	for site, want := range map[int64]struct{ gateway, by string }{1: {"192.0.2.1", "manager"}, 2: {"192.0.2.2", "ada"}} {
		rows := published(site)
		if len(rows) != 1 || !cmp.Equal(rows[0].ChangedBy, []string{want.by}) {
			t.Fatalf("site %d: %+v", site, rows)
		}
		row, err := s.GetRevision(t.Context(), site, 1)
		if err != nil || !strings.Contains(string(row.Data), fmt.Sprintf("%q", want.gateway)) || strings.Contains(string(row.Data), "pve1") {
			t.Errorf("site %d: %s, %v", site, row.Data, err)
		}
		next, _, err := s.PublishSite(ada, site, "", "", snapshot.Encode)
		if err != nil || !strings.Contains(string(next.Data), "pve1") || !cmp.Equal(next.ChangedBy, []string{"ada"}) {
			t.Errorf("site %d: %q, %s, %v", site, next.ChangedBy, next.Data, err)
		}
	}
}
