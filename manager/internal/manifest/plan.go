package manifest

import (
	"fmt"
	"strings"

	"opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/store"
)

// Options say how manifests are applied.
type Options struct {
	// Prune deletes what is stored of the manifests' sites and is in none of
	// them. External domains belong to no site and are never deleted.
	Prune bool
	// DryRun finds out what would change, and changes nothing.
	DryRun bool
	// SiteID is the site that the only manifest is for, whatever its name is: a
	// new name renames the site. If 0, sites are known by their names, and
	// created.
	SiteID int64
	// Check looks at what is stored before anything is compared with it; nil for
	// nothing. Its error ends everything.
	Check func(store.Contents) error
}

// plan is what manifests mean for what is stored.
type plan struct {
	Options
	present  store.Contents
	changes  store.Changes
	kept     []kept
	records  map[any]*record // of each change
	holders  map[string]bool // what is kept, as conflicts name it
	faults   faults
	domains  map[int64]store.ExternalDomain // stored, by id
	onDomain map[string]*store.DomainChange // by name
	// Names by id.
	nodeNames, containerNames map[int64]string
}

// kept is a stored record that no manifest names, and that stays.
type kept struct{ site, kind, name, container string }

// newPlan compares manifests with what is stored.
func newPlan(manifests []*Manifest, present store.Contents, o Options) *plan {
	p := emptyPlan(present, o)
	sites := map[*Manifest]*store.SiteChange{}
	for _, m := range manifests {
		p.faults = append(p.faults, m.faults...)
		if m.Site != nil && m.Site.Name != "" {
			sites[m] = p.site(m.Site)
		}
	}
	for _, m := range manifests {
		for _, domain := range m.Domains {
			p.domain(domain)
		}
	}
	for _, m := range manifests {
		if site := sites[m]; site != nil {
			newSitePlan(p, m, site).compare()
		}
	}
	return p
}

// emptyPlan changes nothing of what is stored.
func emptyPlan(present store.Contents, o Options) *plan {
	p := &plan{
		Options: o, present: present, records: map[any]*record{}, holders: map[string]bool{},
		domains: map[int64]store.ExternalDomain{}, onDomain: map[string]*store.DomainChange{},
		nodeNames: map[int64]string{}, containerNames: map[int64]string{},
	}
	for _, node := range present.Nodes {
		p.nodeNames[node.ID] = node.Name
	}
	for _, container := range present.Containers {
		p.containerNames[container.ID] = container.Hostname
	}
	for _, domain := range present.Domains {
		p.domains[domain.ID] = domain
	}
	return p
}

// site finds the site that a manifest is for, or makes it. It is nil if another
// manifest has it.
func (p *plan) site(wanted *Site) *store.SiteChange {
	for _, other := range p.changes.Sites {
		if strings.EqualFold(other.After.Name, wanted.Name) {
			first := p.records[other].at
			p.faults.field(&wanted.record, "name", "site %q is described already in %s", wanted.Name, seenFrom(wanted.at, first))
			return nil
		}
	}
	c := &store.SiteChange{}
	c.After = &store.Site{}
	for _, stored := range p.present.Sites {
		if p.SiteID == stored.ID || p.SiteID == 0 && strings.EqualFold(stored.Name, wanted.Name) {
			after := stored
			c.Before, c.After = &stored, &after
		}
	}
	publishing := c.After.Publishing
	c.After.Site = wanted.Site
	// A file that is silent about when agents get the site publishes nothing.
	if _, told := wanted.fields["publishing"]; !told && c.Before != nil {
		c.After.Publishing = publishing
	}
	c.Err = wanted.err()
	p.records[c] = &wanted.record
	p.changes.Sites = append(p.changes.Sites, c)
	return c
}

// seenFrom names a place for somebody who looks at another one.
func seenFrom(from, at Place) string {
	if from.File == at.File {
		return fmt.Sprintf("line %d", at.Line)
	}
	return fmt.Sprintf("%s:%d", at.File, at.Line)
}

// domain compares an external domain. Several manifests may describe one if they
// say the same.
func (p *plan) domain(wanted *Domain) {
	if wanted.Name == "" {
		return
	}
	if other, found := p.onDomain[wanted.Name]; found {
		first := p.records[other]
		if other.After.AuthServer != wanted.AuthServer || !strings.EqualFold(p.defaultSite(other), wanted.DefaultSite) {
			p.faults.field(&wanted.record, "name", "external domain %q is described otherwise in %s", wanted.Name, seenFrom(wanted.at, first.at))
		}
		return
	}
	c := &store.DomainChange{}
	c.After = &store.ExternalDomain{}
	for _, stored := range p.present.Domains {
		if stored.Name == wanted.Name {
			after := stored
			c.Before, c.After = &stored, &after
		}
	}
	c.After.ExternalDomain = wanted.ExternalDomain
	p.records[c] = &wanted.record
	p.onDomain[wanted.Name] = c
	p.changes.Domains = append(p.changes.Domains, c)
	if wanted.DefaultSite != "" {
		p.setDefaultSite(c, wanted)
	}
	c.Err = wanted.err()
}

func (p *plan) setDefaultSite(c *store.DomainChange, wanted *Domain) {
	var names []string
	for _, site := range p.changes.Sites {
		if strings.EqualFold(site.After.Name, wanted.DefaultSite) {
			c.DefaultSite = site
			return
		}
		names = append(names, site.After.Name)
	}
	for id, name := range p.present.SiteNames {
		if strings.EqualFold(name, wanted.DefaultSite) && id != p.SiteID {
			c.After.DefaultSiteID = &id
			return
		}
		names = append(names, name)
	}
	p.faults.field(&wanted.record, "defaultSite", "there is no site %q%s", cut(wanted.DefaultSite), meant(wanted.DefaultSite, names))
}

// defaultSite is the name of the site that a domain will have as its default.
func (p *plan) defaultSite(c *store.DomainChange) string {
	switch {
	case c.DefaultSite != nil:
		return c.DefaultSite.After.Name
	case c.After.DefaultSiteID != nil:
		return p.present.SiteNames[*c.After.DefaultSiteID]
	}
	return ""
}

// meant suggests what somebody may have wanted to write.
func meant(name string, names []string) string {
	if similar := nearest(name, names); similar != "" {
		return fmt.Sprintf("; did you mean %s?", similar)
	}
	return ""
}

// domainNamed finds the domain that a service names: described in a manifest, or
// stored.
func (p *plan) domainNamed(name string) *store.DomainChange {
	if c, found := p.onDomain[name]; found {
		return c
	}
	for _, stored := range p.present.Domains {
		if stored.Name == name {
			c := &store.DomainChange{}
			c.Before, c.After = &stored, &stored
			p.onDomain[name] = c
			return c
		}
	}
	return nil
}

func (p *plan) domainNames() []string {
	var names []string
	for _, stored := range p.present.Domains {
		names = append(names, stored.Name)
	}
	for name := range p.onDomain {
		names = append(names, name)
	}
	return names
}

func (p *plan) keep(site, kind, name, container string) {
	p.kept = append(p.kept, kept{site, kind, name, container})
	p.holders[fmt.Sprintf("%s %q", kind, name)] = true
}

// sitePlan compares one manifest with its site.
type sitePlan struct {
	*plan
	wanted *Manifest
	site   *store.SiteChange
	// What is stored of the site.
	stored struct {
		nodes      []store.Node
		containers []store.Container
		services   []store.Service
		volumes    []store.Volume
	}
	names      map[string]*record // of nodes and containers: one name space
	nodes      map[string]*store.NodeChange
	containers map[int64]*store.ContainerChange // stored ones that the manifest names, by id
	owned      []owned                          // what containers have
}

// owned is a container of the manifest with its change.
type owned struct {
	wanted *Container
	change *store.ContainerChange
}

func newSitePlan(p *plan, m *Manifest, site *store.SiteChange) *sitePlan {
	s := &sitePlan{
		plan: p, wanted: m, site: site,
		names: map[string]*record{}, nodes: map[string]*store.NodeChange{}, containers: map[int64]*store.ContainerChange{},
	}
	if site.Before != nil {
		id := site.Before.ID
		s.stored.nodes = only(p.present.Nodes, func(r store.Node) bool { return r.SiteID == id })
		s.stored.containers = only(p.present.Containers, func(r store.Container) bool { return r.SiteID == id })
		s.stored.services = only(p.present.Services, func(r store.Service) bool { return r.SiteID == id })
		s.stored.volumes = only(p.present.Volumes, func(r store.Volume) bool { return r.SiteID == id })
	}
	return s
}

func only[T any](list []T, of func(T) bool) []T {
	var kept []T
	for _, one := range list {
		if of(one) {
			kept = append(kept, one)
		}
	}
	return kept
}

func (s *sitePlan) compare() {
	s.compareNodes()
	s.compareContainers()
	s.compareServices()
	s.compareVolumes()
}

// takeName refuses a name that another node or container of the manifest has.
func (s *sitePlan) takeName(r *record, field, name string) bool {
	if first, taken := s.names[name]; taken {
		s.faults.field(r, field, "the name %q is already in use by %s in %s", name, first.path, seenFrom(r.at, first.at))
		return false
	}
	s.names[name] = r
	return true
}

func (s *sitePlan) compareNodes() {
	stored := map[string]store.Node{}
	for _, node := range s.stored.nodes {
		stored[node.Name] = node
	}
	for _, wanted := range s.wanted.Nodes {
		if wanted.Name == "" || !s.takeName(&wanted.record, "name", wanted.Name) {
			continue
		}
		c := &store.NodeChange{Site: s.site}
		c.After = &store.Node{}
		if before, found := stored[wanted.Name]; found {
			after := before
			c.Before, c.After = &before, &after
		}
		c.After.Node = wanted.Node
		c.Err = wanted.err()
		s.nodes[wanted.Name] = c
		s.records[c] = &wanted.record
		s.changes.Nodes = append(s.changes.Nodes, c)
	}
	for _, node := range s.stored.nodes {
		if s.nodes[node.Name] != nil {
			continue
		}
		c := &store.NodeChange{Site: s.site}
		c.Before = &node
		if s.Prune {
			s.changes.Nodes = append(s.changes.Nodes, c)
			continue
		}
		c.After = &node
		s.nodes[node.Name] = c
		s.keep(s.site.After.Name, "node", node.Name, "")
	}
}

func (s *sitePlan) compareContainers() {
	stored := map[string]store.Container{}
	for _, container := range s.stored.containers {
		stored[container.Hostname] = container
	}
	for _, wanted := range s.wanted.Containers {
		if wanted.Hostname == "" || !s.takeName(&wanted.record, "hostname", wanted.Hostname) {
			continue
		}
		c := &store.ContainerChange{Site: s.site, Node: s.nodeOf(wanted)}
		c.After = &store.Container{}
		if before, found := stored[wanted.Hostname]; found {
			after := before
			c.Before, c.After = &before, &after
			s.containers[before.ID] = c
		}
		c.After.Container = wanted.Container
		c.Err = wanted.err()
		s.records[c] = &wanted.record
		s.changes.Containers = append(s.changes.Containers, c)
		s.owned = append(s.owned, owned{wanted, c})
	}
	for _, container := range s.stored.containers {
		if s.containers[container.ID] != nil {
			continue
		}
		if !s.Prune {
			s.keep(s.site.After.Name, "container", container.Hostname, "")
			continue
		}
		c := &store.ContainerChange{Site: s.site}
		c.Before = &container
		s.changes.Containers = append(s.changes.Containers, c)
	}
}

// nodeOf finds the node that a container names.
func (s *sitePlan) nodeOf(wanted *Container) *store.NodeChange {
	if wanted.Node == "" {
		return nil // said already
	}
	if node := s.nodes[inventory.FoldSearch(wanted.Node)]; node != nil {
		return node
	}
	var names []string
	for name := range s.nodes {
		names = append(names, name)
	}
	beside := ""
	for _, stored := range s.stored.nodes {
		if s.Prune && stored.Name == inventory.FoldSearch(wanted.Node) {
			beside = " in the file, and the stored one is to be deleted"
		}
	}
	s.faults.field(&wanted.record, "node", "there is no node %q%s%s", cut(wanted.Node), beside, meant(wanted.Node, names))
	return nil
}

func (s *sitePlan) compareVolumes() {
	type key struct {
		container int64
		name      string
	}
	stored, seen := map[key]store.Volume{}, map[int64]bool{}
	for _, volume := range s.stored.volumes {
		stored[key{volume.ContainerID, volume.Name}] = volume
	}
	for _, in := range s.owned {
		names := map[string]*record{}
		for _, wanted := range in.wanted.Volumes {
			if wanted.broken {
				continue
			}
			if first, taken := names[wanted.Name]; taken {
				s.faults.field(&wanted.record, "name", "the container has a volume %q already in %s", wanted.Name, seenFrom(wanted.at, first.at))
				continue
			}
			names[wanted.Name] = &wanted.record
			c := &store.VolumeChange{Container: in.change}
			c.After = &store.Volume{}
			if in.change.Before != nil {
				if before, found := stored[key{in.change.Before.ID, wanted.Name}]; found {
					after := before
					c.Before, c.After = &before, &after
					seen[before.ID] = true
				}
			}
			c.After.Volume = wanted.Volume
			s.records[c] = &wanted.record
			s.changes.Volumes = append(s.changes.Volumes, c)
		}
	}
	for _, volume := range s.stored.volumes {
		if seen[volume.ID] {
			continue
		}
		container := s.containers[volume.ContainerID]
		switch {
		case s.Prune:
			c := &store.VolumeChange{Container: container}
			c.Before = &volume
			s.changes.Volumes = append(s.changes.Volumes, c)
		case container != nil: // else its container is kept, and it with that
			s.keep(s.site.After.Name, "volume", volume.Name, container.After.Hostname)
		}
	}
}
