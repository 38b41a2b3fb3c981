package store_test

import (
	"errors"
	"testing"

	"opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/store"
	"opensource.internal/manager/internal/store/storetest"
)

// What belongs to a record that is refused is refused with it, and says so.
func TestApplyRefusesThePartsOfWhatIsRefused(t *testing.T) {
	s := storetest.Open(t)
	wrong := errors.New("has faults")
	site := &store.SiteChange{Change: store.Change[store.Site]{After: &store.Site{Site: inventory.Site{Name: "lab", Publishing: inventory.PublishAuto}}}}
	node := &store.NodeChange{Change: store.Change[store.Node]{After: &store.Node{Node: inventory.Node{Name: "n", Type: inventory.NodeNone}}}, Site: site}
	container := &store.ContainerChange{
		Change: store.Change[store.Container]{After: &store.Container{Container: inventory.Container{Hostname: "a"}}, Err: wrong}, Site: site, Node: node,
	}
	service := &store.ServiceChange{Change: store.Change[store.Service]{After: &store.Service{}}, Container: container}
	volume := &store.VolumeChange{Change: store.Change[store.Volume]{After: &store.Volume{}}, Container: container}
	err := s.Apply(t.Context(), store.Scope{}, func(store.Contents) (*store.Changes, error) {
		return &store.Changes{
			Sites: []*store.SiteChange{site}, Nodes: []*store.NodeChange{node}, Containers: []*store.ContainerChange{container},
			Services: []*store.ServiceChange{service}, Volumes: []*store.VolumeChange{volume},
		}, nil
	})
	if !errors.Is(err, store.ErrRefused) || site.Err != nil || node.Err != nil || container.Err != wrong {
		t.Errorf("%v; site %v, node %v, container %v", err, site.Err, node.Err, container.Err)
	}
	if service.Err != store.ErrRefused || volume.Err != store.ErrRefused {
		t.Errorf("service %v, volume %v", service.Err, volume.Err)
	}
	if sites, _, err := s.ListSites(t.Context(), store.SiteFilter{}, store.ListOptions{Limit: store.All}); err != nil || len(sites) > 0 {
		t.Errorf("written all the same: %v, %v", sites, err)
	}
}

func TestApplyDeletesNoSiteAndNoDomain(t *testing.T) {
	s := storetest.Open(t)
	for name, changes := range map[string]*store.Changes{
		"site":   {Sites: []*store.SiteChange{{Change: store.Change[store.Site]{Before: &store.Site{ID: 1}}}}},
		"domain": {Domains: []*store.DomainChange{{Change: store.Change[store.ExternalDomain]{Before: &store.ExternalDomain{ID: 1}}}}},
	} {
		err := s.Apply(t.Context(), store.Scope{}, func(store.Contents) (*store.Changes, error) { return changes, nil })
		if err == nil {
			t.Errorf("%s: taken without a word", name)
		}
	}
}
