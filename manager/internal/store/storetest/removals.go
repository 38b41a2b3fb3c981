package storetest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/store"
)

// encodeSite stands for a snapshot: the site's name and whether removals are
// confirmed.
func encodeSite(i store.Inventory) ([]byte, string, error) {
	data := fmt.Appendf(nil, "%s %v", i.Site.Name, i.RemovalsConfirmed)
	return data, checkin.ETag(data), nil
}

func testConfirmRemovals(t *testing.T, s *store.Store) {
	w := NewWorld(t, s, 1)
	ctx := t.Context()
	plain := must(s.Publish(ctx, w.Site.ID, encodeSite))(t)
	began := time.Now().Add(-time.Second)
	confirmed := must(s.ConfirmRemovals(ctx, w.Site.ID, "ada", plain.Revision.ETag, encodeSite))(t)
	if string(confirmed.Revision.Data) != "site1 true" || confirmed.Revision.Number != plain.Revision.Number+1 ||
		confirmed.Version <= plain.Version || len(confirmed.Volumes) != 1 {
		t.Errorf("published %+v after %+v", confirmed, plain)
	}
	if version := must(s.Versions(ctx))(t).Site(w.Site.ID); version != confirmed.Version {
		t.Errorf("the counter is %d, what was published has %d", version, confirmed.Version)
	}

	// Again, by somebody who looked before and by one who looked after.
	for _, seen := range []string{"", plain.Revision.ETag, confirmed.Revision.ETag, "W/" + plain.Revision.ETag} {
		if again := must(s.ConfirmRemovals(ctx, w.Site.ID, "bob", seen, encodeSite))(t); !cmp.Equal(confirmed.Revision, again.Revision) || again.Version != confirmed.Version {
			t.Errorf("again, seen %s: %+v", seen, again)
		}
	}
	list := must(s.ListConfirmedRemovals(ctx))(t)
	if len(list) != 1 || list[0].SiteID != w.Site.ID || list[0].ConfirmedBy != "ada" || list[0].ConfirmedAt.Before(began) || time.Until(list[0].ConfirmedAt) > 0 {
		t.Errorf("%+v", list)
	}
	_, err := s.ConfirmRemovals(ctx, 99, "ada", "", encodeSite)
	wantNotFound(t, err)
	_, err = s.ConfirmRemovals(ctx, 99, "ada", plain.Revision.ETag, encodeSite)
	wantNotFound(t, err)
}

func testConfirmOtherContent(t *testing.T, s *store.Store) {
	w := NewWorld(t, s, 1)
	ctx := t.Context()
	seen := must(s.Publish(ctx, w.Site.ID, encodeSite))(t).Revision.ETag
	must(s.UpdateSite(ctx, w.Site.ID, func(site *inventory.Site) error { site.Name = "else"; return nil }))(t)
	before := must(s.Versions(ctx))(t).Site(w.Site.ID)
	_, err := s.ConfirmRemovals(ctx, w.Site.ID, "ada", seen, encodeSite)
	wantConflict(t, err, "etag")
	if after := must(s.Versions(ctx))(t).Site(w.Site.ID); after != before || len(must(s.ListConfirmedRemovals(ctx))(t)) != 0 {
		t.Error("a refused confirmation left something behind")
	}
}

// A broken transaction must not leave the word behind without its revision.
func testConfirmAllOrNothing(t *testing.T, s *store.Store) {
	w := NewWorld(t, s, 1)
	broken := errors.New("broken")
	_, err := s.ConfirmRemovals(t.Context(), w.Site.ID, "ada", "", func(store.Inventory) ([]byte, string, error) { return nil, "", broken })
	if !errors.Is(err, broken) || len(must(s.ListConfirmedRemovals(t.Context()))(t)) != 0 {
		t.Errorf("%v; the word stands without a snapshot", err)
	}
}

func testWhatDropsConfirmedRemovals(t *testing.T, s *store.Store) {
	w, other := NewWorld(t, s, 1), NewWorld(t, s, 2)
	ctx := t.Context()
	report := func(applied bool) error {
		_, err := s.RecordCheckIn(ctx, store.CheckIn{
			SiteID: w.Site.ID, Hostname: "agent", At: time.Now(),
			Volumes: map[int64]checkin.VolumeReport{w.Volume.ID: {Applied: applied, Message: fmt.Sprint(applied)}},
		})
		return err
	}
	for _, step := range []struct {
		name  string
		drops bool
		do    func() error
	}{
		{"nothing", false, func() error { return nil }},
		{"a failed volume", false, func() error { return report(false) }},
		{"a volume that is there", false, func() error { return report(true) }},
		{"an update that changes nothing", false, func() error {
			_, err := s.UpdateNode(ctx, w.Node.ID, func(*inventory.Node) error { return nil })
			return err
		}},
		{"a refused change", false, func() error {
			_, err := s.CreateNode(ctx, w.Site.ID, inventory.Node{Name: "web"})
			wantConflict(t, err, "name")
			return nil
		}},
		{"another site", false, func() error {
			_, err := s.UpdateSite(ctx, other.Site.ID, func(site *inventory.Site) error { site.Name = "moved"; return nil })
			return errors.Join(err, s.DeleteService(ctx, other.HTTP.ID))
		}},
		{"site", true, func() error {
			_, err := s.UpdateSite(ctx, w.Site.ID, func(site *inventory.Site) error { site.Name = "renamed"; return nil })
			return err
		}},
		{"there and back", true, func() error {
			_, err := s.UpdateSite(ctx, w.Site.ID, func(site *inventory.Site) error { site.Name = "a"; return nil })
			_, back := s.UpdateSite(ctx, w.Site.ID, func(site *inventory.Site) error { site.Name = "renamed"; return nil })
			return errors.Join(err, back)
		}},
		{"node", true, func() error {
			_, err := s.UpdateNode(ctx, w.Node.ID, func(n *inventory.Node) error { n.Name = "pve9"; return nil })
			return err
		}},
		{"container", true, func() error {
			_, err := s.UpdateContainer(ctx, w.Container.ID, func(c *inventory.Container) error { c.MACAddress = ""; return nil })
			return err
		}},
		{"domain", true, func() error {
			_, err := s.UpdateExternalDomain(ctx, w.Domain.ID, func(d *inventory.ExternalDomain) error { d.Name = "example.org"; return nil })
			return err
		}},
		{"mode of a volume", true, func() error {
			_, err := s.UpdateVolume(ctx, w.Volume.ID, func(v *inventory.Volume) error { v.Mode = "ro"; return nil })
			return err
		}},
		{"a service less", true, func() error { return s.DeleteService(ctx, w.Transport.ID) }},
		{"a service more", true, func() error {
			_, err := s.CreateService(ctx, w.Container.ID, inventory.Service{Type: "transport", InternalPort: 22, Protocol: "tcp"})
			return err
		}},
		{"a volume less", true, func() error { return s.DeleteVolume(ctx, w.Volume.ID) }},
		{"the site itself", true, func() error { return s.DeleteSite(ctx, w.Site.ID, true) }},
	} {
		must(s.ConfirmRemovals(ctx, w.Site.ID, "ada", "", encodeSite))(t)
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if stands := len(must(s.ListConfirmedRemovals(ctx))(t)) == 1; stands == step.drops {
			t.Errorf("%s: still confirmed is %v", step.name, stands)
		}
	}
}

func testDriftIsKept(t *testing.T, s *store.Store) {
	w := NewWorld(t, s, 1)
	ctx := t.Context()
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	edited := func(path string) []checkin.Drift { return []checkin.Drift{{Path: path, Diff: "-a\n+b"}} }
	tell := func(after time.Duration, services map[string]checkin.ServiceReport) {
		t.Helper()
		must(s.RecordCheckIn(ctx, store.CheckIn{
			SiteID: w.Site.ID, Hostname: "agent", At: start.Add(after), Report: checkin.Request{Services: services},
		}))(t)
	}
	record := func(after time.Duration, nginx, dnsmasq []checkin.Drift) {
		t.Helper()
		tell(after, map[string]checkin.ServiceReport{"nginx": {Drift: nginx}, "dnsmasq": {Drift: dnsmasq}})
	}
	want := func(after time.Duration, want store.KeptDrift) {
		t.Helper()
		got := must(s.FindAgent(ctx, w.Site.ID, "agent"))(t).Drift.Recent(start.Add(after))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("after %s (-want +got):\n%s", after, diff)
		}
	}
	first := store.DriftAt{At: start, Files: edited("/etc/nginx/nginx.conf"), Restored: true}
	record(0, first.Files, nil)
	record(time.Minute, nil, nil) // the next check-in does not tell it again
	want(time.Minute, store.KeptDrift{"nginx": first})

	second := store.DriftAt{At: start.Add(2 * time.Hour), Files: edited("/etc/dnsmasq.conf"), Restored: true}
	record(2*time.Hour, nil, second.Files)
	want(3*time.Hour, store.KeptDrift{"nginx": first, "dnsmasq": second})
	want(25*time.Hour, store.KeptDrift{"dnsmasq": second})
	want(-time.Hour, store.KeptDrift{"nginx": first, "dnsmasq": second}) // the clock was set back

	third := store.DriftAt{At: start.Add(25 * time.Hour), Files: edited("/etc/dnsmasq.conf"), Restored: true}
	record(25*time.Hour, nil, third.Files)
	want(2*time.Hour, store.KeptDrift{"dnsmasq": third}) // what is too old is not kept for ever
	want(-25*time.Hour, store.KeptDrift{})               // nor until a clock that was wrong has come round

	for outcome, restored := range map[checkin.Outcome]bool{
		checkin.OutcomeApplied: true, checkin.OutcomeHeld: true, "": true,
		checkin.OutcomeRejected: false, checkin.OutcomeRolledBack: false, checkin.OutcomeStuck: false,
	} {
		tell(0, map[string]checkin.ServiceReport{"nginx": {Outcome: outcome, Drift: first.Files}})
		want(0, store.KeptDrift{"nginx": {At: start, Files: first.Files, Restored: restored}})
	}
	huge := store.DriftAt{At: start, Files: edited(strings.Repeat("x", 256<<10)), Restored: true}
	tell(0, map[string]checkin.ServiceReport{"made-up": {Drift: huge.Files}})
	want(0, store.KeptDrift{"made-up": huge}) // they do not pile up
}
