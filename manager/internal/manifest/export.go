package manifest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/store"
)

// document is a manifest as it is written. Fields that are not set, or have the
// value they have anyway, are left out.
type document struct {
	Version    int            `json:"version"`
	Site       *siteOut       `json:"site,omitempty"`
	Domains    []domainOut    `json:"externalDomains,omitempty"`
	Nodes      []nodeOut      `json:"nodes,omitempty"`
	Containers []containerOut `json:"containers,omitempty"`
}

type siteOut struct {
	Name           string `json:"name"`
	InternalDomain string `json:"internalDomain,omitempty"`
	DHCPRange      string `json:"dhcpRange,omitempty"`
	SubnetMask     string `json:"subnetMask,omitempty"`
	Gateway        string `json:"gateway,omitempty"`
	DNSForwarders  string `json:"dnsForwarders,omitempty"`
	ExternalIP     string `json:"externalIp,omitempty"`
	VolumesRoot    string `json:"volumesRoot,omitempty"`
	PortRange      string `json:"portRange,omitempty"`
	Publishing     string `json:"publishing,omitempty"`
}

type domainOut struct {
	Name        string `json:"name"`
	AuthServer  string `json:"authServer,omitempty"`
	DefaultSite string `json:"defaultSite,omitempty"`
}

type nodeOut struct {
	Name        string `json:"name"`
	IPv4Address string `json:"ipv4Address,omitempty"`
	Type        string `json:"type,omitempty"`
}

type containerOut struct {
	Hostname    string       `json:"hostname"`
	Node        string       `json:"node"`
	Owner       string       `json:"owner,omitempty"`
	IPv4Address string       `json:"ipv4Address,omitempty"`
	MACAddress  string       `json:"macAddress,omitempty"`
	Services    []serviceOut `json:"services,omitempty"`
	Volumes     []volumeOut  `json:"volumes,omitempty"`
}

type serviceOut struct {
	Type             string `json:"type"`
	ExternalHostname string `json:"externalHostname,omitempty"`
	Domain           string `json:"externalDomain,omitempty"`
	Protocol         string `json:"protocol,omitempty"`
	DNSName          string `json:"dnsName,omitempty"`
	InternalPort     int    `json:"internalPort"`
	ExternalPort     int    `json:"externalPort,omitempty"`
	BackendProtocol  string `json:"backendProtocol,omitempty"`
	AuthRequired     bool   `json:"authRequired,omitempty"`
}

type volumeOut struct {
	Name      string `json:"name"`
	MountPath string `json:"mountPath"`
	Mode      string `json:"mode"`
	hostPath  string // a comment: it cannot be set
}

// Export writes down what is stored: one document for each site, with the
// external domains that its services are under or whose default it is. With all,
// the external domains are a document of their own before the others: there may
// be some that no site uses.
func Export(present store.Contents, all bool, format Format) ([]byte, error) {
	var documents []document
	if all && len(present.Domains) > 0 {
		documents = append(documents, document{Version: Version, Domains: domainsOut(present, present.Domains)})
	}
	for _, site := range present.Sites {
		d := siteDocument(present, site)
		if all {
			d.Domains = nil
		}
		documents = append(documents, d)
	}
	if format == JSON {
		return exportJSON(documents)
	}
	return exportYAML(documents), nil
}

func exportJSON(documents []document) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	for _, d := range documents {
		if err := encoder.Encode(d); err != nil {
			return nil, fmt.Errorf("write manifest: %w", err)
		}
	}
	return b.Bytes(), nil
}

func siteDocument(present store.Contents, site store.Site) document {
	d := document{Version: Version, Site: &siteOut{
		Name: site.Name, InternalDomain: site.InternalDomain, DHCPRange: site.DHCPRange, SubnetMask: site.SubnetMask, Gateway: site.Gateway,
		DNSForwarders: site.DNSForwarders, ExternalIP: site.ExternalIP,
		VolumesRoot: unless(site.VolumesRoot, inventory.DefaultVolumesRoot), PortRange: unless(site.PortRange, inventory.DefaultPortRange),
		Publishing: unless(site.Publishing, inventory.PublishAuto),
	}}
	nodes := map[int64]string{}
	for _, node := range present.Nodes {
		if node.SiteID == site.ID {
			nodes[node.ID] = node.Name
			d.Nodes = append(d.Nodes, nodeOut{node.Name, node.IPv4Address, unless(node.Type, inventory.NodeNone)})
		}
	}
	domains, used := map[int64]string{}, map[int64]bool{}
	for _, domain := range present.Domains {
		domains[domain.ID] = domain.Name
		used[domain.ID] = domain.DefaultSiteID != nil && *domain.DefaultSiteID == site.ID
	}
	services, volumes := map[int64][]serviceOut{}, map[int64][]volumeOut{}
	for _, service := range present.Services {
		if service.SiteID == site.ID {
			services[service.ContainerID] = append(services[service.ContainerID], exportService(service, domains))
			if service.ExternalDomainID != nil {
				used[*service.ExternalDomainID] = true
			}
		}
	}
	for _, volume := range present.Volumes {
		volumes[volume.ContainerID] = append(volumes[volume.ContainerID], volumeOut{volume.Name, volume.MountPath, volume.Mode, volume.HostPath})
	}
	for _, c := range present.Containers {
		if c.SiteID == site.ID {
			d.Containers = append(d.Containers, containerOut{
				c.Hostname, nodes[c.NodeID], c.Owner, c.IPv4Address, c.MACAddress, services[c.ID], volumes[c.ID],
			})
		}
	}
	d.Domains = domainsOut(present, only(present.Domains, func(domain store.ExternalDomain) bool { return used[domain.ID] }))
	return d
}

func domainsOut(present store.Contents, domains []store.ExternalDomain) []domainOut {
	var out []domainOut
	for _, domain := range domains {
		site := ""
		if domain.DefaultSiteID != nil {
			site = present.SiteNames[*domain.DefaultSiteID]
		}
		out = append(out, domainOut{domain.Name, domain.AuthServer, site})
	}
	return out
}

func exportService(s store.Service, domains map[int64]string) serviceOut {
	out := serviceOut{
		Type: string(s.Type), ExternalHostname: s.ExternalHostname, Protocol: s.Protocol, DNSName: s.DNSName, InternalPort: s.InternalPort,
		ExternalPort: s.ExternalPort, BackendProtocol: unless(s.BackendProtocol, "http"), AuthRequired: s.AuthRequired,
	}
	if s.ExternalDomainID != nil {
		out.Domain = domains[*s.ExternalDomainID]
	}
	return out
}

// unless leaves a value out that is the default.
func unless(value, standard string) string {
	if value == standard {
		return ""
	}
	return value
}

func exportYAML(documents []document) []byte {
	w := &yamlWriter{}
	for i, d := range documents {
		if i > 0 {
			w.b.WriteString("---\n")
		}
		w.document(d)
	}
	return w.b.Bytes()
}

// yamlWriter writes manifests as people do.
type yamlWriter struct{ b bytes.Buffer }

// line writes a field that is set: a text that is not empty.
func (w *yamlWriter) line(indent, field, value string) {
	if value != "" {
		fmt.Fprintf(&w.b, "%s%s: %s\n", indent, field, scalar(value))
	}
}

// entry begins a record of a list with its first field.
func (w *yamlWriter) entry(indent, field, value string) {
	fmt.Fprintf(&w.b, "%s- %s: %s\n", indent, field, scalar(value))
}

func (w *yamlWriter) document(d document) {
	fmt.Fprintf(&w.b, "version: %d\n", d.Version)
	if s := d.Site; s != nil {
		w.b.WriteString("site:\n")
		w.line("  ", "name", s.Name)
		w.line("  ", "internalDomain", s.InternalDomain)
		w.line("  ", "dhcpRange", s.DHCPRange)
		w.line("  ", "subnetMask", s.SubnetMask)
		w.line("  ", "gateway", s.Gateway)
		w.line("  ", "dnsForwarders", s.DNSForwarders)
		w.line("  ", "externalIp", s.ExternalIP)
		w.line("  ", "volumesRoot", s.VolumesRoot)
		w.line("  ", "portRange", s.PortRange)
		w.line("  ", "publishing", s.Publishing)
	}
	if len(d.Domains) > 0 {
		w.b.WriteString("externalDomains:\n")
	}
	for _, domain := range d.Domains {
		w.entry("  ", "name", domain.Name)
		w.line("    ", "authServer", domain.AuthServer)
		w.line("    ", "defaultSite", domain.DefaultSite)
	}
	if len(d.Nodes) > 0 {
		w.b.WriteString("nodes:\n")
	}
	for _, node := range d.Nodes {
		w.entry("  ", "name", node.Name)
		w.line("    ", "ipv4Address", node.IPv4Address)
		w.line("    ", "type", node.Type)
	}
	if len(d.Containers) > 0 {
		w.b.WriteString("containers:\n")
	}
	for _, container := range d.Containers {
		w.container(container)
	}
}

func (w *yamlWriter) container(c containerOut) {
	w.entry("  ", "hostname", c.Hostname)
	w.line("    ", "node", c.Node)
	w.line("    ", "owner", c.Owner)
	w.line("    ", "ipv4Address", c.IPv4Address)
	w.line("    ", "macAddress", c.MACAddress)
	if len(c.Services) > 0 {
		w.b.WriteString("    services:\n")
	}
	for _, s := range c.Services {
		w.entry("      ", "type", s.Type)
		w.line("        ", "externalHostname", s.ExternalHostname)
		w.line("        ", "externalDomain", s.Domain)
		w.line("        ", "protocol", s.Protocol)
		w.line("        ", "dnsName", s.DNSName)
		fmt.Fprintf(&w.b, "        internalPort: %d\n", s.InternalPort)
		if s.ExternalPort != 0 {
			fmt.Fprintf(&w.b, "        externalPort: %d\n", s.ExternalPort)
		}
		w.line("        ", "backendProtocol", s.BackendProtocol)
		if s.AuthRequired {
			w.b.WriteString("        authRequired: true\n")
		}
	}
	if len(c.Volumes) > 0 {
		w.b.WriteString("    volumes:\n")
	}
	for _, v := range c.Volumes {
		w.entry("      ", "name", v.Name)
		w.line("        ", "mountPath", v.MountPath)
		w.line("        ", "mode", v.Mode)
		fmt.Fprintf(&w.b, "        # hostPath: %s\n", v.hostPath)
	}
}

// plain is what is a text without quotes for every reader of YAML: words,
// addresses, lists and ranges of these, paths, URLs.
var plain = regexp.MustCompile(`^([a-zA-Z_/][a-zA-Z0-9_./@+-]*|https?://[a-zA-Z0-9_./-]+(:[0-9]+)?(/[a-zA-Z0-9_./-]*)?|[0-9]{1,3}(\.[0-9]{1,3}){3}(,[0-9]{1,3}(\.[0-9]{1,3}){3})*|[0-9]+-[0-9]+)$`)

// words mean something else than themselves to some reader of YAML.
var words = regexp.MustCompile(`(?i)^(y|n|yes|no|on|off|true|false|null|none|nan|inf)$`)

// scalar writes a text so that it is read as a text.
func scalar(value string) string {
	if plain.MatchString(value) && !words.MatchString(value) {
		return value
	}
	if strings.ContainsFunc(value, func(r rune) bool { return r == '"' || r == '\\' }) && !strings.Contains(value, "'") {
		return "'" + value + "'"
	}
	return strconv.Quote(value)
}
