package preflight

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// nameServers tells whom this host asks for names. Asking its own dnsmasq is a
// circle: without the manager there may be no dnsmasq, and without that no way
// to find the manager.
func nameServers(_ context.Context, o *Options) []Finding {
	servers := o.Host.Resolvers
	names := strings.Trim(fmt.Sprint(servers), "[]")
	circle := slices.ContainsFunc(servers, func(a netip.Addr) bool { return a.IsLoopback() && !isStub(a) })
	switch {
	case circle && o.Manager != nil && needsNames(o.Manager):
		return list(warn("name another server, such as one of the site's dnsForwarders (for a container: pct set ID --nameserver)",
			"/etc/resolv.conf leads to this host's own dnsmasq (%s): while that is down, the manager cannot be found", names))
	case slices.ContainsFunc(servers, isStub):
		return list(ok("systemd-resolved (%s)", names))
	}
	return list(ok("%s", names))
}

// isStub knows the addresses of systemd-resolved (resolved.conf(5)).
func isStub(a netip.Addr) bool {
	return a == netip.MustParseAddr("127.0.0.53") || a == netip.MustParseAddr("127.0.0.54")
}

func needsNames(m *Manager) bool {
	_, err := netip.ParseAddr(m.URL.Hostname())
	return err != nil && !isLoopback(m.URL)
}
