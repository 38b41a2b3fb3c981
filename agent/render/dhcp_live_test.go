package render

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"opensource.internal/agent/checkin"
)

// TestLiveDHCP: a real client gets the address kept for its card, and is told
// the site's gateway, name server and domain. An unknown card gets an address
// of the range.
func TestLiveDHCP(t *testing.T) {
	needTool(t, "dnsmasq")
	needTool(t, "udhcpc")
	if !inNamespace(t) {
		return
	}
	const known, unknown = "02:00:00:00:00:07", "02:00:00:00:00:08"
	for _, args := range [][]string{
		{"link", "add", "eth0", "type", "veth", "peer", "name", "client"},
		{"addr", "add", "203.0.113.2/24", "dev", "eth0"},
		{"link", "set", "eth0", "up"},
		{"link", "set", "client", "address", known, "up"},
	} {
		if out, err := exec.CommandContext(t.Context(), "ip", args...).CombinedOutput(); err != nil {
			t.Fatalf("ip %v: %v\n%s", args, err, out)
		}
	}
	snapshot := checkin.Snapshot{Site: &checkin.Site{
		InternalDomain: "lab.internal", DHCPRange: "203.0.113.100,203.0.113.101", SubnetMask: "255.255.255.0",
		Gateway: "203.0.113.1", DNSForwarders: "127.0.0.2",
		Nodes: []checkin.Node{{Name: "pve1", Containers: []checkin.Container{
			{Hostname: "web", IPv4Address: "203.0.113.50", MACAddress: known},
		}}},
	}}
	facts := hostFacts(t)
	result, err := DNSMasq(snapshot, facts, LoadTemplates(nil))
	if err != nil || len(result.LeftOut) > 0 {
		t.Fatal(err, result.LeftOut)
	}
	writeFiles(t, result)
	pidFile := startDNSMasq(t, facts)
	waitForSentinel(t, result)

	want := "203.0.113.50 255.255.255.0 203.0.113.1 203.0.113.2 lab.internal lab.internal web"
	if diff := cmp.Diff(want, lease(t, "client")); diff != "" {
		t.Errorf("the known card (-want +got):\n%s", diff)
	}
	// Names that dnsmasq's syntax has another meaning for.
	for _, name := range []string{"ignore", "infinite", "12h", "1234"} {
		snapshot.Site.Nodes[0].Containers[0].Hostname = name
		result, err := DNSMasq(snapshot, facts, LoadTemplates(nil))
		if err != nil || len(result.LeftOut) > 0 {
			t.Fatal(err, result.LeftOut)
		}
		writeFiles(t, result)
		hangUp(t, pidFile)
		waitForSentinel(t, result)
		want := "203.0.113.50 255.255.255.0 203.0.113.1 203.0.113.2 lab.internal lab.internal " + name
		if diff := cmp.Diff(want, lease(t, "client")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if out, err := exec.CommandContext(t.Context(), "ip", "link", "set", "client", "address", unknown).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got := lease(t, "client"); !strings.HasPrefix(got, "203.0.113.10") {
		t.Errorf("the unknown card got %q, want one of the range", got)
	}
}

// lease asks for an address on an interface, without setting it, and returns
// what udhcpc tells its script: address, mask, router, name server, domain,
// search list and host name.
func lease(t *testing.T, device string) string {
	t.Helper()
	dir := t.TempDir()
	script, told := filepath.Join(dir, "script"), filepath.Join(dir, "told")
	text := "#!/bin/sh\n[ \"$1\" != bound ] || echo $ip $subnet $router $dns $domain $search $hostname >" + told + "\n"
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "udhcpc", "-f", "-n", "-q", "-i", device, "-s", script, "-O", "search", "-t", "5", "-T", "1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("udhcpc: %v\n%s", err, out)
	}
	line, err := os.ReadFile(told)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(line))
}
