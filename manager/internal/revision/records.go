package revision

import (
	"fmt"
	"strconv"

	"opensource.internal/agent/checkin"
)

// kinds are all resources, with the fields they have in a snapshot. Ids are
// never used again for another record.
var kinds = []kind{
	{Site, []string{"name", "internalDomain", "dhcpRange", "subnetMask", "gateway", "dnsForwarders", "http3", "removalsConfirmed"}, site},
	{Node, []string{"name", "ipv4Address"}, nodes},
	{Container, []string{"hostname", "node", "ipv4Address", "macAddress"}, containers},
	{HTTPService, []string{"host", "container.ipv4Address", "internalPort", "backendProtocol", "authRequired", "authServer"}, httpServices},
	{TransportService, []string{"protocol", "externalPort", "container.ipv4Address", "internalPort"}, transportServices},
	{DNSRecord, []string{"type", "name", "target", "port"}, dnsRecords},
	{Volume, []string{"hostPath", "mode", "uid", "gid"}, volumes},
	{ExternalDomain, []string{"name"}, externalDomains},
}

func site(s checkin.Snapshot) []record {
	if s.Site == nil {
		return nil
	}
	return []record{{
		id: s.Site.ID, name: string(s.Site.Name), marks: [maxMarks]string{id(s.Site.ID)},
		values: []any{
			text(s.Site.Name), text(s.Site.InternalDomain), text(s.Site.DHCPRange), text(s.Site.SubnetMask),
			text(s.Site.Gateway), text(s.Site.DNSForwarders), s.NGINX.HTTP3, s.RemovalsConfirmed,
		},
	}}
}

// nodes recognises a renamed node by its address.
func nodes(s checkin.Snapshot) []record {
	var list []record
	for _, n := range nodesOf(s) {
		list = append(list, record{
			name: n.Name, marks: [maxMarks]string{n.Name, string(n.IPv4Address)},
			values: []any{n.Name, text(n.IPv4Address)},
		})
	}
	return list
}

func nodesOf(s checkin.Snapshot) []checkin.Node {
	if s.Site == nil {
		return nil
	}
	return s.Site.Nodes
}

// containers recognises a renamed container by its addresses: a snapshot has no
// ids of containers.
func containers(s checkin.Snapshot) []record {
	var list []record
	for _, n := range nodesOf(s) {
		for _, c := range n.Containers {
			list = append(list, record{
				name: c.Hostname, marks: [maxMarks]string{c.Hostname, string(c.MACAddress), c.IPv4Address},
				values: []any{c.Hostname, n.Name, c.IPv4Address, text(c.MACAddress)},
			})
		}
	}
	return list
}

func httpServices(s checkin.Snapshot) []record {
	var list []record
	for _, h := range s.NGINX.HTTPServices {
		host := h.ExternalHostname + "." + h.ExternalDomain.Name
		list = append(list, record{
			id: h.ID, name: host, marks: [maxMarks]string{id(h.ID), host},
			values: []any{host, h.Container.IPv4Address, h.InternalPort, h.BackendProtocol, h.AuthRequired, text(h.ExternalDomain.AuthServer)},
		})
	}
	return list
}

func transportServices(s checkin.Snapshot) []record {
	var list []record
	for _, t := range s.NGINX.StreamServices {
		port := fmt.Sprintf("%s port %d", t.Protocol, t.ExternalPort)
		list = append(list, record{
			id: t.ID, name: port, marks: [maxMarks]string{id(t.ID), port},
			values: []any{t.Protocol, t.ExternalPort, t.Container.IPv4Address, t.InternalPort},
		})
	}
	return list
}

func dnsRecords(s checkin.Snapshot) []record {
	if s.Site == nil {
		return nil
	}
	var list []record
	for _, r := range s.Site.DNSRecords {
		list = append(list, record{
			id: r.ID, name: r.Name + " to " + r.Target, marks: [maxMarks]string{id(r.ID)},
			values: []any{r.Type, r.Name, r.Target, r.Port},
		})
	}
	return list
}

func volumes(s checkin.Snapshot) []record {
	if s.Site == nil {
		return nil
	}
	var list []record
	for _, v := range s.Site.Volumes {
		list = append(list, record{
			id: v.ID, name: v.HostPath, marks: [maxMarks]string{id(v.ID)},
			values: []any{v.HostPath, string(v.Mode), v.UID, v.GID},
		})
	}
	return list
}

func externalDomains(s checkin.Snapshot) []record {
	var list []record
	for _, d := range s.NGINX.ExternalDomains {
		list = append(list, record{name: d.Name, marks: [maxMarks]string{d.Name}, values: []any{d.Name}})
	}
	return list
}

// id is a record's id as a mark. A snapshot of an older manager has none.
func id(n int64) string {
	if n == 0 {
		return ""
	}
	return "#" + strconv.FormatInt(n, 10)
}

// text is an optional text as a value.
func text(t checkin.Text) any {
	if t == "" {
		return nil
	}
	return string(t)
}
