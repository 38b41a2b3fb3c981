package manifest

import (
	"fmt"

	"opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/store"
)

// compareServices finds for each service of the manifest the stored one that it
// is. An HTTP service is known by its full name, wherever in the site it is: it
// can move to another container. A DNS service is known by container, name and
// port. A transport service is known by container, protocol and internal port,
// so that its external port can change, or stay if none is named; else by its
// external port.
func (s *sitePlan) compareServices() {
	m := &serviceMatch{sitePlan: s, seen: map[int64]bool{}}
	for _, in := range s.owned {
		for _, wanted := range in.wanted.Services {
			if wanted.broken {
				continue
			}
			s.faults.of(&wanted.record, wanted.Normalise(s.present.ReservedPorts)) // the manager's own port
			c := &store.ServiceChange{Container: in.change}
			if wanted.Type == inventory.ServiceHTTP {
				if c.Domain = s.domainNamed(inventory.FoldSearch(wanted.Domain)); c.Domain == nil {
					s.faults.field(&wanted.record, "externalDomain", "there is no external domain %q%s; one that is new has to be listed in externalDomains",
						cut(wanted.Domain), meant(wanted.Domain, s.domainNames()))
				}
			}
			if !wanted.broken {
				m.wanted = append(m.wanted, &match{wanted: wanted, change: c})
			}
		}
	}
	m.find()
	named := m.namedPorts()
	for _, found := range m.wanted {
		found.complete(named)
		s.records[found.change] = &found.wanted.record
		s.changes.Services = append(s.changes.Services, found.change)
	}
	for _, service := range s.stored.services {
		if !m.seen[service.ID] {
			s.leaveService(service)
		}
	}
}

// leaveService decides about a service that the manifest does not name.
func (s *sitePlan) leaveService(service store.Service) {
	container := s.containers[service.ContainerID]
	switch {
	case s.Prune:
		c := &store.ServiceChange{Container: container}
		c.Before = &service
		s.changes.Services = append(s.changes.Services, c)
	case container != nil: // else its container is kept, and it with that
		s.keep(s.site.After.Name, "service", s.serviceName(service), container.After.Hostname)
	}
}

// serviceName is how people speak of a service.
func (p *plan) serviceName(service store.Service) string {
	switch service.Type {
	case inventory.ServiceHTTP:
		domain := ""
		if service.ExternalDomainID != nil {
			domain = p.domains[*service.ExternalDomainID].Name
		}
		return fmt.Sprintf("http %s.%s", service.ExternalHostname, domain)
	case inventory.ServiceDNS:
		return fmt.Sprintf("dns %s %d", service.DNSName, service.InternalPort)
	}
	return fmt.Sprintf("transport %s %d to %d", service.Protocol, service.ExternalPort, service.InternalPort)
}

// match is a service of the manifest and the stored one that it is.
type match struct {
	wanted *Service
	change *store.ServiceChange
}

// port is an external port of a site.
type port struct {
	protocol string
	number   int
}

// namedPorts are the ports that the manifest gives to somebody.
func (m *serviceMatch) namedPorts() map[port]bool {
	named := map[port]bool{}
	for _, one := range m.wanted {
		named[port{one.wanted.Protocol, one.wanted.ExternalPort}] = true
	}
	return named
}

// complete makes the service what it will be. It keeps its external port if none
// is named, but for one that is named elsewhere: then it gets another.
func (m *match) complete(named map[port]bool) {
	c := m.change
	c.After = &store.Service{}
	if c.Before != nil {
		after := *c.Before
		c.After = &after
	}
	c.After.Service = m.wanted.Service
	c.After.ExternalDomainID = nil // by c.Domain
	if c.Before != nil && c.After.ExternalPort == 0 && !named[port{c.Before.Protocol, c.Before.ExternalPort}] {
		c.After.ExternalPort = c.Before.ExternalPort
	}
}

type serviceMatch struct {
	*sitePlan
	wanted []*match
	seen   map[int64]bool // stored services that were found
}

// sameness says by what a service is known: as a value to compare, or nil if not
// by that. container is the id of the stored container, 0 for a new one.
type sameness func(service inventory.Service, domain string, container int64) any

func (m *serviceMatch) find() {
	m.refuseDoubles()
	type (
		fullName  struct{ name string }
		srvRecord struct {
			container int64
			port      int
			name      string
		}
		bothPorts    struct{ container, protocol, internal, external any }
		internalPort struct{ container, protocol, internal any }
		externalPort struct{ container, protocol, external any }
		inSite       struct{ protocol, external any }
	)
	transport := func(key sameness) sameness {
		return func(service inventory.Service, domain string, container int64) any {
			if service.Type != inventory.ServiceTransport {
				return nil
			}
			return key(service, domain, container)
		}
	}
	for _, same := range []sameness{
		func(service inventory.Service, domain string, _ int64) any {
			if service.Type != inventory.ServiceHTTP {
				return nil
			}
			return fullName{service.ExternalHostname + "." + domain}
		},
		func(service inventory.Service, _ string, container int64) any {
			if service.Type != inventory.ServiceDNS {
				return nil
			}
			return srvRecord{container, service.InternalPort, service.DNSName}
		},
		transport(func(service inventory.Service, _ string, container int64) any {
			return bothPorts{container, service.Protocol, service.InternalPort, service.ExternalPort}
		}),
		transport(func(service inventory.Service, _ string, container int64) any {
			return internalPort{container, service.Protocol, service.InternalPort}
		}),
		transport(func(service inventory.Service, _ string, container int64) any {
			return externalPort{container, service.Protocol, service.ExternalPort}
		}),
		transport(func(service inventory.Service, _ string, _ int64) any {
			return inSite{service.Protocol, service.ExternalPort}
		}),
	} {
		m.pair(same)
	}
}

// pair gives each service that is still without one the first stored one that
// is the same.
func (m *serviceMatch) pair(same sameness) {
	stored := map[any][]store.Service{}
	for _, service := range m.stored.services {
		if m.seen[service.ID] {
			continue
		}
		domain := ""
		if service.ExternalDomainID != nil {
			domain = m.domains[*service.ExternalDomainID].Name
		}
		if key := same(service.Service, domain, service.ContainerID); key != nil {
			stored[key] = append(stored[key], service)
		}
	}
	for _, wanted := range m.wanted {
		if wanted.change.Before != nil {
			continue
		}
		key := same(wanted.wanted.Service, wanted.domain(), wanted.container())
		if key == nil || len(stored[key]) == 0 {
			continue
		}
		before := stored[key][0]
		stored[key] = stored[key][1:]
		wanted.change.Before = &before
		m.seen[before.ID] = true
	}
}

func (m *match) domain() string {
	if m.change.Domain == nil {
		return ""
	}
	return m.change.Domain.After.Name
}

func (m *match) container() int64 {
	if m.change.Container.Before == nil {
		return 0
	}
	return m.change.Container.Before.ID
}

// refuseDoubles refuses HTTP and DNS services that the manifest has twice. Ports
// that are taken twice the database finds.
func (m *serviceMatch) refuseDoubles() {
	first := map[string]*record{}
	for _, one := range m.wanted {
		service := one.wanted
		key, field := "", "externalHostname"
		switch service.Type {
		case inventory.ServiceHTTP:
			key = "http " + service.ExternalHostname + "." + one.domain()
		case inventory.ServiceDNS:
			key, field = fmt.Sprintf("dns %s %d of %s", service.DNSName, service.InternalPort, one.change.Container.After.Hostname), "dnsName"
		default:
			continue
		}
		if other, taken := first[key]; taken {
			m.faults.field(&service.record, field, "the service is described already as %s in %s", other.path, seenFrom(service.at, other.at))
			continue
		}
		first[key] = &service.record
	}
}
