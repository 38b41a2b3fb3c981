package storetest

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/store"
)

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
			_, err := s.RecordCheckIn(ctx, store.CheckIn{
				SiteID: w1.Site.ID, Hostname: "agent", At: time.Now(),
				Volumes: map[int64]checkin.VolumeReport{w1.Volume.ID: {Applied: true}},
			})
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
			agent, err := s.RecordCheckIn(ctx, store.CheckIn{SiteID: site, Hostname: "agent", At: time.Now().UTC()})
			if err != nil {
				t.Error(err)
			}
			ids[i] = agent.ID
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

// testTooManyAgents: those seen longest ago are forgotten, of that site alone.
func testTooManyAgents(t *testing.T, s *store.Store) {
	w1, w2 := NewWorld(t, s, 1), NewWorld(t, s, 2)
	ctx := t.Context()
	checkIn := func(site int64, name string, at time.Time) {
		must(s.RecordCheckIn(ctx, store.CheckIn{SiteID: site, Hostname: name, At: at}))(t)
	}
	start := time.Date(2026, 2, 16, 9, 36, 0, 0, time.UTC)
	checkIn(w2.Site.ID, "other", start.Add(-time.Hour))
	for i := range 110 {
		checkIn(w1.Site.ID, fmt.Sprintf("agent-%d", i), start.Add(time.Duration(i)*time.Second))
		checkIn(w1.Site.ID, "faithful", start.Add(time.Duration(i)*time.Second))
	}
	checkIn(w1.Site.ID, "clock-set-back", start.Add(-24*time.Hour))
	agents, total, err := s.ListAgents(ctx, store.AgentFilter{SiteID: w1.Site.ID}, store.ListOptions{Limit: store.All})
	if err != nil || total != 101 {
		t.Fatalf("%d agents, %v", total, err)
	}
	for _, agent := range agents {
		if agent.Hostname == "agent-0" {
			t.Error("the one seen longest ago is still there")
		}
	}
	for site, name := range map[int64]string{w1.Site.ID: "faithful", w2.Site.ID: "other"} {
		must(s.FindAgent(ctx, site, name))(t)
	}
	must(s.FindAgent(ctx, w1.Site.ID, "clock-set-back"))(t)
}

func testHeartbeats(t *testing.T, s *store.Store) {
	w := NewWorld(t, s, 1)
	ctx := t.Context()
	seen := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	id := must(s.RecordCheckIn(ctx, store.CheckIn{SiteID: w.Site.ID, Hostname: "agent", At: seen}))(t).ID
	skew := int64(-1500)
	s.Beat(store.Heartbeat{
		AgentID: id, Told: 1, At: seen.Add(30 * time.Second), PeerAddress: "192.0.2.9", ClockSkewMS: &skew,
		Report: &checkin.Request{Hostname: "agent", CurrentTime: 7},
	})
	s.Beat(store.Heartbeat{AgentID: 99, At: seen, Report: &checkin.Request{}}) // deleted meanwhile

	agent := must(s.GetAgent(ctx, id))(t)
	if !agent.LastSeenAt.Equal(seen.Add(30*time.Second)) || agent.PeerAddress != "192.0.2.9" ||
		agent.ClockSkewMS == nil || *agent.ClockSkewMS != skew || agent.Report.CurrentTime != 7 || !agent.FirstSeenAt.Equal(seen) {
		t.Errorf("%+v", agent)
	}
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
	if latest := must(s.RevisionByETag(ctx, w.Site.ID, "e1"))(t); string(latest.Data) != "1" || latest.Number != 3 {
		t.Errorf("%+v", latest)
	}
	_, err = s.GetRevision(ctx, w.Site.ID, 4)
	wantNotFound(t, err)
	_, err = s.RevisionByETag(ctx, w.Site.ID, "e4")
	wantNotFound(t, err)
	_, err = s.RevisionByETag(ctx, 99, "e1")
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
	revisions, _, err := s.ListRevisions(ctx, store.RevisionFilter{SiteID: w.Site.ID}, store.ListOptions{Limit: 500, Sort: "number"})
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
