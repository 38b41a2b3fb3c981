package manifest_test

import (
	"fmt"
	"strings"
	"testing"

	"opensource.internal/manager/internal/manifest"
	"opensource.internal/manager/internal/store"
	"opensource.internal/manager/internal/store/storetest"
)

// large is a site of n containers with two services and a volume each.
func large(n int) string {
	var b strings.Builder
	b.WriteString("version: 1\nsite: {name: large, portRange: 20000-59999}\nexternalDomains: [{name: example.com}]\nnodes: [{name: pve1}]\ncontainers:\n")
	for i := range n {
		fmt.Fprintf(&b, "  - hostname: c%d\n    node: pve1\n    owner: alice\n    ipv4Address: 10.0.%d.%d\n    macAddress: 02:00:00:00:%02x:%02x\n", i, i/250, i%250+1, i/256, i%256)
		fmt.Fprintf(&b, "    services:\n      - {type: http, internalPort: 8080, externalHostname: c%d, externalDomain: example.com}\n", i)
		b.WriteString("      - {type: transport, protocol: tcp, internalPort: 22}\n    volumes: [{name: data, mountPath: /data, mode: rw}]\n")
	}
	return b.String()
}

// How long a site of 10,000 containers takes: to be made, to be compared, to be
// changed in every container, and to be written down.
func BenchmarkLargeSite(b *testing.B) {
	text := large(10_000)
	for name, step := range map[string]func(*testing.B, *store.Store){
		"create":  func(b *testing.B, s *store.Store) { run(b, s, text) },
		"compare": func(b *testing.B, s *store.Store) { run(b, s, text) },
		"change":  func(b *testing.B, s *store.Store) { run(b, s, strings.ReplaceAll(text, " 10.0.", " 10.1.")) },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				s := storetest.Open(b)
				if name != "create" {
					run(b, s, text)
				}
				b.StartTimer()
				step(b, s)
			}
		})
	}
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			if _, err := manifest.Read("site.yaml", []byte(text), manifest.YAML); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func run(b *testing.B, s *store.Store, text string) {
	manifests, err := manifest.Read("site.yaml", []byte(text), manifest.YAML)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := manifest.Apply(b.Context(), s, manifests, manifest.Options{}); err != nil {
		b.Fatal(err)
	}
}
