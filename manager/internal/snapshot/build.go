// Package snapshot turns a site's inventory into the snapshot its agent gets,
// and keeps the current one of every site in memory.
package snapshot

import (
	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/store"
)

// Build returns the snapshot of an inventory. It is a pure function, and keeps
// the inventory's order: by id everywhere. What leads to a container without
// an address is left out, since nothing could reach it; volumes are not.
func Build(i store.Inventory) checkin.Snapshot {
	reachable := map[int64]store.Container{}
	for _, container := range i.Containers {
		if container.IPv4Address != "" {
			reachable[container.ID] = container
		}
	}
	return checkin.Snapshot{
		Site: &checkin.Site{
			ID:             i.Site.ID,
			Name:           checkin.Text(i.Site.Name),
			InternalDomain: checkin.Text(i.Site.InternalDomain),
			DHCPRange:      checkin.Text(i.Site.DHCPRange),
			SubnetMask:     checkin.Text(i.Site.SubnetMask),
			Gateway:        checkin.Text(i.Site.Gateway),
			DNSForwarders:  checkin.Text(i.Site.DNSForwarders),
			Nodes:          nodes(i),
			DNSRecords:     dnsRecords(i, reachable),
			Volumes:        volumes(i),
		},
		NGINX: checkin.NGINX{
			HTTPServices:    httpServices(i, reachable),
			StreamServices:  streamServices(i, reachable),
			ExternalDomains: externalDomains(i),
		},
		RemovalsConfirmed: i.RemovalsConfirmed,
	}
}

func nodes(i store.Inventory) []checkin.Node {
	containers := map[int64][]checkin.Container{}
	for _, c := range i.Containers {
		if c.IPv4Address != "" {
			containers[c.NodeID] = append(containers[c.NodeID], checkin.Container{
				Hostname: c.Hostname, IPv4Address: c.IPv4Address, MACAddress: checkin.Text(c.MACAddress),
			})
		}
	}
	list := make([]checkin.Node, 0, len(i.Nodes))
	for _, n := range i.Nodes {
		node := checkin.Node{Name: n.Name, IPv4Address: checkin.Text(n.IPv4Address), Containers: containers[n.ID]}
		if node.Containers == nil {
			node.Containers = []checkin.Container{}
		}
		list = append(list, node)
	}
	return list
}

func dnsRecords(i store.Inventory, reachable map[int64]store.Container) []checkin.DNSRecord {
	list := []checkin.DNSRecord{}
	for _, s := range i.Services {
		container, ok := reachable[s.ContainerID]
		if !ok || s.Type != inventory.ServiceDNS {
			continue
		}
		list = append(list, checkin.DNSRecord{
			ID: s.ID, Type: s.RecordType, Name: s.DNSName, Target: container.Hostname, Port: s.InternalPort,
		})
	}
	return list
}

func volumes(i store.Inventory) []checkin.Volume {
	list := make([]checkin.Volume, 0, len(i.Volumes))
	for _, v := range i.Volumes {
		list = append(list, checkin.Volume{ID: v.ID, HostPath: v.HostPath, Mode: checkin.VolumeMode(v.Mode), UID: v.UID, GID: v.GID})
	}
	return list
}

func httpServices(i store.Inventory, reachable map[int64]store.Container) []checkin.HTTPService {
	domains := map[int64]store.ExternalDomain{}
	for _, d := range i.Domains {
		domains[d.ID] = d
	}
	list := []checkin.HTTPService{}
	for _, s := range i.Services {
		container, ok := reachable[s.ContainerID]
		if !ok || s.Type != inventory.ServiceHTTP || s.ExternalDomainID == nil {
			continue
		}
		domain := domains[*s.ExternalDomainID]
		list = append(list, checkin.HTTPService{
			ID: s.ID, InternalPort: s.InternalPort, Container: checkin.Backend{IPv4Address: container.IPv4Address},
			ExternalHostname: s.ExternalHostname, BackendProtocol: s.BackendProtocol, AuthRequired: s.AuthRequired,
			ExternalDomain: checkin.HTTPServiceDomain{Name: domain.Name, AuthServer: checkin.Text(domain.AuthServer)},
		})
	}
	return list
}

func streamServices(i store.Inventory, reachable map[int64]store.Container) []checkin.StreamService {
	list := []checkin.StreamService{}
	for _, s := range i.Services {
		container, ok := reachable[s.ContainerID]
		if !ok || s.Type != inventory.ServiceTransport {
			continue
		}
		list = append(list, checkin.StreamService{
			ID: s.ID, InternalPort: s.InternalPort, Container: checkin.Backend{IPv4Address: container.IPv4Address},
			ExternalPort: s.ExternalPort, Protocol: s.Protocol,
		})
	}
	return list
}

func externalDomains(i store.Inventory) []checkin.ExternalDomain {
	list := make([]checkin.ExternalDomain, 0, len(i.Domains))
	for _, d := range i.Domains {
		list = append(list, checkin.ExternalDomain{Name: d.Name})
	}
	return list
}
