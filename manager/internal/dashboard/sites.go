package dashboard

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/prose"
	"opensource.internal/manager/internal/store"
)

// sitesCrumb is above every page about a site.
var sitesCrumb = crumb{"Sites", "/sites"}

func sitePath(id int64) string { return fmt.Sprintf("/sites/%d", id) }

func siteCrumb(s store.Site) crumb { return crumb{s.Name, sitePath(s.ID)} }

// manifestPath is where a site is had as a file.
func manifestPath(siteID int64) string { return "/api/v1" + sitePath(siteID) + "/manifest" }

// siteTopics are what a page shows that is about a site.
func siteTopics(id int64) []string { return []string{fmt.Sprintf("site:%d", id)} }

// The groups of the fields of a site. A first site needs none of them.
const (
	addresses = "DNS and DHCP"
	outside   = "From outside"
	handling  = "Volumes and publishing"
)

// siteFields are what an administrator sets of a site.
func siteFields(s *inventory.Site) []*field {
	return []*field{
		text("name", "Name", &s.Name).required(),
		text("internalDomain", "Internal domain", &s.InternalDomain).in(addresses).hint("Such as lab.internal. DNS and DHCP are served once this and the four fields below are set."),
		text("dhcpRange", "DHCP range", &s.DHCPRange).in(addresses).hint("First and last address, such as 192.0.2.100,192.0.2.200"),
		text("subnetMask", "Subnet mask", &s.SubnetMask).in(addresses).hint("Such as 255.255.255.0"),
		text("gateway", "Gateway", &s.Gateway).in(addresses).hint("The site's router, such as 192.0.2.1: hosts learn it by DHCP"),
		text("dnsForwarders", "DNS forwarders", &s.DNSForwarders).in(addresses).hint("Where other names are asked for, such as 9.9.9.9,1.1.1.1"),
		text("externalIp", "External address", &s.ExternalIP).in(outside).hint("The site's public address, such as 203.0.113.10. Pages name it where people reach a service"),
		text("portRange", "External ports", &s.PortRange).in(outside).hint("Ports are given to TCP and UDP services from here. If empty: " + inventory.DefaultPortRange),
		text("volumesRoot", "Folder of the volumes", &s.VolumesRoot).in(handling).hint("If empty: " + inventory.DefaultVolumesRoot),
		choice("publishing", "Publishing", &s.Publishing,
			option{inventory.PublishAuto, "Every change at once"},
			option{inventory.PublishManual, "Changes wait until they are published"}).in(handling),
	}
}

// sitesView is the list of sites.
type sitesView struct {
	List     *listing // which page of it, and of how many
	Rows     []siteRow
	Search   string
	CanWrite bool
}

type siteRow struct {
	ID                    int64
	Name, Domain, Network string
	Agents                []siteAgent
	Waiting               string
}

type siteAgent struct {
	ID            int64
	Host          string
	Status, Class string
	Failing       bool
	Age           string
	LastSeen      string
}

func (d *dashboard) listSites(v *visit) error {
	ctx := v.Request.Context()
	l := v.listing("Sites")
	l.Sort = "name"
	sites, total, err := d.store.ListSites(ctx, store.SiteFilter{}, l.options())
	if err != nil {
		return err
	}
	l.Total = total
	view := sitesView{List: l, Search: l.Search, CanWrite: v.canWrite()}
	held, err := d.held(ctx, sites, v.Now)
	if err != nil {
		return err
	}
	for _, s := range sites {
		shown := siteRow{ID: s.ID, Name: s.Name, Domain: s.InternalDomain, Network: s.DHCPRange, Waiting: held[s.ID]}
		agents, _, err := d.store.ListAgents(ctx, store.AgentFilter{SiteID: s.ID}, store.ListOptions{})
		if err != nil {
			return err
		}
		if shown.Agents, err = d.describeSiteAgents(v, s.ID, agents); err != nil {
			return err
		}
		view.Rows = append(view.Rows, shown)
	}
	p := v.page("Sites", "/sites")
	p.Topics, p.Every = []string{"sites", "agents", "events"}, agentsEvery
	return v.show(http.StatusOK, p, sitesPage(p, view))
}

// describeSiteAgents describes agents of a site. They share its volumes: of one that
// has failed they all tell.
func (d *dashboard) describeSiteAgents(v *visit, siteID int64, agents []store.Agent) ([]siteAgent, error) {
	if len(agents) == 0 {
		return nil, nil
	}
	_, failed, err := d.store.ListVolumes(v.Request.Context(), store.VolumeFilter{SiteID: siteID, Status: store.VolumeFailed}, store.ListOptions{Limit: 1})
	var list []siteAgent
	for _, a := range agents {
		one := describeSiteAgent(v, a)
		one.Failing = a.Summary.Severity == store.Failing || failed > 0
		list = append(list, one)
	}
	return list, err
}

func describeSiteAgent(v *visit, a store.Agent) siteAgent {
	presence := a.Presence(v.Now)
	return siteAgent{
		ID: a.ID, Host: a.Hostname, Status: string(presence), Class: presenceClass(presence),
		Age: ago(a.Age(v.Now)), LastSeen: a.LastSeenAt.UTC().Format(machineTime),
	}
}

// siteView is all about one site.
type siteView struct {
	ID       int64
	Name     string
	Facts    []detail
	Held     string
	Agents   []siteAgent
	Contents []crumb
	Missing  string // the next that it needs to serve something
	NoNode   bool
	Domains  []crumb
	CanWrite bool
}

func (d *dashboard) site(v *visit) error {
	ctx := v.Request.Context()
	s, err := d.siteOf(v)
	if err != nil {
		return err
	}
	held, err := d.held(ctx, []store.Site{s}, v.Now)
	if err != nil {
		return err
	}
	view := siteView{ID: s.ID, Name: s.Name, Held: held[s.ID], Facts: details(siteFields(&s.Site)[1:]), CanWrite: v.canWrite()}
	agents, _, err := d.store.ListAgents(ctx, store.AgentFilter{SiteID: s.ID}, store.ListOptions{Limit: store.All})
	if err != nil {
		return err
	}
	if view.Agents, err = d.describeSiteAgents(v, s.ID, agents); err != nil {
		return err
	}
	if err := d.contentsOf(ctx, s, &view); err != nil {
		return err
	}
	domains, _, err := d.store.ListExternalDomains(ctx, store.ExternalDomainFilter{DefaultSiteID: s.ID}, store.ListOptions{Limit: store.All, Sort: "name"})
	if err != nil {
		return err
	}
	for _, e := range domains {
		view.Domains = append(view.Domains, crumb{readable(e.Name), domainPath(e.ID)})
	}
	p := v.page(s.Name, "/sites", sitesCrumb)
	p.Topics, p.Every = []string{"site:" + strconv.FormatInt(s.ID, 10)}, agentsEvery
	return v.show(http.StatusOK, p, sitePage(p, view))
}

func (d *dashboard) newSite(v *visit) error {
	var wanted inventory.Site
	f := &form{Fields: siteFields(&wanted), Submit: "Create the site", Cancel: "/sites"}
	return v.fill(v.page("New site", "/sites", sitesCrumb), f, func(typed url.Values) (done, error) {
		if err := f.read(typed); err != nil {
			return done{}, err
		}
		s, err := d.snapshots.CreateSite(v.Request.Context(), wanted)
		return done{Path: enrollPath(s.ID), Text: fmt.Sprintf("The site %q was created. Next comes its agent.", wanted.Name)}, err
	})
}

func (d *dashboard) editSite(v *visit) error {
	s, err := d.siteOf(v)
	if err != nil {
		return err
	}
	waiting := 0
	if s.Publishing == inventory.PublishManual {
		if waiting, err = d.snapshots.Waiting(v.Request.Context(), s.ID); err != nil {
			return err
		}
	}
	path, before := sitePath(s.ID), siteFields(&s.Site)
	f := &form{Version: version(s.Site), Fields: siteFields(&s.Site), Submit: "Save", Cancel: path}
	return v.fill(v.page("Edit the site", "/sites", sitesCrumb, siteCrumb(s)), f, func(typed url.Values) (done, error) {
		byHand := typed.Get("publishing") == inventory.PublishManual
		stored, err := d.snapshots.UpdateSite(v.Request.Context(), s.ID, byHand, changing(f, typed, siteFields))
		result := saved(path, "site", s.ID, before, siteFields(&stored.Site))
		if stored.Publishing == inventory.PublishAuto && waiting > 0 {
			result.Text += fmt.Sprintf(" With it, agents get the %s that waited.", prose.Counted(waiting, "change"))
		}
		if onlyPublishing(s.Site, stored.Site) {
			result.Site = 0 // no revision has it, and none brings it back
		}
		return result, err
	})
}

// onlyPublishing reports whether two versions of a site differ in nothing but how it
// is published.
func onlyPublishing(before, after inventory.Site) bool {
	before.Publishing = after.Publishing
	return before == after
}

// deleteSite names what vanishes with a site first.
func (d *dashboard) deleteSite(v *visit) error {
	s, view, err := d.vanishingSite(v)
	if err != nil {
		return err
	}
	return v.confirm(v.page("Delete the "+view.What+"?", "/sites", sitesCrumb, siteCrumb(s)), view, func() (done, error) {
		err := d.store.DeleteSite(v.Request.Context(), s.ID, true)
		return done{Path: "/sites", Text: fmt.Sprintf("The site %q was deleted.", s.Name)}, err
	})
}

func (d *dashboard) vanishingSite(v *visit) (store.Site, vanishing, error) {
	s, err := d.siteOf(v)
	if err != nil {
		return s, vanishing{}, err
	}
	within, err := d.within(v.Request.Context(), s)
	if err != nil {
		return s, vanishing{}, err
	}
	view := vanishing{What: fmt.Sprintf("site %q", s.Name), Cancel: sitePath(s.ID), File: manifestPath(s.ID)}
	view.add("Nodes", names(within.nodes, func(n store.Node) string { return n.Name }))
	view.add("Containers", names(within.containers, func(c store.Container) string { return c.Hostname }))
	view.add("Services", names(within.services, serviceName))
	view.add("Volumes", names(within.volumes, func(v store.Volume) string { return v.HostPath }))
	view.add("Agents", names(within.agents, func(a store.Agent) string { return a.Hostname }))
	view.add("API keys", names(within.keys, func(k store.APIKey) string { return k.Name }))
	view.Keeps = "Its revisions go, too. Files in the volumes stay on the site's host, and what runs there goes on until somebody stops it."
	if len(within.domains) > 0 {
		view.Keeps += " External domains stay, without a site of their own."
	}
	return s, view, nil
}

func names[T any](rows []T, name func(T) string) []string {
	var all []string
	for _, row := range rows {
		all = append(all, name(row))
	}
	return all
}

// serviceName is how a service is named among those of its site.
func serviceName(s store.Service) string {
	switch s.Type {
	case inventory.ServiceHTTP:
		return fmt.Sprintf("HTTP %s (port %d)", s.ExternalHostname, s.InternalPort)
	case inventory.ServiceTransport:
		return fmt.Sprintf("%s port %d", strings.ToUpper(s.Protocol), s.ExternalPort)
	}
	return s.RecordType + " " + s.DNSName
}

// contents are all records of a site.
type contents struct {
	nodes      []store.Node
	containers []store.Container
	services   []store.Service
	volumes    []store.Volume
	agents     []store.Agent
	keys       []store.APIKey
	domains    []store.ExternalDomain
}

// within reads what is in a site.
func (d *dashboard) within(ctx context.Context, s store.Site) (c contents, err error) {
	all := store.ListOptions{Limit: store.All}
	if c.nodes, _, err = d.store.ListNodes(ctx, store.NodeFilter{SiteID: s.ID}, all); err != nil {
		return c, err
	}
	if c.containers, _, err = d.store.ListContainers(ctx, store.ContainerFilter{SiteID: s.ID}, all); err != nil {
		return c, err
	}
	if c.services, _, err = d.store.ListServices(ctx, store.ServiceFilter{SiteID: s.ID}, all); err != nil {
		return c, err
	}
	if c.volumes, _, err = d.store.ListVolumes(ctx, store.VolumeFilter{SiteID: s.ID}, all); err != nil {
		return c, err
	}
	if c.agents, _, err = d.store.ListAgents(ctx, store.AgentFilter{SiteID: s.ID}, all); err != nil {
		return c, err
	}
	if c.keys, _, err = d.store.ListAPIKeys(ctx, store.APIKeyFilter{SiteID: s.ID}, all); err != nil {
		return c, err
	}
	c.domains, _, err = d.store.ListExternalDomains(ctx, store.ExternalDomainFilter{DefaultSiteID: s.ID}, all)
	return c, err
}

// siteOf is the site of the address.
func (d *dashboard) siteOf(v *visit) (store.Site, error) {
	id, err := v.id()
	if err != nil {
		return store.Site{}, err
	}
	return d.store.GetSite(v.Request.Context(), id)
}
