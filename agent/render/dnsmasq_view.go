package render

import (
	"errors"
	"fmt"
	"net/netip"

	"opensource.internal/agent/checkin"
)

// dnsmasqView is the data of the templates dnsmasq/*.tmpl. Every value in it
// has been parsed.
type dnsmasqView struct {
	*output
	Paths          Paths
	Domain         string
	SentinelDomain string
	Sentinel       string
	Range          checkin.DHCPRange
	Mask           netip.Addr
	Gateway        netip.Addr
	Forwarders     []netip.Addr
	MaxLeases      int
	Hosts          []dnsHost
	Reservations   []reservation
	SRVRecords     []srvRecord

	subnet netip.Prefix
}

func (v *dnsmasqView) writeTo(o *output) { v.output = o }

// dnsHost is the name of a node or a container.
type dnsHost struct {
	Record   Record
	Name     string
	FullName string
	Address  netip.Addr
}

// reservation is an address kept for a network card. FullName may be empty. A
// name without its domain would be ambiguous: dnsmasq reads "ignore", "infinite"
// or "12h" as something else (dnsmasq(8), --dhcp-host).
type reservation struct {
	Record   Record
	MAC      string
	Address  netip.Addr
	FullName string
}

// srvRecord is an SRV record; its names are full ones.
type srvRecord struct {
	Record Record
	Name   string
	Target string
	Port   int
}

// defaultMaxLeases is dnsmasq's own limit (dnsmasq(8), --dhcp-lease-max).
const defaultMaxLeases = 1000

func newDNSMasqView(site checkin.Site, f Facts) (*dnsmasqView, []checkin.QuarantinedItem, error) {
	paths, errPaths := f.Paths.complete()
	network, faults := site.ParseNetwork()
	forwarders, errForwarders := usableForwarders(network.Forwarders, f.IPv6)
	errs := make([]error, 0, len(faults)+2)
	for _, fault := range faults {
		errs = append(errs, fault)
	}
	if len(faults) == 0 {
		errs = append(errs, errForwarders)
	}
	if err := errors.Join(append(errs, errPaths)...); err != nil {
		return nil, nil, err
	}
	v := &dnsmasqView{
		Paths:          paths,
		Domain:         network.InternalDomain,
		SentinelDomain: sentinelDomain,
		Sentinel:       DNSMasqSentinel(blankRevision),
		Range:          network.Range,
		Mask:           network.Mask,
		Gateway:        network.Gateway,
		Forwarders:     forwarders,
		subnet:         network.Subnet,
	}
	var left leftOut
	containers := v.addHosts(site.Nodes, &left)
	v.addReservations(site.Nodes, containers, &left)
	v.addSRVRecords(site.DNSRecords, containers, &left)
	v.MaxLeases = max(defaultMaxLeases, v.Range.Size()+len(v.Reservations))
	return v, left, nil
}

// usableForwarders leaves out servers that this host has no protocol for:
// dnsmasq would not start.
func usableForwarders(all []netip.Addr, ipv6 bool) ([]netip.Addr, error) {
	var usable []netip.Addr
	for _, addr := range all {
		if addr.Is4() || ipv6 {
			usable = append(usable, addr)
		}
	}
	if len(usable) == 0 {
		return nil, checkin.NetworkField{Field: "dnsForwarders", Err: errors.New("all are IPv6 addresses, and this host has no IPv6")}
	}
	return usable, nil
}

// addHosts adds the names of all nodes and containers. It returns the
// addresses of the containers, by name.
func (v *dnsmasqView) addHosts(nodes []checkin.Node, left *leftOut) map[string]netip.Addr {
	containers := map[string]netip.Addr{}
	names := claims[string]{"localhost": "this host"}
	for _, node := range nodes {
		if node.IPv4Address != "" {
			v.addHost("node", "name", node.Name, string(node.IPv4Address), names, left)
		}
		for _, c := range node.Containers {
			if host, ok := v.addHost("container", "hostname", c.Hostname, c.IPv4Address, names, left); ok {
				containers[host.Name] = host.Address
			}
		}
	}
	return containers
}

func (v *dnsmasqView) addHost(what, nameField, rawName, rawAddress string, names claims[string], left *leftOut) (dnsHost, bool) {
	record := Record{Kind: checkin.KindHost, Name: shown(rawName)}
	name, errName := checkin.ParseLabel(rawName)
	address, errAddress := checkin.ParseHostIPv4(rawAddress)
	err := errors.Join(field(nameField, errName), field("ipv4Address", errAddress))
	fullName := ""
	if err == nil {
		record.Name = name
		fullName, err = checkin.ParseDomain(name + "." + v.Domain)
		err = field(nameField, err)
	}
	if err == nil {
		err = names.claim(name, "name", fmt.Sprintf("%s %s (%s)", what, name, address))
	}
	if !left.keep(record, err) {
		return dnsHost{}, false
	}
	host := dnsHost{Record: record, Name: name, FullName: fullName, Address: address}
	v.Hosts = append(v.Hosts, host)
	return host, true
}

// addReservations adds the addresses of all containers with a MAC address. Two
// for one address or one card would make dnsmasq refuse the file.
func (v *dnsmasqView) addReservations(nodes []checkin.Node, containers map[string]netip.Addr, left *leftOut) {
	addresses, cards := claims[netip.Addr]{}, claims[string]{}
	for _, node := range nodes {
		for _, c := range node.Containers {
			if c.MACAddress == "" {
				continue
			}
			record := Record{Kind: checkin.KindReservation, Name: shown(c.Hostname)}
			r, err := v.parseReservation(c, containers)
			if err == nil {
				owner := fmt.Sprintf("container %s (%s, %s)", record.Name, r.MAC, r.Address)
				err = errors.Join(addresses.check(r.Address, "address", owner), cards.check(r.MAC, "MAC address", owner))
				if err == nil {
					addresses[r.Address], cards[r.MAC] = owner, owner
				}
			}
			if left.keep(record, err) {
				r.Record = record
				v.Reservations = append(v.Reservations, r)
			}
		}
	}
}

func (v *dnsmasqView) parseReservation(c checkin.Container, containers map[string]netip.Addr) (reservation, error) {
	mac, errMAC := checkin.ParseMAC(string(c.MACAddress))
	address, errAddress := checkin.ParseHostIPv4(c.IPv4Address)
	if errAddress == nil && !checkin.HostOf(v.subnet, address) {
		errAddress = fmt.Errorf("%s is not a host address of %s, the subnet of dhcpRange: DHCP cannot hand it out", address, v.subnet)
	}
	if err := errors.Join(field("macAddress", errMAC), field("ipv4Address", errAddress)); err != nil {
		return reservation{}, err
	}
	// A name that is not this container's was left out as a host already.
	r := reservation{MAC: mac, Address: address}
	if name, err := checkin.ParseLabel(c.Hostname); err == nil && containers[name] == address {
		r.FullName = name + "." + v.Domain
	}
	return r, nil
}

func (v *dnsmasqView) addSRVRecords(records []checkin.DNSRecord, containers map[string]netip.Addr, left *leftOut) {
	known := claims[srvRecord]{}
	for _, r := range records {
		record := Record{Kind: checkin.KindSRV, ID: r.ID, Name: shown(r.Name)}
		srv, err := v.parseSRVRecord(r, containers)
		if err == nil {
			if _, twice := known[srv]; twice {
				err = fmt.Errorf("the record is there twice: %s to port %d of %s", srv.Name, srv.Port, srv.Target)
			}
			known[srv] = record.Name
		}
		if !left.keep(record, err) {
			continue
		}
		srv.Record = record
		v.SRVRecords = append(v.SRVRecords, srv)
	}
}

func (v *dnsmasqView) parseSRVRecord(r checkin.DNSRecord, containers map[string]netip.Addr) (srvRecord, error) {
	var errType, errTarget error
	if r.Type != "SRV" {
		errType = fmt.Errorf("%s is not a record type that is managed: SRV", shown(r.Type))
	}
	name, errName := checkin.ParseServiceName(r.Name)
	if errName == nil {
		name, errName = checkin.ParseServiceName(name + "." + v.Domain)
	}
	target, errTarget := checkin.ParseLabel(r.Target)
	if errTarget == nil && !containers[target].IsValid() {
		errTarget = fmt.Errorf("%s is no container of the site with a name and an address", target)
	}
	if err := errors.Join(
		field("type", errType), field("name", errName), field("target", errTarget),
		field("port", checkin.CheckPort(r.Port)),
	); err != nil {
		return srvRecord{}, err
	}
	return srvRecord{Name: name, Target: target + "." + v.Domain, Port: r.Port}, nil
}
