package storetest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/store"
)

// Run runs the suite. open returns an empty store of its own at every call.
func Run(t *testing.T, open func(testing.TB) *store.Store) {
	tests := map[string]func(*testing.T, *store.Store){
		"records are read back":                  testReadBack,
		"records are folded":                     testFolded,
		"lists are paged, filtered and sorted":   testLists,
		"conflicts name the field":               testConflicts,
		"one name space for nodes, containers":   testNameSpace,
		"full names are unique":                  testFullNames,
		"a refused update changes nothing":       testRefusedUpdate,
		"parents have to exist":                  testParents,
		"parallel creates have one winner":       testParallelCreates,
		"ports are allocated":                    testPorts,
		"parallel port allocation":               testParallelPorts,
		"volume paths are fixed":                 testVolumePaths,
		"what is in use is not deleted":          testInUse,
		"cascade":                                testCascade,
		"network settings suit the site":         testNetworkInSite,
		"change counters":                        testVersions,
		"the counter of keys":                    testKeyCounter,
		"one agent per site and host name":       testAgents,
		"heartbeats are seen before they land":   testHeartbeats,
		"volume results":                         testVolumeResults,
		"revisions":                              testRevisions,
		"revisions never go back in parallel":    testParallelPublish,
		"inventory of a site holds only its own": testInventory,
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

func testReadBack(t *testing.T, s *store.Store) {
	w := NewWorld(t, s, 1)
	ctx := t.Context()
	same := func(what string, want, got any) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-created +read):\n%s", what, diff)
		}
	}
	same("site", w.Site, must(s.GetSite(ctx, w.Site.ID))(t))
	same("node", w.Node, must(s.GetNode(ctx, w.Node.ID))(t))
	same("container", w.Container, must(s.GetContainer(ctx, w.Container.ID))(t))
	same("domain", w.Domain, must(s.GetExternalDomain(ctx, w.Domain.ID))(t))
	same("http", w.HTTP, must(s.GetService(ctx, w.HTTP.ID))(t))
	same("transport", w.Transport, must(s.GetService(ctx, w.Transport.ID))(t))
	same("dns", w.DNS, must(s.GetService(ctx, w.DNS.ID))(t))
	same("volume", w.Volume, must(s.GetVolume(ctx, w.Volume.ID))(t))
	if zone, _ := w.Site.CreatedAt.Zone(); zone != "UTC" || w.Site.CreatedAt.IsZero() {
		t.Errorf("createdAt is %v", w.Site.CreatedAt)
	}
	if _, err := s.GetSite(ctx, 99); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("site 99: %v", err)
	}
}

func testFolded(t *testing.T, s *store.Store) {
	w := NewWorld(t, s, 1)
	ctx := t.Context()
	c := must(s.UpdateContainer(ctx, w.Container.ID, func(c *inventory.Container) error {
		c.Hostname, c.MACAddress = "WEB-2", "02-AA-00-00-00-01"
		return nil
	}))(t)
	if c.Hostname != "web-2" || c.MACAddress != "02:aa:00:00:00:01" {
		t.Errorf("stored %q %q", c.Hostname, c.MACAddress)
	}
	d := must(s.CreateExternalDomain(ctx, inventory.ExternalDomain{Name: "Exämple.Test."}))(t)
	if d.Name != "xn--exmple-cua.test" {
		t.Errorf("stored %q", d.Name)
	}
	_, err := s.CreateExternalDomain(ctx, inventory.ExternalDomain{Name: "xn--exmple-cua.test"})
	wantConflict(t, err, "name")
}

func testLists(t *testing.T, s *store.Store) {
	w := NewWorld(t, s, 1)
	NewWorld(t, s, 2)
	ctx := t.Context()
	for i := range 60 {
		must(s.CreateContainer(ctx, w.Site.ID, inventory.Container{NodeID: w.Node.ID, Hostname: fmt.Sprintf("n%02d", i)}))(t)
	}
	page, total, err := s.ListContainers(ctx, store.ContainerFilter{SiteID: w.Site.ID}, store.ListOptions{})
	if err != nil || len(page) != 50 || total != 61 {
		t.Fatalf("%d of %d, %v", len(page), total, err)
	}
	page, total, err = s.ListContainers(ctx, store.ContainerFilter{SiteID: w.Site.ID},
		store.ListOptions{Limit: 2, Offset: 1, Sort: "-hostname"})
	if err != nil || total != 61 || len(page) != 2 || page[0].Hostname != "n59" || page[1].Hostname != "n58" {
		t.Fatalf("%v of %d, %v", page, total, err)
	}
	page, total, err = s.ListContainers(ctx, store.ContainerFilter{}, store.ListOptions{Limit: store.All})
	if err != nil || len(page) != 62 || total != 62 {
		t.Fatalf("%d of %d, %v", len(page), total, err)
	}
	page, total, err = s.ListContainers(ctx, store.ContainerFilter{Hostname: "web"}, store.ListOptions{Offset: 5})
	if err != nil || page == nil || len(page) != 0 || total != 2 {
		t.Fatalf("%v of %d, %v", page, total, err)
	}
	for field, opts := range map[string]store.ListOptions{
		"sort": {Sort: "hash; DROP TABLE sites"}, "limit": {Limit: 501}, "offset": {Offset: -1},
	} {
		_, _, err := s.ListContainers(ctx, store.ContainerFilter{}, opts)
		wantInvalid(t, err, field)
	}
}

func testConflicts(t *testing.T, s *store.Store) {
	w := NewWorld(t, s, 1)
	ctx := t.Context()
	container := func(change func(*inventory.Container)) error {
		c := inventory.Container{NodeID: w.Node.ID, Hostname: "other"}
		change(&c)
		_, err := s.CreateContainer(ctx, w.Site.ID, c)
		return err
	}
	service := func(wanted inventory.Service) error {
		_, err := s.CreateService(ctx, w.Container.ID, wanted)
		return err
	}
	volume := func(name, mount string) error {
		_, err := s.CreateVolume(ctx, w.Container.ID, inventory.Volume{Name: name, MountPath: mount, Mode: "ro"})
		return err
	}
	_, sameSite := s.CreateSite(ctx, inventory.Site{Name: "SITE1"})
	_, sameDomain := s.CreateExternalDomain(ctx, inventory.ExternalDomain{Name: "EXAMPLE1.com."})
	tests := []struct {
		name, field, holder string
		err                 error
	}{
		{"site", "name", `site "site1"`, sameSite},
		{"domain", "name", `external domain "example1.com"`, sameDomain},
		{"hostname", "hostname", `container "web"`, container(func(c *inventory.Container) { c.Hostname = "Web" })},
		{"address", "ipv4Address", `container "web"`, container(func(c *inventory.Container) { c.IPv4Address = "192.0.2.101" })},
		{"node's address", "ipv4Address", `node "pve1"`, container(func(c *inventory.Container) { c.IPv4Address = "192.0.2.10" })},
		{"mac", "macAddress", `container "web"`, container(func(c *inventory.Container) { c.MACAddress = "02-00-00-00-00-01" })},
		{"http", "externalHostname", `container "web"`, service(inventory.Service{Type: "http", InternalPort: 1, ExternalHostname: "APP", ExternalDomainID: &w.Domain.ID})},
		{"transport", "externalPort", `container "web"`, service(inventory.Service{Type: "transport", InternalPort: 1, Protocol: "tcp", ExternalPort: w.Transport.ExternalPort})},
		{"dns", "dnsName", `dns service "_sip._tcp"`, service(inventory.Service{Type: "dns", InternalPort: 5060, DNSName: "_SIP._tcp"})},
		{"volume name", "name", `volume "data"`, volume("Data", "/else")},
		{"mount path", "mountPath", `volume "data"`, volume("else", "/data")},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			conflict := wantConflict(t, test.err, test.field)
			if diff := cmp.Diff([]string{test.holder}, conflict.Holders); diff != "" {
				t.Error(diff)
			}
		})
	}
	// The same in another site, or with another protocol, is no conflict.
	NewWorld(t, s, 2)
	if err := service(inventory.Service{Type: "transport", InternalPort: 1, Protocol: "udp", ExternalPort: w.Transport.ExternalPort}); err != nil {
		t.Error(err)
	}
	// Deleting frees the name.
	if err := s.DeleteService(ctx, w.HTTP.ID); err != nil {
		t.Fatal(err)
	}
	if err := service(inventory.Service{Type: "http", InternalPort: 1, ExternalHostname: "app", ExternalDomainID: &w.Domain.ID}); err != nil {
		t.Error(err)
	}
}

func testNameSpace(t *testing.T, s *store.Store) {
	w := NewWorld(t, s, 1)
	ctx := t.Context()
	_, err := s.CreateNode(ctx, w.Site.ID, inventory.Node{Name: "Web"})
	if conflict := wantConflict(t, err, "name"); conflict.Holders[0] != `container "web"` {
		t.Error(conflict.Holders)
	}
	_, err = s.CreateContainer(ctx, w.Site.ID, inventory.Container{NodeID: w.Node.ID, Hostname: "pve1"})
	if conflict := wantConflict(t, err, "hostname"); conflict.Holders[0] != `node "pve1"` {
		t.Error(conflict.Holders)
	}
	rename := func(name string) error {
		_, err := s.UpdateNode(ctx, w.Node.ID, func(n *inventory.Node) error { n.Name = name; return nil })
		return err
	}
	wantConflict(t, rename("web"), "name")
	if err := rename("pve2"); err != nil {
		t.Fatal(err)
	}
	must(s.CreateContainer(ctx, w.Site.ID, inventory.Container{NodeID: w.Node.ID, Hostname: "pve1"}))(t)
	wantConflict(t, rename("pve1"), "name")
}

func testFullNames(t *testing.T, s *store.Store) {
	w := NewWorld(t, s, 1)
	ctx := t.Context()
	service := func(host string, domain int64) error {
		_, err := s.CreateService(ctx, w.Container.ID, inventory.Service{Type: "http", InternalPort: 1, ExternalHostname: host, ExternalDomainID: &domain})
		return err
	}
	inner := must(s.CreateExternalDomain(ctx, inventory.ExternalDomain{Name: "lab.example1.com"}))(t)
	if err := service("a.lab", w.Domain.ID); err != nil {
		t.Fatal(err)
	}
	wantConflict(t, service("a", inner.ID), "externalHostname")
	wantConflict(t, service("lab", w.Domain.ID), "externalHostname")
	_, err := s.CreateExternalDomain(ctx, inventory.ExternalDomain{Name: "app.example1.com"})
	wantConflict(t, err, "name")

	if err := service("b", inner.ID); err != nil {
		t.Fatal(err)
	}
	rename := func(id int64, name string) error {
		_, err := s.UpdateExternalDomain(ctx, id, func(d *inventory.ExternalDomain) error { d.Name = name; return nil })
		return err
	}
	wantConflict(t, rename(inner.ID, "example1.com"), "name")
	if err := service("b.other", w.Domain.ID); err != nil {
		t.Fatal(err)
	}
	wantConflict(t, rename(inner.ID, "other.example1.com"), "name") // b.other.example1.com
	if err := rename(inner.ID, "example.net"); err != nil {
		t.Fatal(err)
	}
	if err := service("b.lab", w.Domain.ID); err != nil {
		t.Errorf("a name that was freed: %v", err)
	}
	wantInvalid(t, rename(w.Domain.ID, strings.Repeat(strings.Repeat("x", 49)+".", 5)+"com"), "name")
	long := strings.Repeat(strings.Repeat("x", 49)+".", 4) + strings.Repeat("x", 45)
	wantInvalid(t, service(long, w.Domain.ID), "externalHostname")
}

func testRefusedUpdate(t *testing.T, s *store.Store) {
	w := NewWorld(t, s, 1)
	ctx := t.Context()
	no := errors.New("no")
	_, err := s.UpdateSite(ctx, w.Site.ID, func(site *inventory.Site) error { site.Name = "else"; return no })
	if !errors.Is(err, no) {
		t.Errorf("error of change: %v", err)
	}
	_, err = s.UpdateSite(ctx, w.Site.ID, func(site *inventory.Site) error { site.Name, site.Gateway = "else", "junk"; return nil })
	wantInvalid(t, err, "gateway")
	_, err = s.UpdateService(ctx, w.HTTP.ID, func(service *inventory.Service) error { service.Type = "dns"; return nil })
	wantInvalid(t, err, "type")
	if diff := cmp.Diff(w.Site, must(s.GetSite(ctx, w.Site.ID))(t)); diff != "" {
		t.Error(diff)
	}
	_, err = s.UpdateSite(ctx, 99, func(*inventory.Site) error { return nil })
	if !errors.Is(err, store.ErrNotFound) {
		t.Error(err)
	}
}

func testParents(t *testing.T, s *store.Store) {
	w1, w2 := NewWorld(t, s, 1), NewWorld(t, s, 2)
	ctx := t.Context()
	_, err := s.CreateNode(ctx, 99, inventory.Node{Name: "a"})
	wantNotFound(t, err)
	_, err = s.CreateContainer(ctx, 99, inventory.Container{NodeID: w1.Node.ID, Hostname: "a"})
	wantNotFound(t, err)
	_, err = s.CreateContainer(ctx, w1.Site.ID, inventory.Container{NodeID: w2.Node.ID, Hostname: "a"})
	wantInvalid(t, err, "nodeId")
	_, err = s.CreateContainer(ctx, w1.Site.ID, inventory.Container{NodeID: 99, Hostname: "a"})
	wantInvalid(t, err, "nodeId")
	_, err = s.CreateService(ctx, 99, inventory.Service{Type: "dns", InternalPort: 1, DNSName: "a"})
	wantNotFound(t, err)
	_, err = s.CreateVolume(ctx, 99, inventory.Volume{Name: "a", MountPath: "/a", Mode: "rw"})
	wantNotFound(t, err)
	unknown := int64(99)
	_, err = s.CreateService(ctx, w1.Container.ID, inventory.Service{Type: "http", InternalPort: 1, ExternalHostname: "a", ExternalDomainID: &unknown})
	wantInvalid(t, err, "externalDomainId")
	_, err = s.CreateExternalDomain(ctx, inventory.ExternalDomain{Name: "a.test", DefaultSiteID: &unknown})
	wantInvalid(t, err, "defaultSiteId")
}

func testParallelCreates(t *testing.T, s *store.Store) {
	w := NewWorld(t, s, 1)
	ctx := t.Context()
	for round := range 50 {
		host := fmt.Sprintf("h%d", round)
		oneWinner(t, "externalHostname", func(int) error {
			_, err := s.CreateService(ctx, w.Container.ID, inventory.Service{Type: "http", InternalPort: 1, ExternalHostname: host, ExternalDomainID: &w.Domain.ID})
			return err
		})
		oneWinner(t, "ipv4Address", func(competitor int) error {
			_, err := s.CreateContainer(ctx, w.Site.ID, inventory.Container{
				NodeID: w.Node.ID, Hostname: fmt.Sprintf("c%d-%d", round, competitor), IPv4Address: fmt.Sprintf("198.51.100.%d", round+1),
			})
			return err
		})
	}
}

// oneWinner lets two competitors, 0 and 1, create what only one may have.
func oneWinner(t *testing.T, field string, create func(competitor int) error) {
	t.Helper()
	errs := make([]error, 2)
	var group sync.WaitGroup
	for i := range errs {
		group.Go(func() { errs[i] = create(i) })
	}
	group.Wait()
	if (errs[0] == nil) == (errs[1] == nil) {
		t.Fatalf("not exactly one won: %v, %v", errs[0], errs[1])
	}
	wantConflict(t, errors.Join(errs...), field)
}

func testPorts(t *testing.T, s *store.Store) {
	w := NewWorld(t, s, 1)
	ctx := t.Context()
	if w.Transport.ExternalPort != 2000 {
		t.Errorf("first port is %d", w.Transport.ExternalPort)
	}
	setRange := func(ports string) {
		t.Helper()
		must(s.UpdateSite(ctx, w.Site.ID, func(site *inventory.Site) error { site.PortRange = ports; return nil }))(t)
	}
	create := func(protocol string, port int) (store.Service, error) {
		return s.CreateService(ctx, w.Container.ID, inventory.Service{Type: "transport", InternalPort: 22, Protocol: protocol, ExternalPort: port})
	}
	setRange("2999-3003") // 3000 is reserved, 3001 is the manager's own
	var got []int
	for range 3 {
		got = append(got, must(create("tcp", 0))(t).ExternalPort)
	}
	if diff := cmp.Diff([]int{2999, 3002, 3003}, got); diff != "" {
		t.Error(diff)
	}
	_, err := create("tcp", 0)
	if conflict := wantConflict(t, err, "externalPort"); !strings.Contains(conflict.Message, "2999-3003") {
		t.Error(conflict.Message)
	}
	if udp := must(create("udp", 0))(t); udp.ExternalPort != 2999 {
		t.Errorf("udp got %d", udp.ExternalPort)
	}
	setRange("65535-65535")
	if last := must(create("tcp", 0))(t); last.ExternalPort != 65535 {
		t.Errorf("got %d", last.ExternalPort)
	}
	_, err = create("tcp", 0)
	wantConflict(t, err, "externalPort")
	for _, port := range []int{22, 53, 67, 68, 80, 443, 3000, 3001, 65536, -1} {
		for _, protocol := range []string{"tcp", "udp"} {
			_, err := create(protocol, port)
			wantInvalid(t, err, "externalPort")
		}
	}
	must(create("tcp", 8443))(t)
}

func testParallelPorts(t *testing.T, s *store.Store) {
	w := NewWorld(t, s, 1)
	ctx := t.Context()
	ports := make([]int, 40)
	var group sync.WaitGroup
	for i := range ports {
		group.Go(func() {
			service, err := s.CreateService(ctx, w.Container.ID, inventory.Service{Type: "transport", InternalPort: 22, Protocol: "tcp"})
			if err != nil {
				t.Error(err)
			}
			ports[i] = service.ExternalPort
		})
	}
	group.Wait()
	seen := map[int]bool{w.Transport.ExternalPort: true}
	for _, port := range ports {
		if seen[port] || port < 2000 || port > 2040 {
			t.Errorf("port %d is doubled or out of order", port)
		}
		seen[port] = true
	}
}

func testVolumePaths(t *testing.T, s *store.Store) {
	w := NewWorld(t, s, 1)
	ctx := t.Context()
	want := fmt.Sprintf("/mnt/volumes/site-%d/alice/web/data", w.Site.ID)
	if w.Volume.HostPath != want || w.Volume.UID != store.VolumeUID || w.Volume.Status != store.VolumePending {
		t.Errorf("%+v", w.Volume)
	}
	must(s.UpdateContainer(ctx, w.Container.ID, func(c *inventory.Container) error {
		c.Hostname, c.Owner = "renamed", "carol"
		return nil
	}))(t)
	must(s.UpdateSite(ctx, w.Site.ID, func(site *inventory.Site) error { site.VolumesRoot = "/srv/v"; return nil }))(t)
	must(s.UpdateVolume(ctx, w.Volume.ID, func(v *inventory.Volume) error { v.Name = "else"; return nil }))(t)
	if volume := must(s.GetVolume(ctx, w.Volume.ID))(t); volume.HostPath != want {
		t.Errorf("moved to %s", volume.HostPath)
	}

	// The path of a renamed container is not given to its successor.
	must(s.UpdateSite(ctx, w.Site.ID, func(site *inventory.Site) error { site.VolumesRoot = ""; return nil }))(t)
	successor := must(s.CreateContainer(ctx, w.Site.ID, inventory.Container{NodeID: w.Node.ID, Hostname: "web", Owner: "alice"}))(t)
	_, err := s.CreateVolume(ctx, successor.ID, inventory.Volume{Name: "data", MountPath: "/data", Mode: "rw"})
	if conflict := wantConflict(t, err, "name"); conflict.Holders[0] != `volume "else" of container "renamed"` {
		t.Error(conflict.Holders)
	}
	nobodys := must(s.CreateContainer(ctx, w.Site.ID, inventory.Container{NodeID: w.Node.ID, Hostname: "nobodys"}))(t)
	volume := must(s.CreateVolume(ctx, nobodys.ID, inventory.Volume{Name: "data", MountPath: "/data", Mode: "rw"}))(t)
	if want := fmt.Sprintf("/mnt/volumes/site-%d/unowned/nobodys/data", w.Site.ID); volume.HostPath != want {
		t.Errorf("path is %s", volume.HostPath)
	}
}

func testInUse(t *testing.T, s *store.Store) {
	w := NewWorld(t, s, 1)
	ctx := t.Context()
	must(s.UpdateExternalDomain(ctx, w.Domain.ID, func(d *inventory.ExternalDomain) error { d.DefaultSiteID = &w.Site.ID; return nil }))(t)
	tests := map[string]struct {
		err  error
		want []string
	}{
		"site":      {s.DeleteSite(ctx, w.Site.ID, false), []string{`node "pve1"`, `external domain "example1.com"`}},
		"node":      {s.DeleteNode(ctx, w.Node.ID, false), []string{`container "web"`}},
		"container": {s.DeleteContainer(ctx, w.Container.ID, false), []string{`http service "app"`, `transport service tcp 2000`, `dns service "_sip._tcp"`, `volume "data"`}},
		"domain":    {s.DeleteExternalDomain(ctx, w.Domain.ID, false), []string{`http service "app"`}},
	}
	for name, test := range tests {
		var inUse *store.InUseError
		if !errors.As(test.err, &inUse) {
			t.Errorf("%s: %v", name, test.err)
			continue
		}
		if diff := cmp.Diff(test.want, inUse.Dependants); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	for i := range 20 {
		must(s.CreateContainer(ctx, w.Site.ID, inventory.Container{NodeID: w.Node.ID, Hostname: fmt.Sprintf("n%d", i)}))(t)
	}
	err := s.DeleteNode(ctx, w.Node.ID, false)
	if !strings.HasSuffix(err.Error(), "and 11 more") {
		t.Error(err)
	}
}

func testCascade(t *testing.T, s *store.Store) {
	w1, w2 := NewWorld(t, s, 1), NewWorld(t, s, 2)
	ctx := t.Context()
	must(s.RecordCheckIn(ctx, store.CheckIn{SiteID: w1.Site.ID, Hostname: "agent", At: time.Now()}))(t)
	if err := s.DeleteExternalDomain(ctx, w2.Domain.ID, true); err != nil {
		t.Fatal(err)
	}
	if err := s.DeleteSite(ctx, w1.Site.ID, true); err != nil {
		t.Fatal(err)
	}
	counts := map[string]int64{}
	var err error
	count := func(what string, total int64, listErr error) { counts[what] = total; err = errors.Join(err, listErr) }
	_, total, e := s.ListNodes(ctx, store.NodeFilter{}, store.ListOptions{})
	count("nodes", total, e)
	_, total, e = s.ListServices(ctx, store.ServiceFilter{}, store.ListOptions{})
	count("services", total, e)
	_, total, e = s.ListVolumes(ctx, store.VolumeFilter{}, store.ListOptions{})
	count("volumes", total, e)
	_, total, e = s.ListAgents(ctx, store.AgentFilter{}, store.ListOptions{})
	count("agents", total, e)
	if diff := cmp.Diff(map[string]int64{"nodes": 1, "services": 2, "volumes": 1, "agents": 0}, counts); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if err := s.DeleteNode(ctx, w2.Node.ID, true); err != nil {
		t.Fatal(err)
	}
	wantNotFound(t, s.DeleteContainer(ctx, w2.Container.ID, true))
	if err := s.DeleteSite(ctx, w2.Site.ID, false); err != nil {
		t.Error(err)
	}
	if err := s.DeleteExternalDomain(ctx, w1.Domain.ID, false); err != nil {
		t.Fatal(err)
	}
	// Every name is free again, and no id is used twice.
	again := NewWorld(t, s, 1)
	if again.Site.ID <= w2.Site.ID {
		t.Errorf("site id %d is used again", again.Site.ID)
	}
}

func testNetworkInSite(t *testing.T, s *store.Store) {
	w := NewWorld(t, s, 1)
	ctx := t.Context()
	set := func(change func(*inventory.Site)) error {
		_, err := s.UpdateSite(ctx, w.Site.ID, func(site *inventory.Site) error { change(site); return nil })
		return err
	}
	wantInvalid(t, set(func(site *inventory.Site) { site.Gateway = "192.0.2.10" }), "gateway")
	_, err := s.CreateContainer(ctx, w.Site.ID, inventory.Container{NodeID: w.Node.ID, Hostname: "gw", IPv4Address: "192.0.2.1"})
	wantInvalid(t, err, "ipv4Address")
	must(s.RecordCheckIn(ctx, store.CheckIn{
		SiteID: w.Site.ID, Hostname: "agent", At: time.Now(), Report: checkin.Request{IPv4Address: "192.0.2.50"},
	}))(t)
	wantInvalid(t, set(func(site *inventory.Site) { site.DHCPRange = "192.0.2.40,192.0.2.60" }), "dhcpRange")
	if err := set(func(site *inventory.Site) { site.DHCPRange = "192.0.2.51,192.0.2.60" }); err != nil {
		t.Error(err)
	}
}

func testVersions(t *testing.T, s *store.Store) {
	w1, w2 := NewWorld(t, s, 1), NewWorld(t, s, 2)
	ctx := t.Context()
	steps := []struct {
		name  string
		moves bool
		do    func() error
	}{
		{"nothing", false, func() error { return nil }},
		{"an update that changes nothing", false, func() error {
			_, err := s.UpdateNode(ctx, w1.Node.ID, func(*inventory.Node) error { return nil })
			return err
		}},
		{"node", true, func() error {
			_, err := s.UpdateNode(ctx, w1.Node.ID, func(n *inventory.Node) error { n.Name = "pve9"; return nil })
			return err
		}},
		{"domain of a service", true, func() error {
			_, err := s.UpdateExternalDomain(ctx, w1.Domain.ID, func(d *inventory.ExternalDomain) error { d.Name = "example.org"; return nil })
			return err
		}},
		{"domain's default site", true, func() error {
			_, err := s.UpdateExternalDomain(ctx, w1.Domain.ID, func(d *inventory.ExternalDomain) error { d.DefaultSiteID = &w1.Site.ID; return nil })
			return err
		}},
		{"check-in", false, func() error {
			_, err := s.RecordCheckIn(ctx, store.CheckIn{SiteID: w1.Site.ID, Hostname: "agent", At: time.Now()})
			return err
		}},
		{"volume result", true, func() error {
			_, err := s.RecordCheckIn(ctx, store.CheckIn{SiteID: w1.Site.ID, Hostname: "agent", At: time.Now(),
				Volumes: map[int64]checkin.VolumeReport{w1.Volume.ID: {Applied: true}}})
			return err
		}},
		{"refused", false, func() error {
			_, err := s.CreateNode(ctx, w1.Site.ID, inventory.Node{Name: "web"})
			wantConflict(t, err, "name")
			return nil
		}},
		{"service", true, func() error { return s.DeleteService(ctx, w1.DNS.ID) }},
		{"volume", true, func() error { return s.DeleteVolume(ctx, w1.Volume.ID) }},
		{"site", true, func() error { return s.DeleteSite(ctx, w1.Site.ID, true) }},
	}
	other := must(s.Versions(ctx))(t).Site(w2.Site.ID)
	for _, step := range steps {
		before := must(s.Versions(ctx))(t).Site(w1.Site.ID)
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		after := must(s.Versions(ctx))(t)
		if moved := after.Site(w1.Site.ID) != before; moved != step.moves {
			t.Errorf("%s: counter moved is %v", step.name, moved)
		}
		if after.Site(w2.Site.ID) != other {
			t.Errorf("%s: the other site's counter moved", step.name)
		}
	}
}

func testKeyCounter(t *testing.T, s *store.Store) {
	w := NewWorld(t, s, 1)
	ctx := t.Context()
	key := store.APIKey{Name: "a", Role: "agent", SiteID: &w.Site.ID, Prefix: "p", Hash: []byte("h"), CreatedAt: time.Now().UTC()}
	for _, step := range []struct {
		name  string
		moves bool
		do    func() error
	}{
		{"create", true, func() error { return s.CreateAPIKey(ctx, &key) }},
		{"use", false, func() error { return s.TouchAPIKeys(ctx, map[int64]time.Time{key.ID: time.Now().UTC()}) }},
		{"revoke", true, func() error { _, err := s.RevokeAPIKey(ctx, key.ID); return err }},
		{"delete its site", true, func() error { return s.DeleteSite(ctx, w.Site.ID, true) }},
	} {
		before := must(s.Versions(ctx))(t).Keys
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if moved := must(s.Versions(ctx))(t).Keys != before; moved != step.moves {
			t.Errorf("%s: counter moved is %v", step.name, moved)
		}
	}
}

func testAgents(t *testing.T, s *store.Store) {
	w1, w2 := NewWorld(t, s, 1), NewWorld(t, s, 2)
	ctx := t.Context()
	var group sync.WaitGroup
	ids := make([]int64, 100)
	for i := range ids {
		site := w1.Site.ID
		if i%2 == 1 {
			site = w2.Site.ID
		}
		group.Go(func() {
			id, err := s.RecordCheckIn(ctx, store.CheckIn{SiteID: site, Hostname: "agent", At: time.Now().UTC()})
			if err != nil {
				t.Error(err)
			}
			ids[i] = id
		})
	}
	group.Wait()
	agents, total, err := s.ListAgents(ctx, store.AgentFilter{}, store.ListOptions{})
	if err != nil || total != 2 || agents[0].SiteID == agents[1].SiteID {
		t.Fatalf("%d agents, %v", total, err)
	}
	for i, id := range ids {
		if id != ids[i%2] {
			t.Fatalf("check-in %d got agent %d, not %d", i, id, ids[i%2])
		}
	}
	before := must(s.Versions(ctx))(t).Agents
	if err := s.DeleteAgent(ctx, ids[0]); err != nil {
		t.Fatal(err)
	}
	if must(s.Versions(ctx))(t).Agents == before {
		t.Error("a deletion is not counted")
	}
	must(s.GetAgent(ctx, ids[1]))(t)
	_, err = s.RecordCheckIn(ctx, store.CheckIn{SiteID: 99, Hostname: "agent", At: time.Now()})
	wantNotFound(t, err)
}

func testHeartbeats(t *testing.T, s *store.Store) {
	w := NewWorld(t, s, 1)
	ctx := t.Context()
	seen := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	id := must(s.RecordCheckIn(ctx, store.CheckIn{SiteID: w.Site.ID, Hostname: "agent", At: seen}))(t)
	skew := int64(-1500)
	s.Beat(store.Heartbeat{AgentID: id, At: seen.Add(30 * time.Second), PeerAddress: "192.0.2.9", ClockSkewMS: &skew,
		Report: &checkin.Request{Hostname: "agent", CurrentTime: 7}})
	s.Beat(store.Heartbeat{AgentID: 99, At: seen, Report: &checkin.Request{}}) // deleted meanwhile

	check := func(when string) {
		t.Helper()
		agent := must(s.GetAgent(ctx, id))(t)
		if !agent.LastSeenAt.Equal(seen.Add(30*time.Second)) || agent.PeerAddress != "192.0.2.9" ||
			agent.ClockSkewMS == nil || *agent.ClockSkewMS != skew || agent.Report.CurrentTime != 7 || !agent.FirstSeenAt.Equal(seen) {
			t.Errorf("%s: %+v", when, agent)
		}
	}
	check("in memory")
	if err := s.FlushHeartbeats(); err != nil {
		t.Fatal(err)
	}
	check("stored")
	agent := must(s.GetAgent(ctx, id))(t)
	for age, want := range map[time.Duration]store.Presence{
		-time.Hour: store.Online, 0: store.Online, 90 * time.Second: store.Online, 91 * time.Second: store.Late,
		5 * time.Minute: store.Late, 5*time.Minute + 1: store.Offline,
	} {
		if got := agent.Presence(agent.LastSeenAt.Add(age)); got != want {
			t.Errorf("after %v: %s, not %s", age, got, want)
		}
	}
	if age := agent.Age(agent.LastSeenAt.Add(-time.Hour)); age != 0 {
		t.Errorf("age is %v", age)
	}
}

func testVolumeResults(t *testing.T, s *store.Store) {
	w1, w2 := NewWorld(t, s, 1), NewWorld(t, s, 2)
	ctx := t.Context()
	report := func(results map[int64]checkin.VolumeReport) {
		t.Helper()
		must(s.RecordCheckIn(ctx, store.CheckIn{SiteID: w1.Site.ID, Hostname: "agent", At: time.Now().UTC(), Volumes: results}))(t)
	}
	status := func(id int64) string {
		volume := must(s.GetVolume(ctx, id))(t)
		return string(volume.Status) + ":" + volume.StatusMessage
	}
	report(map[int64]checkin.VolumeReport{w1.Volume.ID: {Message: "no mount"}, w2.Volume.ID: {Applied: true}, 99: {Applied: true}})
	if got := status(w1.Volume.ID); got != "failed:no mount" {
		t.Error(got)
	}
	if got := status(w2.Volume.ID); got != "pending:" {
		t.Errorf("the other site's volume is %s", got)
	}
	report(map[int64]checkin.VolumeReport{w1.Volume.ID: {Applied: true}})
	if got := status(w1.Volume.ID); got != "ready:" {
		t.Error(got)
	}
	must(s.UpdateVolume(ctx, w1.Volume.ID, func(v *inventory.Volume) error { v.MountPath = "/elsewhere"; return nil }))(t)
	if got := status(w1.Volume.ID); got != "ready:" {
		t.Error(got)
	}
	must(s.UpdateVolume(ctx, w1.Volume.ID, func(v *inventory.Volume) error { v.Mode = "ro"; return nil }))(t)
	if got := status(w1.Volume.ID); got != "pending:" {
		t.Error(got)
	}
}

func testRevisions(t *testing.T, s *store.Store) {
	w := NewWorld(t, s, 1)
	ctx := t.Context()
	publish := func(content string) store.Published {
		t.Helper()
		return must(s.Publish(ctx, w.Site.ID, func(store.Inventory) ([]byte, string, error) { return []byte(content), "e" + content, nil }))(t)
	}
	first := publish("1")
	if first.Revision.Number != 1 || first.Version != must(s.Versions(ctx))(t).Site(w.Site.ID) || len(first.Volumes) != 1 {
		t.Errorf("%+v", first)
	}
	if again := publish("1"); again.Revision.Number != 1 || string(again.Revision.Data) != "1" {
		t.Errorf("%+v", again)
	}
	publish("2")
	if back := publish("1"); back.Revision.Number != 3 {
		t.Errorf("%+v", back)
	}
	revisions, total, err := s.ListRevisions(ctx, store.RevisionFilter{SiteID: w.Site.ID}, store.ListOptions{Sort: "-number"})
	if err != nil || total != 3 || revisions[0].Number != 3 || revisions[0].Data != nil {
		t.Errorf("%+v, %v", revisions, err)
	}
	if second := must(s.GetRevision(ctx, w.Site.ID, 2))(t); string(second.Data) != "2" || second.ETag != "e2" {
		t.Errorf("%+v", second)
	}
	_, err = s.GetRevision(ctx, w.Site.ID, 4)
	wantNotFound(t, err)
	_, err = s.Publish(ctx, 99, nil)
	wantNotFound(t, err)
	broken := errors.New("broken")
	_, err = s.Publish(ctx, w.Site.ID, func(store.Inventory) ([]byte, string, error) { return nil, "", broken })
	if !errors.Is(err, broken) {
		t.Error(err)
	}
}

func testParallelPublish(t *testing.T, s *store.Store) {
	w := NewWorld(t, s, 1)
	ctx := t.Context()
	name := func(i store.Inventory) ([]byte, string, error) { return []byte(i.Site.Name), i.Site.Name, nil }
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 20 {
				if _, err := s.Publish(ctx, w.Site.ID, name); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range 40 {
		must(s.UpdateSite(ctx, w.Site.ID, func(site *inventory.Site) error { site.Name = fmt.Sprintf("v%03d", i); return nil }))(t)
	}
	group.Wait()
	revisions, _, err := s.ListRevisions(ctx, store.RevisionFilter{SiteID: w.Site.ID}, store.ListOptions{Limit: 500})
	if err != nil {
		t.Fatal(err)
	}
	last := ""
	for i, revision := range revisions {
		if revision.Number != int64(i+1) || i > 1 && revision.ETag <= last {
			t.Errorf("revision %d (%s) after %s", revision.Number, revision.ETag, last)
		}
		last = revision.ETag
	}
}

func testInventory(t *testing.T, s *store.Store) {
	w1, w2 := NewWorld(t, s, 1), NewWorld(t, s, 2)
	ctx := t.Context()
	must(s.UpdateExternalDomain(ctx, w2.Domain.ID, func(d *inventory.ExternalDomain) error { d.DefaultSiteID = &w1.Site.ID; return nil }))(t)
	third := must(s.CreateExternalDomain(ctx, inventory.ExternalDomain{Name: "unused.test"}))(t)
	got := must(s.ReadInventory(ctx, w1.Site.ID))(t)
	domain2 := must(s.GetExternalDomain(ctx, w2.Domain.ID))(t)
	want := store.Inventory{
		Site: w1.Site, Nodes: []store.Node{w1.Node}, Containers: []store.Container{w1.Container},
		Services: []store.Service{w1.HTTP, w1.Transport, w1.DNS}, Volumes: []store.Volume{w1.Volume},
		Domains: []store.ExternalDomain{w1.Domain, domain2},
	}
	noTimes := cmp.FilterPath(func(p cmp.Path) bool {
		return p.Last().String() == ".CreatedAt" || p.Last().String() == ".UpdatedAt"
	}, cmp.Ignore())
	if diff := cmp.Diff(want, got, noTimes); diff != "" {
		t.Error(diff)
	}
	must(s.UpdateExternalDomain(ctx, third.ID, func(d *inventory.ExternalDomain) error { d.DefaultSiteID = &w2.Site.ID; return nil }))(t)
	if inv := must(s.ReadInventory(ctx, w2.Site.ID))(t); len(inv.Domains) != 2 {
		t.Errorf("%+v", inv.Domains)
	}
}

func wantConflict(t *testing.T, err error, field string) *store.ConflictError {
	t.Helper()
	var conflict *store.ConflictError
	if !errors.As(err, &conflict) || conflict.Field != field || conflict.Message == "" {
		t.Fatalf("no conflict of %s: %v", field, err)
	}
	return conflict
}

func wantInvalid(t *testing.T, err error, field string) {
	t.Helper()
	var invalid *store.InvalidError
	if !errors.As(err, &invalid) || invalid.Fields[field] == "" {
		t.Errorf("%s is not invalid: %v", field, err)
	}
}

func wantNotFound(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, store.ErrNotFound) {
		t.Errorf("not ErrNotFound: %v", err)
	}
}
