package render

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"opensource.internal/agent/checkin"
)

// labSnapshot is a site with something of everything.
func labSnapshot() checkin.Snapshot {
	web, db := checkin.Backend{IPv4Address: "192.0.2.101"}, checkin.Backend{IPv4Address: "192.0.2.102"}
	return checkin.Snapshot{
		Site: &checkin.Site{
			ID: 1, Name: "lab", InternalDomain: "lab.internal", DHCPRange: "192.0.2.100,192.0.2.200",
			SubnetMask: "255.255.255.0", Gateway: "192.0.2.1", DNSForwarders: "9.9.9.9,2620:fe::fe",
			Nodes: []checkin.Node{
				{Name: "pve1", IPv4Address: "192.0.2.10", Containers: []checkin.Container{
					{Hostname: "web", IPv4Address: "192.0.2.101", MACAddress: "02:00:00:00:00:01"},
					{Hostname: "db", IPv4Address: "192.0.2.102"},
				}},
				{Name: "pve2", Containers: []checkin.Container{
					{Hostname: "mail", IPv4Address: "192.0.2.103", MACAddress: "02:00:00:00:00:03"},
				}},
			},
			DNSRecords: []checkin.DNSRecord{{ID: 7, Type: "SRV", Name: "_sip._tcp", Target: "web", Port: 5060}},
			Volumes:    []checkin.Volume{},
		},
		NGINX: checkin.NGINX{
			HTTPServices: []checkin.HTTPService{
				{
					ID: 3, InternalPort: 8080, Container: web, ExternalHostname: "app", BackendProtocol: "http",
					ExternalDomain: checkin.HTTPServiceDomain{Name: "example.com"},
				},
				{
					ID: 5, InternalPort: 8443, Container: db, ExternalHostname: "admin.db", BackendProtocol: "https",
					ExternalDomain: checkin.HTTPServiceDomain{Name: "example.org"},
				},
			},
			StreamServices: []checkin.StreamService{
				{ID: 4, InternalPort: 22, Container: web, ExternalPort: 2201, Protocol: "tcp"},
				{ID: 6, InternalPort: 5353, Container: db, ExternalPort: 2201, Protocol: "udp"},
			},
			ExternalDomains: []checkin.ExternalDomain{{Name: "example.com"}, {Name: "example.org"}},
		},
	}
}

// authSnapshot is a site whose services require sign-in.
func authSnapshot() checkin.Snapshot {
	s := labSnapshot()
	s.NGINX.HTTPServices[0].AuthRequired = true
	s.NGINX.HTTPServices[0].ExternalDomain.AuthServer = "http://sso.example.com:4180"
	s.NGINX.HTTPServices[1].AuthRequired = true
	s.NGINX.HTTPServices[1].ExternalDomain.AuthServer = "https://sso.example.org"
	return s
}

// noAuthServerSnapshot requires sign-in where there is nobody to ask.
func noAuthServerSnapshot() checkin.Snapshot {
	s := labSnapshot()
	s.NGINX.HTTPServices[0].AuthRequired = true
	return s
}

// olderSnapshot is what a manager of the earlier generation sends.
func olderSnapshot() checkin.Snapshot {
	s := labSnapshot()
	s.Site.DNSRecords, s.Site.Volumes = nil, nil
	for i := range s.NGINX.HTTPServices {
		s.NGINX.HTTPServices[i].ID = 0
	}
	for i := range s.NGINX.StreamServices {
		s.NGINX.StreamServices[i].ID = 0
	}
	return s
}

// bookworm are the facts of a Debian 12 host with certificates for example.com.
func bookworm() Facts {
	return Facts{
		NGINX:        NGINXFacts{Version: Version{1, 22, 1}, Stream: true},
		IPv6:         true,
		Certificates: map[string]CertificateFact{"example.com": {Digest: strings.Repeat("ab", 32)}},
		Resolvers:    []netip.Addr{netip.MustParseAddr("192.0.2.53"), netip.MustParseAddr("2001:db8::53"), netip.MustParseAddr("fe80::1%eth0")},
		Paths:        DefaultPaths(),
	}
}

// trixie are the facts of a Debian 13 host.
func trixie() Facts {
	f := bookworm()
	f.NGINX = NGINXFacts{Version: Version{1, 26, 3}, Stream: true, HTTP3: true}
	return f
}

// pathsBelow relocates every file below a folder, but for what is read from
// the host, and makes the folders. nginx's workers must be able to enter it.
func pathsBelow(t *testing.T, dir string) Paths {
	t.Helper()
	paths := DefaultPaths()
	for _, p := range paths.all() {
		*p.path = filepath.Join(dir, *p.path)
		if err := os.MkdirAll(filepath.Dir(*p.path), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, folder := range []string{paths.CertDir, paths.KeyDir, paths.ErrorPages, paths.ACMERoot, paths.DNSMasqDir} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return paths
}

// writeFiles writes what was rendered.
func writeFiles(t *testing.T, r Result) {
	t.Helper()
	for _, f := range r.Files {
		if err := os.WriteFile(f.Path, f.Content, f.Mode); err != nil {
			t.Fatal(err)
		}
	}
}
