package storetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/store"
)

func testSearch(t *testing.T, s *store.Store) {
	w, ctx := NewWorld(t, s, 1), t.Context()
	NewWorld(t, s, 2)
	for text, want := range map[string]int64{
		"SITE": 2, "ite1.": 1, "": 2, "%": 0, "_": 0, `\`: 0, "'": 0, "nothing": 0,
	} {
		if list, total, err := s.ListSites(ctx, store.SiteFilter{}, store.ListOptions{Search: text}); err != nil || total != want || int64(len(list)) != want {
			t.Errorf("sites with %q: %d of %d, %v", text, len(list), total, err)
		}
	}
	for text, want := range map[string]int64{"ALI": 1, "192.0.2.1": 1, "02:00": 1, "w": 1, "bob": 0} {
		filter := store.ContainerFilter{SiteID: w.Site.ID}
		if _, total, err := s.ListContainers(ctx, filter, store.ListOptions{Search: text}); err != nil || total != want {
			t.Errorf("containers of the site with %q: %d, %v", text, total, err)
		}
	}
	var invalid *store.InvalidError
	if _, _, err := s.ListRevisions(ctx, store.RevisionFilter{}, store.ListOptions{Search: "a"}); err != nil && !errors.As(err, &invalid) {
		t.Errorf("revisions: %v", err)
	}
}

func testFilters(t *testing.T, s *store.Store) {
	w, ctx, all := NewWorld(t, s, 1), t.Context(), store.ListOptions{}
	count := func(what string, want, got int64, err error) {
		t.Helper()
		if err != nil || got != want {
			t.Errorf("%s: %d, want %d: %v", what, got, want, err)
		}
	}
	_, total, err := s.ListContainers(ctx, store.ContainerFilter{Address: "192.0.2.101", MAC: "02:00:00:00:00:01"}, all)
	count("container by addresses", 1, total, err)
	_, total, err = s.ListContainers(ctx, store.ContainerFilter{Address: "192.0.2.1"}, all)
	count("container by a part of its address", 0, total, err)
	_, total, err = s.ListNodes(ctx, store.NodeFilter{Type: w.Node.Type}, all)
	count("nodes by type", 1, total, err)
	_, total, err = s.ListNodes(ctx, store.NodeFilter{Type: "other"}, all)
	count("nodes of another type", 0, total, err)
	_, total, err = s.ListServices(ctx, store.ServiceFilter{DomainID: w.Domain.ID}, all)
	count("services by domain", 1, total, err)
	_, total, err = s.ListVolumes(ctx, store.VolumeFilter{Mode: "ro"}, all)
	count("volumes by mode", 0, total, err)

	for hostname, age := range map[string]time.Duration{"online": time.Second, "late": 2 * time.Minute, "offline": time.Hour} {
		_, err := s.RecordCheckIn(ctx, store.CheckIn{
			SiteID: w.Site.ID, Hostname: hostname, At: time.Now().UTC().Add(-age),
			Report: checkin.Request{SiteID: w.Site.ID, Hostname: hostname},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, presence := range []store.Presence{store.Online, store.Late, store.Offline} {
		agents, total, err := s.ListAgents(ctx, store.AgentFilter{Presence: presence}, all)
		if err != nil || total != 1 || agents[0].Hostname != string(presence) {
			t.Errorf("agents that are %s: %v, %v", presence, agents, err)
		}
	}
}

// What is read and written with the context of Atomically is one transaction.
func testAtomically(t *testing.T, s *store.Store) {
	w, ctx := NewWorld(t, s, 1), t.Context()
	rename := func(ctx context.Context, name string) error {
		_, err := s.UpdateSite(ctx, w.Site.ID, func(site *inventory.Site) error { site.Name = name; return nil })
		return err
	}
	refused := errors.New("refused")
	err := s.Atomically(ctx, func(ctx context.Context) error {
		if err := rename(ctx, "attic"); err != nil {
			return err
		}
		if site, err := s.GetSite(ctx, w.Site.ID); err != nil || site.Name != "attic" {
			t.Errorf("within: %q, %v", site.Name, err)
		}
		return refused
	})
	if !errors.Is(err, refused) {
		t.Errorf("%v", err)
	}
	if site, err := s.GetSite(ctx, w.Site.ID); err != nil || site.Name != w.Site.Name {
		t.Errorf("after an error the site is %q, %v", site.Name, err)
	}

	// Nobody writes between what is read and what is written.
	const writers = 8
	done := make(chan error, writers)
	for range writers {
		go func() {
			done <- s.Atomically(ctx, func(ctx context.Context) error {
				site, err := s.GetSite(ctx, w.Site.ID)
				if err != nil {
					return err
				}
				return rename(ctx, site.Name+"x")
			})
		}()
	}
	for range writers {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if site, err := s.GetSite(ctx, w.Site.ID); err != nil || len(site.Name) != len(w.Site.Name)+writers {
		t.Errorf("after %d writers the site is %q, %v", writers, site.Name, err)
	}
}

func testUnsetFirst(t *testing.T, s *store.Store) {
	ctx := t.Context()
	soon := time.Now().UTC().Add(time.Hour)
	for name, expires := range map[string]*time.Time{"for good": nil, "for an hour": &soon} {
		key := store.APIKey{Name: name, Role: "viewer", Prefix: name, Hash: []byte("x"), CreatedAt: soon, ExpiresAt: expires}
		if err := s.CreateAPIKey(ctx, &key); err != nil {
			t.Fatal(err)
		}
	}
	for sort, want := range map[string]string{"expiresAt": "for good", "-expiresAt": "for an hour"} {
		keys, _, err := s.ListAPIKeys(ctx, store.APIKeyFilter{}, store.ListOptions{Sort: sort})
		if err != nil || len(keys) != 2 || keys[0].Name != want {
			t.Errorf("by %s: %+v, %v", sort, keys, err)
		}
	}
}

func testNamesInAnyCase(t *testing.T, s *store.Store) {
	ctx := t.Context()
	site := must(s.CreateSite(ctx, inventory.Site{Name: "Büro Ähre Ως"}))(t)
	for _, name := range []string{"BÜRO ÄHRE ΩΣ", "büro ähre ωσ"} {
		_, err := s.CreateSite(ctx, inventory.Site{Name: name})
		wantConflict(t, err, "name")
		if sites, _, err := s.ListSites(ctx, store.SiteFilter{Name: name}, store.ListOptions{}); err != nil || len(sites) != 1 {
			t.Errorf("sites named %s: %+v, %v", name, sites, err)
		}
		if sites, _, err := s.ListSites(ctx, store.SiteFilter{}, store.ListOptions{Search: name[3:]}); err != nil || len(sites) != 1 {
			t.Errorf("sites with %s: %+v, %v", name, sites, err)
		}
	}
	other := must(s.CreateSite(ctx, inventory.Site{Name: "Buro"}))(t)
	_, err := s.UpdateSite(ctx, other.ID, func(o *inventory.Site) error { o.Name = "BÜRO ähre ωΣ"; return nil })
	wantConflict(t, err, "name")
	must(s.UpdateSite(ctx, site.ID, func(o *inventory.Site) error { o.Name = "BÜRO ähre ωΣ"; return nil }))(t)

	target := store.NotificationTarget{Name: "Ärger", URL: "https://example.com", Severity: "error"}
	must(s.CreateNotificationTarget(ctx, target))(t)
	target.Name = "ärger"
	_, err = s.CreateNotificationTarget(ctx, target)
	wantConflict(t, err, "name")
	for _, name := range []string{"alpha", "Zeta"} {
		target.Name = name
		must(s.CreateNotificationTarget(ctx, target))(t)
	}
	// The order is that of bytes, whatever the locale of the database is.
	targets, _, err := s.ListNotificationTargets(ctx, store.NotificationTargetFilter{}, store.ListOptions{Sort: "name"})
	if err != nil || targets[0].Name != "Zeta" || targets[2].Name != "Ärger" {
		t.Errorf("%+v, %v", targets, err)
	}
}
