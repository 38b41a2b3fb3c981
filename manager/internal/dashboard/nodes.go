package dashboard

import (
	"fmt"
	"net/http"
	"net/url"

	"opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/store"
)

func nodesPath(siteID int64) string { return sitePath(siteID) + "/nodes" }
func nodePath(id int64) string      { return fmt.Sprintf("/nodes/%d", id) }

// nodeFields are what an administrator sets of a node.
func nodeFields(n *inventory.Node) []*field {
	return []*field{
		text("name", "Name", &n.Name).required().hint("In the site's DNS, such as pve1"),
		text("ipv4Address", "IPv4 address", &n.IPv4Address).hint("If empty, its name is not in the site's DNS"),
		choice("type", "Type", &n.Type,
			option{inventory.NodeProxmox, "Proxmox VE host"},
			option{inventory.NodeNone, "Another host"}),
	}
}

func (d *dashboard) listNodes(v *visit) error {
	site, err := d.siteOf(v)
	if err != nil {
		return err
	}
	l := v.listing("Nodes", column{"Name", "name"}, column{"IPv4 address", "ipv4Address"}, column{"Type", ""})
	nodes, total, err := d.store.ListNodes(v.Request.Context(), store.NodeFilter{SiteID: site.ID}, l.options())
	if err != nil {
		return err
	}
	l.Total, l.Empty = total, "This site has no node yet. A node is a host that containers run on."
	if v.canWrite() {
		l.New = crumb{"New node", nodesPath(site.ID) + "/new"}
	}
	for _, n := range nodes {
		l.Rows = append(l.Rows, row{fmt.Sprintf("node-%d", n.ID), []cell{
			{Text: n.Name, Link: nodePath(n.ID)}, {Text: n.IPv4Address}, {Text: nodeFields(&n.Node)[2].words()},
		}})
	}
	p := v.page("Nodes of "+site.Name, "/sites", sitesCrumb, siteCrumb(site))
	p.Topics = siteTopics(site.ID)
	return v.show(http.StatusOK, p, listPage(p, l))
}

// nodeView is all about one node.
type nodeView struct {
	Path       string
	Details    []detail
	Containers *listing
	CanWrite   bool
}

func (d *dashboard) node(v *visit) error {
	site, n, err := d.nodeOf(v)
	if err != nil {
		return err
	}
	view := nodeView{Path: nodePath(n.ID), Details: details(nodeFields(&n.Node)), CanWrite: v.canWrite()}
	if view.Containers, err = d.containerListing(v, store.ContainerFilter{SiteID: site.ID, NodeID: n.ID}); err != nil {
		return err
	}
	view.Containers.Empty = "No container runs on this node."
	if v.canWrite() {
		view.Containers.New = crumb{"New container", fmt.Sprintf("%s/new?node=%d", containersPath(site.ID), n.ID)}
	}
	p := v.page("Node "+n.Name, "/sites", nodeTrail(site)...)
	p.Topics = siteTopics(site.ID)
	return v.show(http.StatusOK, p, nodePage(p, view))
}

func (d *dashboard) newNode(v *visit) error {
	site, err := d.siteOf(v)
	if err != nil {
		return err
	}
	wanted := inventory.Node{Type: inventory.NodeProxmox}
	f := &form{Fields: nodeFields(&wanted), Submit: "Create the node", Cancel: nodesPath(site.ID)}
	return v.fill(v.page("New node", "/sites", nodeTrail(site)...), f, func(typed url.Values) (done, error) {
		if err := f.read(typed); err != nil {
			return done{}, err
		}
		n, err := d.store.CreateNode(v.Request.Context(), site.ID, wanted)
		return done{v.then(nodePath(n.ID)), fmt.Sprintf("The node %q was created.", n.Name), site.ID}, err
	})
}

func (d *dashboard) editNode(v *visit) error {
	site, n, err := d.nodeOf(v)
	if err != nil {
		return err
	}
	path, before := nodePath(n.ID), nodeFields(&n.Node)
	f := &form{Version: version(n.Node), Fields: nodeFields(&n.Node), Submit: "Save", Cancel: path}
	p := v.page("Edit the node "+n.Name, "/sites", append(nodeTrail(site), crumb{n.Name, path})...)
	return v.fill(p, f, func(typed url.Values) (done, error) {
		stored, err := d.store.UpdateNode(v.Request.Context(), n.ID, changing(f, typed, nodeFields))
		return saved(path, "node", site.ID, before, nodeFields(&stored.Node)), err
	})
}

func (d *dashboard) deleteNode(v *visit) error {
	site, n, err := d.nodeOf(v)
	if err != nil {
		return err
	}
	view := vanishing{What: fmt.Sprintf("node %q", n.Name), Cancel: nodePath(n.ID), File: manifestPath(site.ID)}
	containers, _, err := d.store.ListContainers(v.Request.Context(), store.ContainerFilter{NodeID: n.ID}, store.ListOptions{Limit: store.All})
	if err != nil {
		return err
	}
	view.add("Containers", names(containers, func(c store.Container) string { return c.Hostname }))
	if err := d.vanishesWith(v, &view, site, containers); err != nil {
		return err
	}
	p := v.page("Delete the "+view.What+"?", "/sites", append(nodeTrail(site), crumb{n.Name, nodePath(n.ID)})...)
	return v.confirm(p, view, func() (done, error) {
		err := d.store.DeleteNode(v.Request.Context(), n.ID, true)
		return done{nodesPath(site.ID), fmt.Sprintf("The %s was deleted.", view.What), site.ID}, err
	})
}

// nodeTrail are the pages above that of a node.
func nodeTrail(site store.Site) []crumb {
	return []crumb{sitesCrumb, siteCrumb(site), {"Nodes", nodesPath(site.ID)}}
}

// nodeOf is the node of the address, with its site.
func (d *dashboard) nodeOf(v *visit) (site store.Site, n store.Node, err error) {
	id, err := v.id()
	if err != nil {
		return site, n, err
	}
	if n, err = d.store.GetNode(v.Request.Context(), id); err != nil {
		return site, n, err
	}
	site, err = d.store.GetSite(v.Request.Context(), n.SiteID)
	return site, n, err
}
