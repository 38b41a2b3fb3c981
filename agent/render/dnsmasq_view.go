package render

import (
	"errors"
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

	subnet     netip.Prefix
	holders    holders
	containers map[string]netip.Addr // the address of each container that has a name
	inForce    siteInForce
}

func (v *dnsmasqView) writeTo(o *output) { v.output = o }

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
		holders:        holdersOf(&site),
	}
	left := newLeftOut(f)
	v.inForce = newSiteInForce(site)
	v.addHosts(site.Nodes, f, left)
	v.addReservations(site.Nodes, f, left)
	v.addSRVRecords(site.DNSRecords, f, left)
	return v, left.items, nil
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
