package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/store"
)

// encodeName is a snapshot with nothing but the site's name.
func encodeName(i store.Inventory) ([]byte, string, error) {
	return checkin.Encode(checkin.Snapshot{
		Site: &checkin.Site{
			ID: i.Site.ID, Name: checkin.Text(i.Site.Name),
			Nodes: []checkin.Node{}, DNSRecords: []checkin.DNSRecord{}, Volumes: []checkin.Volume{},
		},
		NGINX: checkin.Bootstrap().NGINX, RemovalsConfirmed: i.RemovalsConfirmed,
	})
}

// publishNames publishes a revision for each name, and returns the tags.
func publishNames(t *testing.T, s *store.Store, siteID int64, names ...string) []string {
	t.Helper()
	var tags []string
	for _, name := range names {
		must(s.UpdateSite(t.Context(), siteID, func(site *inventory.Site) error { site.Name = name; return nil }))(t)
		tags = append(tags, must(s.Publish(t.Context(), siteID, encodeName))(t).Revision.ETag)
	}
	return tags
}

func testPins(t *testing.T, s *store.Store) {
	w, other := NewWorld(t, s, 1), NewWorld(t, s, 2)
	ctx := store.WithActor(t.Context(), store.Actor{Kind: store.ActorUser, Name: "ada"})
	tags := publishNames(t, s, w.Site.ID, "one", "two", "three")
	counter := func(site int64) uint64 { return must(s.Versions(ctx))(t).Site(site) }
	before, beside := counter(w.Site.ID), counter(other.Site.ID)

	pin := must(s.PinSite(ctx, w.Site.ID, 1, "test", encodeName))(t)
	if pin.Revision != 1 || pin.PinnedBy != "ada" || counter(w.Site.ID) <= before || counter(other.Site.ID) != beside {
		t.Errorf("%+v, the counter was %d and is %d", pin, before, counter(w.Site.ID))
	}
	got := must(s.Publish(ctx, w.Site.ID, encodeName))(t)
	if got.Revision.ETag != tags[0] || !got.Held || got.Pin == nil || !cmp.Equal(*got.Pin, pin) || len(got.Volumes) != 1 || got.Version != counter(w.Site.ID) {
		t.Errorf("%+v", got)
	}
	before = counter(w.Site.ID)
	moved := must(s.PinSite(ctx, w.Site.ID, 2, "better", encodeName))(t)
	if got := must(s.Publish(ctx, w.Site.ID, encodeName))(t); got.Revision.ETag != tags[1] || counter(w.Site.ID) <= before {
		t.Errorf("moved: %+v", got)
	}
	if list := must(s.ListPins(ctx))(t); len(list) != 1 || !cmp.Equal(list[0], moved) {
		t.Errorf("%+v", list)
	}
	for _, refused := range []func() error{
		func() error { _, err := s.PinSite(ctx, w.Site.ID, 9, "x", encodeName); return err },
		func() error { _, err := s.PinSite(ctx, w.Site.ID, 1, "", encodeName); return err },
	} {
		var invalid *store.InvalidError
		if err := refused(); !errors.As(err, &invalid) {
			t.Error(err)
		}
	}
	before = counter(w.Site.ID)
	if !must(s.UnpinSite(ctx, w.Site.ID))(t) || counter(w.Site.ID) <= before {
		t.Error("not unpinned")
	}
	if must(s.UnpinSite(ctx, w.Site.ID))(t) {
		t.Error("unpinned twice")
	}
	_, err := s.UnpinSite(ctx, 99)
	wantNotFound(t, err)
	if got := must(s.Publish(ctx, w.Site.ID, encodeName))(t); got.Revision.ETag != tags[2] || got.Held || got.Pin != nil {
		t.Errorf("unpinned: %+v", got)
	}
	actions := []store.Action{}
	for _, entry := range must(listAudit(t, s, w.Site.ID))(t) {
		if slices.Contains([]store.Action{store.ActionPin, store.ActionUnpin}, entry.Action) {
			actions = append(actions, entry.Action)
		}
	}
	if diff := cmp.Diff([]store.Action{store.ActionUnpin, store.ActionPin, store.ActionPin}, actions); diff != "" {
		t.Error(diff)
	}

	must(s.PinSite(ctx, w.Site.ID, 1, "again", encodeName))(t)
	if err := s.DeleteSite(ctx, w.Site.ID, true); err != nil {
		t.Fatal(err)
	}
	if list := must(s.ListPins(ctx))(t); len(list) != 0 {
		t.Errorf("the pin of a deleted site: %+v", list)
	}
}

func listAudit(t *testing.T, s *store.Store, siteID int64) ([]store.AuditEntry, error) {
	rows, _, err := s.ListAudit(t.Context(), store.AuditFilter{SiteID: siteID}, store.ListOptions{Limit: store.All})
	return rows, err
}

func testPublishSite(t *testing.T, s *store.Store) {
	w := NewWorld(t, s, 1)
	ctx := store.WithActor(t.Context(), store.Actor{Kind: store.ActorUser, Name: "ada"})
	bob := store.WithActor(t.Context(), store.Actor{Kind: store.ActorKey, Name: "bob"})
	manual := func(site *inventory.Site) error { site.Publishing = inventory.PublishManual; return nil }
	rename := func(name string) func(*inventory.Site) error {
		return func(site *inventory.Site) error { site.Name = name; return nil }
	}
	first := must(s.Publish(ctx, w.Site.ID, encodeName))(t).Revision
	must(s.UpdateSite(ctx, w.Site.ID, manual))(t)
	must(s.UpdateSite(bob, w.Site.ID, rename("two")))(t)
	must(s.UpdateSite(ctx, w.Site.ID, rename("three")))(t)
	if got := must(s.Publish(ctx, w.Site.ID, encodeName))(t); got.Revision.ETag != first.ETag || !got.Held {
		t.Errorf("before it is published: %+v", got)
	}
	before := must(s.Versions(ctx))(t).Site(w.Site.ID)
	_, _, err := s.PublishSite(ctx, w.Site.ID, first.ETag, "", encodeName)
	wantConflict(t, err, "etag")
	if _, total, _ := s.ListRevisions(ctx, store.RevisionFilter{SiteID: w.Site.ID}, store.ListOptions{}); total != 1 {
		t.Errorf("%d revisions after a refusal", total)
	}
	second, published, err := s.PublishSite(ctx, w.Site.ID, "", "why", encodeName)
	if err != nil || !published {
		t.Fatal(published, err)
	}
	if diff := cmp.Diff([]string{"ada", "bob (key)"}, second.ChangedBy); diff != "" || second.PublishedBy != "ada" || second.Note != "why" || second.Summary.String() != "settings of the site changed" {
		t.Errorf("%+v %s", second, diff)
	}
	if after := must(s.Versions(ctx))(t).Site(w.Site.ID); after <= before {
		t.Error("nobody is told of it")
	}
	if read := must(s.GetRevision(ctx, w.Site.ID, second.Number))(t); !cmp.Equal(read, second) {
		t.Errorf("read back: %s", cmp.Diff(second, read))
	}
	if again, published, err := s.PublishSite(ctx, w.Site.ID, second.ETag, "again", encodeName); err != nil || published || again.Number != second.Number || again.Note != "why" {
		t.Errorf("%+v, %t, %v", again, published, err)
	}
	_, _, err = s.PublishSite(ctx, 99, "", "", encodeName)
	wantNotFound(t, err)
	inventory := must(s.ReadInventory(ctx, w.Site.ID))(t)
	if inventory.Site.Name != "three" || len(inventory.Services) != 3 {
		t.Errorf("%+v", inventory)
	}
	_, err = s.ReadInventory(ctx, 99)
	wantNotFound(t, err)
}

// encodeDomains is a snapshot with the site's name and its external domains.
func encodeDomains(i store.Inventory) ([]byte, string, error) {
	content := checkin.Snapshot{
		Site: &checkin.Site{
			ID: i.Site.ID, Name: checkin.Text(i.Site.Name),
			Nodes: []checkin.Node{}, DNSRecords: []checkin.DNSRecord{}, Volumes: []checkin.Volume{},
		},
		NGINX: checkin.Bootstrap().NGINX, RemovalsConfirmed: i.RemovalsConfirmed,
	}
	for _, domain := range i.Domains {
		content.NGINX.ExternalDomains = append(content.NGINX.ExternalDomains, checkin.ExternalDomain{Name: domain.Name})
	}
	return checkin.Encode(content)
}

func as(t *testing.T, name string) context.Context {
	return store.WithActor(t.Context(), store.Actor{Kind: store.ActorUser, Name: name})
}

// Who changes an external domain changes the sites that have it, those that had
// it, and no other.
func testAuthorsByDomain(t *testing.T, s *store.Store) {
	one, two := NewWorld(t, s, 1), NewWorld(t, s, 2)
	sites := map[string]int64{"one": one.Site.ID, "two": two.Site.ID}
	domain := must(s.CreateExternalDomain(t.Context(), inventory.ExternalDomain{Name: "example.net"}))(t)
	expect := func(what string, want map[string][]string) {
		t.Helper()
		for name, id := range sites {
			// Something of the site itself, so that there is a revision in any case.
			must(s.UpdateSite(as(t, "eve"), id, func(site *inventory.Site) error { site.Name += "x"; return nil }))(t)
			row := must(s.Publish(t.Context(), id, encodeDomains))(t).Revision
			if diff := cmp.Diff(append(want[name], "eve"), row.ChangedBy); diff != "" {
				t.Errorf("%s: site %s: %s", what, name, diff)
			}
		}
	}
	change := func(who string, change func(*inventory.ExternalDomain)) {
		t.Helper()
		must(s.UpdateExternalDomain(as(t, who), domain.ID, func(d *inventory.ExternalDomain) error { change(d); return nil }))(t)
	}
	defaultOf := func(id *int64) func(*inventory.ExternalDomain) {
		return func(d *inventory.ExternalDomain) { d.DefaultSiteID = id }
	}
	first, second := one.Site.ID, two.Site.ID

	expect("the first one", map[string][]string{"one": {"manager"}, "two": {"manager"}})
	expect("nothing", nil)
	change("ada", defaultOf(&first))
	expect("the default of one", map[string][]string{"one": {"ada"}})
	change("bob", defaultOf(&second))
	expect("moved to two", map[string][]string{"one": {"bob"}, "two": {"bob"}})
	change("cid", func(d *inventory.ExternalDomain) { d.Name = "example.org" })
	change("dan", defaultOf(nil))
	expect("renamed, and gone", map[string][]string{"two": {"cid", "dan"}})
	change("ada", defaultOf(&first))
	expect("the default of one again", map[string][]string{"one": {"ada"}})
	if err := s.DeleteExternalDomain(as(t, "fay"), domain.ID, false); err != nil {
		t.Fatal(err)
	}
	expect("deleted", map[string][]string{"one": {"fay"}})

	// A domain that both use has no default site that they see.
	used := inventory.Service{Type: inventory.ServiceHTTP, InternalPort: 80, ExternalHostname: "both", ExternalDomainID: &one.Domain.ID}
	must(s.CreateService(as(t, "ada"), two.Container.ID, used))(t)
	expect("a service under a domain of the other", map[string][]string{"two": {"ada"}})
	domain = one.Domain
	change("bob", defaultOf(&first))
	expect("of no concern to two", map[string][]string{"one": {"bob"}})
}

// What is published once more is nobody's change, and what waits stays theirs
// who made it.
func testAuthorsOfConfirmed(t *testing.T, s *store.Store) {
	manual := func(site *inventory.Site) error { site.Publishing = inventory.PublishManual; return nil }
	rename := func(site *inventory.Site) error { site.Name = "renamed"; return nil }
	for name, hold := range map[string]func(siteID int64) error{
		"pinned": func(siteID int64) error {
			_, err := s.PinSite(as(t, "ada"), siteID, 0, "test", encodeName)
			return err
		},
		"by hand": func(siteID int64) error { _, err := s.UpdateSite(as(t, "ada"), siteID, manual); return err },
	} {
		w := NewWorld(t, s, len(name))
		must(s.Publish(t.Context(), w.Site.ID, encodeName))(t)
		if err := hold(w.Site.ID); err != nil {
			t.Fatal(err)
		}
		must(s.UpdateSite(as(t, "bob"), w.Site.ID, rename))(t)
		confirmed := must(s.ConfirmRemovals(as(t, "ada"), w.Site.ID, "ada", "", encodeName))(t).Revision
		if len(confirmed.ChangedBy) != 0 || confirmed.ChangedBy == nil || confirmed.Number != 2 {
			t.Errorf("%s: revision %d by %q", name, confirmed.Number, confirmed.ChangedBy)
		}
		if row, _, err := s.PublishSite(as(t, "ada"), w.Site.ID, "", "", encodeName); err != nil || !slices.Contains(row.ChangedBy, "bob") {
			t.Errorf("%s: afterwards: %q", name, row.ChangedBy)
		}
		must(s.UpdateSite(t.Context(), w.Site.ID, func(site *inventory.Site) error { site.Name = name; return nil }))(t)
	}
}

func testPruneRevisions(t *testing.T, s *store.Store) {
	w, other := NewWorld(t, s, 1), NewWorld(t, s, 2)
	ctx := t.Context()
	var names []string
	for n := range 10 {
		names = append(names, fmt.Sprintf("v%d", n))
	}
	tags := publishNames(t, s, w.Site.ID, names...)
	publishNames(t, s, other.Site.ID, "other")
	// One agent runs revision 2, was given 3 and runs 4 of one service.
	_, err := s.RecordCheckIn(ctx, store.CheckIn{SiteID: w.Site.ID, Hostname: "agent", At: time.Now(), Report: checkin.Request{
		Running:  &checkin.Running{ETag: "W/" + tags[1]},
		Services: map[string]checkin.ServiceReport{"nginx": {ReceivedETag: tags[2], RunningETag: tags[3]}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	must(s.PinSite(ctx, w.Site.ID, 5, "test", encodeName))(t)
	numbers := func() []int64 {
		var kept []int64
		rows, _, err := s.ListRevisions(ctx, store.RevisionFilter{SiteID: w.Site.ID}, store.ListOptions{Sort: "number"})
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			kept = append(kept, row.Number)
		}
		return kept
	}
	for _, step := range []struct {
		latest  int
		younger time.Duration
		want    []int64
	}{
		{0, 0, []int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}},
		{2, time.Hour, []int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}},
		{20, 0, []int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}},
		{3, -time.Second, []int64{2, 3, 4, 5, 8, 9, 10}},
		{1, -time.Second, []int64{2, 3, 4, 5, 10}},
	} {
		before := len(numbers())
		n, err := s.PruneRevisions(ctx, step.latest, step.younger)
		if got := numbers(); err != nil || !slices.Equal(got, step.want) || n != int64(before-len(got)) {
			t.Errorf("the latest %d, younger than %s: %v, %d deleted, %v", step.latest, step.younger, got, n, err)
		}
	}
	if got := must(s.Publish(ctx, other.Site.ID, encodeName))(t); got.Revision.Number != 1 {
		t.Errorf("another site: %+v", got)
	}
	// The numbers go on.
	if _, err := s.UnpinSite(ctx, w.Site.ID); err != nil {
		t.Fatal(err)
	}
	publishNames(t, s, w.Site.ID, "later")
	if got := numbers(); got[len(got)-1] != 11 {
		t.Errorf("%v", got)
	}
}
