package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/store"
)

// overviewHosts are the host names of a page.
func overviewHosts(t *testing.T, s *store.Store, opts store.OverviewOptions) []string {
	t.Helper()
	if opts.Limit == 0 {
		opts.Limit = 50
	}
	var hosts []string
	for _, row := range must(s.OverviewAgents(t.Context(), opts))(t).Rows {
		hosts = append(hosts, row.Hostname)
	}
	return hosts
}

// testOverview has an agent of each kind in one site and a few in another.
func testOverview(t *testing.T, s *store.Store) {
	first, second := NewWorld(t, s, 1), NewWorld(t, s, 2)
	ctx, now, skew := t.Context(), time.Now().UTC(), int64(0)
	tags := []string{}
	for i := range 3 {
		tag := fmt.Sprintf(`"%064d"`, i)
		tags = append(tags, tag)
		must(s.Publish(ctx, first.Site.ID, func(store.Inventory) ([]byte, string, error) { return []byte("{}"), tag, nil }))(t)
	}
	agent := func(site int64, host string, age time.Duration, change func(*store.CheckIn)) {
		t.Helper()
		c := store.CheckIn{SiteID: site, Hostname: host, At: now.Add(-age), ClockSkewMS: &skew, PeerAddress: "203.0.113.9", Report: reportOf(false)}
		c.Report.Running = &checkin.Running{ETag: tags[2], Since: now}
		if change != nil {
			change(&c)
		}
		must(s.RecordCheckIn(ctx, c))(t)
	}
	agent(first.Site.ID, "a-well", 0, func(c *store.CheckIn) {
		c.Report.IPv4Address, c.Report.Agent = "192.0.2.10", &checkin.AgentInfo{Version: "2026.12.0"}
	})
	agent(first.Site.ID, "b-behind", 0, func(c *store.CheckIn) {
		c.Report.IPv4Address, c.Report.Agent = "192.0.2.9", &checkin.AgentInfo{Version: "2026.9.0"}
		c.Report.Running.ETag = tags[0]
	})
	agent(first.Site.ID, "c-failing", 0, func(c *store.CheckIn) { c.Report.Services = reportOf(true).Services })
	agent(first.Site.ID, "d-late", 2*time.Minute, nil)
	agent(first.Site.ID, "e-offline", time.Hour, func(c *store.CheckIn) { c.Report.Services = reportOf(true).Services })
	agent(first.Site.ID, "f-skewed", 0, func(c *store.CheckIn) { skew := int64(-60000); c.ClockSkewMS = &skew })
	agent(first.Site.ID, "g-held", 0, func(c *store.CheckIn) { c.Report.Guard = &checkin.Guard{Removed: 3, Total: 4} })
	agent(second.Site.ID, "h-volume", 0, func(c *store.CheckIn) {
		c.Volumes = map[int64]checkin.VolumeReport{second.Volume.ID: {Message: "permission denied"}}
		c.Report.Running, c.PeerAddress = nil, "198.51.100.1"
		c.Report.IPv4Address = "x\x00\xff" // as nobody should send it
	})

	for _, test := range []struct {
		opts store.OverviewOptions
		want []string
	}{
		{store.OverviewOptions{}, []string{"e-offline", "c-failing", "h-volume", "b-behind", "d-late", "f-skewed", "g-held", "a-well"}},
		{store.OverviewOptions{Sort: "-state", Limit: 2}, []string{"a-well", "f-skewed"}},
		{store.OverviewOptions{Limit: 3, Offset: 6}, []string{"g-held", "a-well"}},
		{store.OverviewOptions{Sort: "host", Limit: 2}, []string{"a-well", "b-behind"}},
		{store.OverviewOptions{Sort: "-host", Limit: 2}, []string{"h-volume", "g-held"}},
		{store.OverviewOptions{Sort: "-address", Limit: 2}, []string{"h-volume", "a-well"}},
		{store.OverviewOptions{Sort: "-version", Limit: 2}, []string{"a-well", "b-behind"}},
		{store.OverviewOptions{Sort: "seen", Limit: 2}, []string{"e-offline", "d-late"}},
		{store.OverviewOptions{Sort: "-services", Limit: 3}, []string{"c-failing", "e-offline", "g-held"}},
		{store.OverviewOptions{Sort: "-site", Limit: 1}, []string{"h-volume"}},
		{store.OverviewOptions{Sort: "-revision", Limit: 1}, []string{"b-behind"}},
		{store.OverviewOptions{BySite: true, Limit: 8}, []string{"e-offline", "c-failing", "b-behind", "d-late", "f-skewed", "g-held", "a-well", "h-volume"}},
		{store.OverviewOptions{State: "online", Limit: 2}, []string{"c-failing", "h-volume"}},
		{store.OverviewOptions{State: "late"}, []string{"d-late"}},
		{store.OverviewOptions{State: "offline"}, []string{"e-offline"}},
		{store.OverviewOptions{State: store.StateFailing}, []string{"e-offline", "c-failing", "h-volume"}},
		{store.OverviewOptions{State: store.StateBehind}, []string{"b-behind"}},
		{store.OverviewOptions{State: store.StateWarning}, []string{"f-skewed", "g-held"}},
		{store.OverviewOptions{State: store.StateHeld}, []string{"g-held"}},
		{store.OverviewOptions{SiteID: second.Site.ID}, []string{"h-volume"}},
		{store.OverviewOptions{Search: "SITE2"}, []string{"h-volume"}},
		{store.OverviewOptions{Search: "192.0.2.1"}, []string{"a-well"}},
		{store.OverviewOptions{Search: "198.51"}, []string{"h-volume"}},
		{store.OverviewOptions{Search: "-LATE"}, []string{"d-late"}},
		{store.OverviewOptions{Search: "%"}, nil},
	} {
		if diff := cmp.Diff(test.want, overviewHosts(t, s, test.opts)); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", test.opts, diff)
		}
	}

	view := must(s.OverviewAgents(ctx, store.OverviewOptions{State: store.StateFailing, Limit: 1}))(t)
	want := map[store.AgentState]int64{"online": 6, "late": 1, "offline": 1, "failing": 3, "behind": 1, "warning": 2, "held": 1}
	if diff := cmp.Diff(want, view.Counts); diff != "" || view.All != 8 || view.Total != 3 || view.Any != 8 {
		t.Errorf("%d of %d of %d, counts (-want +got):\n%s", view.Total, view.All, view.Any, diff)
	}
	view = must(s.OverviewAgents(ctx, store.OverviewOptions{Search: "nothing", Limit: 1}))(t)
	if view.All != 0 || view.Total != 0 || view.Any != 8 || view.Counts["online"] != 0 {
		t.Errorf("nothing is found: %+v", view)
	}
	_, err := s.OverviewAgents(ctx, store.OverviewOptions{Sort: "report"})
	wantInvalid(t, err, "sort")
	_, err = s.OverviewAgents(ctx, store.OverviewOptions{State: "nowhere"})
	wantInvalid(t, err, "state")
}

// testAgentRevisions: what an agent runs, against what it is given.
func testAgentRevisions(t *testing.T, s *store.Store) {
	w := NewWorld(t, s, 1)
	ctx, now := t.Context(), time.Now().UTC()
	tags := publishNames(t, s, w.Site.ID, "one", "two", "three")
	id := must(s.RecordCheckIn(ctx, store.CheckIn{SiteID: w.Site.ID, Hostname: "edge", At: now, Report: reportOf(false)}))(t).ID
	row := func(tag string) store.AgentRow {
		t.Helper()
		c := store.CheckIn{SiteID: w.Site.ID, Hostname: "edge", At: now, Report: reportOf(false)}
		if tag != "" {
			c.Report.Running = &checkin.Running{ETag: tag, Since: now}
		}
		must(s.RecordCheckIn(ctx, c))(t)
		view := must(s.OverviewAgents(ctx, store.OverviewOptions{Limit: 1}))(t)
		if len(view.Rows) != 1 || view.Rows[0].ID != id {
			t.Fatalf("%+v", view)
		}
		if counted := view.Counts[store.StateBehind] == 1; counted != view.Rows[0].Behind {
			t.Errorf("counted as behind: %t, shown as behind: %t", counted, view.Rows[0].Behind)
		}
		return view.Rows[0]
	}
	revisions, _, err := s.ListRevisions(ctx, store.RevisionFilter{SiteID: w.Site.ID}, store.ListOptions{Sort: "number"})
	if err != nil {
		t.Fatal(err)
	}
	number := func(tag string) int64 {
		i := slices.IndexFunc(revisions, func(r store.Revision) bool { return r.ETag == tag })
		return revisions[i].Number
	}
	last := number(tags[2])
	if got := row(""); got.Behind || got.Running != 0 || got.Published != last {
		t.Errorf("of an agent that does not say: %+v", got.AgentRevision)
	}
	if got := row("W/" + tags[2]); got.Behind || got.Running != last {
		t.Errorf("in sync: %+v", got.AgentRevision)
	}
	if got := row(tags[0]); !got.Behind || got.Running != number(tags[0]) || got.Published != last || got.BehindSince == nil || !got.BehindSince.Equal(revisions[number(tags[1])-1].CreatedAt) {
		t.Errorf("behind: %+v", got.AgentRevision)
	}
	if got := row(`"ffff"`); !got.Behind || got.Running != 0 || got.BehindSince != nil {
		t.Errorf("of a revision that is not known: %+v", got.AgentRevision)
	}
	pin := must(s.PinSite(ctx, w.Site.ID, number(tags[0]), "look", encodeName))(t)
	if got := row(tags[0]); got.Behind || got.Pin == nil || got.Pin.Revision != number(tags[0]) {
		t.Errorf("pinned: %+v", got)
	}
	if got := row(tags[2]); !got.Behind || got.BehindSince == nil || !got.BehindSince.Equal(pin.PinnedAt) {
		t.Errorf("pinned back: %+v", got.AgentRevision)
	}
	if hosts := overviewHosts(t, s, store.OverviewOptions{State: store.StateHeld}); len(hosts) != 1 {
		t.Errorf("held by a pin: %v", hosts)
	}
}
