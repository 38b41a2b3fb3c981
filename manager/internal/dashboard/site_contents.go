package dashboard

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/prose"
	"opensource.internal/manager/internal/revision"
	"opensource.internal/manager/internal/store"
)

// The lists of all services and volumes of a site, whatever their container.

func siteServicesPath(siteID int64) string { return sitePath(siteID) + "/services" }
func siteVolumesPath(siteID int64) string  { return sitePath(siteID) + "/volumes" }

// contentsOf leads to what is in a site, by how much there is.
func (d *dashboard) contentsOf(ctx context.Context, s store.Site, view *siteView) error {
	one := store.ListOptions{Limit: 1}
	_, nodes, err := d.store.ListNodes(ctx, store.NodeFilter{SiteID: s.ID}, one)
	if err != nil {
		return err
	}
	_, containers, err := d.store.ListContainers(ctx, store.ContainerFilter{SiteID: s.ID}, one)
	if err != nil {
		return err
	}
	_, services, err := d.store.ListServices(ctx, store.ServiceFilter{SiteID: s.ID}, one)
	if err != nil {
		return err
	}
	_, volumes, err := d.store.ListVolumes(ctx, store.VolumeFilter{SiteID: s.ID}, one)
	if err != nil {
		return err
	}
	view.NoNode = nodes == 0
	switch {
	case nodes == 0:
		view.Missing = "First comes a node: a host that containers run on."
	case containers == 0:
		view.Missing = "Next comes a container, which runs on a node."
	case services == 0:
		view.Missing = "Nothing is published yet. Services are added to a container, on its page."
	}
	view.Contents = []crumb{
		{prose.Counted(int(nodes), "node"), nodesPath(s.ID)},
		{prose.Counted(int(containers), "container"), containersPath(s.ID)},
		{prose.Counted(int(services), "service"), siteServicesPath(s.ID)},
		{prose.Counted(int(volumes), "volume"), siteVolumesPath(s.ID)},
	}
	return nil
}

func (d *dashboard) listServices(v *visit) error {
	site, err := d.siteOf(v)
	if err != nil {
		return err
	}
	l := v.listing("Services", column{"Reached at", "externalHostname"}, column{"Kind", "type"}, column{"Container", "container"}, column{"Container port", "internalPort"},
		column{"External port", "externalPort"}, column{"State", ""})
	kind := (&field{Name: "type", Label: "Kind", Kind: choiceInput, Options: anyOf("All", serviceKinds...)}).of(v)
	l.Filters, l.Hint = []*field{kind}, "A host name, container or port"
	l.Empty = "Nothing of this site is published. Services are added to a container, on its page."
	if err := d.readServices(v, site, l, kind.Value); err != nil {
		return err
	}
	p := v.page("Services of "+site.Name, "/sites", sitesCrumb, siteCrumb(site))
	p.Topics, p.Every = siteTopics(site.ID), agentsEvery
	return v.show(http.StatusOK, p, listPage(p, l))
}

func (d *dashboard) readServices(v *visit, site store.Site, l *listing, kind string) error {
	services, total, err := d.store.ListServices(v.Request.Context(), store.ServiceFilter{SiteID: site.ID, Type: inventory.ServiceType(kind)}, l.options())
	if err != nil {
		return err
	}
	l.Total = total
	domains, err := d.domainNames(v)
	if err != nil {
		return err
	}
	containers, err := d.containersIn(v, site.ID)
	if err != nil {
		return err
	}
	state, err := d.serviceStates(v, site)
	if err != nil {
		return err
	}
	for _, s := range services {
		at, c := describeReach(s, site, domains), containers[s.ContainerID]
		external := ""
		if s.ExternalPort != 0 {
			external = strconv.Itoa(s.ExternalPort)
		}
		l.Rows = append(l.Rows, row{fmt.Sprintf("service-%d", s.ID), []cell{
			{Text: at.title(), Link: servicePath(s.ID), Note: signInNote(s)},
			{Text: choice("", "", new(string), serviceKinds...).shown(string(s.Type))},
			{Text: c.Hostname, Link: containerPath(s.ContainerID), Note: c.IPv4Address},
			{Text: strconv.Itoa(s.InternalPort)},
			{Text: external},
			state(s, c),
		}})
	}
	return nil
}

// containersIn are the containers of a site by id.
func (d *dashboard) containersIn(v *visit, siteID int64) (map[int64]store.Container, error) {
	containers, _, err := d.store.ListContainers(v.Request.Context(), store.ContainerFilter{SiteID: siteID}, store.ListOptions{Limit: store.All})
	byID := map[int64]store.Container{}
	for _, c := range containers {
		byID[c.ID] = c
	}
	return byID, err
}

// serviceStates says of each service of a site whether it is in force, as far as
// its agents tell.
func (d *dashboard) serviceStates(v *visit, site store.Site) (func(store.Service, store.Container) cell, error) {
	ctx := v.Request.Context()
	refused, err := d.refusedIn(v, site.ID)
	if err != nil {
		return nil, err
	}
	served, _, err := d.snapshots.Served(ctx, site.ID)
	if err != nil {
		return nil, err
	}
	now, err := d.snapshots.Inventory(ctx, site.ID)
	if err != nil {
		return nil, err
	}
	waits := map[int64]bool{}
	for _, change := range revision.Compare(served.Snapshot, now.Snapshot) {
		switch change.Resource {
		case revision.HTTPService, revision.TransportService, revision.DNSRecord:
			waits[change.ID] = true
		}
	}
	agents, _, err := d.store.ListAgents(ctx, store.AgentFilter{SiteID: site.ID}, store.ListOptions{Limit: store.All, Sort: "hostname"})
	if err != nil {
		return nil, err
	}
	told := map[string]cell{}
	for _, managed := range []string{"nginx", "dnsmasq"} {
		told[managed] = v.runs(agents, managed, served.ETag)
	}
	return func(s store.Service, c store.Container) cell {
		reason, isRefused := refused[s.ID]
		switch {
		case c.IPv4Address == "":
			return cell{Text: "not served", Class: "neutral", Note: "its container has no address"}
		case waits[s.ID]:
			return cell{Text: "waits", Class: warn, Note: "its last change is not published"}
		case isRefused:
			return reason
		}
		return told[managedBy(s)]
	}, nil
}

// managedBy is what serves a service on the agent's host.
func managedBy(s store.Service) string {
	if s.Type == inventory.ServiceDNS {
		return "dnsmasq"
	}
	return "nginx"
}

// runs says whether nginx or dnsmasq run what agents are given: as the worst of
// them do.
func (v *visit) runs(agents []store.Agent, managed, etag string) cell {
	if len(agents) == 0 {
		return cell{Text: "no agent", Class: "neutral", Note: "none has checked in for this site"}
	}
	told := cell{Text: "in force", Class: good}
	for _, a := range agents {
		running, report := a.Report.Running, a.Report.Services[managed]
		switch {
		case a.Presence(v.Now) == store.Offline:
			return cell{Text: "not known", Class: warn, Note: a.Hostname + " is offline"}
		case inForce(report.Outcome) && checkin.SameETag(report.ReceivedETag, etag):
			// What else was left out of it is told of that.
		case running == nil:
			told = cell{Text: "not known", Class: "neutral", Note: a.Hostname + " does not tell what it runs"}
		case !checkin.SameETag(running.ETag, etag):
			told = cell{Text: "not confirmed", Class: warn, Note: a.Hostname + " does not run the latest revision"}
		}
	}
	return told
}

func (d *dashboard) listVolumes(v *visit) error {
	site, err := d.siteOf(v)
	if err != nil {
		return err
	}
	l := v.listing("Volumes", column{"Volume", "name"}, column{"Container", "container"}, column{"Path on the host", "hostPath"}, column{"Mounted at", "mountPath"}, column{"State", "status"})
	status := (&field{Name: "status", Label: "State", Kind: choiceInput, Options: anyOf("All",
		option{string(store.VolumeFailed), "Failed"}, option{string(store.VolumePending), "Waits for the agent"}, option{string(store.VolumeReady), "Ready"})}).of(v)
	l.Filters, l.Hint = []*field{status}, "A name, container, path or message"
	l.Empty = "This site has no volume. Volumes are added to a container, on its page."
	volumes, total, err := d.store.ListVolumes(v.Request.Context(), store.VolumeFilter{SiteID: site.ID, Status: store.VolumeStatus(status.Value)}, l.options())
	if err != nil {
		return err
	}
	l.Total = total
	containers, err := d.containersIn(v, site.ID)
	if err != nil {
		return err
	}
	for _, vol := range volumes {
		l.Rows = append(l.Rows, row{fmt.Sprintf("volume-%d", vol.ID), []cell{
			{Text: vol.Name, Link: volumePath(vol.ID)},
			{Text: containers[vol.ContainerID].Hostname, Link: containerPath(vol.ContainerID)},
			{Text: vol.HostPath, Copy: fmt.Sprintf("volume-%d-path", vol.ID)},
			{Text: vol.MountPath},
			volumeStatus(vol),
		}})
	}
	p := v.page("Volumes of "+site.Name, "/sites", sitesCrumb, siteCrumb(site))
	p.Topics = siteTopics(site.ID)
	return v.show(http.StatusOK, p, listPage(p, l))
}
