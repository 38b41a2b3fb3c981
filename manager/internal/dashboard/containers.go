package dashboard

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/store"
)

func containersPath(siteID int64) string { return sitePath(siteID) + "/containers" }
func containerPath(id int64) string      { return fmt.Sprintf("/containers/%d", id) }

// containerFields are what an administrator sets of a container of a site that
// has these nodes.
func containerFields(nodes []option) func(*inventory.Container) []*field {
	return func(c *inventory.Container) []*field {
		return []*field{
			text("hostname", "Host name", &c.Hostname).required().hint("In the site's DNS, such as web"),
			parent("nodeId", "Node", &c.NodeID, nodes...).required(),
			text("ipv4Address", "IPv4 address", &c.IPv4Address).hint("Without one, neither its name nor its services are served"),
			text("macAddress", "MAC address", &c.MACAddress).hint("DHCP gives the address to this one, such as 02:00:00:00:00:01"),
			text("owner", "Owner", &c.Owner).hint("Part of the path of its volumes"),
		}
	}
}

func (d *dashboard) listContainers(v *visit) error {
	site, err := d.siteOf(v)
	if err != nil {
		return err
	}
	nodes, err := d.nodeOptions(v, site.ID, "All")
	if err != nil {
		return err
	}
	id, _ := strconv.ParseInt(v.Query("node"), 10, 64) // what is none chooses none
	l, err := d.containerListing(v, store.ContainerFilter{SiteID: site.ID, NodeID: id})
	if err != nil {
		return err
	}
	if len(nodes) > 2 || id != 0 {
		l.Filters = []*field{parent("node", "Node", &id, nodes...)}
	}
	l.Empty = "This site has no container yet."
	if v.canWrite() {
		l.New = crumb{"New container", containersPath(site.ID) + "/new"}
	}
	p := v.page("Containers of "+site.Name, "/sites", sitesCrumb, siteCrumb(site))
	p.Topics = siteTopics(site.ID)
	return v.show(http.StatusOK, p, listPage(p, l))
}

// containerListing is the page of a list of containers that the address asks for.
func (d *dashboard) containerListing(v *visit, filter store.ContainerFilter) (*listing, error) {
	columns := []column{{"Host name", "hostname"}, {"IPv4 address", "ipv4Address"}, {"MAC address", ""}, {"Node", ""}, {"Owner", "owner"}}
	l := v.listing("Containers", columns...)
	containers, total, err := d.store.ListContainers(v.Request.Context(), filter, l.options())
	if err != nil {
		return nil, err
	}
	nodes, _, err := d.store.ListNodes(v.Request.Context(), store.NodeFilter{SiteID: filter.SiteID}, store.ListOptions{Limit: store.All})
	if err != nil {
		return nil, err
	}
	named := map[int64]string{}
	for _, n := range nodes {
		named[n.ID] = n.Name
	}
	l.Total = total
	for _, c := range containers {
		l.Rows = append(l.Rows, row{fmt.Sprintf("container-%d", c.ID), []cell{
			{Text: c.Hostname, Link: containerPath(c.ID)},
			{Text: c.IPv4Address},
			{Text: c.MACAddress},
			{Text: named[c.NodeID], Link: nodePath(c.NodeID)},
			{Text: c.Owner},
		}})
	}
	return l, nil
}

// nodeOptions are the nodes of a site to choose from; none says what the first
// option is that is none of them, if there is more than one node.
func (d *dashboard) nodeOptions(v *visit, siteID int64, none string) ([]option, error) {
	nodes, _, err := d.store.ListNodes(v.Request.Context(), store.NodeFilter{SiteID: siteID}, store.ListOptions{Limit: store.All, Sort: "name"})
	var options []option
	if len(nodes) != 1 {
		options = append(options, option{"", none})
	}
	for _, n := range nodes {
		options = append(options, option{strconv.FormatInt(n.ID, 10), n.Name})
	}
	return options, err
}

// containerView is all about one container.
type containerView struct {
	Path     string
	Details  []detail
	Silent   bool // nothing of it is served, as it has no address
	Services *listing
	Volumes  *listing
	CanWrite bool
}

func (d *dashboard) container(v *visit) error {
	site, c, err := d.containerOf(v)
	if err != nil {
		return err
	}
	node, err := d.store.GetNode(v.Request.Context(), c.NodeID)
	if err != nil {
		return err
	}
	view := containerView{Path: containerPath(c.ID), Silent: c.IPv4Address == "", CanWrite: v.canWrite()}
	view.Details = []detail{
		{Name: "Node", cell: cell{Text: node.Name, Link: nodePath(node.ID)}},
		{Name: "IPv4 address", cell: cell{Text: c.IPv4Address, Copy: "address"}},
		{Name: "MAC address", cell: cell{Text: c.MACAddress, Copy: "mac"}},
		{Name: "Owner", cell: cell{Text: c.Owner}},
	}
	if site.InternalDomain != "" && c.IPv4Address != "" {
		view.Details = append(view.Details, detail{Name: "Name in the site's DNS", cell: cell{Text: c.Hostname + "." + site.InternalDomain, Copy: "name"}})
	}
	if view.Services, err = d.servicesOf(v, site, c); err != nil {
		return err
	}
	if view.Volumes, err = d.volumesOf(v, c); err != nil {
		return err
	}
	p := v.page("Container "+c.Hostname, "/sites", containerTrail(site)...)
	p.Topics = siteTopics(site.ID)
	return v.show(http.StatusOK, p, containerPage(p, view))
}

func (d *dashboard) newContainer(v *visit) error {
	site, err := d.siteOf(v)
	if err != nil {
		return err
	}
	nodes, err := d.nodeOptions(v, site.ID, "Choose one")
	if err != nil {
		return err
	}
	p := v.page("New container", "/sites", containerTrail(site)...)
	if len(nodes) == 1 && nodes[0].Value == "" {
		create := crumb{"Create the first node", withThen(nodesPath(site.ID)+"/new", containersPath(site.ID)+"/new")}
		return v.show(http.StatusOK, p, needs(p, "A container runs on a node, and this site has none yet.", create))
	}
	var wanted inventory.Container
	wanted.NodeID, _ = strconv.ParseInt(v.Query("node"), 10, 64) // what is none chooses none
	f := &form{Fields: containerFields(nodes)(&wanted), Submit: "Create the container", Cancel: containersPath(site.ID)}
	return v.fill(p, f, func(typed url.Values) (done, error) {
		if err := f.read(typed); err != nil {
			return done{}, err
		}
		c, err := d.store.CreateContainer(v.Request.Context(), site.ID, wanted)
		return done{containerPath(c.ID), fmt.Sprintf("The container %q was created.", c.Hostname), site.ID}, err
	})
}

func (d *dashboard) editContainer(v *visit) error {
	site, c, err := d.containerOf(v)
	if err != nil {
		return err
	}
	nodes, err := d.nodeOptions(v, site.ID, "Choose one")
	if err != nil {
		return err
	}
	path, fields := containerPath(c.ID), containerFields(nodes)
	before := fields(&c.Container)
	f := &form{Version: version(c.Container), Fields: fields(&c.Container), Submit: "Save", Cancel: path}
	return v.fill(v.page("Edit the container "+c.Hostname, "/sites", withinContainer(site, c)...), f, func(typed url.Values) (done, error) {
		stored, err := d.store.UpdateContainer(v.Request.Context(), c.ID, changing(f, typed, fields))
		return saved(path, "container", site.ID, before, fields(&stored.Container)), err
	})
}

func (d *dashboard) deleteContainer(v *visit) error {
	site, c, err := d.containerOf(v)
	if err != nil {
		return err
	}
	view := vanishing{What: fmt.Sprintf("container %q", c.Hostname), Cancel: containerPath(c.ID), File: manifestPath(site.ID)}
	if err := d.vanishesWith(v, &view, site, []store.Container{c}); err != nil {
		return err
	}
	return v.confirm(v.page("Delete the "+view.What+"?", "/sites", withinContainer(site, c)...), view, func() (done, error) {
		err := d.store.DeleteContainer(v.Request.Context(), c.ID, true)
		return done{containersPath(site.ID), fmt.Sprintf("The %s was deleted.", view.What), site.ID}, err
	})
}

// vanishesWith names what goes with containers of a site.
func (d *dashboard) vanishesWith(v *visit, view *vanishing, site store.Site, containers []store.Container) error {
	filter := store.ServiceFilter{SiteID: site.ID}
	volumesOf := store.VolumeFilter{SiteID: site.ID}
	if len(containers) == 1 {
		filter.ContainerID, volumesOf.ContainerID = containers[0].ID, containers[0].ID
	}
	all := store.ListOptions{Limit: store.All}
	services, _, err := d.store.ListServices(v.Request.Context(), filter, all)
	if err != nil {
		return err
	}
	volumes, _, err := d.store.ListVolumes(v.Request.Context(), volumesOf, all)
	if err != nil {
		return err
	}
	domains, err := d.domainNames(v)
	if err != nil {
		return err
	}
	going := map[int64]bool{}
	for _, c := range containers {
		going[c.ID] = true
	}
	var served, kept []string
	for _, s := range services {
		if going[s.ContainerID] {
			served = append(served, describeReach(s, site, domains).words())
		}
	}
	for _, volume := range volumes {
		if going[volume.ContainerID] {
			kept = append(kept, volume.HostPath)
		}
	}
	view.add("Services", served)
	view.add("Volumes", kept)
	if len(kept) > 0 {
		view.Keeps = "The files in the volumes stay on the site's host."
	}
	return nil
}

// containerTrail are the pages above that of a container.
func containerTrail(site store.Site) []crumb {
	return []crumb{sitesCrumb, siteCrumb(site), {"Containers", containersPath(site.ID)}}
}

// withinContainer are the pages above what belongs to a container.
func withinContainer(site store.Site, c store.Container) []crumb {
	return append(containerTrail(site), crumb{c.Hostname, containerPath(c.ID)})
}

// containerOf is the container of the address, with its site.
func (d *dashboard) containerOf(v *visit) (site store.Site, c store.Container, err error) {
	id, err := v.id()
	if err != nil {
		return site, c, err
	}
	return d.containerWithSite(v, id)
}

func (d *dashboard) containerWithSite(v *visit, id int64) (site store.Site, c store.Container, err error) {
	if c, err = d.store.GetContainer(v.Request.Context(), id); err != nil {
		return site, c, err
	}
	site, err = d.store.GetSite(v.Request.Context(), c.SiteID)
	return site, c, err
}
