package render

import (
	"errors"
	"fmt"
	"net/netip"

	"opensource.internal/agent/checkin"
)

// errNoStream is why a port cannot be forwarded.
var errNoStream = errors.New("nginx has no stream module on this host: install the package libnginx-mod-stream")

// socket is a port of a transport protocol.
type socket struct {
	protocol string
	port     int
}

func (s socket) String() string { return fmt.Sprintf("%s/%d", s.protocol, s.port) }

// reservedSockets are those that the templates themselves, or the manager
// behind them, listen on. nginx's own test does not notice such a collision.
func (v *nginxView) reservedSockets() claims[socket] {
	reserved := claims[socket]{
		{"tcp", 80}:  "the web server",
		{"tcp", 443}: "the web server",
		{"tcp", 53}:  "the DNS server",
		{"udp", 53}:  "the DNS server",
		{"udp", 67}:  "the DHCP server",
		{"udp", 68}:  "the DHCP client of this host",
	}
	if v.HTTP3 {
		reserved[socket{"udp", 443}] = "the web server (HTTP/3)"
	}
	if upstream, err := netip.ParseAddrPort(v.ManagerUpstream); err == nil {
		reserved[socket{"tcp", int(upstream.Port())}] = "the manager"
	}
	return reserved
}

func (v *nginxView) addStreamServices(services, before []checkin.StreamService, f Facts, left *leftOut) {
	taken := v.reservedSockets()
	earlier := versions(before, recordOfStreamService)
	for i, s := range services {
		record := recordOfStreamService(s)
		service, err := v.parseStreamService(s, f)
		if err == nil {
			err = taken.claim(socketOf(s), "port", describe("service", s.ID, service.Upstream))
		}
		claimed := err == nil
		previous := func() bool {
			version, found := earlier[record.Key()]
			return found && v.keepStreamService(version, s, record, position(i), claimed, f, taken)
		}
		if left.keep(record, err, previous) {
			v.addStreamService(service, record, position(i))
		}
	}
}

func (v *nginxView) addStreamService(service streamService, record Record, at position) {
	service.Record, service.position = record, at
	v.StreamServices = append(v.StreamServices, service)
}

// keepStreamService adds the previous version of a service, unless that would
// take a port from another. claimed is true if the wanted version has claimed
// its own.
func (v *nginxView) keepStreamService(version, wanted checkin.StreamService, record Record, at position, claimed bool, f Facts, taken claims[socket]) bool {
	if version == wanted {
		return false
	}
	service, err := v.parseStreamService(version, f)
	if err == nil && !(claimed && socketOf(version) == socketOf(wanted)) {
		err = taken.claim(socketOf(version), "port", describe("service", version.ID, service.Upstream))
	}
	if err != nil {
		return false
	}
	v.addStreamService(service, record, at)
	return true
}

func recordOfStreamService(s checkin.StreamService) Record {
	return Record{Kind: checkin.KindStream, ID: s.ID, Name: fmt.Sprintf("%s/%d", shown(s.Protocol), s.ExternalPort)}
}

func socketOf(s checkin.StreamService) socket { return socket{s.Protocol, s.ExternalPort} }

func (v *nginxView) parseStreamService(s checkin.StreamService, f Facts) (streamService, error) {
	upstream, errUpstream := parseUpstream(s.Container, s.InternalPort)
	if err := errors.Join(
		field("protocol", checkin.CheckProtocol(s.Protocol)),
		field("externalPort", checkin.CheckPort(s.ExternalPort)),
		errUpstream,
	); err != nil {
		return streamService{}, err
	}
	if !f.NGINX.Stream {
		return streamService{}, errNoStream
	}
	service := streamService{nginxView: v, Port: s.ExternalPort, UDP: s.Protocol == "udp", Upstream: upstream, source: s}
	if service.UDP {
		service.ListenOptions = " udp reuseport"
	}
	return service, nil
}
