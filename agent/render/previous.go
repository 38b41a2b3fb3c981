package render

import (
	"net/netip"
	"slices"

	"opensource.internal/agent/checkin"
)

// nginxBefore returns the services that were in force before, as far as they can
// be served as they were: their container has its address still, and their
// domain is one of those that somebody has looked at the certificates of.
func (f Facts) nginxBefore(wanted checkin.Snapshot) checkin.NGINX {
	if f.Before == nil {
		return checkin.NGINX{}
	}
	before, domains := f.Before.NGINX, CertificateDomains(wanted, "")
	passedOn := passedOn(f.Before.Site, wanted.Site)
	before.HTTPServices = slices.DeleteFunc(slices.Clone(before.HTTPServices), func(s checkin.HTTPService) bool {
		domain, err := checkin.ParseDomain(s.ExternalDomain.Name)
		return err != nil || !slices.Contains(domains, domain) || passedOn(s.Container)
	})
	before.StreamServices = slices.DeleteFunc(slices.Clone(before.StreamServices), func(s checkin.StreamService) bool {
		return passedOn(s.Container)
	})
	return before
}

// passedOn returns a function that reports whether the address of a service's
// container is another's by now, or nobody's. A container whose address cannot
// be read any more has the one it had.
func passedOn(before, wanted *checkin.Site) func(checkin.Backend) bool {
	then, now := holdersOf(before), holdersOf(wanted)
	return func(container checkin.Backend) bool {
		address, err := checkin.ParseHostIPv4(container.IPv4Address)
		if err != nil {
			return false
		}
		was, known := then.by[address]
		is, taken := now.by[address]
		if !known || !taken {
			return known != taken && !slices.ContainsFunc(now.unread, was.is)
		}
		return !is.is(was)
	}
}

// holders are the nodes and containers of a site by their addresses, and those
// whose address cannot be read.
type holders struct {
	by     map[netip.Addr]holder
	unread []holder
}

type holder struct {
	name string
	mac  checkin.Text
}

// is reports whether two holders are the same, maybe renamed or with another
// card.
func (h holder) is(other holder) bool {
	return h.name == other.name || h.mac != "" && h.mac == other.mac
}

func holdersOf(site *checkin.Site) holders {
	h := holders{by: map[netip.Addr]holder{}}
	if site == nil {
		return h
	}
	add := func(address string, holder holder) {
		if parsed, err := checkin.ParseHostIPv4(address); err == nil {
			h.by[parsed] = holder
		} else {
			h.unread = append(h.unread, holder)
		}
	}
	for _, node := range site.Nodes {
		if node.IPv4Address != "" {
			add(string(node.IPv4Address), holder{name: shownLabel(node.Name)})
		}
		for _, c := range node.Containers {
			add(c.IPv4Address, holder{shownLabel(c.Hostname), c.MACAddress})
		}
	}
	return h
}

// another reports whether somebody other than name has the address.
func (h holders) another(address netip.Addr, name string) bool {
	holder, taken := h.by[address]
	return taken && holder.name != name
}
