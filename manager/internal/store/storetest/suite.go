package storetest

import (
	"errors"
	"fmt"
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
		"lists are searched":                     testSearch,
		"lists are filtered":                     testFilters,
		"lists begin with what is not set":       testUnsetFirst,
		"names are compared in any case":         testNamesInAnyCase,
		"the first user":                         testSetup,
		"several steps are one":                  testAtomically,
		"conflicts name the field":               testConflicts,
		"one name space for nodes, containers":   testNameSpace,
		"full names are unique":                  testFullNames,
		"internal names are not too long":        testInternalNames,
		"a service is not its own auth server":   testOwnAuthServer,
		"a refused update changes nothing":       testRefusedUpdate,
		"parents have to exist":                  testParents,
		"parallel creates have one winner":       testParallelCreates,
		"ports are allocated":                    testPorts,
		"parallel port allocation":               testParallelPorts,
		"volume paths are fixed":                 testVolumePaths,
		"what is in use is not deleted":          testInUse,
		"a site with an agent and a key":         testSiteWithAgentAndKey,
		"cascade":                                testCascade,
		"network settings suit the site":         testNetworkInSite,
		"change counters":                        testVersions,
		"the counter of keys":                    testKeyCounter,
		"one agent per site and host name":       testAgents,
		"overview of agents":                     testOverview,
		"what agents run and are given":          testAgentRevisions,
		"agents of too many names":               testTooManyAgents,
		"heartbeats are seen before they land":   testHeartbeats,
		"volume results":                         testVolumeResults,
		"revisions":                              testRevisions,
		"revisions never go back in parallel":    testParallelPublish,
		"inventory of a site holds only its own": testInventory,
		"sites are pinned":                       testPins,
		"sites are published by hand":            testPublishSite,
		"authors by external domain":             testAuthorsByDomain,
		"authors of what is confirmed":           testAuthorsOfConfirmed,
		"old revisions are deleted":              testPruneRevisions,
		"removals are confirmed":                 testConfirmRemovals,
		"other content is not confirmed":         testConfirmOtherContent,
		"confirmed with a snapshot or not":       testConfirmAllOrNothing,
		"what drops confirmed removals":          testWhatDropsConfirmedRemovals,
		"drift is kept for a day":                testDriftIsKept,
		"changes are audited":                    testAuditOfRecords,
		"audited records are recalled":           testRecall,
		"cascaded deletes are audited":           testAuditOfCascades,
		"people and keys are audited":            testAuditOfPeople,
		"agents are not audited":                 testAuditNotOfAgents,
		"the audit log is filtered":              testAuditFilters,
		"failed sign-ins are bounded":            testFailedSignIns,
		"failures in doubt":                      testFailureInDoubt,
		"events tell what happened":              testEvents,
		"what live pages ask":                    testLive,
		"one holder of a lease":                  testLease,
		"a lease without a holder":               testLeaseGap,
		"events happen once":                     testEventsOnce,
		"events are bounded":                     testEventsAreBounded,
		"silence is an event, once":              testOffline,
		"logs are kept for a while":              testRetention,
		"much is dropped at once":                testRetentionOfMany,
		"back with a heartbeat":                  testBackWithAHeartbeat,
		"quarters":                               testQuarters,
		"a report that was missed":               testMissedReport,
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
	for _, addr := range []string{"192.0.2.0", "192.0.2.255"} {
		_, err := s.CreateNode(ctx, w.Site.ID, inventory.Node{Name: "edge", IPv4Address: addr})
		wantInvalid(t, err, "ipv4Address")
	}
	must(s.CreateNode(ctx, w.Site.ID, inventory.Node{Name: "routed", IPv4Address: "198.51.100.255"}))(t) // another network
	must(s.RecordCheckIn(ctx, store.CheckIn{
		SiteID: w.Site.ID, Hostname: "agent", At: time.Now(), Report: checkin.Request{IPv4Address: "192.0.2.50"},
	}))(t)
	wantInvalid(t, set(func(site *inventory.Site) { site.DHCPRange = "192.0.2.40,192.0.2.60" }), "dhcpRange")
	if err := set(func(site *inventory.Site) { site.DHCPRange = "192.0.2.51,192.0.2.60" }); err != nil {
		t.Error(err)
	}
}

func testInventory(t *testing.T, s *store.Store) {
	w1, w2 := NewWorld(t, s, 1), NewWorld(t, s, 2)
	ctx := t.Context()
	must(s.UpdateExternalDomain(ctx, w2.Domain.ID, func(d *inventory.ExternalDomain) error { d.DefaultSiteID = &w1.Site.ID; return nil }))(t)
	third := must(s.CreateExternalDomain(ctx, inventory.ExternalDomain{Name: "unused.test"}))(t)
	got := Inventory(t, s, w1.Site.ID)
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
	if inv := Inventory(t, s, w2.Site.ID); len(inv.Domains) != 2 {
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
