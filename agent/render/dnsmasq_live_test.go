package render

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"opensource.internal/agent/checkin"
)

// TestLiveDNSMasq runs the real dnsmasq on loopback and on the host's address.
func TestLiveDNSMasq(t *testing.T) {
	needTool(t, "dnsmasq")
	if !inNamespace(t) {
		return
	}
	const forwarder = "127.0.0.2"
	forwarded := serveDNS(t, forwarder+":53", map[string]string{"world.example": "203.0.113.7"})

	snapshot := labSnapshot()
	snapshot.Site.DNSForwarders = forwarder
	facts := hostFacts(t)
	result, err := DNSMasq(snapshot, facts, LoadTemplates(nil))
	if err != nil || len(result.LeftOut) > 0 {
		t.Fatal(err, result.LeftOut)
	}
	writeFiles(t, result)
	pidFile := startDNSMasq(t, facts)
	waitForSentinel(t, result)

	for _, test := range []struct {
		name string
		kind uint16
		want []string // empty: no such name or no such data
		code int
	}{
		{"web.lab.internal", dns.TypeA, []string{"192.0.2.101"}, dns.RcodeSuccess},
		{"WEB.lab.internal", dns.TypeA, []string{"192.0.2.101"}, dns.RcodeSuccess},
		{"web", dns.TypeA, []string{"192.0.2.101"}, dns.RcodeSuccess},
		{"pve1.lab.internal", dns.TypeA, []string{"192.0.2.10"}, dns.RcodeSuccess},
		{"web.lab.internal", dns.TypeAAAA, nil, dns.RcodeSuccess},
		{"101.2.0.192.in-addr.arpa", dns.TypePTR, []string{"web.lab.internal."}, dns.RcodeSuccess},
		{"_sip._tcp.lab.internal", dns.TypeSRV, []string{"0 0 5060 web.lab.internal."}, dns.RcodeSuccess},
		{"localhost", dns.TypeA, []string{"127.0.0.1"}, dns.RcodeSuccess},
		{"localhost", dns.TypeAAAA, []string{"::1"}, dns.RcodeSuccess},
		{"unknown.lab.internal", dns.TypeA, nil, dns.RcodeNameError},
		{"lab.internal", dns.TypeMX, nil, dns.RcodeSuccess},
		{DNSMasqSentinel(strings.Repeat("1", 64)), dns.TypeA, nil, dns.RcodeNameError},
		{"world.example", dns.TypeA, []string{"203.0.113.7"}, dns.RcodeSuccess},
	} {
		for _, server := range []string{"127.0.0.1", outsideAddr} {
			got, code := ask(t, server, test.name, test.kind)
			if diff := cmp.Diff(test.want, got); diff != "" || code != test.code {
				t.Errorf("%s %s at %s: %s, %s\n%s", test.name, dns.TypeToString[test.kind], server, dns.RcodeToString[code], dns.RcodeToString[test.code], diff)
			}
		}
	}
	if diff := cmp.Diff("world.example\n", forwarded.String()); diff != "" {
		t.Errorf("forwarded (-want +got):\n%s", diff)
	}

	// A new name arrives by SIGHUP: the main file has not changed.
	snapshot.Site.Nodes[0].Containers = append(snapshot.Site.Nodes[0].Containers, checkin.Container{Hostname: "new", IPv4Address: "192.0.2.120"})
	changed, err := DNSMasq(snapshot, facts, LoadTemplates(nil))
	if err != nil {
		t.Fatal(err)
	}
	main := len(changed.Files) - 1
	if diff := cmp.Diff(string(result.Files[main].Content), string(changed.Files[main].Content)); diff != "" {
		t.Errorf("a new container changes the main file:\n%s", diff)
	}
	writeFiles(t, changed)
	hangUp(t, pidFile)
	waitForSentinel(t, changed)
	if got, _ := ask(t, "127.0.0.1", "new.lab.internal", dns.TypeA); len(got) != 1 {
		t.Errorf("new.lab.internal: %v", got)
	}
}

// startDNSMasq runs the real dnsmasq until the test ends. It returns the path
// of its pid file.
func startDNSMasq(t *testing.T, facts Facts) string {
	t.Helper()
	pidFile := filepath.Join(facts.Paths.DNSMasqDir, "pid")
	start(t, "dnsmasq", "--keep-in-foreground", "--log-facility=-", "--user=root",
		"-C", facts.Paths.DNSMasqConf, "--pid-file="+pidFile,
		"--dhcp-leasefile="+filepath.Join(facts.Paths.DNSMasqDir, "leases"))
	return pidFile
}

func waitForSentinel(t *testing.T, r Result) {
	t.Helper()
	eventually(t, "dnsmasq answers its sentinel", func() bool {
		got, _ := ask(t, "127.0.0.1", DNSMasqSentinel(r.Revision), dns.TypeA)
		return cmp.Equal(got, []string{"127.0.0.1"})
	})
}

// hangUp sends SIGHUP to the process of a pid file.
func hangUp(t *testing.T, pidFile string) {
	t.Helper()
	text, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	pid := 0
	for _, digit := range strings.TrimSpace(string(text)) {
		pid = pid*10 + int(digit-'0')
	}
	if err := syscall.Kill(pid, syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
}

// ask returns the data of the answers to one question, and -1 as code if
// there was no reply.
func ask(t *testing.T, server, name string, kind uint16) ([]string, int) {
	t.Helper()
	client := &dns.Client{Timeout: 2 * time.Second}
	question := new(dns.Msg).SetQuestion(dns.Fqdn(name), kind)
	reply, _, err := client.ExchangeContext(t.Context(), question, netip.AddrPortFrom(netip.MustParseAddr(server), 53).String())
	if err != nil {
		return nil, -1
	}
	var data []string
	for _, rr := range reply.Answer {
		data = append(data, strings.TrimPrefix(rr.String(), rr.Header().String()))
	}
	return data, reply.Rcode
}
