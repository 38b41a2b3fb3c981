package dashboard_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"opensource.internal/agent/checkin"
	records "opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/store"
	"opensource.internal/manager/servertest"
)

// fleet adds n agents in sites of a hundred each, straight to the store.
func fleet(t testing.TB, s *servertest.Server, n int) {
	t.Helper()
	now, skew := time.Now().UTC(), int64(12)
	well := checkin.ServiceReport{State: "active", LastApply: checkin.ApplySuccess, Outcome: checkin.OutcomeApplied, AppliedAt: &now}
	var site int64
	for i := range n {
		if i%100 == 0 {
			row, err := s.Store.CreateSite(t.Context(), records.Site{Name: fmt.Sprintf("fleet %03d", i/100)})
			if err != nil {
				t.Fatal(err)
			}
			site = row.ID
		}
		services := map[string]checkin.ServiceReport{"nginx": well, "dnsmasq": well}
		if i%500 == 7 {
			services["nginx"] = checkin.ServiceReport{State: "active", LastApply: checkin.ApplyFailure, Outcome: checkin.OutcomeRejected, Message: "nginx: [emerg] unknown directive"}
		}
		_, err := s.Store.RecordCheckIn(t.Context(), store.CheckIn{
			SiteID: site, Hostname: fmt.Sprintf("agent-%04d", i), At: now, PeerAddress: "203.0.113.9", ClockSkewMS: &skew,
			Report: checkin.Request{
				SiteID: site, Hostname: fmt.Sprintf("agent-%04d", i), CurrentTime: now.Unix(), Services: services,
				IPv4Address: checkin.Text(fmt.Sprintf("192.0.2.%d", i%250+1)), Agent: &checkin.AgentInfo{Version: "2026.12.0"},
			},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

var hostLink = regexp.MustCompile(`<a href="[^"]*/agents/\d+" title="([^"]*)"`)

// listed are the hosts of a page, in its order.
func listed(t *testing.T, s *servertest.Server, path, cookie string) []string {
	t.Helper()
	page := get(t, s, path, cookie)
	if page.Status != 200 {
		t.Fatalf("%s: %d %s", path, page.Status, page.Body)
	}
	var hosts []string
	for _, found := range hostLink.FindAllStringSubmatch(string(page.Body), -1) {
		hosts = append(hosts, html.UnescapeString(found[1]))
	}
	return hosts
}

// TestAnAgentThatTookNothingOverIsBehind, as one is whose first configuration is
// refused. One that tells of no tags may run anything.
func TestAnAgentThatTookNothingOverIsBehind(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	cookie, site := signIn(t, s), s.Create(t, "/sites", object{"name": "lab"})
	get(t, s, fmt.Sprintf("/sites/%d/revisions", site), cookie) // makes revision 1
	tell := func(host, received string) {
		checkIn(t, s, checkin.Request{SiteID: site, Hostname: host, CurrentTime: time.Now().Unix(), Services: map[string]checkin.ServiceReport{
			"nginx": {State: "active", LastApply: checkin.ApplyFailure, Outcome: checkin.OutcomeRejected, ReceivedETag: received},
		}})
	}
	tell("refuses", strings.Repeat("a", 64))
	tell("silent", "")
	wantOn(t, string(get(t, s, "/agents", cookie).Body), []string{"1 behind", "none in force as a whole, not 1", "not reported"}, nil)
	if hosts := listed(t, s, "/agents?state=behind", cookie); !slices.Equal(hosts, []string{"refuses"}) {
		t.Errorf("behind are %q", hosts)
	}
}

func TestTheListIsFilteredSortedAndPaged(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	fleet(t, s, 120)
	checkInHealthy(t, s, s.Create(t, "/sites", object{"name": "<b>odd</b>"}), "zebra")
	cookie := signIn(t, s)
	for path, want := range map[string]struct {
		n           int
		first, last string
	}{
		"/agents":                             {50, "agent-0007", "agent-0048"},
		"/agents?page=3":                      {21, "agent-0099", "agent-0119"},
		"/agents?sort=host":                   {50, "agent-0000", "agent-0049"},
		"/agents?sort=-host":                  {50, "zebra", "agent-0071"},
		"/agents?state=failing":               {1, "agent-0007", "agent-0007"},
		"/agents?state=online&sort=-host":     {50, "zebra", "agent-0071"},
		"/agents?q=ZEB":                       {1, "zebra", "zebra"},
		"/agents?q=" + url.QueryEscape("<b>"): {1, "zebra", "zebra"},
		"/agents?q=192.0.2.120":               {1, "agent-0119", "agent-0119"},
		"/agents?site=2":                      {20, "agent-0100", "agent-0119"},
		"/agents?group=site&page=3":           {21, "agent-0099", "agent-0119"},
		"/agents?q=%00%ff":                    {50, "agent-0007", "agent-0048"},
	} {
		hosts := listed(t, s, path, cookie)
		if len(hosts) != want.n || hosts[0] != want.first || hosts[len(hosts)-1] != want.last {
			t.Errorf("%s: %d, %q", path, len(hosts), hosts)
		}
	}
	shows(t, get(t, s, "/agents", cookie), 200, "121 in all", "1 failing", "0 offline", "1–50 of 121", `aria-sort="ascending"`, `href="/agents?page=2"`, `href="/agents?sort=host"`)
	shows(t, get(t, s, "/agents?group=site&page=3", cookie), 200, `scope="rowgroup"`, "101–121 of 121")
	shows(t, get(t, s, "/agents?q=nowhere&state=late", cookie), 200, "No agent is late, with “nowhere”", "0 in all")
	shows(t, get(t, s, "/agents?page=9", cookie), 200, "There is no page 9", "Go to the first page")
	shows(t, get(t, s, "/agents?sort=report", cookie), 400, "cannot sort by")
	shows(t, get(t, s, "/agents?state=asleep", cookie), 400, "is not a state of agents")
	shows(t, get(t, s, "/agents?site=99", cookie), 404)
	if page := string(get(t, s, "/agents?q="+url.QueryEscape(`"><b>`), cookie).Body); strings.Contains(page, "<b>") {
		t.Error("what is searched for becomes markup")
	}
}

// TestARowFollowsACheckIn of a real agent's client, without a reload.
func TestARowFollowsACheckIn(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	lab := s.Create(t, "/sites", object{"name": "lab"})
	checkInHealthy(t, s, lab, "gate")
	b := browse(t, s, signInViewer(t, s))
	b.open(t, "/agents")
	b.until(t, `document.getElementById("live").textContent === "Live"`)
	b.reads(t, "0 failing")
	eval[bool](t, b, `(window.same = document.getElementById("agent-1"), true)`)
	checkIn(t, s, checkin.Request{SiteID: lab, Hostname: "gate", CurrentTime: time.Now().Unix(), Services: map[string]checkin.ServiceReport{
		"nginx": {State: "active", LastApply: checkin.ApplyFailure, Outcome: checkin.OutcomeRolledBack, Message: "bad"},
	}})
	b.reads(t, "rolled back")
	b.reads(t, "1 failing")
	if !eval[bool](t, b, `same.isConnected && same.classList.contains("bad")`) {
		t.Error("the row is another one, or looks as before")
	}
	if buttons := eval[int](t, b, `document.querySelectorAll("main a[href$=removals], main a[href$=new]").length`); buttons != 0 {
		t.Errorf("a viewer has %d buttons", buttons)
	}
}

// TestFiveThousandAgents: a page stays small, and is used by the keyboard alone.
func TestFiveThousandAgents(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	fleet(t, s, 5000)
	long := strings.Repeat("a23456789.", 25) + "end"
	checkInHealthy(t, s, s.Create(t, "/sites", object{"name": "long"}), long) // a site remembers a hundred
	cookie := signIn(t, s)

	header := http.Header{"Cookie": {cookie}, "Accept-Encoding": {"gzip"}}
	page := s.Do(t, "GET", "/agents", nil, header)
	if n := len(page.Body); n > 100_000 || page.Header.Get("Content-Encoding") != "gzip" {
		t.Errorf("%d bytes, %q", n, page.Header.Get("Content-Encoding"))
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(page.Body))
	if err != nil {
		t.Fatal(err)
	}
	weight := len(page.Body)
	var whole bytes.Buffer
	if _, err := whole.ReadFrom(unpacked); err != nil {
		t.Fatal(err)
	}
	for _, link := range regexp.MustCompile(`(?:href|src)="(/assets/[^"#]*)"`).FindAllStringSubmatch(whole.String(), -1) {
		weight += len(s.Do(t, "GET", link[1], nil, header).Body)
	}
	t.Logf("%d bytes of page, %d with its files, compressed", len(page.Body), weight)
	if weight > 100_000 {
		t.Errorf("the first page weighs %d bytes", weight)
	}

	b := browse(t, s, cookie)
	b.open(t, "/agents")
	b.reads(t, "5001 in all")
	b.reads(t, "1–50 of 5001")
	b.do(t, input.DispatchKeyEvent(input.KeyDown).WithKey("/").WithText("/")) // chromedp.KeyEvent types it even if it is prevented
	b.until(t, `document.activeElement === document.getElementById("q") && document.activeElement.value === ""`)
	b.do(t, chromedp.KeyEvent("agent-4321"+kb.Enter))
	b.until(t, `location.search.includes("agent-4321") && document.readyState === "complete"`)
	b.reads(t, "1 in all")
	for range 60 {
		if eval[bool](t, b, `document.activeElement.textContent === "agent-4321"`) {
			break
		}
		b.do(t, chromedp.KeyEvent(kb.Tab))
	}
	b.do(t, chromedp.KeyEvent(kb.Enter))
	b.until(t, `/^\/agents\/\d+$/.test(location.pathname) && document.readyState === "complete"`)
	b.open(t, "/agents?q=end")
	b.reads(t, "a23456789.")
	looked(t, b, "agents-long")
	b.open(t, "/agents?group=site")
	looked(t, b, "agents-grouped")
	b.open(t, "/agents")
	looked(t, b, "agents-5000")
}

// TestTheFleetByKeyboard goes through 5,000 agents without a mouse: by state, sorted,
// by site, page by page, to one of them and back; and sees one row follow.
func TestTheFleetByKeyboard(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	fleet(t, s, 5000)
	b := browse(t, s, signIn(t, s))
	b.open(t, "/agents")
	// follow goes to a link or button by the tab key, and presses it.
	follow := func(text string) {
		t.Helper()
		quoted, _ := json.Marshal(text)
		for range 300 { // each row has two
			if eval[bool](t, b, fmt.Sprintf("document.activeElement?.textContent.trim() === %s", quoted)) {
				eval[bool](t, b, `window.isOld = true`)
				b.do(t, chromedp.KeyEvent(kb.Enter))
				b.until(t, `!window.isOld && document.readyState === "complete"`)
				return
			}
			b.do(t, chromedp.KeyEvent(kb.Tab))
		}
		t.Fatalf("%q is not reached by the tab key", text)
	}
	first := func(host string) {
		t.Helper()
		if got := eval[string](t, b, `document.querySelector("tr[id^=agent-] a").textContent`); got != host {
			t.Errorf("the first row is %s, not %s", got, host)
		}
	}
	where := func(want string) {
		t.Helper()
		if got := eval[string](t, b, "location.pathname + location.search"); got != want {
			t.Fatalf("on %s, not %s", got, want)
		}
	}

	follow("10 failing")
	where("/agents?state=failing")
	b.reads(t, "5000 in all")
	if n := eval[int](t, b, `document.querySelectorAll("tr[id^=agent-]").length`); n != 10 {
		t.Errorf("%d rows", n)
	}
	if got := eval[string](t, b, `document.querySelector(".counts [aria-current=true]").textContent`); got != "10 failing" {
		t.Errorf("%q is marked as chosen", got)
	}
	follow("Agent")
	first("agent-0007")
	follow("Agent")
	first("agent-4507")
	if got := eval[string](t, b, `document.querySelector("[aria-sort=descending]").textContent`); got != "Agent" {
		t.Errorf("sorted by %q", got)
	}
	sorted := eval[string](t, b, "location.pathname + location.search")
	follow("agent-4507")
	b.reads(t, "unknown directive")
	eval[bool](t, b, `(history.back(), true)`)
	b.until(t, `location.pathname === "/agents" && document.readyState === "complete"`) // may be the page of before
	where(sorted)
	first("agent-4507")

	follow("Show all")
	follow("Group by site")
	b.reads(t, "1–50 of 5000")
	follow("Next")
	b.reads(t, "51–100 of 5000")
	if n := eval[int](t, b, `document.querySelectorAll("th[scope=rowgroup]").length`); n != 1 {
		t.Errorf("%d sites on a page of one", n)
	}
	follow("Not by site")
	for range 100 {
		if eval[bool](t, b, `document.activeElement.id === "site"`) {
			break
		}
		b.do(t, chromedp.KeyEvent(kb.Tab))
	}
	b.do(t, chromedp.KeyEvent(strings.Repeat(kb.ArrowDown, 43))) // "All sites" is before the first
	follow("Search")
	b.reads(t, "1–50 of 100")
	if hosts := eval[string](t, b, `[...document.querySelectorAll("tr[id^=agent-] th a")].map((a) => a.textContent.slice(0, 8)).filter((h) => h !== "agent-42").join()`); hosts != "" {
		t.Errorf("of another site: %s", hosts)
	}
}

// TestOneRowOfManyFollows: the others stay what they are, and nothing is read out
// for it.
func TestOneRowOfManyFollows(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	fleet(t, s, 5000)
	b := browse(t, s, signIn(t, s))
	b.open(t, "/agents?sort=host")
	b.until(t, `document.getElementById("live").textContent === "Live"`)
	b.reads(t, "10 failing")
	eval[bool](t, b, `(() => {
		window.rows = [...document.querySelectorAll("tr[id^=agent-]")];
		window.classes = rows.map((r) => r.className);
		window.said = [];
		new MutationObserver((found) => { for (const m of found) said.push(m.target.textContent); }).observe(document.getElementById("live"), { childList: true, characterData: true, subtree: true });
		return true;
	})()`)
	if n := eval[int](t, b, `document.querySelectorAll("#content :is([aria-live], [role=status], [role=alert], [role=log], [role=timer])").length`); n != 0 {
		t.Errorf("%d places within what changes by itself are read out", n)
	}
	failing := func(host string) {
		t.Helper()
		checkIn(t, s, checkin.Request{SiteID: 1, Hostname: host, CurrentTime: time.Now().Unix(), Services: map[string]checkin.ServiceReport{
			"nginx": {State: "active", LastApply: checkin.ApplyFailure, Outcome: checkin.OutcomeRolledBack, Message: "bad"},
		}})
	}
	failing("agent-0003")
	b.reads(t, "11 failing")
	failing("agent-0004")
	b.reads(t, "12 failing")
	b.reads(t, "1–50 of 5000")
	if !eval[bool](t, b, `rows.length === 50 && rows.every((r) => r.isConnected)`) {
		t.Error("rows were replaced")
	}
	if changed := eval[string](t, b, `rows.filter((r, i) => r.className !== classes[i] && r.classList.contains("bad")).map((r) => r.querySelector("a").textContent).join()`); changed != "agent-0003,agent-0004" {
		t.Errorf("changed: %s", changed)
	}
	if said := eval[[]string](t, b, `said`); len(said) != 0 {
		t.Errorf("read out: %q", said)
	}
}

// BenchmarkAgentsPage is the time of a page of 5,000 agents (docs/performance.md).
func BenchmarkAgentsPage(b *testing.B) {
	s := servertest.Start(b, servertest.Options{})
	fleet(b, s, 5000)
	cookie := signIn(b, s)
	for _, path := range []string{"/agents", "/agents?state=failing", "/agents?q=agent-49", "/agents?page=100&sort=host", "/agents?group=site"} {
		b.Run(path, func(b *testing.B) {
			for b.Loop() {
				if page := s.Do(b, "GET", path, nil, http.Header{"Cookie": {cookie}, "Accept-Encoding": {"gzip"}}); page.Status != 200 {
					b.Fatal(page.Status)
				}
			}
		})
	}
}
