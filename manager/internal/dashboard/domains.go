package dashboard

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/store"
)

var domainsCrumb = crumb{"Domains", "/domains"}

func domainPath(id int64) string { return fmt.Sprintf("/domains/%d", id) }

// domainFields are what an administrator sets of an external domain.
func domainFields(sites []option) func(*inventory.ExternalDomain) []*field {
	return func(e *inventory.ExternalDomain) []*field {
		return []*field{
			text("name", "Name", &e.Name).required().hint("Such as example.com"),
			text("authServer", "Sign-in server", &e.AuthServer).hint("Where its oauth2-proxy listens, such as http://192.0.2.20:4180. For services that ask people to sign in"),
			record("defaultSiteId", "Site", &e.DefaultSiteID, sites...).hint("Serves the domain itself, also while no service is under it"),
		}
	}
}

func (d *dashboard) listDomains(v *visit) error {
	l := v.listing("External domains", column{"Name", "name"}, column{"Site", ""}, column{"Sign-in server", ""})
	domains, total, err := d.store.ListExternalDomains(v.Request.Context(), store.ExternalDomainFilter{}, l.options())
	if err != nil {
		return err
	}
	sites, err := d.siteOptions(v)
	if err != nil {
		return err
	}
	l.Total, l.Empty = total, "There is no external domain yet. Web services have their names under one, such as example.com."
	if v.canWrite() {
		l.New = crumb{"New domain", "/domains/new"}
	}
	for _, e := range domains {
		fields := domainFields(sites)(&e.ExternalDomain)
		l.Rows = append(l.Rows, row{fmt.Sprintf("domain-%d", e.ID), []cell{
			{Text: readable(e.Name), Link: domainPath(e.ID)}, siteCell(e, fields[2].words()), {Text: e.AuthServer},
		}})
	}
	p := v.page("External domains", "/domains")
	p.Topics, p.Every = []string{"sites"}, domainsEvery
	return v.show(http.StatusOK, p, listPage(p, l))
}

// domainsEvery is how often pages about domains are fetched: of a domain that no
// site uses no event tells.
const domainsEvery = 3 * agentsEvery

func siteCell(e store.ExternalDomain, name string) cell {
	if e.DefaultSiteID == nil {
		return cell{}
	}
	return cell{Text: name, Link: sitePath(*e.DefaultSiteID)}
}

// domainView is all about one external domain.
type domainView struct {
	Path, Name       string
	Details          []detail
	Services         *listing
	Address          string // of its site, from outside
	Certificate, Key string // where they are on the hosts
	CanWrite         bool
}

func (d *dashboard) domain(v *visit) error {
	e, err := d.domainOf(v)
	if err != nil {
		return err
	}
	sites, err := d.siteOptions(v)
	if err != nil {
		return err
	}
	view := domainView{
		Path: domainPath(e.ID), Name: e.Name, CanWrite: v.canWrite(),
		Certificate: "/etc/ssl/certs/" + e.Name + ".crt", Key: "/etc/ssl/private/" + e.Name + ".key",
	}
	facts := details(domainFields(sites)(&e.ExternalDomain))
	facts[0].cell, facts[0].Wide = cell{Text: e.Name, Copy: "name"}, true
	if e.DefaultSiteID != nil {
		site, err := d.store.GetSite(v.Request.Context(), *e.DefaultSiteID)
		if err != nil {
			return err
		}
		facts[2].Link, view.Address = sitePath(site.ID), site.ExternalIP
	} else {
		facts[2].Text = ""
	}
	view.Details = facts
	if view.Services, err = d.servicesUnder(v, e); err != nil {
		return err
	}
	p := v.page(readable(e.Name), "/domains", domainsCrumb)
	p.Topics, p.Every = []string{"sites"}, domainsEvery
	return v.show(http.StatusOK, p, domainPage(p, view))
}

// servicesUnder lists the services that have their names under a domain.
func (d *dashboard) servicesUnder(v *visit, e store.ExternalDomain) (*listing, error) {
	l := v.listing("Services", column{"Host name", "externalHostname"}, column{"Container", ""}, column{"Site", ""}, column{"Port", "internalPort"})
	l.Empty = "No service is under this domain. Services are added on the page of their container."
	services, total, err := d.store.ListServices(v.Request.Context(), store.ServiceFilter{DomainID: e.ID}, l.options())
	if err != nil {
		return nil, err
	}
	l.Total = total
	if total == 0 && v.canWrite() {
		l.New = crumb{"Choose the site", "/sites"}
		if e.DefaultSiteID != nil {
			l.New = crumb{"Choose the container", containersPath(*e.DefaultSiteID)}
		}
	}
	for _, s := range services {
		site, c, err := d.containerWithSite(v, s.ContainerID)
		if err != nil {
			return nil, err
		}
		l.Rows = append(l.Rows, row{fmt.Sprintf("service-%d", s.ID), []cell{
			{Text: s.ExternalHostname + "." + e.Name, Link: servicePath(s.ID), Note: signInNote(s)},
			{Text: c.Hostname, Link: containerPath(c.ID)},
			{Text: site.Name, Link: sitePath(site.ID)},
			{Text: strconv.Itoa(s.InternalPort)},
		}})
	}
	return l, nil
}

func (d *dashboard) newDomain(v *visit) error {
	sites, err := d.siteOptions(v)
	if err != nil {
		return err
	}
	var wanted inventory.ExternalDomain
	if id, err := strconv.ParseInt(v.Query("site"), 10, 64); err == nil {
		wanted.DefaultSiteID = &id
	}
	f := &form{Fields: domainFields(sites)(&wanted), Submit: "Create the domain", Cancel: v.then("/domains")}
	return v.fill(v.page("New domain", "/domains", domainsCrumb), f, func(typed url.Values) (done, error) {
		if err := f.read(typed); err != nil {
			return done{}, err
		}
		e, err := d.store.CreateExternalDomain(v.Request.Context(), wanted)
		return done{v.then(domainPath(e.ID)), fmt.Sprintf("The domain %s was created.", readable(e.Name)), siteOfDomain(e)}, err
	})
}

func (d *dashboard) editDomain(v *visit) error {
	e, err := d.domainOf(v)
	if err != nil {
		return err
	}
	sites, err := d.siteOptions(v)
	if err != nil {
		return err
	}
	path, fields := domainPath(e.ID), domainFields(sites)
	before := fields(&e.ExternalDomain)
	f := &form{Version: version(e.ExternalDomain), Fields: fields(&e.ExternalDomain), Submit: "Save", Cancel: path}
	return v.fill(v.page("Edit the domain", "/domains", domainsCrumb, crumb{readable(e.Name), path}), f, func(typed url.Values) (done, error) {
		stored, err := d.store.UpdateExternalDomain(v.Request.Context(), e.ID, changing(f, typed, fields))
		return saved(path, "domain", cmp.Or(siteOfDomain(stored), siteOfDomain(e)), before, fields(&stored.ExternalDomain)), err
	})
}

func (d *dashboard) deleteDomain(v *visit) error {
	e, err := d.domainOf(v)
	if err != nil {
		return err
	}
	services, _, err := d.store.ListServices(v.Request.Context(), store.ServiceFilter{DomainID: e.ID}, store.ListOptions{Limit: store.All})
	if err != nil {
		return err
	}
	view := vanishing{What: "domain " + readable(e.Name), Cancel: domainPath(e.ID)}
	view.add("Services", names(services, func(s store.Service) string { return s.ExternalHostname + "." + e.Name }))
	return v.confirm(v.page("Delete the "+view.What+"?", "/domains", domainsCrumb, crumb{readable(e.Name), domainPath(e.ID)}), view, func() (done, error) {
		err := d.store.DeleteExternalDomain(v.Request.Context(), e.ID, true)
		return done{"/domains", fmt.Sprintf("The %s was deleted.", view.What), siteOfDomain(e)}, err
	})
}

// siteOfDomain is the site whose revisions show a change of a domain, 0 if it
// has none of its own.
func siteOfDomain(e store.ExternalDomain) int64 {
	if e.DefaultSiteID == nil {
		return 0
	}
	return *e.DefaultSiteID
}

// siteOptions are all sites to choose from, or none of them.
func (d *dashboard) siteOptions(v *visit) ([]option, error) {
	sites, _, err := d.store.ListSites(v.Request.Context(), store.SiteFilter{}, store.ListOptions{Limit: store.All, Sort: "name"})
	options := []option{{"", "None of its own"}}
	for _, s := range sites {
		options = append(options, option{strconv.FormatInt(s.ID, 10), s.Name})
	}
	return options, err
}

// domainOptions are all external domains to choose from, those of a site first.
func (d *dashboard) domainOptions(v *visit, site store.Site) ([]option, error) {
	domains, err := d.allDomains(v)
	var own, others []option
	for _, e := range domains {
		o := option{strconv.FormatInt(e.ID, 10), readable(e.Name)}
		if siteOfDomain(e) == site.ID {
			own = append(own, o)
		} else {
			others = append(others, o)
		}
	}
	return append(own, others...), err
}

// domainNames are the names of all external domains.
func (d *dashboard) domainNames(v *visit) (map[int64]string, error) {
	domains, err := d.allDomains(v)
	named := map[int64]string{}
	for _, e := range domains {
		named[e.ID] = e.Name
	}
	return named, err
}

func (d *dashboard) allDomains(v *visit) ([]store.ExternalDomain, error) {
	domains, _, err := d.store.ListExternalDomains(v.Request.Context(), store.ExternalDomainFilter{}, store.ListOptions{Limit: store.All, Sort: "name"})
	return domains, err
}

// domainOf is the external domain of the address.
func (d *dashboard) domainOf(v *visit) (store.ExternalDomain, error) {
	id, err := v.id()
	if err != nil {
		return store.ExternalDomain{}, err
	}
	return d.store.GetExternalDomain(v.Request.Context(), id)
}
