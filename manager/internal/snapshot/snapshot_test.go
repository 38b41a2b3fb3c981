package snapshot_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/snapshot"
	"opensource.internal/manager/internal/store"
	"opensource.internal/manager/internal/store/storetest"
)

func TestBuild(t *testing.T) {
	s := storetest.Open(t)
	w := storetest.NewWorld(t, s, 1)
	data, etag, err := snapshot.NewCache(s).Get(t.Context(), w.Site.ID)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"site":{"id":1,"name":"site1","internalDomain":"site1.internal","dhcpRange":"192.0.2.100,192.0.2.200",` +
		`"subnetMask":"255.255.255.0","gateway":"192.0.2.1","dnsForwarders":"9.9.9.9,1.1.1.1",` +
		`"nodes":[{"name":"pve1","ipv4Address":"192.0.2.10","containers":[{"hostname":"web","ipv4Address":"192.0.2.101","macAddress":"02:00:00:00:00:01"}]}],` +
		`"dnsRecords":[{"id":3,"type":"SRV","name":"_sip._tcp","target":"web","port":5060}],` +
		`"volumes":[{"id":1,"hostPath":"/mnt/volumes/site-1/alice/web/data","mode":"rw","uid":100000,"gid":100000}]},` +
		`"nginx":{"httpServices":[{"id":1,"internalPort":8080,"container":{"ipv4Address":"192.0.2.101"},"externalHostname":"app",` +
		`"backendProtocol":"http","authRequired":false,"externalDomain":{"name":"example1.com","authServer":null}}],` +
		`"streamServices":[{"id":2,"internalPort":22,"container":{"ipv4Address":"192.0.2.101"},"externalPort":2000,"protocol":"tcp"}],` +
		`"externalDomains":[{"name":"example1.com"}]}}`
	if diff := cmp.Diff(want, string(data)); diff != "" {
		t.Error(diff)
	}
	if etag != checkin.ETag(data) {
		t.Errorf("tag %s", etag)
	}
	if _, err := checkin.ParseSnapshot(data); err != nil {
		t.Error(err)
	}
}

func TestBuildWithoutAddress(t *testing.T) {
	s := storetest.Open(t)
	w := storetest.NewWorld(t, s, 1)
	if _, err := s.UpdateContainer(t.Context(), w.Container.ID, func(c *inventory.Container) error { c.IPv4Address = ""; return nil }); err != nil {
		t.Fatal(err)
	}
	got := snapshot.Build(storetest.Inventory(t, s, w.Site.ID))
	if len(got.Site.Nodes[0].Containers)+len(got.Site.DNSRecords)+len(got.NGINX.HTTPServices)+len(got.NGINX.StreamServices) != 0 {
		t.Errorf("something leads nowhere: %+v", got)
	}
	if len(got.Site.Volumes) != 1 || len(got.NGINX.ExternalDomains) != 1 {
		t.Errorf("volumes and domains do not need an address: %+v", got)
	}
}

func TestBuildEmptySiteHasEmptyLists(t *testing.T) {
	data, _, err := checkin.Encode(snapshot.Build(store.Inventory{Site: store.Site{ID: 1, Site: inventory.Site{Name: "lab"}}}))
	want := `{"site":{"id":1,"name":"lab","internalDomain":null,"dhcpRange":null,"subnetMask":null,"gateway":null,"dnsForwarders":null,` +
		`"nodes":[],"dnsRecords":[],"volumes":[]},"nginx":{"httpServices":[],"streamServices":[],"externalDomains":[]}}`
	if err != nil || string(data) != want {
		t.Errorf("%s, %v", data, err)
	}
}

func TestGetUnknownSite(t *testing.T) {
	s := storetest.Open(t)
	cache := snapshot.NewCache(s)
	if _, _, err := cache.Get(t.Context(), 1); !errors.Is(err, store.ErrNotFound) {
		t.Error(err)
	}
	w := storetest.NewWorld(t, s, 1)
	if _, _, err := cache.Get(t.Context(), w.Site.ID); err != nil {
		t.Error(err)
	}
	if err := s.DeleteSite(t.Context(), w.Site.ID, true); err != nil {
		t.Fatal(err)
	}
	if data, _, err := cache.Get(t.Context(), w.Site.ID); !errors.Is(err, store.ErrNotFound) || data != nil {
		t.Errorf("%s, %v", data, err)
	}
	if cache.Last(w.Site.ID) != nil {
		t.Error("the deleted site's snapshot is kept")
	}
}

func TestGetWithoutDatabaseIsAnError(t *testing.T) {
	s := storetest.Open(t)
	w := storetest.NewWorld(t, s, 1)
	cache := snapshot.NewCache(s)
	if _, _, err := cache.Get(t.Context(), w.Site.ID); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if data, etag, err := cache.Get(t.Context(), w.Site.ID); err == nil || data != nil || etag != "" {
		t.Errorf("%s %s", data, etag)
	}
	if cache.Last(w.Site.ID) == nil {
		t.Error("the last snapshot is not at hand")
	}
}

// TestSQLLevelChangesAreSeen changes every table behind the manager's back.
func TestSQLLevelChangesAreSeen(t *testing.T) {
	database := storetest.Database(t)
	s := storetest.OpenAt(t, database)
	w := storetest.NewWorld(t, s, 1)
	cache := snapshot.NewCache(s)
	db := storetest.Raw(t, database)
	get := func() string {
		t.Helper()
		data, etag, err := cache.Get(t.Context(), w.Site.ID)
		if err != nil {
			t.Fatal(err)
		}
		if etag != checkin.ETag(data) {
			t.Fatal("tag and bytes do not go together")
		}
		return string(data)
	}
	for _, step := range []struct{ statement, shows string }{
		{`UPDATE sites SET name = 'renamed'`, `"renamed"`},
		{`UPDATE nodes SET ipv4_address = '192.0.2.77'`, `192.0.2.77`},
		{`UPDATE containers SET mac_address = '02:00:00:00:00:99'`, `02:00:00:00:00:99`},
		{`UPDATE services SET internal_port = 8081 WHERE type = 'http'`, `8081`},
		{`UPDATE external_domains SET auth_server = 'http://sso.test'`, `http://sso.test`},
		{`UPDATE volumes SET mode = 'ro'`, `"ro"`},
		{`INSERT INTO external_domains (name, default_site_id, created_at, updated_at) VALUES ('second.test', 1, '2026-01-02', '2026-01-02')`, `second.test`},
		{`DELETE FROM services`, `"httpServices":[]`},
		{`INSERT INTO confirmed_removals VALUES (1, 'ada', '2026-01-02')`, `"removalsConfirmed":true`},
		{`UPDATE containers SET owner = 'bob'`, `"externalDomains":[{"name":"second.test"}]}}`},
	} {
		before := get()
		if _, err := db.Exec(step.statement); err != nil {
			t.Fatalf("%s: %v", step.statement, err)
		}
		if after := get(); !strings.Contains(after, step.shows) || before == after {
			t.Errorf("%s is not seen", step.statement)
		}
	}
	var revisions int
	if err := db.QueryRow("SELECT count(*) FROM revisions").Scan(&revisions); err != nil || revisions != 11 {
		t.Errorf("%d revisions, %v", revisions, err)
	}
}

// TestETagChangesExactlyWithWhatIsVisible makes random edits, some of them not
// part of a snapshot, through two processes.
func TestETagChangesExactlyWithWhatIsVisible(t *testing.T) {
	database, worlds := storetest.Database(t), 0
	s, other := storetest.OpenAt(t, database), storetest.OpenAt(t, database)
	cache := snapshot.NewCache(s)
	rapid.Check(t, func(rt *rapid.T) {
		worlds += 2
		w, second := storetest.NewWorld(t, s, worlds), storetest.NewWorld(t, s, worlds+1)
		look := func() (checkin.Snapshot, string) {
			data, etag, err := cache.Get(t.Context(), w.Site.ID)
			if err != nil {
				rt.Fatal(err)
			}
			built := snapshot.Build(storetest.Inventory(t, s, w.Site.ID))
			fresh, _, err := checkin.Encode(built)
			if err != nil {
				rt.Fatal(err)
			}
			if string(fresh) != string(data) {
				rt.Fatalf("the cache has\n%s\nthe database\n%s", data, fresh)
			}
			return built, etag
		}
		before, tag := look()
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			writer := rapid.SampledFrom([]*store.Store{s, other}).Draw(rt, "process")
			edit(rt, writer, w, second)
			after, newTag := look()
			if visible := !reflect.DeepEqual(before, after); visible != (tag != newTag) {
				rt.Fatalf("visible change is %v, tag %s became %s:\n%s", visible, tag, newTag, cmp.Diff(before, after))
			}
			before, tag = after, newTag
		}
	})
}

// edit makes one random change; one that is refused is none.
func edit(rt *rapid.T, s *store.Store, w, second storetest.World) {
	ctx := rt.Context()
	word := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "word") + fmt.Sprint(w.Site.ID)
	number := rapid.IntRange(1, 3).Draw(rt, "number")
	addr := rapid.SampledFrom([]string{"", "192.0.2.101", "192.0.2.102"}).Draw(rt, "address")
	var err error
	switch rapid.IntRange(0, 13).Draw(rt, "edit") {
	case 0:
		_, err = s.UpdateSite(ctx, w.Site.ID, func(v *inventory.Site) error { v.Name = word; return nil })
	case 1: // not visible
		_, err = s.UpdateSite(ctx, w.Site.ID, func(v *inventory.Site) error { v.ExternalIP = addr; return nil })
	case 2:
		_, err = s.UpdateContainer(ctx, w.Container.ID, func(v *inventory.Container) error { v.IPv4Address = addr; return nil })
	case 3: // not visible
		_, err = s.UpdateContainer(ctx, w.Container.ID, func(v *inventory.Container) error { v.Owner = word; return nil })
	case 4:
		_, err = s.CreateContainer(ctx, w.Site.ID, inventory.Container{NodeID: w.Node.ID, Hostname: word, IPv4Address: addr})
	case 5:
		_, err = s.CreateService(ctx, w.Container.ID, inventory.Service{Type: "transport", InternalPort: number, Protocol: "udp"})
	case 6:
		_, err = s.UpdateService(ctx, w.HTTP.ID, func(v *inventory.Service) error { v.ExternalHostname = word; return nil })
	case 7:
		_, err = s.CreateVolume(ctx, w.Container.ID, inventory.Volume{Name: word, MountPath: "/" + word, Mode: "rw"})
	case 8: // not visible
		_, err = s.RecordCheckIn(ctx, store.CheckIn{SiteID: w.Site.ID, Hostname: word, Volumes: map[int64]checkin.VolumeReport{w.Volume.ID: {Message: word}}})
	case 9:
		_, err = s.UpdateExternalDomain(ctx, second.Domain.ID, func(v *inventory.ExternalDomain) error { v.DefaultSiteID = &w.Site.ID; return nil })
	case 10: // another site's
		_, err = s.UpdateNode(ctx, second.Node.ID, func(v *inventory.Node) error { v.Name = word; return nil })
	case 11:
		_, err = s.UpdateExternalDomain(ctx, w.Domain.ID, func(v *inventory.ExternalDomain) error { v.Name = word + ".test"; return nil })
	case 12:
		_, err = snapshot.NewCache(s).ConfirmRemovals(ctx, w.Site.ID, "ada", "")
	case 13: // another site's
		_, err = snapshot.NewCache(s).ConfirmRemovals(ctx, second.Site.ID, "ada", "")
	}
	var conflict *store.ConflictError
	var invalid *store.InvalidError
	if err != nil && !errors.As(err, &conflict) && !errors.As(err, &invalid) {
		rt.Fatal(err)
	}
}

func TestGetIsNeverOlderThanTheCall(t *testing.T) {
	s := storetest.Open(t)
	w := storetest.NewWorld(t, s, 1)
	cache := snapshot.NewCache(s)
	var group sync.WaitGroup
	for g := range 4 {
		group.Go(func() {
			for i := range 25 {
				host := fmt.Sprintf("g%di%d", g, i)
				_, err := s.CreateContainer(t.Context(), w.Site.ID, inventory.Container{
					NodeID: w.Node.ID, Hostname: host, IPv4Address: fmt.Sprintf("198.51.100.%d", g*30+i+1),
				})
				if err != nil {
					t.Error(err)
				}
				data, _, err := cache.Get(t.Context(), w.Site.ID)
				if err != nil || !strings.Contains(string(data), `"`+host+`"`) {
					t.Errorf("%s is missing right after it was created, %v", host, err)
				}
			}
		})
	}
	group.Wait()
}

func BenchmarkBuild(b *testing.B) {
	for _, containers := range []int{100, 1000, 10_000} {
		b.Run(fmt.Sprintf("containers=%d", containers), func(b *testing.B) {
			s := storetest.Open(b)
			w := storetest.NewWorld(b, s, 1)
			storetest.AddContainers(b, s, w, containers)
			i := storetest.Inventory(b, s, w.Site.ID)
			b.Run("pure", func(b *testing.B) {
				for b.Loop() {
					if _, _, err := checkin.Encode(snapshot.Build(i)); err != nil {
						b.Fatal(err)
					}
				}
			})
			// From a change to the bytes that are served.
			b.Run("published", func(b *testing.B) {
				cache, n := snapshot.NewCache(s), 0
				for b.Loop() {
					n++
					_, err := s.UpdateSite(b.Context(), w.Site.ID, func(site *inventory.Site) error { site.Name = fmt.Sprintf("v%d", n); return nil })
					if err != nil {
						b.Fatal(err)
					}
					if _, _, err := cache.Get(b.Context(), w.Site.ID); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}
