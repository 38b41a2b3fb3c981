package render

import (
	"fmt"
	"strings"
	"testing"

	"opensource.internal/agent/checkin"
)

// TestNGINXLeavesOut: a record that cannot be served is named with its reason,
// and the file is that of the snapshot without it.
func TestNGINXLeavesOut(t *testing.T) {
	http := func(change func(*checkin.HTTPService)) func(*checkin.Snapshot) {
		return func(s *checkin.Snapshot) {
			service := s.NGINX.HTTPServices[0]
			service.ID, service.ExternalHostname = 99, "extra"
			change(&service)
			s.NGINX.HTTPServices = append(s.NGINX.HTTPServices, service)
		}
	}
	stream := func(change func(*checkin.StreamService)) func(*checkin.Snapshot) {
		return func(s *checkin.Snapshot) {
			service := s.NGINX.StreamServices[0]
			service.ID, service.ExternalPort = 99, 2299
			change(&service)
			s.NGINX.StreamServices = append(s.NGINX.StreamServices, service)
		}
	}
	port := func(protocol string, port int) func(*checkin.Snapshot) {
		return stream(func(s *checkin.StreamService) { s.Protocol, s.ExternalPort = protocol, port })
	}
	host := func(name string) func(*checkin.Snapshot) {
		return http(func(h *checkin.HTTPService) { h.ExternalHostname = name })
	}
	authServer := func(url string) func(*checkin.Snapshot) {
		return http(func(h *checkin.HTTPService) { h.AuthRequired, h.ExternalDomain.AuthServer = true, checkin.Text(url) })
	}
	domain := func(name string) func(*checkin.Snapshot) {
		return func(s *checkin.Snapshot) {
			s.NGINX.ExternalDomains = append(s.NGINX.ExternalDomains, checkin.ExternalDomain{Name: name})
		}
	}
	for _, test := range []struct {
		name   string
		spoil  func(*checkin.Snapshot)
		kind   string
		reason []string
	}{
		{"empty host", host(""), checkin.KindHTTP, []string{"externalHostname"}},
		{"wildcard host", host("*"), checkin.KindHTTP, []string{"externalHostname"}},
		{"underscore", host("web_1"), checkin.KindHTTP, []string{"externalHostname"}},
		{"directive in host", host("app; return 200 owned; #"), checkin.KindHTTP, []string{"externalHostname"}},
		{"unicode host", host("bücher"), checkin.KindHTTP, []string{"externalHostname"}},
		{"too long", host(strings.Repeat("a.", 121) + "a"), checkin.KindHTTP, []string{"253"}},
		{"host twice", host("APP."), checkin.KindHTTP, []string{"app.example.com", "service 3 to", "service 99 to"}},
		{"the manager's name", host("manager"), checkin.KindHTTP, []string{"MANAGER_HOSTNAME", "service 99"}},
		{"directive in protocol", http(func(h *checkin.HTTPService) { h.BackendProtocol = "http://127.0.0.1:3000/; #" }), checkin.KindHTTP, []string{"backendProtocol"}},
		{"loopback backend", http(func(h *checkin.HTTPService) { h.Container.IPv4Address = "127.0.0.1" }), checkin.KindHTTP, []string{"container.ipv4Address"}},
		{"address with prefix", http(func(h *checkin.HTTPService) { h.Container.IPv4Address = "10.0.0.5/24" }), checkin.KindHTTP, []string{"container.ipv4Address"}},
		{"port", http(func(h *checkin.HTTPService) { h.InternalPort = 65536 }), checkin.KindHTTP, []string{"internalPort"}},
		{"domain", http(func(h *checkin.HTTPService) { h.ExternalDomain.Name = "../../etc" }), checkin.KindHTTP, []string{"externalDomain.name"}},
		{"two faults", http(func(h *checkin.HTTPService) { h.InternalPort = 0; h.Container.IPv4Address = "" }), checkin.KindHTTP, []string{"internalPort", "container.ipv4Address"}},
		{"auth server", authServer("http://sso.example.com:4180/; return 200"), checkin.KindHTTP, []string{"externalDomain.authServer"}},
		{"its own auth server", authServer("https://extra.example.com"), checkin.KindHTTP, []string{"externalDomain.authServer", "its own"}},

		{"80", port("tcp", 80), checkin.KindStream, []string{"tcp/80", "web server", "service 99"}},
		{"443", port("tcp", 443), checkin.KindStream, []string{"tcp/443", "web server"}},
		{"53", port("udp", 53), checkin.KindStream, []string{"udp/53", "DNS server"}},
		{"67", port("udp", 67), checkin.KindStream, []string{"udp/67", "DHCP server"}},
		{"the manager's port", port("tcp", 3000), checkin.KindStream, []string{"tcp/3000", "the manager"}},
		{"port twice", port("tcp", 2201), checkin.KindStream, []string{"tcp/2201", "service 4 to", "service 99 to"}},
		{"port 0", port("tcp", 0), checkin.KindStream, []string{"externalPort"}},
		{"sctp", port("sctp", 9), checkin.KindStream, []string{"protocol"}},
		{"directive in protocol", port("tcp; #", 9), checkin.KindStream, []string{"protocol"}},
		{"backend", stream(func(s *checkin.StreamService) { s.Container.IPv4Address = "web" }), checkin.KindStream, []string{"container.ipv4Address"}},

		{"bad domain", domain("example.com{"), checkin.KindDomain, []string{"name", "not a domain name"}},
		{"domain twice", domain("Example.COM"), checkin.KindDomain, []string{"example.com", "twice"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			facts := bookworm()
			facts.ManagerUpstream, facts.ManagerHostname = "127.0.0.1:3000", "manager.example.com"
			good, err := NGINX(labSnapshot(), facts, LoadTemplates(nil))
			if err != nil {
				t.Fatal(err)
			}
			spoiled := labSnapshot()
			test.spoil(&spoiled)
			got, err := NGINX(spoiled, facts, LoadTemplates(nil))
			if err != nil {
				t.Fatal(err)
			}
			wantLeftOut(t, got, test.kind, test.reason)
			if string(got.Files[0].Content) != string(good.Files[0].Content) || got.Revision != good.Revision {
				t.Error("the record left its mark in the file")
			}
		})
	}
}

func wantLeftOut(t *testing.T, r Result, kind string, reason []string) {
	t.Helper()
	if len(r.LeftOut) != 1 {
		t.Fatalf("left out: %+v", r.LeftOut)
	}
	item := r.LeftOut[0]
	if item.Kind != kind {
		t.Errorf("kind %s, want %s", item.Kind, kind)
	}
	for _, word := range reason {
		if !strings.Contains(item.Reason, word) {
			t.Errorf("%q does not name %q", item.Reason, word)
		}
	}
	if strings.ContainsAny(item.Name+item.Reason, "\n\r\x00") {
		t.Errorf("name %q, reason %q", item.Name, item.Reason)
	}
}

func TestNGINXLeavesOutHTTP3Port(t *testing.T) {
	s := http3(labSnapshot())
	s.NGINX.StreamServices[0].Protocol, s.NGINX.StreamServices[0].ExternalPort = "udp", 443
	got, err := NGINX(s, trixie(), LoadTemplates(nil))
	if err != nil {
		t.Fatal(err)
	}
	wantLeftOut(t, got, checkin.KindStream, []string{"udp/443", "HTTP/3"})
	if got, err = NGINX(s, bookworm(), LoadTemplates(nil)); err != nil || len(got.LeftOut) != 0 {
		t.Errorf("without HTTP/3 the port is free: %v %v", err, got.LeftOut)
	}
}

func TestNGINXWithoutStreamModule(t *testing.T) {
	facts := bookworm()
	facts.NGINX.Stream = false
	got, err := NGINX(labSnapshot(), facts, LoadTemplates(nil))
	if err != nil {
		t.Fatal(err)
	}
	if len(got.LeftOut) != 2 {
		t.Fatalf("left out: %+v", got.LeftOut)
	}
	for _, item := range got.LeftOut {
		if item.Kind != checkin.KindStream || item.ID == 0 || !strings.Contains(item.Reason, "libnginx-mod-stream") {
			t.Errorf("%+v", item)
		}
	}
}

// TestNGINXNoUnneededLoss: what is odd and can be served is served.
func TestNGINXNoUnneededLoss(t *testing.T) {
	s := labSnapshot()
	s.NGINX.HTTPServices[0].BackendProtocol = ""
	s.NGINX.HTTPServices[0].ExternalDomain.AuthServer = "not a URL, and not used"
	s.NGINX.HTTPServices[1].ExternalHostname, s.NGINX.HTTPServices[1].ExternalDomain.Name = "sub", "example.com"
	s.NGINX.ExternalDomains = append(s.NGINX.ExternalDomains, checkin.ExternalDomain{Name: "sub.example.com"})
	got, err := NGINX(s, bookworm(), LoadTemplates(nil))
	if err != nil || len(got.LeftOut) != 0 {
		t.Fatal(err, got.LeftOut)
	}
	conf := string(got.Files[0].Content)
	for _, want := range []string{"proxy_pass http://192.0.2.101:8080;", "server_name *.sub.example.com;"} {
		if !strings.Contains(conf, want) {
			t.Errorf("no %q", want)
		}
	}
	if n := strings.Count(conf, "server_name sub.example.com;"); n != 1 {
		t.Errorf("sub.example.com is there %d times", n)
	}
}

// TestDNSMasqLeavesOut is TestNGINXLeavesOut for dnsmasq.
func TestDNSMasqLeavesOut(t *testing.T) {
	container := func(c checkin.Container) func(*checkin.Site) {
		return func(s *checkin.Site) { s.Nodes[1].Containers = append(s.Nodes[1].Containers, c) }
	}
	srv := func(r checkin.DNSRecord) func(*checkin.Site) {
		return func(s *checkin.Site) { s.DNSRecords = append(s.DNSRecords, r) }
	}
	for _, test := range []struct {
		name   string
		spoil  func(*checkin.Site)
		kind   string
		reason []string
	}{
		{"name", container(checkin.Container{Hostname: "web_1", IPv4Address: "192.0.2.120"}), checkin.KindHost, []string{"hostname"}},
		{"line in a name", container(checkin.Container{Hostname: "x\ndhcp-script=/x", IPv4Address: "192.0.2.120"}), checkin.KindHost, []string{"hostname"}},
		{"two labels", container(checkin.Container{Hostname: "web.example", IPv4Address: "192.0.2.120"}), checkin.KindHost, []string{"hostname"}},
		{"address", container(checkin.Container{Hostname: "x", IPv4Address: "192.0.2.120/24"}), checkin.KindHost, []string{"ipv4Address"}},
		{"name twice", container(checkin.Container{Hostname: "WEB", IPv4Address: "192.0.2.120"}), checkin.KindHost, []string{"container web (192.0.2.101)", "container web (192.0.2.120)"}},
		{"name of a node", container(checkin.Container{Hostname: "pve1", IPv4Address: "192.0.2.120"}), checkin.KindHost, []string{"node pve1", "container pve1"}},
		{"localhost", container(checkin.Container{Hostname: "localhost", IPv4Address: "192.0.2.120"}), checkin.KindHost, []string{"this host"}},
		{"node's address", func(s *checkin.Site) { s.Nodes[1].IPv4Address = "pve2" }, checkin.KindHost, []string{"ipv4Address"}},
		{"type", srv(checkin.DNSRecord{ID: 9, Type: "TXT", Name: "x", Target: "web", Port: 1}), checkin.KindSRV, []string{"type", "SRV"}},
		{"service name", srv(checkin.DNSRecord{ID: 9, Type: "SRV", Name: "_sip,x", Target: "web", Port: 1}), checkin.KindSRV, []string{"name"}},
		{"target elsewhere", srv(checkin.DNSRecord{ID: 9, Type: "SRV", Name: "_x._tcp", Target: "elsewhere", Port: 1}), checkin.KindSRV, []string{"target", "elsewhere"}},
		{"target is a node", srv(checkin.DNSRecord{ID: 9, Type: "SRV", Name: "_x._tcp", Target: "pve1", Port: 1}), checkin.KindSRV, []string{"target"}},
		{"port", srv(checkin.DNSRecord{ID: 9, Type: "SRV", Name: "_x._tcp", Target: "web", Port: 0}), checkin.KindSRV, []string{"port"}},
		{"record twice", srv(checkin.DNSRecord{ID: 9, Type: "SRV", Name: "_SIP._tcp", Target: "Web", Port: 5060}), checkin.KindSRV, []string{"twice"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			good, err := DNSMasq(labSnapshot(), bookworm(), LoadTemplates(nil))
			if err != nil {
				t.Fatal(err)
			}
			spoiled := labSnapshot()
			test.spoil(spoiled.Site)
			got, err := DNSMasq(spoiled, bookworm(), LoadTemplates(nil))
			if err != nil {
				t.Fatal(err)
			}
			wantLeftOut(t, got, test.kind, test.reason)
			for i := range got.Files {
				if string(got.Files[i].Content) != string(good.Files[i].Content) {
					t.Errorf("the record left its mark in %s", got.Files[i].Path)
				}
			}
		})
	}
}

// TestDNSMasqReservations: a container whose reservation is refused keeps its
// name, and one whose name is refused keeps its reservation.
func TestDNSMasqReservations(t *testing.T) {
	for _, test := range []struct {
		name      string
		container checkin.Container
		kind      string
		reason    []string
		host      string // the line in hosts, if any
		lease     string // the line in dhcp-hosts, if any
	}{
		{
			"address twice",
			checkin.Container{Hostname: "x", IPv4Address: "192.0.2.101", MACAddress: "02:00:00:00:00:09"},
			checkin.KindReservation,
			[]string{"192.0.2.101", "container web", "container x"},
			"192.0.2.101 x.lab.internal x", "",
		},
		{
			"card twice",
			checkin.Container{Hostname: "x", IPv4Address: "192.0.2.120", MACAddress: "02-00-00-00-00-01"},
			checkin.KindReservation,
			[]string{"02:00:00:00:00:01", "container web", "container x"},
			"192.0.2.120 x.lab.internal x", "",
		},
		{
			"outside the subnet",
			checkin.Container{Hostname: "x", IPv4Address: "198.51.100.9", MACAddress: "02:00:00:00:00:09"},
			checkin.KindReservation,
			[]string{"ipv4Address", "192.0.2.0/24"},
			"198.51.100.9 x.lab.internal x", "",
		},
		{
			"broadcast address",
			checkin.Container{Hostname: "x", IPv4Address: "192.0.2.255", MACAddress: "02:00:00:00:00:09"},
			checkin.KindReservation,
			[]string{"ipv4Address", "192.0.2.0/24"},
			"192.0.2.255 x.lab.internal x", "",
		},
		{
			"multicast card",
			checkin.Container{Hostname: "x", IPv4Address: "192.0.2.120", MACAddress: "01:00:00:00:00:09"},
			checkin.KindReservation,
			[]string{"macAddress"},
			"192.0.2.120 x.lab.internal x", "",
		},
		{
			"name",
			checkin.Container{Hostname: "x,y", IPv4Address: "192.0.2.120", MACAddress: "02:00:00:00:00:09"},
			checkin.KindHost,
			[]string{"hostname"},
			"", "02:00:00:00:00:09,192.0.2.120",
		},
		{
			"name of a node",
			checkin.Container{Hostname: "pve1", IPv4Address: "192.0.2.120", MACAddress: "02:00:00:00:00:09"},
			checkin.KindHost,
			[]string{"node pve1"},
			"", "02:00:00:00:00:09,192.0.2.120",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := labSnapshot()
			s.Site.Nodes[1].Containers = append(s.Site.Nodes[1].Containers, test.container)
			got, err := DNSMasq(s, bookworm(), LoadTemplates(nil))
			if err != nil {
				t.Fatal(err)
			}
			wantLeftOut(t, got, test.kind, test.reason)
			wantLastLine(t, got.Files[1], test.host, "192.0.2.103 mail.lab.internal mail")
			wantLastLine(t, got.Files[0], test.lease, "02:00:00:00:00:03,192.0.2.103,mail.lab.internal")
		})
	}
}

func wantLastLine(t *testing.T, f File, want, otherwise string) {
	t.Helper()
	if want == "" {
		want = otherwise
	}
	lines := strings.Split(strings.TrimSuffix(string(f.Content), "\n"), "\n")
	if last := lines[len(lines)-1]; last != want {
		t.Errorf("%s ends with %q, want %q", f.Path, last, want)
	}
}

// TestDNSMasqSiteFaults: a wrong network setting is an error of the service.
func TestDNSMasqSiteFaults(t *testing.T) {
	for _, test := range []struct {
		spoil func(*checkin.Site)
		begin string
	}{
		{func(s *checkin.Site) { s.DHCPRange = "192.0.2.100-192.0.2.200" }, "site.dhcpRange: "},
		{func(s *checkin.Site) { s.DHCPRange = "192.0.2.100,192.0.2.200\ndhcp-script=/tmp/x" }, "site.dhcpRange: "},
		{func(s *checkin.Site) { s.DHCPRange = "192.0.2.200,192.0.2.100" }, "site.dhcpRange: "},
		{func(s *checkin.Site) { s.DHCPRange = "192.0.2.100,192.0.3.200" }, "site.dhcpRange: "},
		{func(s *checkin.Site) { s.SubnetMask = "/24" }, "site.subnetMask: "},
		{func(s *checkin.Site) { s.Gateway = "192.0.2.150" }, "site.dhcpRange: "},
		{func(s *checkin.Site) { s.Gateway = "198.51.100.1" }, "site.gateway: "},
		{func(s *checkin.Site) { s.InternalDomain = "lab_internal" }, "site.internalDomain: "},
		{func(s *checkin.Site) { s.DNSForwarders = "9.9.9.9#x" }, "site.dnsForwarders: "},
		{func(s *checkin.Site) { s.DNSForwarders = "2620:fe::fe" }, "site.dnsForwarders: "},
	} {
		s := labSnapshot()
		test.spoil(s.Site)
		facts := bookworm()
		facts.IPv6 = false
		got, err := DNSMasq(s, facts, LoadTemplates(nil))
		if err == nil || !strings.HasPrefix(err.Error(), test.begin) || len(got.Files) != 0 {
			t.Errorf("%v: %v, want %s…", s.Site, err, test.begin)
		}
	}
}

func TestDNSMasqSkipped(t *testing.T) {
	s := labSnapshot()
	s.Site.Gateway, s.Site.DHCPRange = "", ""
	got, err := DNSMasq(s, bookworm(), LoadTemplates(nil))
	if err != nil || len(got.Files) != 0 {
		t.Fatal(err, got)
	}
	for _, word := range []string{"site.gateway", "site.dhcpRange"} {
		if !strings.Contains(got.Skipped, word) {
			t.Errorf("%q does not name %s", got.Skipped, word)
		}
	}
	if strings.Contains(got.Skipped, "subnetMask") {
		t.Errorf("%q names what is there", got.Skipped)
	}
	s.Site.InternalDomain, s.Site.SubnetMask, s.Site.DNSForwarders = "", "", ""
	if got, err = DNSMasq(s, bookworm(), LoadTemplates(nil)); err != nil || got.Skipped != checkin.NoNetwork {
		t.Errorf("without any: %v %+v", err, got)
	}
	if got, err = DNSMasq(checkin.Bootstrap(), bookworm(), LoadTemplates(nil)); err != nil || got.Skipped == "" {
		t.Errorf("bootstrap: %v %+v", err, got)
	}
}

// TestDNSMasqLeaseLimit: a range above dnsmasq's own limit can be used up.
func TestDNSMasqLeaseLimit(t *testing.T) {
	s := labSnapshot()
	s.Site.DHCPRange, s.Site.SubnetMask, s.Site.Gateway = "10.0.1.0,10.0.10.255", "255.255.0.0", "10.0.0.1"
	for i := range s.Site.Nodes {
		s.Site.Nodes[i].Containers = s.Site.Nodes[i].Containers[:0]
	}
	s.Site.DNSRecords = nil
	s.Site.Nodes[0].Containers = []checkin.Container{{Hostname: "web", IPv4Address: "10.0.0.5", MACAddress: "02:00:00:00:00:01"}}
	got, err := DNSMasq(s, bookworm(), LoadTemplates(nil))
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("dhcp-lease-max=%d\n", 2560+1); !strings.Contains(string(got.Files[4].Content), want) {
		t.Errorf("no %q in\n%s", want, got.Files[4].Content)
	}
}
