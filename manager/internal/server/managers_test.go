package server_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"opensource.internal/manager/internal/auth"
	"opensource.internal/manager/internal/store"
	"opensource.internal/manager/internal/store/storetest"
	"opensource.internal/manager/servertest"
)

// managers are two managers on one database, and a site that they manage.
type managers struct {
	a, b            *servertest.Server
	site, container int64
	key             string // of the site's agent
}

func startTwo(t *testing.T) managers {
	t.Helper()
	a := servertest.Start(t, servertest.Options{})
	m := managers{a: a, b: servertest.Start(t, servertest.Options{Database: a.Database})}
	m.site = a.Create(t, "/sites", object{"name": "lab", "internalDomain": "lab.internal"})
	node := a.Create(t, fmt.Sprintf("/sites/%d/nodes", m.site), object{"name": "pve1"})
	m.container = a.Create(t, fmt.Sprintf("/sites/%d/containers", m.site), object{"nodeId": node, "hostname": "web", "ipv4Address": "192.0.2.1"})
	m.key = a.Key(t, auth.NewKey{Name: "agent", Role: auth.RoleAgent, SiteID: m.site})
	return m
}

func (m managers) both() []*servertest.Server { return []*servertest.Server{m.a, m.b} }

// checkIn is one of the agent, which says with what message its nginx runs.
func (m managers) checkIn(t testing.TB, to *servertest.Server, hostname, message, etag string) servertest.Answer {
	t.Helper()
	return to.Do(t, "POST", "/api/v1/agents", object{
		"siteId": m.site, "hostname": hostname, "currentTime": time.Now().Unix(),
		"services": object{"nginx": object{"state": "active", "lastApply": "success", "message": message}},
	}, http.Header{"X-Api-Key": {m.key}, "If-None-Match": {etag}})
}

func (m managers) rename(t testing.TB, by *servertest.Server, hostname string) {
	t.Helper()
	answer := by.Call(t, "PATCH", fmt.Sprintf("/containers/%d", m.container), object{"hostname": hostname})
	if answer.Status != 200 {
		t.Fatalf("rename: %d %s", answer.Status, answer.Body)
	}
}

func TestAgentAlternatesBetweenManagers(t *testing.T) {
	m := startTwo(t)
	etag := m.checkIn(t, m.a, "agent", "fine", "").Header.Get("Etag")
	for round := range 5 {
		for n := range 10 {
			if answer := m.checkIn(t, m.both()[n%2], "agent", "fine", etag); answer.Status != 304 || answer.Header.Get("Etag") != etag {
				t.Fatalf("round %d: %d %s", round, answer.Status, answer.Body)
			}
		}
		m.rename(t, m.both()[round%2], fmt.Sprintf("web%d", round))
		answer := m.checkIn(t, m.both()[(round+1)%2], "agent", "fine", etag)
		if answer.Status != 200 || !strings.Contains(string(answer.Body), fmt.Sprintf("web%d", round)) {
			t.Fatalf("round %d: what one manager changed the other does not serve: %d %s", round, answer.Status, answer.Body)
		}
		etag = answer.Header.Get("Etag")
	}
	for _, s := range m.both() {
		agents := servertest.Data[[]object](t, s.Call(t, "GET", "/agents", nil))
		if len(agents) != 1 || agents[0]["hostname"] != "agent" {
			t.Errorf("agents: %v", agents)
		}
	}
}

// TestNoAgentGoesBack lets agents alternate while both managers change the
// site: whichever answers, no answer is older than the one before.
func TestNoAgentGoesBack(t *testing.T) {
	m := startTwo(t)
	var group sync.WaitGroup
	stop := make(chan struct{})
	for _, s := range m.both() {
		group.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
					s.Call(t, "PATCH", fmt.Sprintf("/sites/%d", m.site), object{"internalDomain": fmt.Sprintf("x%d.internal", rand.IntN(1000))})
				}
			}
		})
	}
	seen := make([][]string, 6)
	var agents sync.WaitGroup
	for agent := range seen {
		agents.Go(func() {
			etag := ""
			for n := range 60 {
				answer := m.checkIn(t, m.both()[(agent+n)%2], fmt.Sprintf("agent%d", agent), "fine", etag)
				if answer.Status != 200 && answer.Status != 304 {
					t.Errorf("%d %s", answer.Status, answer.Body)
				}
				etag = answer.Header.Get("Etag")
				seen[agent] = append(seen[agent], etag)
			}
		})
	}
	agents.Wait()
	close(stop)
	group.Wait()
	numbers := map[string][]int64{} // of the revisions of a tag: one content may come again
	revisions, _, err := m.a.Store.ListRevisions(t.Context(), store.RevisionFilter{SiteID: m.site}, store.ListOptions{Limit: store.All, Sort: "number"})
	if err != nil {
		t.Fatal(err)
	}
	for _, revision := range revisions {
		numbers[revision.ETag] = append(numbers[revision.ETag], revision.Number)
	}
	for agent, tags := range seen {
		last := int64(0)
		for n, tag := range tags {
			next := int64(0)
			for _, number := range numbers[tag] {
				if number >= last {
					next = number
					break
				}
			}
			if next == 0 {
				t.Fatalf("agent %d went back: answer %d is revision %v after %d", agent, n, numbers[tag], last)
			}
			last = next
		}
	}
	if len(revisions) < 10 {
		t.Errorf("only %d revisions: the test shows nothing", len(revisions))
	}
}

func TestRevokedKeyFailsAtBothManagers(t *testing.T) {
	m := startTwo(t)
	for n := range 6 {
		by, other := m.both()[n%2], m.both()[(n+1)%2]
		key, row, err := auth.CreateKey(t.Context(), by.Store, auth.NewKey{Name: "viewer", Role: auth.RoleViewer})
		if err != nil {
			t.Fatal(err)
		}
		header := http.Header{"X-Api-Key": {key}}
		if answer := other.Do(t, "GET", "/api/v1/sites", nil, header); answer.Status != 200 {
			t.Errorf("a new key: %d", answer.Status)
		}
		if answer := by.Call(t, "DELETE", fmt.Sprintf("/api-keys/%d", row.ID), nil); answer.Status/100 != 2 {
			t.Fatalf("revoke: %d %s", answer.Status, answer.Body)
		}
		if answer := other.Do(t, "GET", "/api/v1/sites", nil, header); answer.Status != 401 {
			t.Errorf("a revoked key: %d", answer.Status)
		}
	}
}

// TestParallelRequestsAtBothManagers: first check-ins, ports and names that are
// wanted at the same moment.
func TestParallelRequestsAtBothManagers(t *testing.T) {
	m := startTwo(t)
	var group sync.WaitGroup
	var created, refused atomic.Int64
	for n := range 50 {
		s := m.both()[n%2]
		group.Go(func() {
			if answer := m.checkIn(t, s, fmt.Sprintf("agent%d", n%5), "fine", ""); answer.Status != 200 {
				t.Errorf("check-in: %d %s", answer.Status, answer.Body)
			}
		})
		group.Go(func() {
			answer := s.Call(t, "POST", fmt.Sprintf("/containers/%d/services", m.container), object{"type": "transport", "internalPort": 22, "protocol": "tcp"})
			if answer.Status != 201 {
				t.Errorf("service: %d %s", answer.Status, answer.Body)
			}
		})
		group.Go(func() {
			switch answer := s.Call(t, "POST", "/external-domains", object{"name": fmt.Sprintf("example%d.com", n%5)}); answer.Status {
			case 201:
				created.Add(1)
			case 409:
				refused.Add(1)
			default:
				t.Errorf("domain: %d %s", answer.Status, answer.Body)
			}
		})
	}
	group.Wait()
	if created.Load() != 5 || refused.Load() != 45 {
		t.Errorf("of 5 domains %d were made, %d refused", created.Load(), refused.Load())
	}
	for _, s := range m.both() {
		if agents := servertest.Data[[]object](t, s.Call(t, "GET", "/agents", nil)); len(agents) != 5 {
			t.Errorf("%d agents", len(agents))
		}
		ports := map[float64]bool{}
		for _, service := range servertest.Data[[]object](t, s.Call(t, "GET", fmt.Sprintf("/containers/%d/services?limit=500", m.container), nil)) {
			ports[service["externalPort"].(float64)] = true
		}
		if len(ports) != 50 {
			t.Errorf("50 services have %d ports", len(ports))
		}
	}
}

// TestEveryCheckInCountsAtBothManagers lets 60 agents check in at once while
// somebody edits: none is refused, none waits long, and all were seen.
func TestEveryCheckInCountsAtBothManagers(t *testing.T) {
	m := startTwo(t)
	began := time.Now().Add(-time.Second)
	var group sync.WaitGroup
	for n := range 60 {
		group.Go(func() {
			etag := ""
			for round := range 4 {
				sent := time.Now()
				answer := m.checkIn(t, m.both()[(n+round)%2], fmt.Sprintf("agent%d", n), fmt.Sprint(round/2), etag)
				if answer.Status != 200 && answer.Status != 304 {
					t.Errorf("%d %s", answer.Status, answer.Body)
				}
				if took := time.Since(sent); took > 8*time.Second { // what the manager waits for its database
					t.Errorf("an answer took %s", took)
				}
				etag = answer.Header.Get("Etag")
			}
		})
	}
	for n := range 20 {
		m.rename(t, m.both()[n%2], fmt.Sprintf("web%d", n))
	}
	group.Wait()
	m.a.Stop(t)
	m.b.Stop(t)
	agents, total, err := storetest.OpenAt(t, m.a.Database).ListAgents(t.Context(), store.AgentFilter{}, store.ListOptions{Limit: store.All})
	if err != nil || total != 60 {
		t.Fatalf("%d agents, %v", total, err)
	}
	for _, agent := range agents {
		if agent.LastSeenAt.Before(began) || agent.Report.Services["nginx"].Message != "1" {
			t.Errorf("%s: last seen %s with %q", agent.Hostname, agent.LastSeenAt, agent.Report.Services["nginx"].Message)
		}
	}
}

// TestPostgreSQLRestartsUnderLoad ends the database amid check-ins. Whoever is up to
// date and has nothing to tell hears so all the while, the others are told to
// come again, and what was answered is in the database.
func TestPostgreSQLRestartsUnderLoad(t *testing.T) {
	database := storetest.NewPostgreSQLServer(t)
	a := servertest.Start(t, servertest.Options{Database: database.Database(t)})
	m := managers{a: a, b: servertest.Start(t, servertest.Options{Database: a.Database})}
	m.site = a.Create(t, "/sites", object{"name": "lab"})
	m.key = a.Key(t, auth.NewKey{Name: "agent", Role: auth.RoleAgent, SiteID: m.site})

	const agents = 8
	var away atomic.Bool
	var statuses [2]sync.Map // while the database is there and while it is away
	var answered [agents]int // the last news that were answered
	stop := make(chan struct{})
	var group sync.WaitGroup
	for agent := range agents {
		name := fmt.Sprintf("agent%d", agent)
		etag := m.checkIn(t, m.a, name, "0", "").Header.Get("Etag")
		m.checkIn(t, m.b, name, "0", etag)
		group.Go(func() {
			for n := 1; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				message := 0
				if agent%2 == 1 { // every other one has news all the time
					message = n
				}
				wasAway := away.Load()
				answer := m.checkIn(t, m.both()[n%2], name, fmt.Sprint(message), etag)
				if wasAway == away.Load() {
					count(&statuses[index(wasAway)], fmt.Sprint(agent%2, " ", answer.Status))
				}
				switch answer.Status {
				case 200, 304:
					answered[agent] = message
				case 503:
					if answer.Header.Get("Retry-After") == "" {
						t.Error("503 without Retry-After")
					}
				default:
					t.Errorf("%s: %d %s", name, answer.Status, answer.Body)
				}
			}
		})
	}
	wait := func(where int, what string) {
		t.Helper()
		for end := time.Now().Add(30 * time.Second); total(&statuses[where], what) < 5; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("no answer %q", what)
			}
		}
	}
	for range 2 {
		wait(0, "0 304")
		wait(0, "1 304")
		away.Store(true)
		database.Stop()
		statuses[1].Clear()
		wait(1, "0 304")
		wait(1, "1 503")
		if err := database.Start(); err != nil {
			t.Fatal(err)
		}
		away.Store(false)
		statuses[0].Clear()
	}
	wait(0, "0 304")
	wait(0, "1 304")
	close(stop)
	group.Wait()
	for _, s := range m.both() { // writing works again, too
		s.Create(t, "/sites", object{"name": s.URL[len("http://127.0.0.1:"):]})
	}
	m.a.Stop(t)
	m.b.Stop(t)
	s := storetest.OpenAt(t, a.Database)
	for agent := range agents {
		row, err := s.FindAgent(t.Context(), m.site, fmt.Sprintf("agent%d", agent))
		if err != nil {
			t.Fatal(err)
		}
		var stored int
		if err := json.Unmarshal([]byte(row.Report.Services["nginx"].Message), &stored); err != nil || stored < answered[agent] {
			t.Errorf("agent %d: %d is stored, %d was answered (%v)", agent, stored, answered[agent], err)
		}
	}
	if strings.Contains(a.Log.String(), "not-shown") {
		t.Error("the password is in the log")
	}
}

func index(away bool) int {
	if away {
		return 1
	}
	return 0
}

func count(all *sync.Map, what string) {
	counter, _ := all.LoadOrStore(what, new(atomic.Int64))
	counter.(*atomic.Int64).Add(1)
}

func total(all *sync.Map, what string) int64 {
	counter, found := all.Load(what)
	if !found {
		return 0
	}
	return counter.(*atomic.Int64).Load()
}

func TestLivePagesOfOneHearOfTheOther(t *testing.T) {
	m := startTwo(t)
	live := openLive(t, http.DefaultClient, m.b.URL, withKey(m.b.AdminKey))
	live.expect("reset {}")
	for round := range 3 {
		m.rename(t, m.a, fmt.Sprintf("web%d", round))
		live.expect(fmt.Sprintf(`site {"id":%d,"etag":"%s"}`, m.site, siteETag(t, m.a, m.site)))
	}
	m.checkIn(t, m.a, "agent", "fine", "")
	live.expect(fmt.Sprintf(`agent {"id":1,"siteId":%d}`, m.site))
}
