package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/store"
)

func testInUse(t *testing.T, s *store.Store) {
	w := NewWorld(t, s, 1)
	ctx := t.Context()
	must(s.UpdateExternalDomain(ctx, w.Domain.ID, func(d *inventory.ExternalDomain) error { d.DefaultSiteID = &w.Site.ID; return nil }))(t)
	must(s.RecordCheckIn(ctx, store.CheckIn{SiteID: w.Site.ID, Hostname: "gateway", At: time.Now()}))(t)
	addKey(t, s, w.Site.ID, "deploy")
	must(s.RevokeAPIKey(ctx, addKey(t, s, w.Site.ID, "revoked").ID))(t)
	tests := map[string]struct {
		err  error
		want []string
	}{
		"site":      {s.DeleteSite(ctx, w.Site.ID, false), []string{`node "pve1"`, `external domain "example1.com"`, `API key "deploy"`, `agent "gateway"`}},
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

// testSiteWithAgentAndKey: a site is not deleted under its agent. Without its
// nodes too, nobody should lose a key by deleting the wrong site.
func testSiteWithAgentAndKey(t *testing.T, s *store.Store) {
	ctx := t.Context()
	site := must(s.CreateSite(ctx, inventory.Site{Name: "lab"}))(t)
	agent := must(s.RecordCheckIn(ctx, store.CheckIn{SiteID: site.ID, Hostname: "gateway", At: time.Now()}))(t).ID
	key := addKey(t, s, site.ID, "deploy")
	refused := func(want string) {
		t.Helper()
		var inUse *store.InUseError
		if err := s.DeleteSite(ctx, site.ID, false); !errors.As(err, &inUse) || !slices.Equal(inUse.Dependants, []string{want}) {
			t.Errorf("not in use by %s: %v", want, err)
		}
		must(s.GetSite(ctx, site.ID))(t)
	}
	must(s.RevokeAPIKey(ctx, key.ID))(t)
	refused(`agent "gateway"`)
	must(s.GetAgent(ctx, agent))(t)
	if err := s.DeleteAgent(ctx, agent); err != nil {
		t.Fatal(err)
	}
	second := addKey(t, s, site.ID, "second")
	refused(`API key "second"`)
	must(s.RevokeAPIKey(ctx, second.ID))(t)
	if err := s.DeleteSite(ctx, site.ID, false); err != nil {
		t.Error(err)
	}

	other := must(s.CreateSite(ctx, inventory.Site{Name: "other"}))(t)
	agent = must(s.RecordCheckIn(ctx, store.CheckIn{SiteID: other.ID, Hostname: "gateway", At: time.Now()}))(t).ID
	key = addKey(t, s, other.ID, "third")
	if err := s.DeleteSite(ctx, other.ID, true); err != nil {
		t.Fatal(err)
	}
	_, err := s.GetAgent(ctx, agent)
	wantNotFound(t, err)
	_, err = s.GetAPIKey(ctx, key.ID)
	wantNotFound(t, err)
}

// addKey stores an agent key of a site.
func addKey(t *testing.T, s *store.Store, siteID int64, name string) store.APIKey {
	t.Helper()
	key := store.APIKey{Name: name, Role: "agent", SiteID: &siteID, Prefix: name, Hash: []byte("h"), CreatedAt: time.Now().UTC()}
	if err := s.CreateAPIKey(t.Context(), &key); err != nil {
		t.Fatal(err)
	}
	return key
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
