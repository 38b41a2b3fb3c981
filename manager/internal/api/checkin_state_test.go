package api_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"opensource.internal/agent/checkin"
	inv "opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/store"
	"opensource.internal/manager/internal/store/storetest"
)

func TestCheckInVolumes(t *testing.T) {
	c := newCheckIns(t)
	second := storetest.NewWorld(t, c.store, 2)
	first := c.post(plain)
	etag := first.Header().Get("ETag")
	volumes := func(content string) string {
		return `{"siteId":1,"hostname":"agent","volumes":{` + content + `}}`
	}
	status := func(id int64) store.Volume {
		t.Helper()
		v, err := c.store.GetVolume(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for _, body := range []string{
		plain,
		volumes(fmt.Sprintf(`"%d":{"applied":true}`, second.Volume.ID)),
		volumes(fmt.Sprintf(`"%d":null`, c.Volume.ID)),
	} {
		if w := c.post(body, "If-None-Match", etag); w.Code != http.StatusOK {
			t.Errorf("a volume is pending, and the answer to %s is %d", body, w.Code)
		}
	}
	if v := status(second.Volume.ID); v.Status != store.VolumePending {
		t.Errorf("the other site's volume is %s", v.Status)
	}
	if !strings.Contains(c.log.String(), "not of the agent's site") {
		t.Error("the foreign result is not logged")
	}
	failed := volumes(fmt.Sprintf(`"%d":{"applied":false,"message":"mkdir: \u001b[31mno"}`, c.Volume.ID))
	if w := c.post(failed, "If-None-Match", etag); w.Code != http.StatusNotModified {
		t.Errorf("answer to the result is %d", w.Code)
	}
	if v := status(c.Volume.ID); v.Status != store.VolumeFailed || v.StatusMessage != `mkdir: \x1b[31mno` {
		t.Errorf("%+v", v)
	}
	reported := status(c.Volume.ID).ReportedAt
	c.now = c.now.Add(time.Minute)
	c.post(failed, "If-None-Match", etag)
	if again := status(c.Volume.ID).ReportedAt; !again.Equal(*reported) {
		t.Error("the same result was written again")
	}
	c.settle(t)
	if v := status(c.Volume.ID); v.Status != store.VolumeReady || v.StatusMessage != "" {
		t.Errorf("%+v", v)
	}
	_, err := c.store.UpdateVolume(t.Context(), c.Volume.ID, func(v *inv.Volume) error { v.Mode = "ro"; return nil })
	if err != nil {
		t.Fatal(err)
	}
	changed := c.post(plain, "If-None-Match", etag)
	if again := c.post(plain, "If-None-Match", changed.Header().Get("ETag")); again.Code != http.StatusOK {
		t.Errorf("pending again, but %d", again.Code)
	}
	for tag, want := range map[string]int{changed.Header().Get("ETag"): http.StatusNotModified, etag: http.StatusOK} {
		holding := fmt.Sprintf(`{"siteId":1,"hostname":"agent","guard":{"removed":6,"total":8,"etag":%q}}`, tag)
		if w := c.post(holding, "If-None-Match", changed.Header().Get("ETag")); w.Code != want {
			t.Errorf("pending in a snapshot while the agent holds %s back: %d, want %d", tag, w.Code, want)
		}
	}
}

func TestCheckInWritesOnlyNews(t *testing.T) {
	c := newCheckIns(t)
	etag := c.settle(t)
	c.post(plain, "If-None-Match", etag)
	stored := func() store.Agent { // as another process sees it
		other := storetest.OpenAt(t, c.database)
		agent, err := other.FindAgent(t.Context(), 1, "agent")
		if err != nil {
			t.Fatal(err)
		}
		return agent
	}
	first := stored()
	for i := range 5 {
		c.now = c.now.Add(30 * time.Second)
		same := strings.Replace(plain, "1771234560", fmt.Sprint(1771234560+30*(i+1)), 1)
		if w := c.post(same, "If-None-Match", etag); w.Code != http.StatusNotModified {
			t.Fatal(w.Code)
		}
	}
	if diff := cmp.Diff(first, stored()); diff != "" {
		t.Errorf("a check-in without news was written at once:\n%s", diff)
	}
	if seen := c.agents(t)[0].LastSeenAt; !seen.Equal(c.now) {
		t.Errorf("the list says %v instead of %v", seen, c.now)
	}
	c.reopen(t)
	if after := stored(); !after.LastSeenAt.Equal(c.now) || !after.ChangedAt.Equal(first.ChangedAt) || after.Report.CurrentTime != 1771234560+150 {
		t.Errorf("%+v", after)
	}

	// After that restart of the manager, the database says what is no news.
	c.now = c.now.Add(30 * time.Second)
	c.post(plain, "If-None-Match", etag)
	if after := stored(); !after.LastSeenAt.Equal(c.now.Add(-30 * time.Second)) {
		t.Error("the first check-in after a restart was written although it said nothing new")
	}
	c.post(strings.Replace(plain, "bad option", "worse option", 1), "If-None-Match", etag)
	if after := stored(); !after.ChangedAt.Equal(c.now) || after.Report.Services["dnsmasq"].Message != "worse option at line 12" {
		t.Errorf("news was not written at once: %+v", after)
	}
	if agent := c.agents(t)[0]; agent.Report.Services["dnsmasq"].Message != "worse option at line 12" {
		t.Errorf("an older heartbeat hides it: %+v", agent)
	}
}

// TestCheckInNotesWhenASnapshotWasFetched: that is written once for each, and what
// was lost on the way is not given for the first time again.
func TestCheckInNotesWhenASnapshotWasFetched(t *testing.T) {
	c := newCheckIns(t)
	c.settle(t)
	stored := func() store.Agent { // as another process sees it
		agent, err := storetest.OpenAt(t, c.database).FindAgent(t.Context(), 1, "agent")
		if err != nil {
			t.Fatal(err)
		}
		return agent
	}
	first := c.post(plain).Header().Get("ETag")
	began, told := c.now, stored().Told
	for _, tag := range []string{"", first, `"x"`} {
		c.now = c.now.Add(30 * time.Second)
		c.post(plain, "If-None-Match", tag)
	}
	c.restart()
	c.post(plain)
	if agent := stored(); agent.FetchedETag != first || !agent.FetchedAt.Equal(began) || agent.Told != told {
		t.Errorf("the first one: %+v", agent)
	}
	if _, err := c.store.UpdateNode(t.Context(), c.Node.ID, func(n *inv.Node) error { n.Name = "pve9"; return nil }); err != nil {
		t.Fatal(err)
	}
	c.now = c.now.Add(30 * time.Second)
	second := c.post(plain, "If-None-Match", first).Header().Get("ETag")
	fetched := c.now
	c.now = c.now.Add(30 * time.Second)
	c.post(strings.Replace(plain, "bad option", "worse option", 1), "If-None-Match", second)
	if agent := stored(); second == first || agent.FetchedETag != second || !agent.FetchedAt.Equal(fetched) {
		t.Errorf("the second one: %+v", agent)
	}
}

func TestCheckInSeesOtherProcesses(t *testing.T) {
	c := newCheckIns(t)
	etag := c.settle(t)
	other := storetest.OpenAt(t, c.database)
	if w := c.post(plain, "If-None-Match", etag); w.Code != http.StatusNotModified {
		t.Fatal(w.Code)
	}
	if _, err := other.UpdateContainer(t.Context(), c.Container.ID, func(ct *inv.Container) error { ct.Hostname = "renamed"; return nil }); err != nil {
		t.Fatal(err)
	}
	w := c.post(plain, "If-None-Match", etag)
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"renamed"`) {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	etag = w.Header().Get("ETag")
	if _, err := other.UpdateContainer(t.Context(), c.Container.ID, func(ct *inv.Container) error { ct.Owner = "nobody-sees-this"; return nil }); err != nil {
		t.Fatal(err)
	}
	if w := c.post(plain, "If-None-Match", etag); w.Code != http.StatusNotModified {
		t.Errorf("an invisible change gave %d", w.Code)
	}
	if err := other.DeleteAgent(t.Context(), c.agents(t)[0].ID); err != nil {
		t.Fatal(err)
	}
	if w := c.post(plain, "If-None-Match", etag); w.Code != http.StatusNotModified || len(c.agents(t)) != 1 {
		t.Errorf("%d, %d agents after a deletion", w.Code, len(c.agents(t)))
	}
	if err := other.DeleteSite(t.Context(), c.Site.ID, true); err != nil {
		t.Fatal(err)
	}
	if w := c.post(plain, "If-None-Match", etag, "Authorization", "Bearer admin"); w.Code != http.StatusNotFound {
		t.Errorf("deleted site: %d", w.Code)
	}
}

func TestCheckInParallelFirst(t *testing.T) {
	c := newCheckIns(t)
	second := storetest.NewWorld(t, c.store, 2)
	var group sync.WaitGroup
	for i := range 100 {
		group.Go(func() {
			site := []int64{1, second.Site.ID}[i%2]
			w := c.post(fmt.Sprintf(`{"siteId":%d,"hostname":"agent"}`, site), "Authorization", "Bearer admin")
			if w.Code != http.StatusOK {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		})
	}
	group.Wait()
	agents := c.agents(t)
	if len(agents) != 2 || agents[0].SiteID == agents[1].SiteID {
		t.Errorf("%+v", agents)
	}
	if err := c.store.DeleteAgent(t.Context(), agents[0].ID); err != nil {
		t.Fatal(err)
	}
	if left := c.agents(t); len(left) != 1 || left[0].ID != agents[1].ID {
		t.Errorf("%+v", left)
	}
}

func TestCheckInSixtyAgentsWhileEditing(t *testing.T) {
	c := newCheckIns(t)
	ctx, stop := context.WithCancel(t.Context())
	var editing, agents sync.WaitGroup
	editing.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			_, err := c.store.UpdateContainer(t.Context(), c.Container.ID, func(ct *inv.Container) error { ct.Hostname = fmt.Sprintf("web%d", i); return nil })
			if err != nil {
				t.Error(err)
				return
			}
		}
	})
	for i := range 60 {
		agents.Go(func() {
			etag := ""
			for round := range 10 {
				body := fmt.Sprintf(`{"siteId":1,"hostname":"agent%d","services":{"nginx":{"state":"active","lastApply":"success","message":"%d"}}}`, i, round/3)
				began := time.Now()
				w := c.post(body, "If-None-Match", etag)
				// An agent gives up after this long. How fast it really is, the
				// benchmarks tell.
				if took := time.Since(began); w.Code != 200 && w.Code != 304 || took > checkin.Timeout {
					t.Errorf("%d after %v: %s", w.Code, took, w.Body)
				}
				etag = w.Header().Get("ETag")
			}
		})
	}
	agents.Wait()
	stop()
	editing.Wait()
	list := c.agents(t)
	for _, agent := range list {
		if agent.Report.Services["nginx"].Message != "3" {
			t.Errorf("lost the last report of %s: %+v", agent.Hostname, agent.Report)
		}
	}
	if len(list) != 60 {
		t.Errorf("%d agents", len(list))
	}
}

func TestCheckInWithoutDatabase(t *testing.T) {
	c := newCheckIns(t)
	etag := c.settle(t)
	c.post(plain)
	if err := c.store.Close(); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, body, tag string
		want            int
	}{
		{"up to date", plain, etag, 304},
		{"up to date, another time", strings.Replace(plain, "1771234560", "1771234590", 1), etag, 304},
		{"other tag", plain, `"x"`, 503},
		{"no tag", plain, "", 503},
		{"news", strings.Replace(plain, "active", "failed", 1), etag, 503},
		{"a result", fmt.Sprintf(`{"siteId":1,"hostname":"agent","volumes":{"%d":{"applied":false}}}`, c.Volume.ID), etag, 503},
		{"unknown agent", strings.Replace(plain, `"agent"`, `"other"`, 1), etag, 503},
		{"unknown site", strings.Replace(plain, `"siteId":1`, `"siteId":7`, 1), etag, 503},
	}
	for _, test := range tests {
		w := c.post(test.body, "If-None-Match", test.tag, "Authorization", "Bearer admin")
		if w.Code != test.want {
			t.Errorf("%s: %d %s", test.name, w.Code, w.Body)
		}
		if strings.Contains(w.Body.String(), "sql") || strings.Contains(w.Body.String(), "closed") {
			t.Errorf("%s: the cause is shown: %s", test.name, w.Body)
		}
	}
}
