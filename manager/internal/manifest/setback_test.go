package manifest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/manifest"
	"opensource.internal/manager/internal/snapshot"
	"opensource.internal/manager/internal/store"
	"opensource.internal/manager/internal/store/storetest"
)

// contentsOf is what a site has, but for times and what agents tell.
func contentsOf(t testing.TB, s *store.Store, siteID int64) store.Contents {
	t.Helper()
	read, err := s.Read(t.Context(), store.Scope{IDs: []int64{siteID}})
	if err != nil {
		t.Fatal(err)
	}
	return read
}

var butTimes = cmp.Options{
	cmpopts.IgnoreFields(store.Site{}, "CreatedAt", "UpdatedAt"), cmpopts.IgnoreFields(store.Node{}, "CreatedAt", "UpdatedAt"),
	cmpopts.IgnoreFields(store.Container{}, "CreatedAt", "UpdatedAt"), cmpopts.IgnoreFields(store.Service{}, "CreatedAt", "UpdatedAt"),
	cmpopts.IgnoreFields(store.ExternalDomain{}, "CreatedAt", "UpdatedAt"),
	cmpopts.IgnoreFields(store.Volume{}, "CreatedAt", "UpdatedAt", "Status", "StatusMessage", "ReportedAt"),
}

func published(t testing.TB, s *store.Store, siteID int64) store.Published {
	t.Helper()
	got, err := s.Publish(t.Context(), siteID, snapshot.Encode)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func setBack(t testing.TB, s *store.Store, siteID, number int64, o manifest.SetBackOptions) *manifest.SetBackReport {
	t.Helper()
	report, err := manifest.SetBack(store.WithActor(t.Context(), store.Actor{Kind: store.ActorUser, Name: "ada"}), s, siteID, number, o)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func refusal(t testing.TB, s *store.Store, siteID, number int64) string {
	t.Helper()
	report, err := manifest.SetBack(t.Context(), s, siteID, number, manifest.SetBackOptions{})
	var refused *manifest.RefusedError
	if !errors.As(err, &refused) {
		t.Fatalf("%+v, %v", report, err)
	}
	return err.Error()
}

// titles are the changes of a report in short.
func titles(r *manifest.SetBackReport) []string {
	list := []string{}
	for _, c := range r.Changes {
		list = append(list, fmt.Sprintf("%s %s %s", c.Action, c.Kind, c.Name))
	}
	return list
}

func TestSetBackADeletion(t *testing.T) {
	s := storetest.Open(t)
	w := storetest.NewWorld(t, s, 1)
	other, err := s.CreateService(t.Context(), w.Container.ID, inventory.Service{Type: "transport", InternalPort: 80, Protocol: "udp"})
	if err != nil {
		t.Fatal(err)
	}
	first, was := published(t, s, w.Site.ID), contentsOf(t, s, w.Site.ID)
	if err := s.DeleteExternalDomain(t.Context(), w.Domain.ID, true); err != nil {
		t.Fatal(err)
	}
	if err := s.DeleteContainer(t.Context(), w.Container.ID, true); err != nil {
		t.Fatal(err)
	}

	dry := setBack(t, s, w.Site.ID, 1, manifest.SetBackOptions{DryRun: true})
	want := []string{
		"create external domain example1.com", "create container web", "create service http app.example1.com", "create service transport tcp 2000 to 22",
		"create service dns _sip._tcp 5060", "create service transport udp 2000 to 80", "create volume data",
	}
	if diff := cmp.Diff(want, titles(dry)); diff != "" {
		t.Error(diff)
	}
	if now := contentsOf(t, s, w.Site.ID); len(now.Containers) != 0 {
		t.Fatal("a dry run did it")
	}
	done := setBack(t, s, w.Site.ID, 1, manifest.SetBackOptions{Seen: dry.ETag})
	if diff := cmp.Diff(dry, done, cmpopts.IgnoreFields(manifest.SetBackReport{}, "DryRun", "Revision")); diff != "" {
		t.Error(diff)
	}
	now := contentsOf(t, s, w.Site.ID)
	if diff := cmp.Diff(was, now, butTimes); diff != "" {
		t.Error(diff)
	}
	if now.Volumes[0].Status != store.VolumePending || now.Services[len(now.Services)-1].ID != other.ID {
		t.Errorf("%+v", now)
	}
	// The deletion is kept as revision 2, and agents get the very bytes of revision 1.
	last := published(t, s, w.Site.ID).Revision
	if last.ETag != first.Revision.ETag || last.Number != 3 || done.Revision == nil || *done.Revision != 3 || last.Note != "set back to revision 1" {
		t.Errorf("%+v\n%+v", last, done)
	}
	if !slices.Equal(last.ChangedBy, []string{"ada"}) {
		t.Error(last.ChangedBy)
	}
	entries, _, err := s.ListAudit(t.Context(), store.AuditFilter{SiteID: w.Site.ID, Action: store.ActionSetBack}, store.ListOptions{Limit: store.All})
	if err != nil || len(entries) != 1 || entries[0].Actor.Name != "ada" || entries[0].After["revision"] != float64(1) {
		t.Errorf("%+v, %v", entries, err)
	}
	// Once more, there is nothing to do; and the undoing is undone.
	if again := setBack(t, s, w.Site.ID, 1, manifest.SetBackOptions{}); len(again.Changes) != 0 || again.Revision != nil {
		t.Errorf("%+v", again)
	}
	setBack(t, s, w.Site.ID, 2, manifest.SetBackOptions{})
	if now := contentsOf(t, s, w.Site.ID); len(now.Containers)+len(now.Services)+len(now.Volumes) != 0 {
		t.Errorf("%+v", now)
	}
}

func TestSetBackAnEdit(t *testing.T) {
	s := storetest.Open(t)
	w := storetest.NewWorld(t, s, 1)
	published(t, s, w.Site.ID)
	was := contentsOf(t, s, w.Site.ID)
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx := t.Context()
	must(s.UpdateSite(ctx, w.Site.ID, func(v *inventory.Site) error {
		v.DHCPRange, v.ExternalIP, v.Name = "", "198.51.100.1", "moved"
		return nil
	}))
	must(s.UpdateNode(ctx, w.Node.ID, func(v *inventory.Node) error { v.Name = "pve9"; return nil }))
	must(s.UpdateContainer(ctx, w.Container.ID, func(v *inventory.Container) error { v.Hostname, v.Owner = "www", "bob"; return nil }))
	must(s.CreateContainer(ctx, w.Site.ID, inventory.Container{NodeID: w.Node.ID, Hostname: "web", IPv4Address: "192.0.2.150"}))
	must(s.UpdateService(ctx, w.HTTP.ID, func(v *inventory.Service) error { v.ExternalHostname, v.AuthRequired = "wiki", false; return nil }))
	must(s.CreateService(ctx, w.Container.ID, inventory.Service{Type: "http", InternalPort: 1, ExternalHostname: "app", ExternalDomainID: &w.Domain.ID}))
	must(s.UpdateVolume(ctx, w.Volume.ID, func(v *inventory.Volume) error { v.Name, v.Mode = "old", "ro"; return nil }))
	must(s.CreateVolume(ctx, w.Container.ID, inventory.Volume{Name: "data", MountPath: "/other", Mode: "rw"}))
	must(s.UpdateExternalDomain(ctx, w.Domain.ID, func(v *inventory.ExternalDomain) error { v.Name = "example.net"; return nil }))
	must(s.CreateExternalDomain(ctx, inventory.ExternalDomain{Name: "new.example", DefaultSiteID: &w.Site.ID}))
	must(s.UpdateSite(ctx, w.Site.ID, func(v *inventory.Site) error { v.Publishing = inventory.PublishManual; return nil }))
	published(t, s, w.Site.ID)

	report := setBack(t, s, w.Site.ID, 1, manifest.SetBackOptions{})
	if !report.Held || report.Revision != nil {
		t.Errorf("a site that is published by hand waits: %+v", report)
	}
	if left := strings.Join(report.Left, "\n"); !strings.Contains(left, "how the site is published stays as it is (manual); it was auto") {
		t.Error(left)
	}
	for _, c := range report.Changes {
		if c.Kind == "node" && !cmp.Equal(c.Fields, []manifest.FieldChange{{Field: "name", Old: "pve9", New: "pve1"}}) {
			t.Errorf("%+v", c)
		}
	}
	now := contentsOf(t, s, w.Site.ID)
	now.Sites[0].Publishing = inventory.PublishAuto
	if len(now.Domains) != 2 || now.Domains[1].DefaultSiteID != nil {
		t.Errorf("another domain stays, but is not the site's: %+v", now.Domains)
	}
	now.Domains = now.Domains[:1]
	if diff := cmp.Diff(was, now, butTimes); diff != "" {
		t.Error(diff)
	}
}

func TestSetBackIsRefused(t *testing.T) {
	database := storetest.Database(t)
	s := storetest.OpenAt(t, database)
	w, second := storetest.NewWorld(t, s, 1), storetest.NewWorld(t, s, 2)
	published(t, s, w.Site.ID)
	if _, err := manifest.SetBack(t.Context(), s, w.Site.ID, 7, manifest.SetBackOptions{}); !errors.Is(err, store.ErrNotFound) {
		t.Error(err)
	}
	if _, err := manifest.SetBack(t.Context(), s, 99, 1, manifest.SetBackOptions{}); !errors.Is(err, store.ErrNotFound) {
		t.Error(err)
	}

	// Another site has taken the name meanwhile: nothing at all is changed.
	if err := s.DeleteContainer(t.Context(), w.Container.ID, true); err != nil {
		t.Fatal(err)
	}
	taken, err := s.CreateService(t.Context(), second.Container.ID,
		inventory.Service{Type: "http", InternalPort: 1, ExternalHostname: "app", ExternalDomainID: &w.Domain.ID})
	if err != nil {
		t.Fatal(err)
	}
	if said := refusal(t, s, w.Site.ID, 1); !strings.Contains(said, `service http app.example1.com of container "web": externalHostname`) {
		t.Error(said)
	}
	if now := contentsOf(t, s, w.Site.ID); len(now.Containers) != 0 {
		t.Errorf("half of it was done: %+v", now.Containers)
	}
	if err := s.DeleteService(t.Context(), taken.ID); err != nil {
		t.Fatal(err)
	}

	// Somebody changes something after it was looked at.
	seen := setBack(t, s, w.Site.ID, 1, manifest.SetBackOptions{DryRun: true}).ETag
	if _, err := s.UpdateNode(t.Context(), w.Node.ID, func(n *inventory.Node) error { n.Name = "pve8"; return nil }); err != nil {
		t.Fatal(err)
	}
	var conflict *store.ConflictError
	if _, err := manifest.SetBack(t.Context(), s, w.Site.ID, 1, manifest.SetBackOptions{Seen: seen}); !errors.As(err, &conflict) {
		t.Error(err)
	}
	if now := contentsOf(t, s, w.Site.ID); now.Nodes[0].Name != "pve8" || len(now.Containers) != 0 {
		t.Errorf("it was done: %+v", now)
	}

	// Something was changed behind the manager's back, and then the log is lost.
	raw := storetest.Raw(t, database)
	if _, err := raw.Exec("UPDATE nodes SET ipv4_address = '192.0.2.99' WHERE id = 1"); err != nil {
		t.Fatal(err)
	}
	if said := refusal(t, s, w.Site.ID, 1); !strings.Contains(said, "is not in the audit log as a whole: the inventory cannot be set back to it") {
		t.Error(said)
	}
	if err := s.PruneAudit(t.Context(), store.Retention{Rows: 1}); err != nil {
		t.Fatal(err)
	}
	if said := refusal(t, s, w.Site.ID, 1); !strings.Contains(said, "which goes back to "+time.Now().UTC().Format("2006-01-02")) {
		t.Error(said)
	}
}

// TestSetBackADefaultSite gives a domain back to the site whose it was, and changes
// nothing that is between other sites.
func TestSetBackADefaultSite(t *testing.T) {
	s := storetest.Open(t)
	w, second, third := storetest.NewWorld(t, s, 1), storetest.NewWorld(t, s, 2), storetest.NewWorld(t, s, 3)
	give := func(domain store.ExternalDomain, site *int64) {
		t.Helper()
		_, err := s.UpdateExternalDomain(t.Context(), domain.ID, func(d *inventory.ExternalDomain) error { d.DefaultSiteID = site; return nil })
		if err != nil {
			t.Fatal(err)
		}
	}
	give(second.Domain, &second.Site.ID)
	give(third.Domain, &second.Site.ID)
	published(t, s, w.Site.ID)
	give(second.Domain, &w.Site.ID)
	give(third.Domain, &third.Site.ID)
	published(t, s, w.Site.ID)
	report := setBack(t, s, w.Site.ID, 1, manifest.SetBackOptions{})
	if diff := cmp.Diff([]string{"change external domain example2.com"}, titles(report)); diff != "" {
		t.Error(diff)
	}
	if want := `other sites have services under it: ["site2"]`; report.Changes[0].Note != want {
		t.Errorf("%+v", report.Changes[0])
	}
	now := contentsOf(t, s, w.Site.ID).Domains
	if *now[1].DefaultSiteID != second.Site.ID || *now[2].DefaultSiteID != third.Site.ID {
		t.Errorf("%+v", now)
	}
}

// TestSetBackWithAShortLog loses only what no agent sees.
func TestSetBackWithAShortLog(t *testing.T) {
	s := storetest.Open(t)
	w := storetest.NewWorld(t, s, 1)
	published(t, s, w.Site.ID)
	change := func(ipv4, owner string) {
		_, err := s.UpdateContainer(t.Context(), w.Container.ID, func(c *inventory.Container) error { c.IPv4Address, c.Owner = ipv4, owner; return nil })
		if err != nil {
			t.Fatal(err)
		}
	}
	change(w.Container.IPv4Address, "bob")
	change("192.0.2.140", "bob")
	if err := s.PruneAudit(t.Context(), store.Retention{Rows: 1}); err != nil {
		t.Fatal(err)
	}
	report := setBack(t, s, w.Site.ID, 1, manifest.SetBackOptions{})
	if len(report.Left) != 1 || !strings.Contains(report.Left[0], "the audit log goes back no further") {
		t.Error(report.Left)
	}
	if now := contentsOf(t, s, w.Site.ID).Containers[0]; now.IPv4Address != w.Container.IPv4Address || now.Owner != "bob" {
		t.Errorf("%+v", now)
	}
}

// TestSetBackAPinnedSite waits until the site is unpinned, and a revision that was
// only made to confirm removals is as good as the one that it repeats.
func TestSetBackAPinnedSite(t *testing.T) {
	s := storetest.Open(t)
	w := storetest.NewWorld(t, s, 1)
	published(t, s, w.Site.ID)
	if _, err := s.UpdateNode(t.Context(), w.Node.ID, func(n *inventory.Node) error { n.Name = "pve8"; return nil }); err != nil {
		t.Fatal(err)
	}
	published(t, s, w.Site.ID)
	cache := snapshot.NewCache(s)
	if _, err := cache.Pin(t.Context(), w.Site.ID, 1, "8 is wrong"); err != nil {
		t.Fatal(err)
	}
	confirmed, err := cache.ConfirmRemovals(t.Context(), w.Site.ID, "ada", "")
	if err != nil || confirmed.Number != 3 {
		t.Fatalf("%+v, %v", confirmed, err)
	}
	report := setBack(t, s, w.Site.ID, 3, manifest.SetBackOptions{})
	if !report.Held || report.Revision != nil || len(report.Changes) != 1 {
		t.Errorf("%+v", report)
	}
	if now := published(t, s, w.Site.ID); now.Revision.Number != 3 || now.Pin == nil {
		t.Errorf("it reached agents: %+v", now.Revision)
	}
}

// TestSetBackAfterAnything makes random changes in a site and beside it, and goes
// back to every one of the revisions that come of it.
func TestSetBackAfterAnything(t *testing.T) {
	s, worlds := storetest.Open(t), 0
	rapid.Check(t, func(rt *rapid.T) {
		worlds += 2
		w, second := storetest.NewWorld(t, s, worlds), storetest.NewWorld(t, s, worlds+1)
		was := map[int64]store.Contents{}
		keep := func() {
			number := published(t, s, w.Site.ID).Revision.Number
			if _, known := was[number]; !known {
				was[number] = contentsOf(t, s, w.Site.ID)
			}
		}
		keep()
		for range rapid.IntRange(1, 10).Draw(rt, "steps") {
			changeAnything(rt, s, w, second)
			keep()
		}
		last := published(t, s, w.Site.ID).Revision.Number
		number := rapid.Int64Range(1, last).Draw(rt, "revision")
		wanted, err := s.GetRevision(t.Context(), w.Site.ID, number)
		if err != nil {
			rt.Fatal(err)
		}
		report, err := manifest.SetBack(t.Context(), s, w.Site.ID, number, manifest.SetBackOptions{})
		if err != nil {
			rt.Fatal(err)
		}
		if now := published(t, s, w.Site.ID).Revision; now.ETag != wanted.ETag {
			rt.Fatalf("%s became\n%s, by %+v", wanted.Data, now.Data, report)
		}
		then, now := was[number], contentsOf(t, s, w.Site.ID)
		then.Domains, now.Domains, then.SiteNames, now.SiteNames = nil, nil, nil, nil // the snapshot has those that matter
		if diff := cmp.Diff(then, now, butTimes); diff != "" {
			rt.Fatal(diff)
		}
	})
}

// changeAnything makes one change; one that is refused is none.
func changeAnything(rt *rapid.T, s *store.Store, w, second storetest.World) {
	ctx := context.Background()
	word := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "word") + fmt.Sprint(w.Site.ID)
	address := rapid.SampledFrom([]string{"", "192.0.2.101", "192.0.2.102"}).Draw(rt, "address")
	inv, err := s.ReadInventory(ctx, w.Site.ID)
	if err != nil {
		rt.Fatal(err)
	}
	one := func(n int) int { return rapid.IntRange(0, max(0, n-1)).Draw(rt, "which") }
	switch step := rapid.IntRange(0, 12).Draw(rt, "change"); {
	case step == 0:
		_, err = s.UpdateSite(ctx, w.Site.ID, func(v *inventory.Site) error { v.Name, v.ExternalIP = word, address; return nil })
	case step == 1:
		_, err = s.CreateNode(ctx, w.Site.ID, inventory.Node{Name: word})
	case step == 2:
		_, err = s.UpdateNode(ctx, inv.Nodes[one(len(inv.Nodes))].ID, func(v *inventory.Node) error { v.Name = word; return nil })
	case step == 3:
		_, err = s.CreateContainer(ctx, w.Site.ID, inventory.Container{NodeID: w.Node.ID, Hostname: "h" + word, IPv4Address: address, Owner: "eve"})
	case step == 4 && len(inv.Containers) > 0:
		_, err = s.UpdateContainer(ctx, inv.Containers[one(len(inv.Containers))].ID, func(v *inventory.Container) error {
			v.Hostname, v.IPv4Address, v.NodeID, v.Owner = "h"+word, address, inv.Nodes[one(len(inv.Nodes))].ID, word
			return nil
		})
	case step == 5 && len(inv.Containers) > 0:
		err = s.DeleteContainer(ctx, inv.Containers[one(len(inv.Containers))].ID, true)
	case step == 6 && len(inv.Containers) > 0:
		_, err = s.CreateService(ctx, inv.Containers[one(len(inv.Containers))].ID, inventory.Service{Type: "http", InternalPort: 80, ExternalHostname: word, ExternalDomainID: &w.Domain.ID})
	case step == 7 && len(inv.Services) > 0:
		_, err = s.UpdateService(ctx, inv.Services[one(len(inv.Services))].ID, func(v *inventory.Service) error {
			switch v.Type {
			case inventory.ServiceHTTP:
				v.ExternalHostname = word
			case inventory.ServiceDNS:
				v.DNSName = "_" + word + "._tcp"
			default:
				v.InternalPort, v.ExternalPort = 8080, 2000+len(word)
			}
			return nil
		})
	case step == 8 && len(inv.Services) > 0:
		err = s.DeleteService(ctx, inv.Services[one(len(inv.Services))].ID)
	case step == 9 && len(inv.Containers) > 0:
		_, err = s.CreateVolume(ctx, inv.Containers[one(len(inv.Containers))].ID, inventory.Volume{Name: word, MountPath: "/" + word, Mode: "rw"})
	case step == 10 && len(inv.Volumes) > 0:
		_, err = s.UpdateVolume(ctx, inv.Volumes[one(len(inv.Volumes))].ID, func(v *inventory.Volume) error { v.Name, v.MountPath, v.Mode = word, "/"+word, "ro"; return nil })
	case step == 11:
		_, err = s.UpdateExternalDomain(ctx, second.Domain.ID, func(v *inventory.ExternalDomain) error {
			v.DefaultSiteID = rapid.SampledFrom([]*int64{nil, &w.Site.ID, &second.Site.ID}).Draw(rt, "default")
			return nil
		})
	case step == 12:
		_, err = s.UpdateExternalDomain(ctx, w.Domain.ID, func(v *inventory.ExternalDomain) error {
			v.Name, v.AuthServer = word+".test", "http://192.0.2.7:4180"
			return nil
		})
	}
	var conflict *store.ConflictError
	var invalid *store.InvalidError
	if err != nil && !errors.As(err, &conflict) && !errors.As(err, &invalid) && !errors.Is(err, store.ErrNotFound) {
		rt.Fatal(err)
	}
}
