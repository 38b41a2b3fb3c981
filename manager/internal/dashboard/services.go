package dashboard

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/store"
)

func servicesPath(containerID int64) string { return containerPath(containerID) + "/services" }
func servicePath(id int64) string           { return fmt.Sprintf("/services/%d", id) }

// serviceKinds are the types of service as people call them.
var serviceKinds = []option{
	{string(inventory.ServiceHTTP), "Web"},
	{string(inventory.ServiceTransport), "TCP or UDP port"},
	{string(inventory.ServiceDNS), "SRV record"},
}

// serviceFields are what an administrator sets of a service of its type.
func serviceFields(site store.Site, domains []option) func(*inventory.Service) []*field {
	return func(s *inventory.Service) []*field {
		switch s.Type {
		case inventory.ServiceHTTP:
			return httpFields(s, domains)
		case inventory.ServiceTransport:
			return transportFields(s, site)
		}
		return []*field{
			text("dnsName", "Name of the record", &s.DNSName).required().hint("Service and protocol, such as _sip._tcp"),
			number("internalPort", "Port", &s.InternalPort).required().hint("Where the container listens"),
		}
	}
}

func httpFields(s *inventory.Service, domains []option) []*field {
	return []*field{
		text("externalHostname", "Host name", &s.ExternalHostname).required().hint("What comes before the domain, such as app"),
		record("externalDomainId", "Domain", &s.ExternalDomainID, domains...).required(),
		number("internalPort", "Port", &s.InternalPort).required().hint("Where the container listens, such as 8080"),
		choice("backendProtocol", "The container speaks", &s.BackendProtocol, option{"http", "HTTP"}, option{"https", "HTTPS"}),
		check("authRequired", "Only for people who have signed in", &s.AuthRequired).hint("At the sign-in server of the domain; without one nobody gets in"),
	}
}

func transportFields(s *inventory.Service, site store.Site) []*field {
	return []*field{
		choice("protocol", "Protocol", &s.Protocol, option{"tcp", "TCP"}, option{"udp", "UDP"}),
		number("internalPort", "Port", &s.InternalPort).required().hint("Where the container listens, such as 22"),
		number("externalPort", "External port", &s.ExternalPort).hint("If empty, the lowest free one of " + site.PortRange),
	}
}

// reach is where people reach a service.
type reach struct {
	Kind    string
	Address string // to be copied
	Web     bool   // a browser can open it
}

func (r reach) words() string { return r.Kind + " " + r.Address }

// title is how the page of the service is called.
func (r reach) title() string {
	if r.Web {
		return strings.TrimPrefix(r.Address, "https://")
	}
	return r.words()
}

func describeReach(s store.Service, site store.Site, domains map[int64]string) reach {
	switch s.Type {
	case inventory.ServiceHTTP:
		return reach{"Web", "https://" + s.ExternalHostname + "." + domains[*s.ExternalDomainID], true}
	case inventory.ServiceTransport:
		port := strconv.Itoa(s.ExternalPort)
		if site.ExternalIP == "" {
			return reach{strings.ToUpper(s.Protocol) + " port", port, false}
		}
		return reach{strings.ToUpper(s.Protocol), net.JoinHostPort(site.ExternalIP, port), false}
	}
	if site.InternalDomain == "" {
		return reach{s.RecordType, s.DNSName, false}
	}
	return reach{s.RecordType, s.DNSName + "." + site.InternalDomain, false}
}

// servicesOf lists the services of a container.
func (d *dashboard) servicesOf(v *visit, site store.Site, c store.Container) (*listing, error) {
	l := &listing{Title: "Services", Columns: []column{{"Service", ""}, {"Reached at", ""}, {"Container port", ""}}, Empty: "Nothing of this container is published."}
	if v.canWrite() {
		l.New = crumb{"Add a service", servicesPath(c.ID) + "/new"}
	}
	services, _, err := d.store.ListServices(v.Request.Context(), store.ServiceFilter{ContainerID: c.ID}, store.ListOptions{Limit: store.All})
	if err != nil {
		return nil, err
	}
	domains, err := d.domainNames(v)
	if err != nil {
		return nil, err
	}
	refused, err := d.refusedIn(v, site.ID)
	if err != nil {
		return nil, err
	}
	if len(refused) > 0 {
		l.Columns = append(l.Columns, column{"Agent", ""})
	}
	for _, s := range services {
		at := describeReach(s, site, domains)
		l.Rows = append(l.Rows, row{fmt.Sprintf("service-%d", s.ID), []cell{
			{Text: at.Kind, Link: servicePath(s.ID), Note: signInNote(s)},
			{Text: at.Address, Copy: fmt.Sprintf("service-%d-address", s.ID)},
			{Text: strconv.Itoa(s.InternalPort)},
		}})
		if len(refused) > 0 {
			r := &l.Rows[len(l.Rows)-1]
			r.Cells = append(r.Cells, refused[s.ID])
		}
	}
	return l, nil
}

// refusedIn says which services of a site its agents could not serve as they are
// described, and why.
func (d *dashboard) refusedIn(v *visit, siteID int64) (map[int64]cell, error) {
	agents, _, err := d.store.ListAgents(v.Request.Context(), store.AgentFilter{SiteID: siteID}, store.ListOptions{Limit: store.All})
	refused := map[int64]cell{}
	for _, agent := range agents {
		for _, report := range agent.Report.Services {
			for _, item := range report.Quarantined {
				if item.ID == 0 || item.Kind != checkin.KindHTTP && item.Kind != checkin.KindStream && item.Kind != checkin.KindSRV {
					continue
				}
				words := "Left out by " + agent.Hostname
				if item.KeptPrevious {
					words = "The previous version is kept by " + agent.Hostname
				}
				refused[item.ID] = cell{Text: words, Class: warn, Note: item.Reason}
			}
		}
	}
	return refused, err
}

func signInNote(s store.Service) string {
	if s.AuthRequired {
		return "with a sign-in"
	}
	return ""
}

// serviceRecord is all about one service.
type serviceRecord struct {
	Path     string
	Open     string // the address in the web
	Details  []detail
	Silent   bool
	Refused  cell // by an agent
	CanWrite bool
}

func (d *dashboard) service(v *visit) error {
	site, c, s, err := d.serviceOf(v)
	if err != nil {
		return err
	}
	options, err := d.domainOptions(v, site)
	if err != nil {
		return err
	}
	domains, err := d.domainNames(v)
	if err != nil {
		return err
	}
	refused, err := d.refusedIn(v, site.ID)
	if err != nil {
		return err
	}
	at := describeReach(s, site, domains)
	view := serviceRecord{Path: servicePath(s.ID), Silent: c.IPv4Address == "", Refused: refused[s.ID], CanWrite: v.canWrite()}
	if at.Web {
		view.Open = at.Address
	}
	view.Details = []detail{
		{Name: "Reached at", cell: cell{Text: at.Address, Copy: "reached"}, Wide: true},
		{Name: "Container", cell: cell{Text: c.Hostname, Link: containerPath(c.ID)}},
	}
	for _, fact := range details(serviceFields(site, options)(&s.Service)) {
		if fact.Name == "Domain" {
			fact.Link = domainPath(*s.ExternalDomainID)
		}
		view.Details = append(view.Details, fact)
	}
	p := v.page(at.title(), "/sites", withinContainer(site, c)...)
	p.Topics = siteTopics(site.ID)
	return v.show(http.StatusOK, p, servicePage(p, view))
}

func (d *dashboard) newService(v *visit) error {
	site, c, err := d.containerOf(v)
	if err != nil {
		return err
	}
	domains, err := d.domainOptions(v, site)
	if err != nil {
		return err
	}
	wanted := newServiceOf(inventory.ServiceType(v.Query("type")))
	here := servicesPath(c.ID) + "/new"
	kinds := kindLinks(here, wanted.Type)
	p := v.page("New service of "+c.Hostname, "/sites", withinContainer(site, c)...)
	if wanted.Type == inventory.ServiceHTTP && len(domains) == 0 {
		return v.show(http.StatusOK, p, needsDomain(p, kinds, crumb{"Create the first domain", withThen("/domains/new", here)}))
	}
	wanted.ExternalDomainID = preferred(wanted.Type, domains)
	f := &form{Fields: serviceFields(site, domains)(&wanted), Kinds: kinds, Submit: "Add the service", Cancel: containerPath(c.ID)}
	return v.fill(p, f, func(typed url.Values) (done, error) {
		if err := f.read(typed); err != nil {
			return done{}, err
		}
		s, err := d.store.CreateService(v.Request.Context(), c.ID, wanted)
		if err != nil {
			return done{}, err
		}
		names, err := d.domainNames(v)
		return done{containerPath(c.ID), "The service was added: " + brief(describeReach(s, site, names).words()) + ".", site.ID}, err
	})
}

// newServiceOf is what the form for a new service starts with.
func newServiceOf(wanted inventory.ServiceType) inventory.Service {
	switch wanted {
	case inventory.ServiceTransport:
		return inventory.Service{Type: wanted, Protocol: "tcp"}
	case inventory.ServiceDNS:
		return inventory.Service{Type: wanted}
	}
	return inventory.Service{Type: inventory.ServiceHTTP, BackendProtocol: "http"}
}

// kind is a link to the form for another type of service.
type kind struct {
	crumb
	Chosen bool
}

func kindLinks(here string, chosen inventory.ServiceType) []kind {
	var all []kind
	for _, k := range serviceKinds {
		all = append(all, kind{crumb{k.Label, here + "?type=" + k.Value}, k.Value == string(chosen)})
	}
	return all
}

// preferred is the domain that a new service is under if nobody says otherwise:
// the first one.
func preferred(of inventory.ServiceType, domains []option) *int64 {
	if of != inventory.ServiceHTTP || len(domains) == 0 {
		return nil
	}
	id, err := strconv.ParseInt(domains[0].Value, 10, 64)
	if err != nil {
		return nil
	}
	return &id
}

func (d *dashboard) editService(v *visit) error {
	site, c, s, err := d.serviceOf(v)
	if err != nil {
		return err
	}
	domains, err := d.domainOptions(v, site)
	if err != nil {
		return err
	}
	path, fields := servicePath(s.ID), serviceFields(site, domains)
	before := fields(&s.Service)
	f := &form{Version: version(s.Service), Fields: fields(&s.Service), Submit: "Save", Cancel: path}
	return v.fill(v.page("Edit the service", "/sites", append(withinContainer(site, c), crumb{"Service", path})...), f, func(typed url.Values) (done, error) {
		stored, err := d.store.UpdateService(v.Request.Context(), s.ID, changing(f, typed, fields))
		if err != nil {
			return done{}, err
		}
		return saved(path, "service", site.ID, before, fields(&stored.Service)), nil
	})
}

func (d *dashboard) deleteService(v *visit) error {
	site, c, s, err := d.serviceOf(v)
	if err != nil {
		return err
	}
	domains, err := d.domainNames(v)
	if err != nil {
		return err
	}
	view := vanishing{What: "service " + describeReach(s, site, domains).words(), Cancel: servicePath(s.ID), File: manifestPath(site.ID)}
	return v.confirm(v.page("Delete the service?", "/sites", withinContainer(site, c)...), view, func() (done, error) {
		err := d.store.DeleteService(v.Request.Context(), s.ID)
		return done{containerPath(c.ID), fmt.Sprintf("The %s was deleted.", view.What), site.ID}, err
	})
}

// serviceOf is the service of the address, with its container and site.
func (d *dashboard) serviceOf(v *visit) (site store.Site, c store.Container, s store.Service, err error) {
	id, err := v.id()
	if err != nil {
		return site, c, s, err
	}
	if s, err = d.store.GetService(v.Request.Context(), id); err != nil {
		return site, c, s, err
	}
	site, c, err = d.containerWithSite(v, s.ContainerID)
	return site, c, s, err
}
