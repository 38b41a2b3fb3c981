package checkin

import (
	"net/netip"
	"strings"
	"testing"
	"unicode"
)

func TestParseLabel(t *testing.T) {
	for in, want := range map[string]string{"web": "web", "Web": "web", "web-1": "web-1", "1": "1", strings.Repeat("a", 63): strings.Repeat("a", 63)} {
		if got, err := ParseLabel(in); err != nil || got != want {
			t.Errorf("ParseLabel(%q) = %q, %v", in, got, err)
		}
	}
	for _, bad := range []string{"", "web_1", "-web", "web-", "web.example", "web ", " web", "bücher", strings.Repeat("a", 64), "web\n", "web;", "\u212Aelvin"} {
		if got, err := ParseLabel(bad); err == nil {
			t.Errorf("ParseLabel(%q) = %q, want an error", bad, got)
		}
	}
}

func TestParseDomain(t *testing.T) {
	long := strings.Repeat(strings.Repeat("a", 49)+".", 5) + "com"
	if len(long) != 253 {
		t.Fatalf("the long name has %d characters", len(long))
	}
	for in, want := range map[string]string{"example.com": "example.com", "Example.COM.": "example.com", "internal": "internal", long: long, "xn--bcher-kva.test": "xn--bcher-kva.test"} {
		if got, err := ParseDomain(in); err != nil || got != want {
			t.Errorf("ParseDomain(%q) = %q, %v", in, got, err)
		}
	}
	for _, bad := range []string{"", ".", "..", "a..b", ".a", "a b", "*.example.com", "example.com/", "a;b", "192.0.2.1", "::1", "a" + long, "exämple.test", "a\n", "_sip._tcp"} {
		if got, err := ParseDomain(bad); err == nil {
			t.Errorf("ParseDomain(%q) = %q, want an error", bad, got)
		}
	}
}

func TestParseServiceName(t *testing.T) {
	if got, err := ParseServiceName("_sip._TCP"); err != nil || got != "_sip._tcp" {
		t.Errorf("got %q, %v", got, err)
	}
	for _, bad := range []string{"", "_", "__a", "a_b", "_sip,_tcp"} {
		if got, err := ParseServiceName(bad); err == nil {
			t.Errorf("ParseServiceName(%q) = %q, want an error", bad, got)
		}
	}
}

func TestParseAddresses(t *testing.T) {
	for _, bad := range []string{"", "192.0.2.5/24", "192.0.2", "192.0.2.01", "256.0.0.1", "::1", "::ffff:192.0.2.1", " 192.0.2.1", "192.0.2.1\n"} {
		if got, err := ParseIPv4(bad); err == nil {
			t.Errorf("ParseIPv4(%q) = %v, want an error", bad, got)
		}
	}
	for _, bad := range []string{"0.0.0.0", "127.0.0.1", "224.0.0.1", "255.255.255.255"} {
		if got, err := ParseHostIPv4(bad); err == nil {
			t.Errorf("ParseHostIPv4(%q) = %v, want an error", bad, got)
		}
	}
	if got, err := ParseMAC("02-00-00-00-00-0A"); err != nil || got != "02:00:00:00:00:0a" {
		t.Errorf("ParseMAC = %q, %v", got, err)
	}
	for _, bad := range []string{"", "02:00:00:00:00", "02:00:00:00:00:01:02:03", "01:00:00:00:00:01", "00:00:00:00:00:00", "0200.0000.0001", "02:00:00:00:00:0g"} {
		if got, err := ParseMAC(bad); err == nil {
			t.Errorf("ParseMAC(%q) = %q, want an error", bad, got)
		}
	}
}

func TestParseNetmask(t *testing.T) {
	if bits, err := ParseNetmask("255.255.255.0"); err != nil || bits != 24 {
		t.Errorf("got %d, %v", bits, err)
	}
	for _, bad := range []string{"", "/24", "24", "255.0.255.0", "0.0.0.0", "255.255.255.255", "255.255.255.254", "192.0.2.1"} {
		if bits, err := ParseNetmask(bad); err == nil {
			t.Errorf("ParseNetmask(%q) = %d, want an error", bad, bits)
		}
	}
}

func TestParseDHCPRange(t *testing.T) {
	r, err := ParseDHCPRange("192.0.2.100,192.0.2.200")
	if err != nil || r.Size() != 101 || !r.Contains(netip.MustParseAddr("192.0.2.150")) || r.Contains(netip.MustParseAddr("192.0.2.201")) {
		t.Errorf("got %+v, %v", r, err)
	}
	for _, bad := range []string{"", "192.0.2.100", "192.0.2.100-192.0.2.200", "192.0.2.200,192.0.2.100", "192.0.2.100,192.0.2.200,255.255.255.0", "192.0.2.100, 192.0.2.200", "192.0.2.100,192.0.2.200\ndhcp-script=/bin/sh"} {
		if r, err := ParseDHCPRange(bad); err == nil {
			t.Errorf("ParseDHCPRange(%q) = %+v, want an error", bad, r)
		}
	}
}

func TestParseNetwork(t *testing.T) {
	good := Site{InternalDomain: "lab.internal", DHCPRange: "192.0.2.100,192.0.2.200", SubnetMask: "255.255.255.0", Gateway: "192.0.2.1", DNSForwarders: "9.9.9.9, 2620:fe::fe"}
	n, faults := good.ParseNetwork()
	if len(faults) > 0 || n.Subnet != netip.MustParsePrefix("192.0.2.0/24") || len(n.Forwarders) != 2 || len(good.MissingNetworkFields()) != 0 {
		t.Fatalf("got %+v, %v", n, faults)
	}
	for _, test := range []struct {
		name   string
		change func(*Site)
		field  string
	}{
		{"range leaves the subnet", func(s *Site) { s.DHCPRange = "192.0.2.100,192.0.3.200" }, "dhcpRange"},
		{"range reversed", func(s *Site) { s.DHCPRange = "192.0.2.200,192.0.2.100" }, "dhcpRange"},
		{"range contains gateway", func(s *Site) { s.Gateway = "192.0.2.150" }, "dhcpRange"},
		{"range holds the broadcast address", func(s *Site) { s.DHCPRange = "192.0.2.100,192.0.2.255" }, "dhcpRange"},
		{"range holds the network address", func(s *Site) { s.DHCPRange = "192.0.2.0,192.0.2.9"; s.Gateway = "192.0.2.77" }, "dhcpRange"},
		{"gateway elsewhere", func(s *Site) { s.Gateway = "198.51.100.1" }, "gateway"},
		{"mask as prefix", func(s *Site) { s.SubnetMask = "/24" }, "subnetMask"},
		{"domain injects", func(s *Site) { s.InternalDomain = "lab/\nserver=203.0.113.1" }, "internalDomain"},
		{"forwarder is a name", func(s *Site) { s.DNSForwarders = "dns.example" }, "dnsForwarders"},
		{"forwarder empty", func(s *Site) { s.DNSForwarders = "9.9.9.9," }, "dnsForwarders"},
	} {
		t.Run(test.name, func(t *testing.T) {
			site := good
			test.change(&site)
			_, faults := site.ParseNetwork()
			if len(faults) == 0 || faults[0].Field != test.field {
				t.Errorf("faults = %v, want one of %s", faults, test.field)
			}
		})
	}
	if missing := (Site{Gateway: "192.0.2.1"}).MissingNetworkFields(); len(missing) != 4 {
		t.Errorf("missing = %v", missing)
	}
}

func TestAuthServerServedAs(t *testing.T) {
	for in, want := range map[string]string{
		"http://Auth.example.com": "auth.example.com", "https://auth.example.com:443": "auth.example.com",
		"https://auth.example.com:80": "", "http://auth.example.com:4180": "", "http://192.0.2.5": "",
	} {
		server, err := ParseAuthServer(in)
		if got := server.ServedAs(); err != nil || got != want {
			t.Errorf("%s is served as %q, %v; want %q", in, got, err, want)
		}
	}
}

func TestParseAuthServer(t *testing.T) {
	for in, want := range map[string]AuthServer{
		"http://auth.example.com:4180":  {"http", "auth.example.com", 4180},
		"https://auth.example.com/":     {"https", "auth.example.com", 443},
		"http://192.0.2.7":              {"http", "192.0.2.7", 80},
		"http://AUTH.example.com.:4180": {"http", "auth.example.com", 4180},
	} {
		if got, err := ParseAuthServer(in); err != nil || got != want {
			t.Errorf("ParseAuthServer(%q) = %+v, %v", in, got, err)
		}
	}
	for _, bad := range []string{"", "auth.example.com", "ftp://a", "http://", "http://a:0", "http://a:70000", "http://a:", "http://u:p@a", "http://a/path", "http://a?q", "http://a#", "http://a;b", "http://a b", "http://$host", "http://[::1]:80", "http://a\n", "javascript:alert(1)"} {
		if got, err := ParseAuthServer(bad); err == nil {
			t.Errorf("ParseAuthServer(%q) = %+v, want an error", bad, got)
		}
	}
}

func TestVolumeRules(t *testing.T) {
	for _, bad := range []string{"", "/", "relative", "/a/../b", "/a/./b", "/a//b", "/a/", "/a\x00b", "/" + strings.Repeat("a", 4096)} {
		if CheckHostPath(bad) == nil {
			t.Errorf("CheckHostPath(%.40q) = nil, want an error", bad)
		}
	}
	if err := CheckHostPath("/mnt/vol a/data"); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"", "RW", "755", "0755", "rwxr-xr-x"} {
		if _, err := DirectoryMode(bad); err == nil {
			t.Errorf("DirectoryMode(%q) accepted", bad)
		}
	}
	for _, bad := range []int64{-1, 1<<32 - 1, 1 << 40} {
		if CheckUnixID(bad) == nil {
			t.Errorf("CheckUnixID(%d) accepted", bad)
		}
	}
	if CheckUnixID(MaxID) != nil || CheckUnixID(0) != nil {
		t.Error("the edges of the range must be accepted")
	}
}

// What a parser accepts must be harmless in any configuration file.
func FuzzNamesAreHarmless(f *testing.F) {
	for _, seed := range []string{"web", "a.b", "_sip._tcp", "a;b", "a\nb", "xn--a", "192.0.2.1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		for _, parse := range []func(string) (string, error){ParseLabel, ParseDomain, ParseServiceName, ParseMAC} {
			out, err := parse(in)
			if err != nil {
				continue
			}
			if out == "" || len(out) > 253 || strings.ContainsFunc(out, func(r rune) bool {
				return r > unicode.MaxASCII || !unicode.IsLower(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_.:", r)
			}) {
				t.Errorf("%q was accepted as %q", in, out)
			}
		}
	})
}

func FuzzParseDHCPRange(f *testing.F) {
	for _, seed := range []string{"192.0.2.1,192.0.2.2", "0.0.0.1,255.255.255.254", ",", "a"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		r, err := ParseDHCPRange(in)
		if err == nil && (r.Size() < 1 || !r.Contains(r.Start) || !r.Contains(r.End) || r.Start.String()+","+r.End.String() != in) {
			t.Errorf("%q was accepted as %+v", in, r)
		}
	})
}
