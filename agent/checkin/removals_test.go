package checkin

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// guardedSite has n HTTP services, n forwarded ports and n reservations.
func guardedSite(n int) Snapshot {
	s := Bootstrap()
	node := Node{Name: "pve1"}
	for i := range n {
		id, address := int64(i+1), fmt.Sprintf("192.0.2.%d", 10+i)
		s.NGINX.HTTPServices = append(s.NGINX.HTTPServices, HTTPService{
			ID: id, Container: Backend{IPv4Address: address}, ExternalHostname: fmt.Sprintf("app%d", i), ExternalDomain: HTTPServiceDomain{Name: "example.com"},
		})
		s.NGINX.StreamServices = append(s.NGINX.StreamServices, StreamService{ID: id, Container: Backend{IPv4Address: address}, Protocol: "tcp", ExternalPort: 2000 + i})
		node.Containers = append(node.Containers, Container{
			Hostname: fmt.Sprintf("c%d", i), IPv4Address: address, MACAddress: Text(fmt.Sprintf("02:00:00:00:00:%02d", i)),
		})
	}
	s.Site = &Site{
		ID: 1, InternalDomain: "lab.internal", DHCPRange: "192.0.2.100,192.0.2.200", SubnetMask: "255.255.255.0",
		Gateway: "192.0.2.1", DNSForwarders: "9.9.9.9", Nodes: []Node{node},
	}
	return s
}

func TestRemoved(t *testing.T) {
	for _, test := range []struct {
		name         string
		change       func(*Snapshot)
		services     []string
		reservations []string
		none         bool // reservations are not managed afterwards
	}{
		{name: "nothing", change: func(*Snapshot) {}},
		{name: "a service and a port", change: func(s *Snapshot) {
			s.NGINX.HTTPServices, s.NGINX.StreamServices = s.NGINX.HTTPServices[1:], s.NGINX.StreamServices[:2]
		}, services: []string{"app0.example.com", "tcp port 2002"}},
		{name: "renamed", change: func(s *Snapshot) {
			s.NGINX.HTTPServices[0].ExternalHostname, s.NGINX.StreamServices[0].ExternalPort = "new", 2999
			s.Site.Nodes[0].Containers[0].Hostname = "new"
			s.Site.Nodes[0].Containers[1].MACAddress = "02:00:00:00:00:99"
		}},
		{name: "numbered anew, in other letters", change: func(s *Snapshot) {
			for i := range s.NGINX.HTTPServices {
				s.NGINX.HTTPServices[i].ID, s.NGINX.StreamServices[i].ID = 0, int64(100+i)
			}
			s.NGINX.HTTPServices[0].ExternalHostname = "APP0"
			s.Site.Nodes[0].Containers[0].Hostname = "C0"
		}},
		{name: "moved to other addresses", change: func(s *Snapshot) {
			for i := range s.NGINX.HTTPServices {
				s.NGINX.HTTPServices[i].Container.IPv4Address = "198.51.100.1"
				s.NGINX.StreamServices[i].Container.IPv4Address = "198.51.100.1"
				s.Site.Nodes[0].Containers[i].IPv4Address = fmt.Sprintf("198.51.100.%d", i)
			}
		}},
		{name: "the numbers of other records, as of another manager", change: func(s *Snapshot) {
			for i := range s.NGINX.HTTPServices {
				s.NGINX.HTTPServices[i].ExternalHostname, s.NGINX.HTTPServices[i].Container.IPv4Address = fmt.Sprintf("other%d", i), "198.51.100.1"
			}
			s.NGINX.StreamServices[2].ExternalPort, s.NGINX.StreamServices[2].Container.IPv4Address = 2999, "198.51.100.1"
		}, services: []string{"app0.example.com", "app1.example.com", "app2.example.com", "tcp port 2002"}},
		{
			name: "one id for two kinds", change: func(s *Snapshot) { s.NGINX.HTTPServices = nil },
			services: []string{"app0.example.com", "app1.example.com", "app2.example.com"},
		},
		{name: "a container, and the address of another", change: func(s *Snapshot) {
			s.Site.Nodes[0].Containers = s.Site.Nodes[0].Containers[:2]
			s.Site.Nodes[0].Containers[1].MACAddress = ""
		}, reservations: []string{"c1", "c2"}},
		{name: "moved to another node", change: func(s *Snapshot) {
			s.Site.Nodes = append(s.Site.Nodes, Node{Name: "pve2", Containers: s.Site.Nodes[0].Containers})
			s.Site.Nodes[0].Containers = nil
		}},
		{name: "dnsmasq is not managed any more", change: func(s *Snapshot) { s.Site.Gateway, s.Site.Nodes = "", nil }, none: true},
		{name: "no site", change: func(s *Snapshot) { s.Site = nil }, none: true},
	} {
		before, after := guardedSite(3), guardedSite(3)
		test.change(&after)
		services, ofServices := Removed(GuardServices, before, after)
		reservations, ofReservations := Removed(GuardReservations, before, after)
		wantTotal := 3
		if test.none {
			wantTotal = 0
		}
		if diff := cmp.Diff(test.services, services); diff != "" || ofServices != 6 {
			t.Errorf("%s: services, of %d:\n%s", test.name, ofServices, diff)
		}
		if diff := cmp.Diff(test.reservations, reservations); diff != "" || ofReservations != wantTotal {
			t.Errorf("%s: reservations, of %d:\n%s", test.name, ofReservations, diff)
		}
	}
}
