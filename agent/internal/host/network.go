package host

import (
	"net"
	"net/netip"
	"strings"

	"golang.org/x/sys/unix"

	"opensource.internal/agent/checkin"
)

// probeNetwork finds out what decides about listeners and names.
func (f *Facts) probeNetwork(in Inputs) {
	f.Host.IPv6 = ipv6Works()
	content, _, err := readFile(Path(in.Root, "/etc/resolv.conf"), maxSmallFile)
	if err != nil && !isMissing(err) {
		f.warn("read name servers", err)
	}
	f.Resolvers = parseResolvers(string(content), f.Host.IPv6)
	f.IPv4 = primaryIPv4()
}

// ipv6Works tells whether nginx can listen on [::]: the kernel may lack IPv6
// (ipv6.disable=1), it may be switched off by sysctl, or be denied.
func ipv6Works() bool {
	off, _, err := readFile("/proc/sys/net/ipv6/conf/all/disable_ipv6", maxSmallFile)
	if err == nil && strings.TrimSpace(string(off)) != "0" {
		return false
	}
	socket, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(socket)
	return unix.Bind(socket, &unix.SockaddrInet6{}) == nil // [::] and any free port; nothing listens
}

// maxResolvers is how many name servers resolv.conf(5) takes.
const maxResolvers = 3

// parseResolvers reads the name servers of resolv.conf(5). Local ones (the
// stub of systemd-resolved, our own dnsmasq) are as good as others. Addresses
// with a zone are left out, since nginx knows none, and IPv6 addresses where
// there is no IPv6. Without any the resolver library asks the local machine,
// and so shall nginx.
func parseResolvers(content string, ipv6 bool) []netip.Addr {
	var resolvers []netip.Addr
	for line := range strings.Lines(content) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] != "nameserver" || len(resolvers) == maxResolvers {
			continue
		}
		addr, err := netip.ParseAddr(fields[1])
		if err != nil || addr.Zone() != "" || addr.Is6() && !ipv6 {
			continue
		}
		resolvers = append(resolvers, addr)
	}
	if len(resolvers) == 0 {
		return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}
	}
	return resolvers
}

// primaryIPv4 returns the address that the host's default route starts from,
// else that of the first interface that is up. To connect a UDP socket sends
// nothing (udp(7)); the address is one that nobody has (RFC 5737).
func primaryIPv4() checkin.Text {
	if connection, err := net.Dial("udp4", "198.51.100.1:9"); err == nil {
		defer connection.Close()
		if local, ok := connection.LocalAddr().(*net.UDPAddr); ok && usableIPv4(local.IP) {
			return checkin.Text(local.IP.String())
		}
	}
	interfaces, err := net.Interfaces()
	if err != nil {
		return ""
	}
	for _, card := range interfaces {
		if card.Flags&net.FlagUp == 0 {
			continue
		}
		addresses, err := card.Addrs()
		if err != nil {
			continue
		}
		for _, address := range addresses {
			if network, ok := address.(*net.IPNet); ok && usableIPv4(network.IP) {
				return checkin.Text(network.IP.To4().String())
			}
		}
	}
	return ""
}

func usableIPv4(ip net.IP) bool { return ip.To4() != nil && ip.IsGlobalUnicast() }
