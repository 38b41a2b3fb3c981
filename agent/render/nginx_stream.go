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

func (v *nginxView) addStreamServices(services []checkin.StreamService, f Facts, left *leftOut) {
	taken := v.reservedSockets()
	for _, s := range services {
		record := Record{
			Kind: checkin.KindStream, ID: s.ID,
			Name: fmt.Sprintf("%s/%d", shown(s.Protocol), s.ExternalPort),
		}
		service, err := v.parseStreamService(s)
		switch {
		case err != nil:
		case !f.NGINX.Stream:
			err = errNoStream
		default:
			err = taken.claim(socket{s.Protocol, s.ExternalPort}, "port", describe("service", s.ID, service.Upstream))
		}
		if !left.keep(record, err) {
			continue
		}
		service.Record = record
		v.StreamServices = append(v.StreamServices, service)
	}
}

func (v *nginxView) parseStreamService(s checkin.StreamService) (streamService, error) {
	upstream, errUpstream := parseUpstream(s.Container, s.InternalPort)
	if err := errors.Join(
		field("protocol", checkin.CheckProtocol(s.Protocol)),
		field("externalPort", checkin.CheckPort(s.ExternalPort)),
		errUpstream,
	); err != nil {
		return streamService{}, err
	}
	service := streamService{nginxView: v, Port: s.ExternalPort, UDP: s.Protocol == "udp", Upstream: upstream}
	if service.UDP {
		service.ListenOptions = " udp reuseport"
	}
	return service, nil
}
