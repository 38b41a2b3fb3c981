package preview_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/preview"
)

const version = "2026.12.0"

// lab is a site of ten containers with an HTTP service and a reservation each,
// and one port.
func lab() checkin.Snapshot {
	s := checkin.Snapshot{
		Site: &checkin.Site{
			ID: 1, Name: "lab", InternalDomain: "lab.internal", DHCPRange: "192.0.2.100,192.0.2.200", SubnetMask: "255.255.255.0",
			Gateway: "192.0.2.1", DNSForwarders: "9.9.9.9", Nodes: []checkin.Node{{Name: "pve1"}},
			DNSRecords: []checkin.DNSRecord{}, Volumes: []checkin.Volume{},
		},
		NGINX: checkin.NGINX{
			StreamServices:  []checkin.StreamService{{ID: 90, InternalPort: 22, Container: checkin.Backend{IPv4Address: "192.0.2.101"}, ExternalPort: 2201, Protocol: "tcp"}},
			ExternalDomains: []checkin.ExternalDomain{{Name: "example.com"}},
		},
	}
	for n := range 10 {
		address := fmt.Sprintf("192.0.2.%d", 101+n)
		s.Site.Nodes[0].Containers = append(s.Site.Nodes[0].Containers, checkin.Container{
			Hostname: fmt.Sprintf("c%d", n), IPv4Address: address, MACAddress: checkin.Text(fmt.Sprintf("02:00:00:00:00:%02x", n)),
		})
		s.NGINX.HTTPServices = append(s.NGINX.HTTPServices, checkin.HTTPService{
			ID: int64(n + 1), InternalPort: 8080, Container: checkin.Backend{IPv4Address: address}, ExternalHostname: fmt.Sprintf("app%d", n),
			BackendProtocol: "http", ExternalDomain: checkin.HTTPServiceDomain{Name: "example.com"},
		})
	}
	return s
}

// bookworm is what an agent on Debian 12 tells.
func bookworm() *checkin.Request {
	return &checkin.Request{
		Hostname: "agent", Agent: &checkin.AgentInfo{Version: version},
		Host:         &checkin.HostInfo{NGINX: &checkin.NGINXInfo{Version: "1.22.1", Stream: true}, DNSMasq: &checkin.DNSMasqInfo{Version: "2.90"}, IPv6: true},
		Certificates: map[string]checkin.Certificate{"example.com": {State: checkin.CertificateOK}},
	}
}

func content(p preview.Preview, path string) string {
	for _, service := range p.Services {
		for _, file := range service.Files {
			if file.Path == path {
				return file.Content
			}
		}
	}
	return ""
}

func TestFilesAreThoseOfTheReportedHost(t *testing.T) {
	p := preview.Of(lab(), preview.HostOf(bookworm()), version)
	if diff := cmp.Diff(preview.Basis{Agent: "agent", NGINX: "1.22.1", DNSMasq: "2.90", Assumptions: []string{}}, p.Host); diff != "" {
		t.Error(diff)
	}
	conf := content(p, "/etc/nginx/nginx.conf")
	for text, want := range map[string]bool{
		"server_name app3.example.com;": true, "/etc/ssl/certs/example.com.crt": true, "listen [::]:443": true,
		"http2 on":             false, // nginx 1.22 does not know it
		"return 200 REVISION;": true,
	} {
		if strings.Contains(conf, text) != want {
			t.Errorf("nginx.conf: %q is there: %v", text, !want)
		}
	}
	if hosts := content(p, "/var/lib/dnsmasq/hosts"); !strings.Contains(hosts, "127.0.0.1 revision-REVISION.") || !strings.Contains(hosts, "192.0.2.103 c2.lab.internal c2") {
		t.Error(hosts)
	}
}

func TestAssumptionsAreSaid(t *testing.T) {
	signIn := lab()
	signIn.NGINX.HTTPServices[0].AuthRequired = true
	signIn.NGINX.HTTPServices[0].ExternalDomain.AuthServer = "http://sso.lab.internal:4180"
	for name, test := range map[string]struct {
		report   func(*checkin.Request) *checkin.Request
		snapshot checkin.Snapshot
		want     []string
	}{
		"no agent": {func(*checkin.Request) *checkin.Request { return nil }, lab(), []string{"no agent of the site has told", "no certificate is known of example.com"}},
		"own templates": {func(r *checkin.Request) *checkin.Request {
			r.Agent.Templates = []string{"nginx/nginx.conf.tmpl"}
			return r
		}, lab(), []string{"nginx/nginx.conf.tmpl"}},
		"other version": {func(r *checkin.Request) *checkin.Request { r.Agent.Version = "2027.1.0"; return r }, lab(), []string{"2027.1.0"}},
		"name servers":  {func(r *checkin.Request) *checkin.Request { return r }, signIn, []string{"name servers"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := preview.Of(test.snapshot, preview.HostOf(test.report(bookworm())), version)
			if len(p.Host.Assumptions) != len(test.want) {
				t.Fatalf("%q", p.Host.Assumptions)
			}
			for i, want := range test.want {
				if !strings.Contains(p.Host.Assumptions[i], want) {
					t.Errorf("%q", p.Host.Assumptions[i])
				}
			}
			if content(p, "/etc/nginx/nginx.conf") == "" || len(p.Services[0].LeftOut) > 0 {
				t.Errorf("%+v", p.Services[0])
			}
		})
	}
}

func TestWhatCannotBeRenderedSaysWhy(t *testing.T) {
	report := bookworm()
	report.Host.NGINX, report.Host.DNSMasq.Version = nil, "2.90"
	s := lab()
	s.Site.Gateway = ""
	p := preview.Of(s, preview.HostOf(report), version)
	for i, want := range []string{"nginx is not installed", "not set are site.gateway"} {
		if note := p.Services[i].Note; note == nil || !strings.Contains(*note, want) || len(p.Services[i].Files) > 0 {
			t.Errorf("%+v", p.Services[i])
		}
	}
	report.Host.NGINX = &checkin.NGINXInfo{Version: "tengine"}
	d := preview.Compare(lab(), s, preview.HostOf(report), version)
	if d.Impact.NGINX != preview.Unknown || !strings.Contains(d.Impact.Words[0], "cannot be told") {
		t.Errorf("%+v", d.Impact)
	}
	many := lab()
	added := many.NGINX.StreamServices[0]
	added.ID, added.ExternalPort = 99, 2299
	many.NGINX.StreamServices = append(many.NGINX.StreamServices, added)
	bare := bookworm()
	bare.Host.NGINX.Stream = false
	host := preview.HostOf(bare)
	host.Others = 2
	d = preview.Compare(lab(), many, host, version)
	if len(d.Impact.NotServed) != 1 || !slices.ContainsFunc(d.Impact.Words, func(w string) bool {
		return strings.HasPrefix(w, "Not served on the host: tcp/2299 (") && strings.Contains(w, "stream module")
	}) {
		t.Errorf("%q %+v", d.Impact.Words, d.Impact.NotServed)
	}
	if !strings.Contains(strings.Join(d.Host.Assumptions, "\n"), "the site has 2 agents besides") {
		t.Errorf("%q", d.Host.Assumptions)
	}
	wrong := lab()
	wrong.NGINX.HTTPServices[0].ExternalHostname = "app; return 200"
	if left := preview.Of(wrong, preview.HostOf(bookworm()), version).Services[0].LeftOut; len(left) != 1 || left[0].ID != 1 {
		t.Errorf("%+v", left)
	}
}

func TestImpact(t *testing.T) {
	for name, test := range map[string]struct {
		edit           func(*checkin.Snapshot)
		nginx, dnsmasq preview.Effect
		files          []string
		words          []string // but for those on the services
	}{
		"nothing": {func(*checkin.Snapshot) {}, "none", "none", nil, nil},
		"only names of the site": {
			func(s *checkin.Snapshot) { s.Site.Name = "renamed" }, "none", "none", nil, nil,
		},
		"a service": {
			func(s *checkin.Snapshot) { s.NGINX.HTTPServices[2].InternalPort = 81 }, "reload", "none",
			[]string{"/etc/nginx/nginx.conf"},
			[]string{"1 host name changed: app2.example.com."},
		},
		"another name": {
			func(s *checkin.Snapshot) { s.NGINX.HTTPServices[2].ExternalHostname = "new" }, "reload", "none",
			[]string{"/etc/nginx/nginx.conf"},
			[]string{"1 host name added: new.example.com.", "1 host name removed: app2.example.com."},
		},
		"a port": {
			func(s *checkin.Snapshot) { s.NGINX.StreamServices[0].ExternalPort = 2202 }, "reload", "none",
			[]string{"/etc/nginx/nginx.conf"},
			[]string{"1 port added: tcp port 2202.", "1 port removed: tcp port 2201."},
		},
		"a reservation": {
			func(s *checkin.Snapshot) { s.Site.Nodes[0].Containers[1].MACAddress = "02:00:00:00:0f:01" }, "none", "reload",
			[]string{"/var/lib/dnsmasq/dhcp-hosts"},
			[]string{"1 DHCP reservation changed: c1."},
		},
		"an address": {
			func(s *checkin.Snapshot) { s.Site.Nodes[0].Containers[1].IPv4Address = "192.0.2.150" }, "none", "reload",
			[]string{"/var/lib/dnsmasq/dhcp-hosts", "/var/lib/dnsmasq/hosts"},
			[]string{"1 DHCP reservation changed: c1."},
		},
		"a container without one": {
			func(s *checkin.Snapshot) { s.Site.Nodes[0].Containers[1].MACAddress = "" }, "none", "reload",
			[]string{"/var/lib/dnsmasq/dhcp-hosts"},
			[]string{"1 DHCP reservation removed: c1."},
		},
		"a record in the main file": {
			func(s *checkin.Snapshot) {
				s.Site.DNSRecords = []checkin.DNSRecord{{ID: 1, Type: "SRV", Name: "_sip._tcp", Target: "c1", Port: 5060}}
			}, "none", "restart",
			[]string{"/etc/dnsmasq.conf"},
			[]string{"1 SRV record added: _sip._tcp to c1."},
		},
		"volumes": {
			func(s *checkin.Snapshot) {
				s.Site.Volumes = []checkin.Volume{{ID: 1, HostPath: "/mnt/v/1", Mode: "rw"}}
			}, "none", "none", nil,
			[]string{"1 volume added: /mnt/v/1."},
		},
		"much goes": {
			func(s *checkin.Snapshot) { s.NGINX.HTTPServices = s.NGINX.HTTPServices[:3] }, "reload", "none",
			[]string{"/etc/nginx/nginx.conf"},
			[]string{
				"Agents hold this back until an administrator confirms it: it removes 7 of 11 services.",
				"7 host names removed: app3.example.com, app4.example.com, app5.example.com, app6.example.com, app7.example.com and 2 more.",
			},
		},
		"much goes, as was confirmed": {
			func(s *checkin.Snapshot) { s.NGINX.HTTPServices, s.RemovalsConfirmed = s.NGINX.HTTPServices[:9], true }, "reload", "none",
			[]string{"/etc/nginx/nginx.conf"},
			[]string{"1 host name removed: app9.example.com."},
		},
		"dnsmasq is managed no more": {
			func(s *checkin.Snapshot) { s.Site.DNSForwarders = "" }, "none", "none", nil, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			after := lab()
			test.edit(&after)
			d := preview.Compare(lab(), after, preview.HostOf(bookworm()), version)
			if d.Impact.NGINX != test.nginx || d.Impact.DNSMasq != test.dnsmasq {
				t.Errorf("nginx %s, dnsmasq %s", d.Impact.NGINX, d.Impact.DNSMasq)
			}
			var files, words []string
			for _, f := range d.Files {
				files = append(files, f.Path)
				if !strings.Contains(f.Diff, "\n@@ ") || strings.Contains(f.Diff, "REVISION") && !strings.Contains(f.Diff, "\n 127") {
					t.Errorf("%s:\n%s", f.Path, f.Diff)
				}
			}
			for _, w := range d.Impact.Words {
				if !strings.Contains(w, "nginx ") && !strings.Contains(w, "nsmasq ") {
					words = append(words, w)
				}
			}
			if diff := cmp.Diff(test.files, files); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(test.words, words); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestComparedWithNothing(t *testing.T) {
	d := preview.Compare(checkin.Bootstrap(), lab(), preview.HostOf(bookworm()), version)
	if d.Impact.DNSMasq != preview.Restart || len(d.Files) != 6 || len(d.Impact.HostNames.Added) != 11 || len(d.Impact.Reservations.Added) != 10 || d.Impact.Guard != nil {
		t.Errorf("%+v", d.Impact)
	}
}
