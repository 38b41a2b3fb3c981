package render

import (
	"errors"
	"fmt"
	"net/netip"

	"opensource.internal/agent/checkin"
)

// dnsHost is the name of a node or a container.
type dnsHost struct {
	Record   Record
	Name     string
	FullName string
	Address  netip.Addr
	position
}

// named is a node or a container as it came.
type named struct{ what, field, name, address string }

func nodeNamed(n checkin.Node) named {
	return named{"node", "name", n.Name, string(n.IPv4Address)}
}

func containerNamed(c checkin.Container) named {
	return named{"container", "hostname", c.Hostname, c.IPv4Address}
}

func (n named) record() Record { return Record{Kind: checkin.KindHost, Name: shownLabel(n.name)} }

// addHosts adds the names of all nodes and containers.
func (v *dnsmasqView) addHosts(nodes []checkin.Node, f Facts, left *leftOut) {
	v.containers = map[string]netip.Addr{}
	names := claims[string]{"localhost": "this host"}
	before := versions(hostsOf(f.before().Site), named.record)
	at := position(0)
	for i, node := range nodes {
		if node.IPv4Address != "" {
			at++
			v.addHost(nodeNamed(node), at, before, names, left, func(address string, _ dnsHost) {
				v.inForce.nodes[i] = checkin.Text(address)
			})
		}
		for j, c := range node.Containers {
			// DHCP gives the wanted address: another one must not be in DNS.
			before := before
			if _, err := checkin.ParseHostIPv4(c.IPv4Address); err == nil && c.MACAddress != "" {
				before = nil
			}
			at++
			v.addHost(containerNamed(c), at, before, names, left, func(address string, host dnsHost) {
				v.containers[host.Name] = host.Address
				v.inForce.containers[i][j].address = address
			})
		}
	}
	left.keepPrevious()
	inOrder(v.Hosts)
}

// addHost adds a name, or what before has for it, and has added note with which
// address.
func (v *dnsmasqView) addHost(wanted named, at position, before map[Record]named, names claims[string], left *leftOut, added func(string, dnsHost)) {
	record := wanted.record()
	add := func(n named, host dnsHost) {
		host.Record, host.position = record, at
		v.Hosts = append(v.Hosts, host)
		added(n.address, host)
	}
	host, err := v.parseHost(wanted)
	if err == nil {
		err = names.claim(host.Name, "name", describeHost(wanted, host))
	}
	claimed := err == nil
	previous := func() bool {
		version, found := before[record.Key()]
		if !found || version.what != wanted.what || version.address == wanted.address {
			return false
		}
		host, err := v.parseHost(version)
		if err == nil && v.holders.another(host.Address, record.Name) {
			return false
		}
		if err == nil && !claimed {
			err = names.claim(host.Name, "name", describeHost(version, host))
		}
		if err == nil {
			add(version, host)
		}
		return err == nil
	}
	if left.keep(record, err, previous) {
		add(wanted, host)
	}
}

func (v *dnsmasqView) parseHost(n named) (dnsHost, error) {
	name, errName := checkin.ParseLabel(n.name)
	address, errAddress := checkin.ParseHostIPv4(n.address)
	if err := errors.Join(field(n.field, errName), field("ipv4Address", errAddress)); err != nil {
		return dnsHost{}, err
	}
	fullName, err := checkin.ParseDomain(name + "." + v.Domain)
	if err != nil {
		return dnsHost{}, field(n.field, err)
	}
	return dnsHost{Name: name, FullName: fullName, Address: address}, nil
}

func describeHost(n named, host dnsHost) string {
	return fmt.Sprintf("%s %s (%s)", n.what, host.Name, host.Address)
}

// shownLabel is the name of a node or a container, as it names a record.
func shownLabel(name string) string {
	if label, err := checkin.ParseLabel(name); err == nil {
		return label
	}
	return shown(name)
}

// hostsOf returns all nodes and containers of a site that have an address.
func hostsOf(site *checkin.Site) []named {
	if site == nil {
		return nil
	}
	var all []named
	for _, node := range site.Nodes {
		if node.IPv4Address != "" {
			all = append(all, nodeNamed(node))
		}
		for _, c := range node.Containers {
			all = append(all, containerNamed(c))
		}
	}
	return all
}
