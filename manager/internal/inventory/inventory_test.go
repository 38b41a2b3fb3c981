package inventory_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"opensource.internal/manager/internal/inventory"
)

// faultsOf are the fields that an error names.
func faultsOf(t *testing.T, err error) []string {
	t.Helper()
	if err == nil {
		return nil
	}
	var invalid *inventory.InvalidError
	if !errors.As(err, &invalid) {
		t.Fatalf("not an InvalidError: %v", err)
	}
	var fields []string
	for field, fault := range invalid.Fields {
		if fault == "" {
			t.Errorf("%s has no text", field)
		}
		fields = append(fields, field)
	}
	return fields
}

func wantFaults(t *testing.T, err error, want ...string) {
	t.Helper()
	got := faultsOf(t, err)
	sorted := cmp.Transformer("set", func(in []string) map[string]bool {
		set := map[string]bool{}
		for _, s := range in {
			set[s] = true
		}
		return set
	})
	if diff := cmp.Diff(want, got, sorted); diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestFoldDomain(t *testing.T) {
	long := strings.Repeat(strings.Repeat("x", 63)+".", 3) + strings.Repeat("x", 61)
	for in, want := range map[string]string{
		"Example.COM.": "example.com", "a.b": "a.b", "lan": "lan", "xn--bcher-kva": "xn--bcher-kva", "XN--BCHER-KVA": "xn--bcher-kva",
		"bücher": "xn--bcher-kva", "BÜCHER.example": "xn--bcher-kva.example", "exämple.test": "xn--exmple-cua.test",
		"bu\u0308cher": "xn--bcher-kva", // decomposed
		"日本語.jp":       "xn--wgv71a119e.jp", "ひらカナ漢字": "xn--y9j3b8e6e728tv2ya", "한국": "xn--3e0b707e", "россия.рф": "xn--h1alffa9f.xn--p1ai",
		"straße": "xn--strae-oqa", "ex\u00e4mple\u3002test": "xn--exmple-cua.test", long: long,
	} {
		got, err := inventory.FoldDomain(in)
		if err != nil || got != want {
			t.Errorf("%q: %q, %v; want %q", in, got, err, want)
		}
		if again, err := inventory.FoldDomain(got); err != nil || again != got {
			t.Errorf("%q folded again: %q, %v", got, again, err)
		}
	}
}

func TestFoldDomainRefuses(t *testing.T) {
	for _, in := range []string{
		"", ".", "a..b", "-a", "a-", "a_b", "web ", " web", "a b", "*.example.com", "192.0.2.1", "a/b", "a;b", "a\nb", "a\x00b",
		"app; return 200 owned; #", "a{", "a$b", strings.Repeat("x", 64), strings.Repeat("a.", 127) + "a",
		"b\u00fccher\u200d", "b\u200ccher", "b\u200bcher", "bu\u00adcher", "a\u202eb", "a\ufe0f", "\ufeffa", // unseen
		"\u0430pple", "p\u0430ypal.com", "xn--pypal-4ve.com", "gοοgle", // Cyrillic and Greek among Latin
		"xn--", "xn--a", "xn--\u00fc", "xn--80ak6aa92e-", "a\u3000b", "☃", "a\u2044b",
		"\xff", "a\xc3", strings.Repeat("ü", 63), "ab--cd\u00e4",
	} {
		if got, err := inventory.FoldDomain(in); err == nil {
			t.Errorf("%q was taken as %q", in, got)
		}
	}
}

func FuzzFoldDomain(f *testing.F) {
	for _, seed := range []string{"example.com", "bücher", "xn--bcher-kva", "a\u200d", "-", "日本語"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		folded, err := inventory.FoldDomain(in)
		if err != nil {
			return
		}
		for _, r := range folded {
			if (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '.' {
				t.Fatalf("%q became %q", in, folded)
			}
		}
		if again, err := inventory.FoldDomain(folded); err != nil || again != folded || len(folded) > 253 {
			t.Fatalf("%q became %q, and that %q, %v", in, folded, again, err)
		}
	})
}

func TestContainerNames(t *testing.T) {
	for _, name := range []string{"web_1", "-web", "web-", "", strings.Repeat("x", 64), "web.example", "web ", "wéb", "1.2", "LocalHost"} {
		c := inventory.Container{NodeID: 1, Hostname: name}
		wantFaults(t, c.Normalise(), "hostname")
		n := inventory.Node{Name: name}
		wantFaults(t, n.Normalise(), "name")
	}
	c := inventory.Container{NodeID: 1, Hostname: "Web", Owner: "Alice@pve", MACAddress: "02-AA-BB-CC-DD-EE"}
	if err := c.Normalise(); err != nil || c.Hostname != "web" || c.Owner != "alice@pve" || c.MACAddress != "02:aa:bb:cc:dd:ee" {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestContainerFields(t *testing.T) {
	for field, change := range map[string]func(*inventory.Container){
		"nodeId":      func(c *inventory.Container) { c.NodeID = 0 },
		"ipv4Address": func(c *inventory.Container) { c.IPv4Address = "10.0.0.5/24" },
		"macAddress":  func(c *inventory.Container) { c.MACAddress = "01:00:00:00:00:01" },
		"owner":       func(c *inventory.Container) { c.Owner = "../../etc" },
	} {
		c := inventory.Container{NodeID: 1, Hostname: "web"}
		change(&c)
		wantFaults(t, c.Normalise(), field)
	}
	for _, owner := range []string{".", "..", ".ssh", "-rf", "a/b", "a b", "a\x00", "a\n", "ä", strings.Repeat("x", 65), "@pve"} {
		c := inventory.Container{NodeID: 1, Hostname: "web", Owner: owner}
		wantFaults(t, c.Normalise(), "owner")
	}
	n := inventory.Node{Name: "pve", Type: "vmware", IPv4Address: "127.0.0.1"}
	wantFaults(t, n.Normalise(), "type", "ipv4Address")
}

func TestSiteNetwork(t *testing.T) {
	good := inventory.Site{
		Name: " lab ", InternalDomain: "Lab.Internal.", DHCPRange: "192.0.2.100, 192.0.2.200", SubnetMask: "255.255.255.0",
		Gateway: "192.0.2.1", DNSForwarders: "9.9.9.9, 1.1.1.1",
	}
	tests := []struct {
		name   string
		change func(*inventory.Site)
		want   []string
	}{
		{"good", func(*inventory.Site) {}, nil},
		{"nothing set", func(s *inventory.Site) { *s = inventory.Site{Name: "x"} }, nil},
		{"range with a hyphen", func(s *inventory.Site) { s.DHCPRange = "192.0.2.100-192.0.2.200" }, []string{"dhcpRange"}},
		{"range leaves the subnet", func(s *inventory.Site) { s.DHCPRange = "192.0.2.100,192.0.3.200" }, []string{"dhcpRange"}},
		{"range backwards", func(s *inventory.Site) { s.DHCPRange = "192.0.2.200,192.0.2.100" }, []string{"dhcpRange"}},
		{"range has the gateway", func(s *inventory.Site) { s.DHCPRange = "192.0.2.1,192.0.2.100" }, []string{"dhcpRange"}},
		{"range with a line", func(s *inventory.Site) { s.DHCPRange = "192.0.2.100,192.0.2.200\ndhcp-script=/x" }, []string{"dhcpRange"}},
		{"mask as length", func(s *inventory.Site) { s.SubnetMask = "/24" }, []string{"subnetMask"}},
		{"mask with holes", func(s *inventory.Site) { s.SubnetMask = "255.0.255.0" }, []string{"subnetMask"}},
		{"gateway outside", func(s *inventory.Site) { s.Gateway = "198.51.100.1" }, []string{"gateway"}},
		{"gateway is broadcast", func(s *inventory.Site) { s.Gateway = "192.0.2.255" }, []string{"gateway"}},
		{"forwarder is a name", func(s *inventory.Site) { s.DNSForwarders = "dns.example.com" }, []string{"dnsForwarders"}},
		{"domain", func(s *inventory.Site) { s.InternalDomain = "lab_1" }, []string{"internalDomain"}},
		{"several", func(s *inventory.Site) { s.SubnetMask, s.Gateway, s.Name = "x", "y", "" }, []string{"subnetMask", "gateway", "name"}},
		{"external address", func(s *inventory.Site) { s.ExternalIP = "example.com" }, []string{"externalIp"}},
		{"external address v6", func(s *inventory.Site) { s.ExternalIP = "2001:DB8::1" }, nil},
		{"relative root", func(s *inventory.Site) { s.VolumesRoot = "mnt" }, []string{"volumesRoot"}},
		{"root with dots", func(s *inventory.Site) { s.VolumesRoot = "/mnt/../etc" }, []string{"volumesRoot"}},
		{"root is /", func(s *inventory.Site) { s.VolumesRoot = "/" }, []string{"volumesRoot"}},
		{"root with a comma", func(s *inventory.Site) { s.VolumesRoot = "/mnt/a,mp=/" }, []string{"volumesRoot"}},
		{"name too long", func(s *inventory.Site) { s.Name = strings.Repeat("x", 101) }, []string{"name"}},
		{"name with a control character", func(s *inventory.Site) { s.Name = "a\x1b[31m" }, []string{"name"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			site := good
			test.change(&site)
			wantFaults(t, site.Normalise(), test.want...)
		})
	}
	if err := good.Normalise(); err != nil {
		t.Fatal(err)
	}
	want := inventory.Site{
		Name: "lab", InternalDomain: "lab.internal", DHCPRange: "192.0.2.100,192.0.2.200", SubnetMask: "255.255.255.0",
		Gateway: "192.0.2.1", DNSForwarders: "9.9.9.9,1.1.1.1",
		VolumesRoot: inventory.DefaultVolumesRoot, PortRange: inventory.DefaultPortRange, Publishing: inventory.PublishAuto,
	}
	if diff := cmp.Diff(want, good); diff != "" {
		t.Error(diff)
	}
}

func TestPortRange(t *testing.T) {
	for in, want := range map[string]inventory.PortRange{
		"2000-2999": {First: 2000, Last: 2999}, "1-65535": {First: 1, Last: 65535}, " 20 - 30 ": {First: 20, Last: 30}, "7-7": {First: 7, Last: 7},
	} {
		if got, err := inventory.ParsePortRange(in); err != nil || got != want {
			t.Errorf("%q: %v, %v", in, got, err)
		}
	}
	for _, in := range []string{"", "-", "2000", "2000-", "-2999", "2999-2000", "0-10", "65535-65536", "a-b", "1--2", "+1-2", "1-2-3", "2000,2999", "٢-٣", "1e3-2000"} {
		if got, err := inventory.ParsePortRange(in); err == nil {
			t.Errorf("%q was taken as %v", in, got)
		}
	}
}

func TestServices(t *testing.T) {
	domain := int64(1)
	http := inventory.Service{Type: "http", InternalPort: 8080, ExternalHostname: "App", ExternalDomainID: &domain}
	transport := inventory.Service{Type: "transport", InternalPort: 22, Protocol: "tcp"}
	dns := inventory.Service{Type: "dns", InternalPort: 5060, DNSName: "_SIP._tcp"}
	tests := []struct {
		name    string
		service inventory.Service
		change  func(*inventory.Service)
		want    []string
	}{
		{"http", http, func(*inventory.Service) {}, nil},
		{"several labels", http, func(s *inventory.Service) { s.ExternalHostname = "a.b.c" }, nil},
		{"no host", http, func(s *inventory.Service) { s.ExternalHostname = "" }, []string{"externalHostname"}},
		{"directive in the host", http, func(s *inventory.Service) { s.ExternalHostname = "app; return 200 owned; #" }, []string{"externalHostname"}},
		{"directive in the protocol", http, func(s *inventory.Service) { s.BackendProtocol = "http://127.0.0.1:3000/; #" }, []string{"backendProtocol"}},
		{"no domain", http, func(s *inventory.Service) { s.ExternalDomainID = nil }, []string{"externalDomainId"}},
		{"port 0", http, func(s *inventory.Service) { s.InternalPort = 0 }, []string{"internalPort"}},
		{"port 65536", http, func(s *inventory.Service) { s.InternalPort = 65536 }, []string{"internalPort"}},
		{"foreign fields", http, func(s *inventory.Service) { s.ExternalPort, s.Protocol, s.DNSName = 1, "tcp", "a" }, []string{"externalPort", "protocol", "dnsName"}},
		{"transport", transport, func(*inventory.Service) {}, nil},
		{"8443", transport, func(s *inventory.Service) { s.ExternalPort = 8443 }, nil},
		{"80", transport, func(s *inventory.Service) { s.ExternalPort = 80 }, []string{"externalPort"}},
		{"443", transport, func(s *inventory.Service) { s.ExternalPort = 443 }, []string{"externalPort"}},
		{"443 udp", transport, func(s *inventory.Service) { s.ExternalPort, s.Protocol = 443, "udp" }, []string{"externalPort"}},
		{"the manager's", transport, func(s *inventory.Service) { s.ExternalPort = 3999 }, []string{"externalPort"}},
		{"65536", transport, func(s *inventory.Service) { s.ExternalPort = 65536 }, []string{"externalPort"}},
		{"negative", transport, func(s *inventory.Service) { s.ExternalPort = -1 }, []string{"externalPort"}},
		{"no protocol", transport, func(s *inventory.Service) { s.Protocol = "" }, []string{"protocol"}},
		{"sctp", transport, func(s *inventory.Service) { s.Protocol = "sctp" }, []string{"protocol"}},
		{"dns", dns, func(*inventory.Service) {}, nil},
		{"dns name", dns, func(s *inventory.Service) { s.DNSName = "_sip._tcp,evil" }, []string{"dnsName"}},
		{"no dns name", dns, func(s *inventory.Service) { s.DNSName = "" }, []string{"dnsName"}},
		{"record type", dns, func(s *inventory.Service) { s.RecordType = "TXT" }, []string{"recordType"}},
		{"no type", dns, func(s *inventory.Service) { s.Type = "" }, []string{"type"}},
		{"other type", dns, func(s *inventory.Service) { s.Type = "smtp" }, []string{"type"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			service := test.service
			test.change(&service)
			wantFaults(t, service.Normalise([]int{3999}), test.want...)
		})
	}
	if err := http.Normalise(nil); err != nil || http.BackendProtocol != "http" || http.ExternalHostname != "app" {
		t.Errorf("%+v, %v", http, err)
	}
	if err := dns.Normalise(nil); err != nil || dns.RecordType != "SRV" || dns.DNSName != "_sip._tcp" {
		t.Errorf("%+v, %v", dns, err)
	}
}

func TestVolumes(t *testing.T) {
	for _, mode := range []string{"755", "0755", "493", "RW", "rwxr-xr-x", "", " rw"} {
		v := inventory.Volume{Name: "data", MountPath: "/data", Mode: mode}
		wantFaults(t, v.Normalise(), "mode")
	}
	for _, mode := range []string{"rw", "ro"} {
		v := inventory.Volume{Name: "Data", MountPath: "/data", Mode: mode}
		if err := v.Normalise(); err != nil || v.Name != "data" {
			t.Errorf("%+v, %v", v, err)
		}
	}
	for _, name := range []string{"", ".", "..", "a/b", "../x", "-", "a\nb", strings.Repeat("x", 65)} {
		v := inventory.Volume{Name: name, MountPath: "/data", Mode: "rw"}
		wantFaults(t, v.Normalise(), "name")
	}
	for _, path := range []string{"", "data", "/", "/a/../b", "/a/", "//a", "/a\x00", "/a\nb", "/a,b", "/\xff"} {
		v := inventory.Volume{Name: "data", MountPath: path, Mode: "rw"}
		wantFaults(t, v.Normalise(), "mountPath")
	}
}

func TestDomains(t *testing.T) {
	for _, server := range []string{"", "http://sso.example.com:4180", "https://192.0.2.5"} {
		d := inventory.ExternalDomain{Name: "Example.com", AuthServer: server}
		wantFaults(t, d.Normalise())
	}
	for _, server := range []string{"sso.example.com", "ftp://x", "http://x/y", "http://x;evil", "http://u:p@x", "http://x\nlisten 1", "http://x:0"} {
		d := inventory.ExternalDomain{Name: "example.com", AuthServer: server}
		wantFaults(t, d.Normalise(), "authServer")
	}
	d := inventory.ExternalDomain{Name: "example.com; #"}
	wantFaults(t, d.Normalise(), "name")
}

func TestVolumePath(t *testing.T) {
	got, err := inventory.VolumePath("/mnt/v", 7, "", "web", "data")
	if err != nil || got != "/mnt/v/site-7/"+inventory.Unowned+"/web/data" {
		t.Errorf("%s, %v", got, err)
	}
	if _, err := inventory.VolumePath("/"+strings.Repeat("x", 4090), 7, "a", "web", "data"); err == nil {
		t.Error("a path longer than PATH_MAX was taken")
	}
}
