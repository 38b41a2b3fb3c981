package inventory

import (
	"errors"
	"fmt"
	"net/netip"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"opensource.internal/agent/checkin"
)

// DefaultVolumesRoot is where a site's volumes are unless it says otherwise.
const DefaultVolumesRoot = "/mnt/volumes"

// The types of node.
const (
	NodeProxmox = "proxmox" // a Proxmox VE host
	NodeNone    = "none"    // only described; the default
)

// How a site's changes are published.
const (
	PublishAuto   = "auto"   // with the next check-in; the default
	PublishManual = "manual" // when somebody says so
)

// faults gathers what is wrong with a record.
type faults map[string]string

// fold replaces a value that is set by its stored form.
func (f faults) fold(field string, value *string, parse func(string) (string, error)) {
	if *value == "" {
		return
	}
	folded, err := parse(*value)
	if err != nil {
		f[field] = err.Error()
		return
	}
	*value = folded
}

// must is fold for a value that has to be set.
func (f faults) must(field string, value *string, parse func(string) (string, error)) {
	if *value == "" {
		f[field] = "is required"
		return
	}
	f.fold(field, value, parse)
}

func (f faults) check(field string, err error) {
	if err != nil {
		f[field] = err.Error()
	}
}

func (f faults) err() error {
	if len(f) == 0 {
		return nil
	}
	return &InvalidError{Fields: f}
}

// Normalise folds the site's values and fills in defaults. The error is an
// *InvalidError.
func (s *Site) Normalise() error {
	f := faults{}
	f.must("name", &s.Name, ParseTitle)
	f.fold("internalDomain", &s.InternalDomain, FoldDomain)
	f.fold("externalIp", &s.ExternalIP, parseAddress)
	s.normaliseNetwork(f)
	if s.VolumesRoot == "" {
		s.VolumesRoot = DefaultVolumesRoot
	}
	f.fold("volumesRoot", &s.VolumesRoot, parsePath)
	if s.PortRange == "" {
		s.PortRange = DefaultPortRange
	}
	f.fold("portRange", &s.PortRange, func(v string) (string, error) {
		ports, err := ParsePortRange(v)
		return ports.String(), err
	})
	switch s.Publishing {
	case "":
		s.Publishing = PublishAuto
	case PublishAuto, PublishManual:
	default:
		f["publishing"] = fmt.Sprintf("%q is not %s or %s", s.Publishing, PublishAuto, PublishManual)
	}
	return f.err()
}

// normaliseNetwork lets the contract judge the network fields, alone and
// together, as the agent will.
func (s *Site) normaliseNetwork(f faults) {
	s.DHCPRange = tightList(s.DHCPRange)
	s.DNSForwarders = tightList(s.DNSForwarders)
	_, wrong := checkin.Site{
		DHCPRange:  checkin.Text(s.DHCPRange),
		SubnetMask: checkin.Text(s.SubnetMask), Gateway: checkin.Text(s.Gateway), DNSForwarders: checkin.Text(s.DNSForwarders),
	}.ParseNetwork()
	for _, fault := range wrong {
		if _, known := f[fault.Field]; !known {
			f[fault.Field] = fault.Err.Error()
		}
	}
}

// CheckAddress refuses an address that nobody in the site's network can have:
// its first and its last. An address outside of that network is left alone,
// and any while the network is not known.
func (s *Site) CheckAddress(addr string) error {
	host, err := checkin.ParseIPv4(addr)
	network, _ := checkin.Site{DHCPRange: checkin.Text(s.DHCPRange), SubnetMask: checkin.Text(s.SubnetMask)}.ParseNetwork()
	if err != nil || !network.Subnet.Contains(host) || checkin.HostOf(network.Subnet, host) {
		return nil
	}
	return fmt.Errorf("%s is the first or last address of %s, which no host can have", host, network.Subnet)
}

// tightList removes the blanks people put after commas.
func tightList(s string) string {
	parts := strings.Split(s, ",")
	for i := range parts {
		parts[i] = strings.Trim(parts[i], " ")
	}
	return strings.Join(parts, ",")
}

// Normalise folds the node's values. The error is an *InvalidError.
func (n *Node) Normalise() error {
	f := faults{}
	f.must("name", &n.Name, parseHostName)
	f.fold("ipv4Address", &n.IPv4Address, parseHost)
	switch n.Type {
	case "":
		n.Type = NodeNone
	case NodeProxmox, NodeNone:
	default:
		f["type"] = fmt.Sprintf(`%s is not a type of node: "proxmox" or "none"`, quoted(n.Type))
	}
	return f.err()
}

// Normalise folds the container's values. The error is an *InvalidError.
func (c *Container) Normalise() error {
	f := faults{}
	if c.NodeID <= 0 {
		f["nodeId"] = "is required"
	}
	f.must("hostname", &c.Hostname, parseHostName)
	f.fold("owner", &c.Owner, parseComponent)
	f.fold("ipv4Address", &c.IPv4Address, parseHost)
	f.fold("macAddress", &c.MACAddress, checkin.ParseMAC)
	return f.err()
}

// Normalise folds the service's values, fills in defaults and refuses fields of
// another type of service. reserved are ports no transport service may have on
// top of ReservedPorts. The error is an *InvalidError.
func (s *Service) Normalise(reserved []int) error {
	f := faults{}
	f.check("internalPort", checkin.CheckPort(s.InternalPort))
	switch s.Type {
	case ServiceHTTP:
		s.normaliseHTTP(f)
	case ServiceTransport:
		s.normaliseTransport(f, reserved)
	case ServiceDNS:
		s.normaliseDNS(f)
	case "":
		f["type"] = "is required"
		return f.err()
	default:
		f["type"] = fmt.Sprintf(`%s is not a type of service: "http", "transport" or "dns"`, quoted(string(s.Type)))
		return f.err()
	}
	s.refuseForeign(f)
	return f.err()
}

func (s *Service) normaliseHTTP(f faults) {
	f.must("externalHostname", &s.ExternalHostname, FoldDomain)
	if s.ExternalDomainID == nil {
		f["externalDomainId"] = "is required"
	}
	if s.BackendProtocol == "" {
		s.BackendProtocol = "http"
	}
	f.check("backendProtocol", checkin.CheckBackendProtocol(s.BackendProtocol))
}

func (s *Service) normaliseTransport(f faults, reserved []int) {
	f.check("protocol", checkin.CheckProtocol(s.Protocol))
	if s.ExternalPort == 0 {
		return
	}
	f.check("externalPort", checkin.CheckPort(s.ExternalPort))
	if Reserved(s.ExternalPort, reserved) {
		f["externalPort"] = fmt.Sprintf("port %d is reserved for the host itself", s.ExternalPort)
	}
}

func (s *Service) normaliseDNS(f faults) {
	if s.RecordType == "" {
		s.RecordType = "SRV"
	}
	if s.RecordType != "SRV" {
		f["recordType"] = fmt.Sprintf(`%s is not a type of record: "SRV"`, quoted(s.RecordType))
	}
	f.must("dnsName", &s.DNSName, checkin.ParseServiceName)
}

// refuseForeign names the fields that are set and belong to another type.
func (s *Service) refuseForeign(f faults) {
	foreign := func(field string, owner ServiceType, set bool) {
		if set && s.Type != owner {
			f[field] = fmt.Sprintf("belongs to a service of type %q, not %q", owner, s.Type)
		}
	}
	foreign("externalHostname", ServiceHTTP, s.ExternalHostname != "")
	foreign("externalDomainId", ServiceHTTP, s.ExternalDomainID != nil)
	foreign("backendProtocol", ServiceHTTP, s.BackendProtocol != "")
	foreign("authRequired", ServiceHTTP, s.AuthRequired)
	foreign("protocol", ServiceTransport, s.Protocol != "")
	foreign("externalPort", ServiceTransport, s.ExternalPort != 0)
	foreign("recordType", ServiceDNS, s.RecordType != "")
	foreign("dnsName", ServiceDNS, s.DNSName != "")
}

// Normalise folds the domain's values. The error is an *InvalidError.
func (d *ExternalDomain) Normalise() error {
	f := faults{}
	f.must("name", &d.Name, FoldDomain)
	if d.AuthServer != "" {
		_, err := checkin.ParseAuthServer(d.AuthServer)
		f.check("authServer", err)
	}
	return f.err()
}

// Normalise folds the volume's values. The error is an *InvalidError.
func (v *Volume) Normalise() error {
	f := faults{}
	f.must("name", &v.Name, parseComponent)
	f.must("mountPath", &v.MountPath, parsePath)
	_, err := checkin.DirectoryMode(v.Mode)
	f.check("mode", err)
	return f.err()
}

// Unowned takes the owner's place in the path of a volume whose container has
// no owner.
const Unowned = "unowned"

// VolumePath derives the directory of a new volume:
// ROOT/site-ID/OWNER/CONTAINER/NAME.
func VolumePath(root string, siteID int64, owner, container, name string) (string, error) {
	if owner == "" {
		owner = Unowned
	}
	hostPath := path.Join(root, fmt.Sprintf("site-%d", siteID), owner, container, name)
	return hostPath, checkin.CheckHostPath(hostPath)
}

// ParseTitle checks a name that only people read, of a site, a key or a person,
// and takes the blanks around it off.
func ParseTitle(s string) (string, error) { return parseLine("a name", s, 100) }

// ParseRemark checks what somebody says about what they do.
func ParseRemark(s string) (string, error) { return parseLine("it", s, 500) }

func parseLine(what, s string, most int) (string, error) {
	line := strings.TrimSpace(s)
	if line == "" || utf8.RuneCountInString(line) > most {
		return "", fmt.Errorf("%s has 1 to %d characters", what, most)
	}
	// U+FFFD is what is left of bytes that are not UTF-8.
	if strings.IndexFunc(line, func(r rune) bool { return !unicode.IsPrint(r) || r == utf8.RuneError }) >= 0 {
		return "", fmt.Errorf("%s has only printable characters, in UTF-8", what)
	}
	return line, nil
}

// parseComponent checks an owner or volume name, which becomes one component of
// a path: no separators, and no leading dot or hyphen.
func parseComponent(s string) (string, error) {
	name := strings.ToLower(s)
	allowed := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || strings.ContainsRune("._@+-", r)
	}
	if len(name) > 64 || strings.IndexFunc(name, func(r rune) bool { return !allowed(r) }) >= 0 || strings.ContainsRune("._@+-", rune(name[0])) {
		return "", fmt.Errorf("%s: 1 to 64 letters, digits and . _ @ + - are allowed, a letter or digit first", quoted(s))
	}
	return name, nil
}

// parsePath checks a path that goes into mount options and configuration files.
func parsePath(s string) (string, error) {
	if err := checkin.CheckHostPath(s); err != nil {
		return "", err
	}
	if !utf8.ValidString(s) || strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) || r == ',' }) >= 0 {
		return "", fmt.Errorf("%s: a path has only printable characters and no comma", quoted(s))
	}
	return s, nil
}

// parseHostName checks the name of a node or container in the site's DNS.
func parseHostName(s string) (string, error) {
	name, err := checkin.ParseLabel(s)
	if err == nil && name == "localhost" {
		return "", errors.New(`"localhost" is what every host calls itself`)
	}
	return name, err
}

func parseHost(s string) (string, error) {
	addr, err := checkin.ParseHostIPv4(s)
	return addr.String(), err
}

func parseAddress(s string) (string, error) {
	addr, err := netip.ParseAddr(s)
	if err != nil || addr.Zone() != "" || addr.IsUnspecified() || addr.IsMulticast() || addr.IsLoopback() {
		return "", fmt.Errorf("%s is not the address of a host such as 203.0.113.10", quoted(s))
	}
	return addr.String(), nil
}
