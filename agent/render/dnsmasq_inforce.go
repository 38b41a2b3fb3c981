package render

import "opensource.internal/agent/checkin"

// siteInForce gathers what of a site is rendered.
type siteInForce struct {
	nodes      []checkin.Text // addresses in DNS, by node
	containers [][]containerInForce
}

// containerInForce is what is rendered of a container.
type containerInForce struct {
	address     string             // in DNS, or empty
	reservation *checkin.Container // whose, or nil
}

func newSiteInForce(site checkin.Site) siteInForce {
	s := siteInForce{nodes: make([]checkin.Text, len(site.Nodes)), containers: make([][]containerInForce, len(site.Nodes))}
	for i, node := range site.Nodes {
		s.containers[i] = make([]containerInForce, len(node.Containers))
	}
	return s
}

// of returns the site with only what is rendered of it.
func (s siteInForce) of(site checkin.Site, records []srvRecord) checkin.Site {
	nodes := make([]checkin.Node, len(site.Nodes))
	for i, node := range site.Nodes {
		nodes[i] = checkin.Node{Name: node.Name, IPv4Address: s.nodes[i], Containers: []checkin.Container{}}
		for j, c := range node.Containers {
			if c, rendered := s.containers[i][j].of(c); rendered {
				nodes[i].Containers = append(nodes[i].Containers, c)
			}
		}
	}
	site.Nodes = nodes
	if site.DNSRecords != nil { // an older manager sends none
		site.DNSRecords = make([]checkin.DNSRecord, len(records))
	}
	for i, record := range records {
		site.DNSRecords[i] = record.source
	}
	return site
}

func (s containerInForce) of(c checkin.Container) (rendered checkin.Container, any bool) {
	rendered = checkin.Container{Hostname: c.Hostname, IPv4Address: s.address}
	if s.reservation != nil {
		rendered.IPv4Address, rendered.MACAddress = s.reservation.IPv4Address, s.reservation.MACAddress
	}
	return rendered, rendered.IPv4Address != ""
}
