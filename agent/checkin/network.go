package checkin

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"strings"
)

// ParseNetmask checks a contiguous IPv4 netmask in dotted form that leaves
// room for hosts (/1 to /30). It returns the prefix length.
func ParseNetmask(s string) (bits int, err error) {
	addr, err := ParseIPv4(s)
	if err != nil {
		return 0, fmt.Errorf("%s is not a netmask such as 255.255.255.0", quoted(s))
	}
	b := addr.As4()
	ones, size := net.IPv4Mask(b[0], b[1], b[2], b[3]).Size()
	if size == 0 || ones < 1 || ones > 30 {
		return 0, fmt.Errorf("%s is not a contiguous netmask from 128.0.0.0 to 255.255.255.252", quoted(s))
	}
	return ones, nil
}

// DHCPRange is an inclusive range of addresses handed out by DHCP.
type DHCPRange struct{ Start, End netip.Addr }

// Size returns the number of addresses in the range.
func (r DHCPRange) Size() int {
	start, end := r.Start.As4(), r.End.As4()
	return int(binary.BigEndian.Uint32(end[:])-binary.BigEndian.Uint32(start[:])) + 1
}

// Contains reports whether addr lies in the range.
func (r DHCPRange) Contains(addr netip.Addr) bool {
	return r.Start.Compare(addr) <= 0 && addr.Compare(r.End) <= 0
}

// ParseDHCPRange checks "START,END": two IPv4 addresses in ascending order.
func ParseDHCPRange(s string) (DHCPRange, error) {
	first, last, found := strings.Cut(s, ",")
	start, errStart := ParseHostIPv4(first)
	end, errEnd := ParseHostIPv4(last)
	if !found || errStart != nil || errEnd != nil {
		return DHCPRange{}, fmt.Errorf("%s is not a range such as 192.0.2.100,192.0.2.200", quoted(s))
	}
	if end.Less(start) {
		return DHCPRange{}, fmt.Errorf("%s is not a range: its end lies before its start", quoted(s))
	}
	return DHCPRange{Start: start, End: end}, nil
}

// Network is a site's network settings after parsing, known to fit together.
type Network struct {
	InternalDomain string
	Range          DHCPRange
	Mask           netip.Addr
	Subnet         netip.Prefix
	Gateway        netip.Addr
	Forwarders     []netip.Addr
}

// NetworkField is an error of one of a site's five network fields.
type NetworkField struct {
	Field string // the JSON name
	Err   error
}

func (e NetworkField) Error() string { return "site." + e.Field + ": " + e.Err.Error() }

func (e NetworkField) Unwrap() error { return e.Err }

// MissingNetworkFields names the network fields that are not set. DHCP and DNS
// are managed only when all five are.
func (s Site) MissingNetworkFields() []string {
	var missing []string
	for _, f := range s.networkFields() {
		if f.value == "" {
			missing = append(missing, f.name)
		}
	}
	return missing
}

// HasNetwork reports whether any network field is set.
func (s Site) HasNetwork() bool { return len(s.MissingNetworkFields()) < len(s.networkFields()) }

type networkField struct {
	name  string
	value Text
}

func (s Site) networkFields() []networkField {
	return []networkField{
		{"internalDomain", s.InternalDomain},
		{"dhcpRange", s.DHCPRange},
		{"subnetMask", s.SubnetMask},
		{"gateway", s.Gateway},
		{"dnsForwarders", s.DNSForwarders},
	}
}

// ParseNetwork parses the network fields that are set and checks that they fit
// together: gateway and range lie in one subnet, the gateway outside the
// range, and neither on the subnet's first or last address. Every fault is a
// NetworkField. The result is complete only if no field is missing.
func (s Site) ParseNetwork() (Network, []NetworkField) {
	var n Network
	var faults []NetworkField
	fault := func(field string, err error) { faults = append(faults, NetworkField{field, err}) }
	parse := func(field string, value Text, into func(string) error) bool {
		if value == "" {
			return false
		}
		if err := into(string(value)); err != nil {
			fault(field, err)
			return false
		}
		return true
	}

	parse("internalDomain", s.InternalDomain, func(v string) (err error) {
		n.InternalDomain, err = ParseDomain(v)
		return err
	})
	parse("dnsForwarders", s.DNSForwarders, func(v string) (err error) {
		n.Forwarders, err = ParseForwarders(v)
		return err
	})
	bits := 0
	hasMask := parse("subnetMask", s.SubnetMask, func(v string) (err error) {
		bits, err = ParseNetmask(v)
		n.Mask, _ = netip.ParseAddr(v)
		return err
	})
	hasRange := parse("dhcpRange", s.DHCPRange, func(v string) (err error) {
		n.Range, err = ParseDHCPRange(v)
		return err
	})
	hasGateway := parse("gateway", s.Gateway, func(v string) (err error) {
		n.Gateway, err = ParseHostIPv4(v)
		return err
	})

	if hasRange && hasGateway && n.Range.Contains(n.Gateway) {
		fault("dhcpRange", fmt.Errorf("%s contains the gateway %s", quoted(string(s.DHCPRange)), n.Gateway))
	}
	if hasMask && hasRange {
		n.Subnet = netip.PrefixFrom(n.Range.Start, bits).Masked()
		for _, end := range []netip.Addr{n.Range.Start, n.Range.End} {
			if !HostOf(n.Subnet, end) {
				fault("dhcpRange", fmt.Errorf("%s is not a host address of %s", end, n.Subnet))
			}
		}
		if hasGateway && !HostOf(n.Subnet, n.Gateway) {
			fault("gateway", fmt.Errorf("%s is not a host address of %s, the subnet of dhcpRange", n.Gateway, n.Subnet))
		}
	}
	return n, faults
}

// HostOf reports whether addr is a host address of the subnet: inside it and
// neither its network nor its broadcast address.
func HostOf(subnet netip.Prefix, addr netip.Addr) bool {
	if !subnet.Contains(addr) || addr == subnet.Addr() {
		return false
	}
	b := addr.As4()
	host := binary.BigEndian.Uint32(b[:]) | ^uint32(0)<<(32-subnet.Bits())
	return host != ^uint32(0)
}

// ParseForwarders checks a comma-separated list of 1 to 8 DNS server addresses
// (IPv4 or IPv6, no zone).
func ParseForwarders(s string) ([]netip.Addr, error) {
	var forwarders []netip.Addr
	for part := range strings.SplitSeq(s, ",") {
		addr, err := netip.ParseAddr(strings.TrimSpace(part))
		if err != nil || addr.Zone() != "" || addr.IsUnspecified() || addr.IsMulticast() {
			return nil, fmt.Errorf("%s is not a list of DNS servers such as 9.9.9.9,1.1.1.1", quoted(s))
		}
		forwarders = append(forwarders, addr)
	}
	if len(forwarders) > 8 {
		return nil, fmt.Errorf("%s names more than 8 DNS servers", quoted(s))
	}
	return forwarders, nil
}
