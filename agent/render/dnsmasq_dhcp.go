package render

import (
	"errors"
	"fmt"
	"net/netip"

	"opensource.internal/agent/checkin"
)

// reservation is an address kept for a network card. FullName may be empty. A
// name without its domain would be ambiguous: dnsmasq reads "ignore", "infinite"
// or "12h" as something else (dnsmasq(8), --dhcp-host).
type reservation struct {
	Record   Record
	MAC      string
	Address  netip.Addr
	FullName string
	position
}

// leases are what there is only one of: addresses and network cards.
type leases struct {
	addresses claims[netip.Addr]
	cards     claims[string]
}

// claim takes address and card of a reservation. Two for one address or one
// card would make dnsmasq refuse the file. What own has is the reservation's
// already.
func (l leases) claim(name string, r, own reservation) error {
	owner := fmt.Sprintf("container %s (%s, %s)", name, r.MAC, r.Address)
	var errAddress, errCard error
	if r.Address != own.Address {
		errAddress = l.addresses.check(r.Address, "address", owner)
	}
	if r.MAC != own.MAC {
		errCard = l.cards.check(r.MAC, "MAC address", owner)
	}
	if err := errors.Join(errAddress, errCard); err != nil {
		return err
	}
	l.addresses[r.Address], l.cards[r.MAC] = owner, owner
	return nil
}

// addReservations adds the addresses of all containers with a MAC address.
func (v *dnsmasqView) addReservations(nodes []checkin.Node, f Facts, left *leftOut) {
	taken := leases{claims[netip.Addr]{}, claims[string]{}}
	before := versions(containersOf(f.before().Site), recordOfReservation)
	wanted := 0
	for i, node := range nodes {
		for j, c := range node.Containers {
			if c.MACAddress == "" {
				left.seen[recordOfReservation(c).Key()]++ // whoever has the name
				continue
			}
			wanted++
			added := &v.inForce.containers[i][j]
			v.addReservation(c, position(wanted), before, taken, left, func(c checkin.Container) { added.reservation = &c })
		}
	}
	left.keepPrevious()
	inOrder(v.Reservations)
	// Those left out count, or the main file would change and dnsmasq restart.
	v.MaxLeases = max(defaultMaxLeases, v.Range.Size()+wanted)
}

// addReservation adds that of a container, or what before has for it, and has
// added note of which container it is.
func (v *dnsmasqView) addReservation(wanted checkin.Container, at position, before map[Record]checkin.Container, taken leases, left *leftOut, added func(checkin.Container)) {
	record := recordOfReservation(wanted)
	add := func(c checkin.Container, r reservation) {
		r.Record, r.position = record, at
		v.Reservations = append(v.Reservations, r)
		added(c)
	}
	own, err := v.parseReservation(wanted)
	if err == nil {
		err = taken.claim(record.Name, own, reservation{})
	}
	if err != nil {
		own = reservation{}
	}
	previous := func() bool {
		version, found := before[record.Key()]
		if !found || version.MACAddress == "" || version == wanted {
			return false
		}
		r, err := v.parseReservation(version)
		if address, named := v.containers[record.Name]; named && address != r.Address || v.holders.another(r.Address, record.Name) {
			return false // DNS has another address for this container, or this one for another
		}
		if err == nil {
			err = taken.claim(record.Name, r, own)
		}
		if err == nil {
			add(version, r)
		}
		return err == nil
	}
	if left.keep(record, err, previous) {
		add(wanted, own)
	}
}

func (v *dnsmasqView) parseReservation(c checkin.Container) (reservation, error) {
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
	if name, err := checkin.ParseLabel(c.Hostname); err == nil && v.containers[name] == address {
		r.FullName = name + "." + v.Domain
	}
	return r, nil
}

func recordOfReservation(c checkin.Container) Record {
	return Record{Kind: checkin.KindReservation, Name: shownLabel(c.Hostname)}
}

// containersOf returns all containers of a site.
func containersOf(site *checkin.Site) []checkin.Container {
	if site == nil {
		return nil
	}
	var all []checkin.Container
	for _, node := range site.Nodes {
		all = append(all, node.Containers...)
	}
	return all
}
