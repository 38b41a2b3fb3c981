package manifest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"opensource.internal/manager/internal/manifest"
	"opensource.internal/manager/internal/store"
	"opensource.internal/manager/internal/store/storetest"
)

// Whatever is stored is exported so that apply takes it back without a change,
// in both formats and into an empty database too; and whatever two manifests
// say, applying one over the other ends where it would have on an empty one.
func TestRoundTrip(t *testing.T) {
	s := storetest.Open(t)
	rapid.Check(t, func(rt *rapid.T) {
		for _, text := range []string{draw(rt), draw(rt)} {
			if _, err := apply(t, s, text, manifest.Options{Prune: true}); err != nil {
				rt.Fatalf("%v\n%s", err, text)
			}
			if again := mustApply(t, s, text, manifest.Options{Prune: true}); again != "no changes\n" {
				rt.Fatalf("applied twice: %s\n%s", again, text)
			}
			for _, format := range []manifest.Format{manifest.YAML, manifest.JSON} {
				takeBack(t, rt, s, format)
			}
			// What is free to be allocated depends on what was there before.
			want, got := meaning(text), meaning(export(t, s))
			if diff := cmp.Diff(want, got); diff != "" {
				rt.Fatalf("it is not what was applied (-want +got):\n%s\n%s", diff, text)
			}
		}
	})
}

func takeBack(t *testing.T, rt *rapid.T, s *store.Store, format manifest.Format) {
	present, err := s.Read(t.Context(), store.Scope{All: true})
	if err != nil {
		rt.Fatal(err)
	}
	written, err := manifest.Export(present, true, format)
	if err != nil {
		rt.Fatal(err)
	}
	manifests, err := manifest.Read("export", written, format)
	if err != nil {
		rt.Fatalf("%v\n%s", err, written)
	}
	report, err := manifest.Apply(t.Context(), s, manifests, manifest.Options{Prune: true})
	if err != nil || report.Changed() {
		rt.Fatalf("the export changes something: %+v, %v\n%s", report, err, written)
	}
}

// meaning are the lines that name containers, nodes, addresses and mounts.
func meaning(text string) []string {
	var lines []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(strings.ReplaceAll(line, `"`, ""))
		for _, field := range []string{"hostname:", "name: n", "node:", "owner:", "ipv4Address:", "macAddress:", "mountPath:", "externalHostname:", "authRequired:"} {
			if strings.HasPrefix(strings.TrimPrefix(line, "- "), field) {
				lines = append(lines, strings.TrimPrefix(line, "- "))
			}
		}
	}
	slices.Sort(lines)
	return lines
}

// draw makes a manifest of two sites and the domains they share. Names, addresses
// and ports are few, so that they change hands.
func draw(rt *rapid.T) string {
	var b strings.Builder
	b.WriteString("version: 1\nexternalDomains:\n")
	for i := range 3 {
		fmt.Fprintf(&b, "  - name: d%d.test\n", i)
		if rapid.Bool().Draw(rt, "auth") {
			fmt.Fprintf(&b, "    authServer: http://192.0.2.%d:4180\n", i+1)
		}
		if rapid.Bool().Draw(rt, "default") {
			fmt.Fprintf(&b, "    defaultSite: %s\n", rapid.SampledFrom([]string{"one", `"Two: ü 'x'"`}).Draw(rt, "site"))
		}
	}
	free := draws(rt, "hostnames", "h", 12)
	for _, name := range []string{"one", `"Two: ü 'x'"`} {
		drawSite(rt, &b, name, free)
	}
	return b.String()
}

// draws shuffles what may be given away once.
func draws(rt *rapid.T, label, prefix string, n int) func() string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("%s%d", prefix, i+1))
	}
	all = rapid.Permutation(all).Draw(rt, label)
	return func() string {
		one := all[0]
		all = all[1:]
		return one
	}
}

func drawSite(rt *rapid.T, b *strings.Builder, name string, public func() string) {
	fmt.Fprintf(b, "---\nversion: 1\nsite:\n  name: %s\n", name)
	if rapid.Bool().Draw(rt, "network") {
		b.WriteString("  internalDomain: x.internal\n  dhcpRange: 192.0.2.100,192.0.2.200\n  subnetMask: 255.255.255.0\n  gateway: 192.0.2.1\n")
	}
	names := draws(rt, "names", "n", 10)
	addresses := draws(rt, "addresses", "192.0.2.10", 9)
	macs := draws(rt, "macs", "02:00:00:00:00:0", 9)
	ports := draws(rt, "ports", "210", 9)
	var nodes []string
	b.WriteString("nodes:\n")
	for range rapid.IntRange(1, 3).Draw(rt, "nodes") {
		nodes = append(nodes, names())
		fmt.Fprintf(b, "  - name: %s\n    type: %s\n", nodes[len(nodes)-1], rapid.SampledFrom([]string{"proxmox", "none"}).Draw(rt, "type"))
		if rapid.Bool().Draw(rt, "address") {
			fmt.Fprintf(b, "    ipv4Address: %s\n", addresses())
		}
	}
	b.WriteString("containers:\n")
	for range rapid.IntRange(0, 4).Draw(rt, "containers") {
		fmt.Fprintf(b, "  - hostname: %s\n    node: %s\n", names(), rapid.SampledFrom(nodes).Draw(rt, "node"))
		if rapid.Bool().Draw(rt, "address") {
			fmt.Fprintf(b, "    ipv4Address: %s\n", addresses())
		}
		if rapid.Bool().Draw(rt, "mac") {
			fmt.Fprintf(b, "    macAddress: %s\n", macs())
		}
		if rapid.Bool().Draw(rt, "owner") {
			fmt.Fprintf(b, "    owner: %s\n", rapid.SampledFrom([]string{"alice", "no", "7"}).Draw(rt, "owner"))
		}
		drawServices(rt, b, public, ports)
		drawVolumes(rt, b)
	}
}

func drawServices(rt *rapid.T, b *strings.Builder, public, ports func() string) {
	b.WriteString("    services:\n")
	if rapid.Bool().Draw(rt, "http") {
		fmt.Fprintf(b, "      - type: http\n        internalPort: 80\n        externalHostname: %s\n        externalDomain: d%d.test\n",
			public(), rapid.IntRange(0, 2).Draw(rt, "domain"))
		if rapid.Bool().Draw(rt, "auth") {
			b.WriteString("        authRequired: true\n")
		}
	}
	if rapid.Bool().Draw(rt, "dns") {
		fmt.Fprintf(b, "      - type: dns\n        internalPort: %d\n        dnsName: _sip._tcp\n", rapid.IntRange(1, 2).Draw(rt, "port"))
	}
	for range rapid.IntRange(0, 2).Draw(rt, "transports") {
		fmt.Fprintf(b, "      - type: transport\n        protocol: %s\n        internalPort: %d\n",
			rapid.SampledFrom([]string{"tcp", "udp"}).Draw(rt, "protocol"), rapid.IntRange(1, 2).Draw(rt, "port"))
		if rapid.Bool().Draw(rt, "named") {
			fmt.Fprintf(b, "        externalPort: %s\n", ports())
		}
	}
}

func drawVolumes(rt *rapid.T, b *strings.Builder) {
	mounts := draws(rt, "mounts", "/m", 2)
	b.WriteString("    volumes:\n")
	for i := range rapid.IntRange(0, 2).Draw(rt, "volumes") {
		fmt.Fprintf(b, "      - name: v%d\n        mountPath: %s\n        mode: %s\n", i, mounts(), rapid.SampledFrom([]string{"rw", "ro"}).Draw(rt, "mode"))
	}
}
