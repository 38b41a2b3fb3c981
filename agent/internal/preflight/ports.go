package preflight

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"

	"opensource.internal/agent/checkin"
)

// port is one that a managed service listens on.
type port struct {
	protocol string
	number   int
	service  string // who is to listen
	what     string // what for, if that is not plain
}

func (p port) String() string { return fmt.Sprintf("port %d/%s", p.number, p.protocol) }

// ports tells who listens where nginx and dnsmasq are to. Their own tests do
// not find a port that is taken.
func ports(_ context.Context, o *Options) []Finding {
	if o.Root != "" {
		return leftAlone()
	}
	sockets, err := readSockets(o.Proc)
	if err != nil {
		return list(warn("is /proc mounted?", "%v", err))
	}
	look := portLook{sockets: sockets, holders: holders(o.Proc), options: o, bindsEach: bindsEach(o)}
	var found []Finding
	for _, p := range webPorts(o) {
		found = append(found, look.at(p)...)
	}
	found = append(found, look.namePorts()...)
	return append(found, look.forwarded()...)
}

func webPorts(o *Options) []port {
	wanted := []port{{"tcp", 80, "nginx", ""}, {"tcp", 443, "nginx", ""}}
	if o.Snapshot != nil && o.Snapshot.NGINX.HTTP3 && o.Facts.NGINX.HTTP3 {
		wanted = append(wanted, port{"udp", 443, "nginx", "HTTP/3"})
	}
	return wanted
}

// portLook is all that is known of sockets.
type portLook struct {
	sockets []socket
	holders map[string]process
	options *Options
	// bindsEach is true if dnsmasq listens on each address by itself, so that
	// somebody else may have another one.
	bindsEach bool
}

// at looks at one port.
func (l portLook) at(p port) []Finding {
	found := l.strangers(p)
	switch {
	case len(found) > 0:
	case l.listens(p) && !l.seen(p):
		found = list(warn("run sudo opensource-agent check", "somebody listens, and only root can see who"))
	case l.listens(p):
		found = list(ok("%s listens", p.service))
	case l.options.Managed[p.service]:
		found = list(fail("sudo opensource-agent; systemctl status "+p.service, "nobody listens, and %s should", p.service))
	case l.options.Unread:
		found = list(warn("run sudo opensource-agent check", "nobody listens, and whether %s should is not known: may not read %s", p.service, l.options.StateDirectory))
	default:
		found = list(ok("free"))
	}
	return named(p.String(), found...)
}

// strangers tells of everybody else who is in the way on a port.
func (l portLook) strangers(p port) []Finding {
	var found []Finding
	told := map[process]bool{}
	for _, s := range l.on(p) {
		holder := l.holders[s.inode]
		if l.isExpected(p, holder) || l.besides(p, s) || told[holder] {
			continue
		}
		told[holder] = true
		who := "a process that cannot be seen from here"
		if holder.pid != 0 {
			who = holder.String()
		}
		found = append(found, fail(giveUp(holder, p), "%s has %s instead of %s", who, s.local, p.service))
	}
	return found
}

func (l portLook) on(p port) []socket {
	return slices.DeleteFunc(slices.Clone(l.sockets), func(s socket) bool {
		return s.protocol != p.protocol || int(s.local.Port()) != p.number
	})
}

func (l portLook) listens(p port) bool {
	return slices.ContainsFunc(l.on(p), func(s socket) bool { return l.isExpected(p, l.holders[s.inode]) })
}

// seen tells whether this user can see who has a port.
func (l portLook) seen(p port) bool {
	return slices.ContainsFunc(l.on(p), func(s socket) bool { return l.holders[s.inode].pid != 0 })
}

// isExpected knows the service by its program and unit: another dnsmasq, such
// as that of a hypervisor's own network, is somebody else.
func (l portLook) isExpected(p port, holder process) bool {
	if l.options.UserID != 0 && holder.pid == 0 {
		return true // not to be seen by this user, and told of already
	}
	return holder.name == p.service && (holder.unit == "" || holder.unit == p.service+".service" || !strings.HasSuffix(holder.unit, ".service"))
}

// besides tells whether a socket is not in dnsmasq's way: the stub of
// systemd-resolved has addresses of its own in 127.0.0.0/8.
func (l portLook) besides(p port, s socket) bool {
	own := netip.MustParseAddr("127.0.0.1")
	address := s.local.Addr()
	return p.service == "dnsmasq" && l.bindsEach && address.Is4() && address.IsLoopback() && address != own
}

// giveUp says how somebody is made to let go of a port.
func giveUp(holder process, p port) string {
	switch {
	case holder.unit == "systemd-resolved.service":
		return "set DNSStubListener=no in /etc/systemd/resolved.conf, and systemctl restart systemd-resolved"
	case holder.pid == 1:
		return fmt.Sprintf("find the socket unit with systemctl list-sockets, and systemctl disable --now it (port %d)", p.number)
	case strings.HasSuffix(holder.unit, ".service"):
		return "systemctl disable --now " + holder.unit + ", or give it another port"
	case holder.pid == 0:
		return fmt.Sprintf("look with ss -lnp 'sport = :%d' as root, and on the machine around this container", p.number)
	}
	return fmt.Sprintf("end it (kill %d) and whatever starts it, or give it another port", holder.pid)
}

// namePorts looks at what dnsmasq listens on, once it has something to serve.
func (l portLook) namePorts() []Finding {
	o := l.options
	if o.Snapshot != nil && (o.Snapshot.Site == nil || len(o.Snapshot.Site.MissingNetworkFields()) > 0) {
		return named("port 53", ok("not used by the agent: the site does not have all network fields"))
	}
	var found []Finding
	for _, p := range []port{{"udp", 53, "dnsmasq", "DNS"}, {"tcp", 53, "dnsmasq", "DNS"}, {"udp", 67, "dnsmasq", "DHCP"}} {
		found = append(found, l.at(p)...)
	}
	return found
}

// forwarded looks at the ports of the site's TCP and UDP services, of which
// only those in somebody else's hands are worth a line each.
func (l portLook) forwarded() []Finding {
	if l.options.Unread {
		return named("ports of services", l.options.notKnown())
	}
	if l.options.Snapshot == nil || len(l.options.Snapshot.NGINX.StreamServices) == 0 {
		return nil
	}
	services := slices.SortedFunc(slices.Values(l.options.Snapshot.NGINX.StreamServices), func(a, b checkin.StreamService) int {
		return cmp.Compare(a.ExternalPort, b.ExternalPort)
	})
	var found []Finding
	for _, s := range services {
		p := port{strings.ToLower(s.Protocol), s.ExternalPort, "nginx", ""}
		found = append(found, named(p.String(), l.strangers(p)...)...)
	}
	if len(found) > 0 {
		return found
	}
	return named("ports of services", ok("none of %d is in somebody else's hands", len(services)))
}

// bindsEach reads whether dnsmasq binds each address by itself, from its live
// main file if that is ours; what would be rendered does.
func bindsEach(o *Options) bool {
	if !o.Managed["dnsmasq"] {
		return true
	}
	content, err := os.ReadFile(o.Facts.Paths.DNSMasqConf)
	if err != nil {
		return true
	}
	for line := range strings.Lines(string(content)) {
		if line = strings.TrimSpace(line); line == "bind-dynamic" || line == "bind-interfaces" {
			return true
		}
	}
	return false
}
