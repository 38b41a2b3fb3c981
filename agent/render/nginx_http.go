package render

import (
	"errors"
	"net"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"

	"opensource.internal/agent/checkin"
)

func (v *nginxView) addHTTPServices(services, before []checkin.HTTPService, f Facts, names claims[string], left *leftOut) {
	v.HTTPServices = make([]httpService, 0, len(services))
	earlier := versions(before, recordOfHTTPService)
	for i, s := range services {
		record := recordOfHTTPService(s)
		service, err := v.parseHTTPService(s, f)
		if err == nil {
			err = names.claim(service.Name, "host name", describe("service", s.ID, service.Upstream))
		}
		name := ""
		if err == nil {
			name = service.Name
		}
		previous := func() bool {
			version, found := earlier[record.Key()]
			return found && v.keepHTTPService(version, s, record, position(i), name, f, names)
		}
		if left.keep(record, err, previous) {
			v.addHTTPService(service, record, position(i))
		}
	}
}

func (v *nginxView) addHTTPService(service httpService, record Record, at position) {
	service.Record, service.position = record, at
	v.HasAuth = v.HasAuth || service.Auth != nil
	v.HTTPServices = append(v.HTTPServices, service)
}

// keepHTTPService adds the previous version of a service, unless that would let
// in people whom the wanted one keeps out, or take a name from another. own is
// the name that the wanted version has claimed, or empty.
func (v *nginxView) keepHTTPService(version, wanted checkin.HTTPService, record Record, at position, own string, f Facts, names claims[string]) bool {
	if version == wanted || wanted.AuthRequired && !version.AuthRequired {
		return false
	}
	service, err := v.parseHTTPService(version, f)
	if err == nil && service.Name != own {
		err = names.claim(service.Name, "host name", describe("service", version.ID, service.Upstream))
	}
	if err != nil {
		return false
	}
	v.addHTTPService(service, record, at)
	return true
}

func recordOfHTTPService(s checkin.HTTPService) Record {
	host, domain := s.ExternalHostname, s.ExternalDomain.Name
	parsedHost, errHost := checkin.ParseDomain(host)
	parsedDomain, errDomain := checkin.ParseDomain(domain)
	if errHost == nil && errDomain == nil {
		host, domain = parsedHost, parsedDomain
	}
	return Record{Kind: checkin.KindHTTP, ID: s.ID, Name: shown(host + "." + domain)}
}

func (v *nginxView) parseHTTPService(s checkin.HTTPService, f Facts) (httpService, error) {
	domain, errDomain := checkin.ParseDomain(s.ExternalDomain.Name)
	host, errHost := checkin.ParseDomain(s.ExternalHostname)
	name, errName := "", error(nil)
	if errDomain == nil && errHost == nil {
		name, errName = checkin.ParseDomain(host + "." + domain)
	}
	protocol := s.BackendProtocol
	if protocol == "" {
		protocol = "http" // a manager that does not know the field
	}
	upstream, errUpstream := parseUpstream(s.Container, s.InternalPort)
	auth, errAuth := parseAuth(s, name)
	if err := errors.Join(
		field("externalDomain.name", errDomain),
		field("externalHostname", errHost),
		field("externalHostname", errName),
		field("backendProtocol", checkin.CheckBackendProtocol(protocol)),
		errUpstream,
		field("externalDomain.authServer", errAuth),
	); err != nil {
		return httpService{}, err
	}
	return httpService{
		server:       server{nginxView: v, Name: name, Certificate: v.certificateOf(domain, f)},
		source:       s,
		Upstream:     protocol + "://" + upstream,
		AuthRequired: s.AuthRequired,
		Auth:         auth,
	}, nil
}

func parseUpstream(container checkin.Backend, port int) (string, error) {
	addr, errAddr := checkin.ParseHostIPv4(container.IPv4Address)
	if err := errors.Join(
		field("container.ipv4Address", errAddr),
		field("internalPort", checkin.CheckPort(port)),
	); err != nil {
		return "", err
	}
	return netip.AddrPortFrom(addr, uint16(port)).String(), nil
}

// parseAuth returns the auth server of a service that needs one, nil if its
// domain has none.
func parseAuth(s checkin.HTTPService, name string) (*authServer, error) {
	if !s.AuthRequired || s.ExternalDomain.AuthServer == "" {
		return nil, nil
	}
	server, err := checkin.ParseAuthServer(string(s.ExternalDomain.AuthServer))
	if err != nil {
		return nil, err
	}
	auth := &authServer{
		URL:  server.Scheme + "://" + net.JoinHostPort(server.Host, strconv.Itoa(server.Port)),
		Name: server.Host,
		Host: "$host",
	}
	if served := server.ServedAs(); served != "" {
		auth.Host = served
		if served == name {
			return nil, errors.New("the service is its own auth server: sign-in would ask itself for ever")
		}
	}
	return auth, nil
}

func (v *nginxView) addDomains(domains []checkin.ExternalDomain, f Facts, names claims[string], left *leftOut) {
	known := claims[string]{}
	for _, d := range domains {
		record := Record{Kind: checkin.KindDomain, Name: shown(d.Name)}
		name, err := checkin.ParseDomain(d.Name)
		if err == nil {
			record.Name = name
			err = known.claim(name, "domain", "external domain "+name)
		}
		if !left.keep(record, field("name", err), nil) { // it has nothing but its name
			continue
		}
		v.Domains = append(v.Domains, externalDomain{
			server: server{nginxView: v, Record: record, Name: name, Certificate: v.certificateOf(name, f)},
			// A service of another domain may have this very name.
			Bare: names.claim(name, "host name", "external domain "+name) == nil,
		})
	}
}

// certificateOf returns the pair of a domain, or the snakeoil pair.
func (v *nginxView) certificateOf(domain string, f Facts) certificate {
	if _, usable := f.Certificates[domain]; !usable {
		return certificate{Cert: v.Paths.SnakeoilCert, Key: v.Paths.SnakeoilKey}
	}
	v.certificates[domain] = true
	return certificate{
		Cert: path.Join(v.Paths.CertDir, domain+".crt"),
		Key:  path.Join(v.Paths.KeyDir, domain+".key"),
		Real: true,
	}
}

// certificateOfHost returns the pair of the domain that a host name is or is
// directly below of: a wildcard certificate covers one label.
func (v *nginxView) certificateOfHost(name string, f Facts) certificate {
	if own := v.certificateOf(name, f); own.Real {
		return own
	}
	return v.certificateOf(parentDomain(name), f)
}

// CertificateDomains returns the domains whose certificate pairs NGINX would
// use if they are in Facts.Certificates, sorted. They are well-formed, so that
// file names can be made of them.
func CertificateDomains(s checkin.Snapshot, managerHostname string) []string {
	var domains []string
	add := func(name string) {
		if domain, err := checkin.ParseDomain(name); err == nil {
			domains = append(domains, domain)
		}
	}
	for _, service := range s.NGINX.HTTPServices {
		add(service.ExternalDomain.Name)
	}
	for _, domain := range s.NGINX.ExternalDomains {
		add(domain.Name)
	}
	if managerHostname != "" {
		add(managerHostname)
		add(parentDomain(managerHostname))
	}
	slices.Sort(domains)
	return slices.Compact(domains)
}

// parentDomain returns the name without its first label.
func parentDomain(name string) string {
	_, parent, _ := strings.Cut(name, ".")
	return parent
}
