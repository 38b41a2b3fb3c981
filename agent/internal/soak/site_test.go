package soak

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"opensource.internal/agent/checkin"
)

// site is what its operators have entered so far.
type site struct {
	apps    map[string]int // label of a host name to number of a container
	ports   map[socket]int // the same for ports
	cards   map[int]bool   // containers, and whether their network card is known
	srv     map[string]int // label of an SRV record to number of a container
	volumes map[int]bool   // number to whether it lies on the volumes root
	odd     map[string]bool
	network int  // one of networks
	base    bool // with so many records that a few odd ones do not outweigh the rest
	huge    bool // with hundreds of further records
	// confirmed is true if the removals of the next snapshot are meant.
	confirmed bool
}

// networks are settings of the site. The last one is not complete: dnsmasq is
// left alone then.
var networks = []checkin.Site{
	{InternalDomain: "lab.internal", DHCPRange: "192.0.2.200,192.0.2.220", SubnetMask: "255.255.255.0", Gateway: "192.0.2.1", DNSForwarders: "192.0.2.9"},
	{InternalDomain: "lab.internal", DHCPRange: "192.0.2.200,192.0.2.230", SubnetMask: "255.255.255.0", Gateway: "192.0.2.1", DNSForwarders: "192.0.2.9"},
	{InternalDomain: "other.internal", DHCPRange: "192.0.2.200,192.0.2.220", SubnetMask: "255.255.255.0", Gateway: "192.0.2.2", DNSForwarders: "192.0.2.9,192.0.2.8"},
	{InternalDomain: "lab.internal", DHCPRange: "192.0.2.200,192.0.2.220", SubnetMask: "255.255.255.0"},
}

const incomplete = 3

// What the operators can enter, by number or by name.
var (
	containerNumbers = []int{0, 1, 2, 3, 4, 5}
	appLabels        = []string{"app0", "app1", "app2", "app3", "app4", "app5"}
	sockets          = []socket{anchor, "tcp/2201", "tcp/2202", "tcp/2203", "udp/2204", "udp/2201"}
	srvLabels        = []string{"_sip._tcp", "_ldap._tcp"}
	volumeNumbers    = []int{1, 2}
	// Records that are refused: by the agent itself, or by nginx or dnsmasq as
	// long as templates of ours write something odd for them.
	oddRecords = []string{oddValue, oddDirective, oddCertificate, oddBrace, oddPort, oddCard, oddName, oddSRV}
)

// anchor is the port that is there whenever there are services at all.
const anchor = "tcp/2200"

const (
	oddValue       = "odd-value"       // a host name whose container has no real address
	oddDirective   = "odd-directive"   // a host name: nginx names its line
	oddCertificate = "odd-certificate" // a host name: nginx names no line
	oddBrace       = "odd-brace"       // a host name: nginx is confused further down
	oddPort        = "tcp/4000"        // a port
	oddCard        = "odd-card"        // a container whose reservation is refused
	oddName        = "odd-name"        // a container whose name is refused
	oddSRV         = "_odd._tcp"       // an SRV record
)

func firstSite() *site {
	return &site{
		apps: map[string]int{"app0": 0, "app1": 1}, ports: map[socket]int{anchor: 0, "tcp/2201": 1},
		cards: map[int]bool{0: true, 1: true, 2: false}, srv: map[string]int{"_sip._tcp": 0}, volumes: map[int]bool{1: true},
		odd: map[string]bool{}, base: true,
	}
}

// clear removes all that is inside the site.
func (s *site) clear() {
	for _, clear := range []func(){
		func() { clear(s.apps) }, func() { clear(s.ports) }, func() { clear(s.cards) },
		func() { clear(s.srv) }, func() { clear(s.volumes) }, func() { clear(s.odd) },
	} {
		clear()
	}
	s.base, s.huge = false, false
}

func address(container int) string { return fmt.Sprintf("192.0.2.%d", 100+container) }
func card(container int) string    { return fmt.Sprintf("02:00:00:00:00:%02x", container) }

// oddContainer is the number of the container of odd records.
const oddContainer = 90

// snapshot is what a manager publishes for the site.
func (s *site) snapshot() checkin.Snapshot {
	published := networks[s.network]
	published.ID, published.Name = 1, "soak"
	published.Nodes = []checkin.Node{{Name: "pve1", IPv4Address: "192.0.2.10", Containers: s.containers()}}
	published.DNSRecords = []checkin.DNSRecord{}
	for _, label := range slices.Sorted(maps.Keys(s.srv)) {
		if _, there := s.cards[s.srv[label]]; there {
			published.DNSRecords = append(published.DNSRecords, srvRecord(label, s.srv[label]))
		}
	}
	if s.odd[oddSRV] && len(published.DNSRecords) > 0 {
		record := published.DNSRecords[0]
		record.ID, record.Name = 900, oddSRV
		published.DNSRecords = append(published.DNSRecords, record)
	}
	published.Volumes = []checkin.Volume{}
	for _, number := range slices.Sorted(maps.Keys(s.volumes)) {
		root := volumesRoot
		if !s.volumes[number] {
			root = "/opt/not-a-mount"
		}
		published.Volumes = append(published.Volumes, checkin.Volume{
			ID: int64(number), HostPath: fmt.Sprintf("%s/v%d", root, number), Mode: "rw", UID: 1000, GID: 1000,
		})
	}
	return checkin.Snapshot{Site: &published, RemovalsConfirmed: s.confirmed, NGINX: checkin.NGINX{
		HTTPServices: s.httpServices(), StreamServices: s.streamServices(), ExternalDomains: []checkin.ExternalDomain{{Name: domains[0]}, {Name: domains[1]}},
	}}
}

func srvRecord(label string, container int) checkin.DNSRecord {
	return checkin.DNSRecord{ID: int64(container + 1), Type: "SRV", Name: label, Target: fmt.Sprintf("c%d", container), Port: 5000 + container}
}

var domains = []string{"example.com", "example.net"}

func (s *site) containers() []checkin.Container {
	containers := []checkin.Container{}
	add := func(name string, number int, known bool) {
		container := checkin.Container{Hostname: name, IPv4Address: address(number)}
		if known {
			container.MACAddress = checkin.Text(card(number))
		}
		containers = append(containers, container)
	}
	for _, number := range slices.Sorted(maps.Keys(s.cards)) {
		add(fmt.Sprintf("c%d", number), number, s.cards[number])
	}
	if s.odd[oddCard] {
		add(oddCard, oddContainer, true)
	}
	if s.odd[oddName] {
		add(oddName, oddContainer+1, false)
	}
	for i := range s.more().containers {
		add(fmt.Sprintf("h%d", i), 20+i, true)
	}
	return containers
}

func (s *site) httpServices() []checkin.HTTPService {
	services := []checkin.HTTPService{}
	add := func(id int, label, address, domain string) {
		services = append(services, checkin.HTTPService{
			ID: int64(id), InternalPort: webPort, Container: checkin.Backend{IPv4Address: address}, ExternalHostname: label,
			BackendProtocol: "http", ExternalDomain: checkin.HTTPServiceDomain{Name: domain},
		})
	}
	for i, label := range appLabels {
		if container, there := s.apps[label]; there {
			add(i+1, label, address(container), domains[i%2])
		}
	}
	if s.odd[oddValue] {
		add(50, oddValue, "192.0.2.999", domains[0])
	}
	for i, label := range []string{oddDirective, oddCertificate, oddBrace} {
		if s.odd[label] {
			add(60+i, label, address(oddContainer), domains[0])
		}
	}
	for i := range s.more().names {
		add(1000+i, fmt.Sprintf("h%d", i), address(20+i%60), domains[0])
	}
	return services
}

// more is what there is besides: records that change only all at once. A host
// name costs nginx a hundred times what a port does.
func (s *site) more() (m struct{ containers, names, ports int }) {
	if s.base {
		m.containers, m.names = 6, 18
	}
	if s.huge {
		m.containers, m.names, m.ports = 60, 60, 120
	}
	return m
}

func (s *site) streamServices() []checkin.StreamService {
	services := []checkin.StreamService{}
	add := func(id int, name socket, container int) {
		protocol, _, _ := strings.Cut(name, "/")
		services = append(services, checkin.StreamService{
			ID: int64(id), InternalPort: textPort, Container: checkin.Backend{IPv4Address: address(container)}, ExternalPort: portOf(name), Protocol: protocol,
		})
	}
	for i, name := range sockets {
		if container, there := s.ports[name]; there {
			add(500+i, name, container)
		}
	}
	if s.odd[oddPort] {
		add(600, oddPort, oddContainer)
	}
	for i := range s.more().ports {
		add(2000+i, fmt.Sprintf("tcp/%d", 3100+i), 20+i%60)
	}
	return services
}

func portOf(name socket) int {
	var port int
	_, number, _ := strings.Cut(name, "/")
	_, _ = fmt.Sscan(number, &port)
	return port
}
