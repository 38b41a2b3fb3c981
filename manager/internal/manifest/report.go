package manifest

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/store"
)

// Report is what applying manifests changed, or would change.
type Report struct {
	DryRun  bool     `json:"dryRun"`
	Changes []Change `json:"changes" nullable:"false"`
	Kept    []Kept   `json:"kept" nullable:"false" doc:"Stored records that no manifest names, and that stay"`
}

// Action is what is done with a record.
type Action string

// The actions.
const (
	Create Action = "create"
	Update Action = "change"
	Delete Action = "delete"
)

// Change is what becomes of one record.
type Change struct {
	Action    Action        `json:"action" enum:"create,change,delete"`
	Kind      string        `json:"kind" enum:"site,external domain,node,container,service,volume"`
	Name      string        `json:"name" example:"web"`
	Site      string        `json:"site,omitempty" doc:"The site it belongs to; an external domain belongs to none"`
	Container string        `json:"container,omitempty" doc:"The container it belongs to"`
	Fields    []FieldChange `json:"fields" nullable:"false"`
	Note      string        `json:"note,omitempty" doc:"What else there is to know of it"`
}

// FieldChange is a field that has another value than before; null is not set.
type FieldChange struct {
	Field string `json:"field"`
	Old   any    `json:"old"`
	New   any    `json:"new"`
}

// Kept is a stored record that no manifest names.
type Kept struct {
	Kind      string `json:"kind"`
	Name      string `json:"name"`
	Site      string `json:"site"`
	Container string `json:"container,omitempty"`
}

// Changed reports whether there is anything to change.
func (r *Report) Changed() bool { return len(r.Changes) > 0 }

// property is a field of a record and its value; nil if it is not set.
type property struct {
	field string
	value any
	known bool // of a new record told by its name already
}

func textOf(field, value string) property {
	if value == "" {
		return property{field: field}
	}
	return property{field: field, value: value}
}

func numberOf(field string, value int) property {
	if value == 0 {
		return property{field: field}
	}
	return property{field: field, value: value}
}

// report tells what was made of the plan: only then allocated ports and the
// directories of new volumes are known.
func (p *plan) report() *Report {
	p.learnNames()
	r := &Report{DryRun: p.DryRun, Changes: []Change{}, Kept: []Kept{}}
	for _, c := range p.changes.Sites {
		told(r, c.Change, Change{Kind: "site", Name: c.After.Name, Site: c.After.Name}, p.siteProperties)
	}
	for _, c := range p.changes.Domains {
		told(r, c.Change, Change{Kind: "external domain", Name: c.After.Name}, p.domainProperties)
	}
	for _, c := range p.changes.Nodes {
		told(r, c.Change, Change{Kind: "node", Name: either(c.Change).Name, Site: c.Site.After.Name}, p.nodeProperties)
	}
	for _, c := range p.changes.Containers {
		about := Change{Kind: "container", Name: either(c.Change).Hostname, Site: c.Site.After.Name}
		told(r, c.Change, about, p.containerProperties)
	}
	for _, c := range p.changes.Services {
		told(r, c.Change, p.aboutService(c), p.serviceProperties)
	}
	for _, c := range p.changes.Volumes {
		told(r, c.Change, p.aboutVolume(c), p.volumeProperties)
	}
	for _, k := range p.kept {
		r.Kept = append(r.Kept, Kept{Kind: k.kind, Name: k.name, Site: k.site, Container: k.container})
	}
	p.arrange(r.Changes)
	return r
}

// arrange puts changes in the order of the manifests: first external domains,
// then site by site, and what containers have behind them.
func (p *plan) arrange(changes []Change) {
	sites, containers := map[string]int{}, map[[2]string]int{}
	for i, c := range p.changes.Sites {
		sites[c.After.Name] = i + 1
	}
	for i, c := range p.changes.Containers {
		containers[[2]string{c.Site.After.Name, either(c.Change).Hostname}] = i + 1
	}
	ownerOf := func(c Change) int {
		switch {
		case c.Kind == "container":
			return containers[[2]string{c.Site, c.Name}]
		case c.Container != "":
			return containers[[2]string{c.Site, c.Container}]
		}
		return 0
	}
	slices.SortStableFunc(changes, func(a, b Change) int {
		return cmp.Or(cmp.Compare(sites[a.Site], sites[b.Site]), cmp.Compare(ownerOf(a), ownerOf(b)))
	})
}

// either is the record as it will be, or as it was.
func either[T any](c store.Change[T]) *T {
	if c.After != nil {
		return c.After
	}
	return c.Before
}

// told adds a change to a report if it is one.
func told[T any](r *Report, c store.Change[T], about Change, properties func(*T) []property) {
	about.Fields = []FieldChange{}
	switch {
	case c.After == nil:
		about.Action = Delete
	case c.Before == nil:
		about.Action = Create
		for _, p := range properties(c.After) {
			if p.value != nil && !p.known {
				about.Fields = append(about.Fields, FieldChange{p.field, nil, p.value})
			}
		}
	default:
		about.Action = Update
		before := properties(c.Before)
		for i, p := range properties(c.After) {
			if before[i].value != p.value {
				about.Fields = append(about.Fields, FieldChange{p.field, before[i].value, p.value})
			}
		}
		if len(about.Fields) == 0 {
			return
		}
	}
	r.Changes = append(r.Changes, about)
}

func (p *plan) siteProperties(s *store.Site) []property {
	return []property{
		{"name", s.Name, true},
		textOf("internalDomain", s.InternalDomain), textOf("dhcpRange", s.DHCPRange), textOf("subnetMask", s.SubnetMask),
		textOf("gateway", s.Gateway), textOf("dnsForwarders", s.DNSForwarders), textOf("externalIp", s.ExternalIP),
		textOf("volumesRoot", s.VolumesRoot), textOf("portRange", s.PortRange),
		textOf("publishing", s.Publishing),
	}
}

func (p *plan) domainProperties(d *store.ExternalDomain) []property {
	return []property{{"name", d.Name, true}, textOf("authServer", d.AuthServer), textOf("defaultSite", p.siteName(d.DefaultSiteID))}
}

func (p *plan) nodeProperties(n *store.Node) []property {
	return []property{{"name", n.Name, true}, textOf("ipv4Address", n.IPv4Address), textOf("type", n.Type)}
}

func (p *plan) containerProperties(c *store.Container) []property {
	return []property{
		{"hostname", c.Hostname, true},
		textOf("node", p.nodeName(c.NodeID)), textOf("owner", c.Owner),
		textOf("ipv4Address", c.IPv4Address), textOf("macAddress", c.MACAddress),
	}
}

func (p *plan) serviceProperties(s *store.Service) []property {
	all := []property{{"container", p.containerName(s.ContainerID), true}, numberOf("internalPort", s.InternalPort)}
	switch s.Type {
	case inventory.ServiceHTTP:
		return append(all, property{"externalHostname", s.ExternalHostname, true}, property{"externalDomain", p.domainName(s.ExternalDomainID), true},
			textOf("backendProtocol", s.BackendProtocol), property{field: "authRequired", value: s.AuthRequired})
	case inventory.ServiceTransport:
		return append(all, textOf("protocol", s.Protocol), numberOf("externalPort", s.ExternalPort))
	}
	return append(all, property{"dnsName", s.DNSName, true}, textOf("recordType", s.RecordType))
}

func (p *plan) volumeProperties(v *store.Volume) []property {
	return []property{{"name", v.Name, true}, textOf("mountPath", v.MountPath), textOf("mode", v.Mode), textOf("hostPath", v.HostPath)}
}

// siteName, nodeName and containerName name what ids refer to, created or
// stored.
func (p *plan) siteName(id *int64) string {
	if id == nil {
		return ""
	}
	for _, c := range p.changes.Sites {
		if c.After.ID == *id {
			return c.After.Name
		}
	}
	return p.present.SiteNames[*id]
}

func (p *plan) domainName(id *int64) string {
	if id == nil {
		return ""
	}
	return p.domains[*id].Name
}

func (p *plan) nodeName(id int64) string      { return p.nodeNames[id] }
func (p *plan) containerName(id int64) string { return p.containerNames[id] }

// learnNames notes the names of what was created.
func (p *plan) learnNames() {
	for _, c := range p.changes.Nodes {
		p.nodeNames[either(c.Change).ID] = either(c.Change).Name
	}
	for _, c := range p.changes.Domains {
		p.domains[c.After.ID] = *c.After
	}
	for _, c := range p.changes.Containers {
		p.containerNames[either(c.Change).ID] = either(c.Change).Hostname
	}
}

func (p *plan) aboutService(c *store.ServiceChange) Change {
	service := either(c.Change)
	about := Change{Kind: "service", Name: p.serviceName(*service), Container: p.containerName(service.ContainerID), Site: p.siteName(&service.SiteID)}
	if c.Before != nil && c.After != nil { // as it was known until now
		about.Name = p.serviceName(*c.Before)
	}
	return about
}

func (p *plan) aboutVolume(c *store.VolumeChange) Change {
	volume := either(c.Change)
	about := Change{Kind: "volume", Name: volume.Name, Container: p.containerName(volume.ContainerID), Site: p.siteName(&volume.SiteID)}
	if c.After == nil {
		about.Note = "the directory " + volume.HostPath + " stays on the node"
	}
	return about
}

// Write prints a report for people.
func (r *Report) Write(w io.Writer) error {
	var b strings.Builder
	writeChanges(&b, r.Changes)
	if len(r.Kept) > 0 {
		b.WriteString("not in the file, kept (--prune deletes it):\n")
	}
	for _, k := range r.Kept {
		fmt.Fprintf(&b, "  = %s\n", described(k.Kind, k.Name, k.Container, k.Site))
	}
	if r.maybeRenamed() {
		b.WriteString("records are known by their names: what has a new one is deleted and created anew, its volumes with new directories\n")
	}
	b.WriteString(r.summary() + "\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func writeChanges(b *strings.Builder, changes []Change) {
	for i, c := range changes {
		switch {
		case i > 0 && c.Site == changes[i-1].Site:
		case c.Site == "":
			b.WriteString("external domains:\n")
		default:
			fmt.Fprintf(b, "site %q:\n", c.Site)
		}
		c.write(b)
	}
}

// maybeRenamed reports whether a container of a site is deleted and another one
// created: somebody may take that for a renaming.
func (r *Report) maybeRenamed() bool {
	done := map[[2]string]bool{}
	for _, c := range r.Changes {
		if c.Kind == "container" {
			done[[2]string{string(c.Action), c.Site}] = true
		}
		if done[[2]string{string(Create), c.Site}] && done[[2]string{string(Delete), c.Site}] {
			return true
		}
	}
	return false
}

func (c Change) write(b *strings.Builder) {
	sign := map[Action]string{Create: "+", Update: "~", Delete: "-"}[c.Action]
	fmt.Fprintf(b, "  %s %s\n", sign, described(c.Kind, c.Name, c.Container, ""))
	for _, f := range c.Fields {
		if c.Action == Create {
			fmt.Fprintf(b, "      %s: %v\n", f.Field, f.New)
			continue
		}
		fmt.Fprintf(b, "      %s: %s → %s\n", f.Field, shown(f.Old), shown(f.New))
	}
	if c.Note != "" {
		fmt.Fprintf(b, "      (%s)\n", c.Note)
	}
}

func described(kind, name, container, site string) string {
	text := fmt.Sprintf("%s %q", kind, name)
	if kind == "service" {
		text = "service " + name
	}
	if container != "" {
		text += fmt.Sprintf(" of container %q", container)
	}
	if site != "" {
		text += fmt.Sprintf(" of site %q", site)
	}
	return text
}

func shown(value any) string {
	if value == nil {
		return "not set"
	}
	return fmt.Sprint(value)
}

func (r *Report) summary() string {
	if len(r.Changes) == 0 {
		return "no changes"
	}
	counts := map[Action]int{}
	for _, c := range r.Changes {
		counts[c.Action]++
	}
	text := fmt.Sprintf("%d created, %d changed, %d deleted", counts[Create], counts[Update], counts[Delete])
	if r.DryRun {
		text += " (dry run: nothing was written)"
	}
	return text
}
