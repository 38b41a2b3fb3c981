package metrics_test

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/metrics"
	"opensource.internal/manager/internal/store"
	"opensource.internal/manager/internal/store/storetest"
)

// clock is the time that the metrics go by.
var clock = time.Date(2026, 2, 16, 12, 0, 0, 0, time.UTC)

type world struct {
	store   *store.Store
	metrics *metrics.Metrics
	log     *strings.Builder
	now     time.Time
}

func newWorld(t testing.TB, detail int) *world {
	w := &world{store: storetest.Open(t), log: &strings.Builder{}, now: clock}
	w.metrics = metrics.New(metrics.Options{
		Store: w.store, Log: slog.New(slog.NewTextHandler(w.log, nil)), Version: "1.2.3", Detail: detail,
		Now: func() time.Time { return w.now },
	})
	return w
}

func (w *world) site(t testing.TB, name string) int64 {
	t.Helper()
	site, err := w.store.CreateSite(t.Context(), inventory.Site{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	return site.ID
}

func (w *world) checkIn(t testing.TB, site int64, hostname string, ago time.Duration, report checkin.Request) int64 {
	t.Helper()
	agent, err := w.store.RecordCheckIn(t.Context(), store.CheckIn{SiteID: site, Hostname: hostname, At: w.now.Add(-ago), Report: report})
	if err != nil {
		t.Fatal(err)
	}
	return agent.ID
}

// scrape returns the text of a scrape and its series of the manager by name
// and labels.
func (w *world) scrape(t testing.TB) (string, map[string]string) {
	t.Helper()
	answer := httptest.NewRecorder()
	w.metrics.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if answer.Code != http.StatusOK {
		t.Fatalf("scrape: %d %s", answer.Code, answer.Body)
	}
	series := map[string]string{}
	for line := range strings.Lines(answer.Body.String()) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok && strings.HasPrefix(line, "opensource_manager_") {
			// A label may hold a blank: the value is after the last one.
			last := strings.LastIndex(name+" "+value, " ")
			series[strings.TrimPrefix((name + " " + value)[:last], "opensource_manager_")] = (name + " " + value)[last+1:]
		}
	}
	return answer.Body.String(), series
}

// want compares the series whose name begins with a prefix.
func want(t *testing.T, series map[string]string, prefix string, want map[string]string) {
	t.Helper()
	got := map[string]string{}
	for name, value := range series {
		if strings.HasPrefix(name, prefix+"{") || name == prefix {
			got[name] = value
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", prefix, diff)
	}
}

func service(outcome checkin.Outcome, more func(*checkin.ServiceReport)) checkin.Request {
	s := checkin.ServiceReport{State: "active", Outcome: outcome}
	if more != nil {
		more(&s)
	}
	return checkin.Request{Services: map[string]checkin.ServiceReport{"nginx": s}}
}

func TestAgentsByStateAndProblem(t *testing.T) {
	w := newWorld(t, 100)
	lab, home := w.site(t, "lab"), w.site(t, `my "home"`)
	w.checkIn(t, lab, "fine", 10*time.Second, service(checkin.OutcomeApplied, nil))
	w.checkIn(t, lab, "late", 2*time.Minute, service(checkin.OutcomeRejected, func(s *checkin.ServiceReport) {
		s.Quarantined = []checkin.QuarantinedItem{{Name: "app"}}
	}))
	w.checkIn(t, home, "gone", time.Hour, service("", func(s *checkin.ServiceReport) { s.LastApply = checkin.ApplyFailure }))

	_, series := w.scrape(t)
	want(t, series, "agents", map[string]string{`agents{state="online"}`: "1", `agents{state="late"}`: "1", `agents{state="offline"}`: "1"})
	want(t, series, "agents_with_problem", map[string]string{
		`agents_with_problem{problem="apply_failed"}`: "2", `agents_with_problem{problem="quarantined"}`: "1",
		`agents_with_problem{problem="certificate"}`: "0", `agents_with_problem{problem="drift"}`: "0",
		`agents_with_problem{problem="guard_held"}`: "0", `agents_with_problem{problem="held"}`: "0",
		`agents_with_problem{problem="unreadable_report"}`: "0",
	})
	want(t, series, "site_oldest_checkin_age_seconds", map[string]string{
		`site_oldest_checkin_age_seconds{site="lab",site_id="1"}`:         "120",
		`site_oldest_checkin_age_seconds{site="my \"home\"",site_id="2"}`: "3600",
	})
	want(t, series, "agent_last_checkin_age_seconds", map[string]string{
		`agent_last_checkin_age_seconds{hostname="fine",site="lab",site_id="1"}`:         "10",
		`agent_last_checkin_age_seconds{hostname="late",site="lab",site_id="1"}`:         "120",
		`agent_last_checkin_age_seconds{hostname="gone",site="my \"home\"",site_id="2"}`: "3600",
	})
	want(t, series, "agents_last_checkin_age_seconds_bucket", map[string]string{
		`agents_last_checkin_age_seconds_bucket{le="30"}`: "1", `agents_last_checkin_age_seconds_bucket{le="60"}`: "1",
		`agents_last_checkin_age_seconds_bucket{le="90"}`: "1", `agents_last_checkin_age_seconds_bucket{le="300"}`: "2",
		`agents_last_checkin_age_seconds_bucket{le="900"}`: "2", `agents_last_checkin_age_seconds_bucket{le="3600"}`: "3",
		`agents_last_checkin_age_seconds_bucket{le="86400"}`: "3", `agents_last_checkin_age_seconds_bucket{le="+Inf"}`: "3",
	})
}

func TestEveryProblemIsSeen(t *testing.T) {
	for problem, report := range map[string]checkin.Request{
		"apply_failed": service(checkin.OutcomeStuck, nil),
		"certificate":  {Certificates: map[string]checkin.Certificate{"example.com": {State: checkin.CertificateMissing}}},
		"drift":        service(checkin.OutcomeApplied, func(s *checkin.ServiceReport) { s.Drift = []checkin.Drift{{Path: "/x"}} }),
		"guard_held":   {Guard: &checkin.Guard{Removed: 9, Total: 10}},
		"held":         service(checkin.OutcomeHeld, func(s *checkin.ServiceReport) { s.Hold = &checkin.Hold{Reason: "x"} }),
		"quarantined":  service(checkin.OutcomeApplied, func(s *checkin.ServiceReport) { s.Quarantined = []checkin.QuarantinedItem{{Name: "x"}} }),
	} {
		w := newWorld(t, 100)
		w.checkIn(t, w.site(t, "lab"), "agent", 0, report)
		_, series := w.scrape(t)
		for name, value := range series {
			if strings.HasPrefix(name, "agents_with_problem{") && (value == "1") != strings.Contains(name, `"`+problem+`"`) {
				t.Errorf("%s: %s is %s", problem, name, value)
			}
		}
		want(t, series, "site_agents_with_problem", map[string]string{
			fmt.Sprintf(`site_agents_with_problem{problem=%q,site="lab",site_id="1"}`, problem): "1",
		})
	}
}

// What was read before is read again once it has changed, and forgotten when
// the agent is gone.
func TestScrapesFollowTheAgents(t *testing.T) {
	w := newWorld(t, 100)
	site := w.site(t, "lab")
	id := w.checkIn(t, site, "agent", 0, service(checkin.OutcomeRejected, nil))
	w.scrape(t)
	step := func(what, name, value string) {
		t.Helper()
		w.now = w.now.Add(10 * time.Second)
		if _, series := w.scrape(t); series[name] != value {
			t.Errorf("%s: %s is %q, not %q", what, name, series[name], value)
		}
	}
	step("nothing new", `agents_with_problem{problem="apply_failed"}`, "1")
	w.now = w.now.Add(time.Second)
	w.checkIn(t, site, "agent", 0, service(checkin.OutcomeApplied, nil))
	step("applied", `agents_with_problem{problem="apply_failed"}`, "0")
	step("heard 20 s ago", `site_oldest_checkin_age_seconds{site="lab",site_id="1"}`, "20")
	w.store.Beat(store.Heartbeat{AgentID: id, Told: 1, At: w.now, Report: &checkin.Request{}})
	step("a heartbeat of an older report", `site_oldest_checkin_age_seconds{site="lab",site_id="1"}`, "30")
	w.store.Beat(store.Heartbeat{AgentID: id, Told: 2, At: w.now, Report: &checkin.Request{}})
	step("a heartbeat in memory", `site_oldest_checkin_age_seconds{site="lab",site_id="1"}`, "10")
	if err := w.store.DeleteAgent(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	step("forgotten", `agents{state="online"}`, "0")
	step("no age without an agent", `site_oldest_checkin_age_seconds{site="lab",site_id="1"}`, "")
}

func TestSeriesAreBounded(t *testing.T) {
	w := newWorld(t, 2)
	for i := range 3 {
		w.checkIn(t, w.site(t, fmt.Sprint("site", i)), "agent", 0, service(checkin.OutcomeRejected, nil))
	}
	_, series := w.scrape(t)
	for name := range series {
		if strings.HasPrefix(name, "site_") || strings.HasPrefix(name, "agent_") {
			t.Errorf("%s is one series too many", name)
		}
	}
	want(t, series, "detail_omitted", map[string]string{`detail_omitted{of="sites"}`: "3", `detail_omitted{of="agents"}`: "3"})
	if series[`agents{state="online"}`] != "3" || series[`agents_with_problem{problem="apply_failed"}`] != "3" {
		t.Error("the totals are not all there")
	}
}

func TestRequestsAreCountedByPatternOnly(t *testing.T) {
	w := newWorld(t, 10)
	w.metrics.Answered(metrics.Answer{Method: "POST", Route: "/api/v1/agents", Status: 304, Took: time.Millisecond, CheckIn: true})
	w.metrics.Answered(metrics.Answer{Method: "POST", Route: "/api/v1/agents", Status: 304, Took: time.Millisecond, CheckIn: true})
	w.metrics.Answered(metrics.Answer{Method: "POST", Route: "/api/v1/agents", Status: 422, CheckIn: true})
	w.metrics.Answered(metrics.Answer{Method: "POST", Route: "/api/v1/agents", Status: 503, CheckIn: true})
	w.metrics.Answered(metrics.Answer{Method: "GET", Route: "", Status: 404})
	w.metrics.Answered(metrics.Answer{Method: "GET", Route: "/api/v1/live", Status: 200, Took: time.Hour, Stream: true})
	for i := range 100 {
		w.metrics.Answered(metrics.Answer{Method: fmt.Sprint("VERB", i), Status: 405})
	}
	w.metrics.Built(time.Second, errors.New("full"))
	_, series := w.scrape(t)
	want(t, series, "checkins_total", map[string]string{
		`checkins_total{answer="200"}`: "0", `checkins_total{answer="304"}`: "2", `checkins_total{answer="4xx"}`: "1", `checkins_total{answer="5xx"}`: "1",
	})
	want(t, series, "http_requests_total", map[string]string{
		`http_requests_total{method="POST",route="/api/v1/agents",status="304"}`: "2",
		`http_requests_total{method="POST",route="/api/v1/agents",status="422"}`: "1",
		`http_requests_total{method="POST",route="/api/v1/agents",status="503"}`: "1",
		`http_requests_total{method="GET",route="none",status="404"}`:            "1",
		`http_requests_total{method="GET",route="/api/v1/live",status="200"}`:    "1",
		`http_requests_total{method="other",route="none",status="405"}`:          "100",
	})
	if got := series[`http_request_duration_seconds_sum{method="GET",route="/api/v1/live",status="200"}`]; got != "0" {
		t.Errorf("a live stream counts as a request of %s s", got)
	}
	if got := series[`snapshot_build_duration_seconds_count{result="failed"}`]; got != "1" {
		t.Errorf("failed builds: %s", got)
	}
}

func TestNamesAreAsPrometheusWantsThem(t *testing.T) {
	w := newWorld(t, 10)
	w.checkIn(t, w.site(t, "lab"), "agent", 0, service(checkin.OutcomeRejected, nil))
	w.metrics.Answered(metrics.Answer{Method: "GET", Route: "/", Status: 200})
	text, series := w.scrape(t)
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range problems {
		t.Errorf("%s: %s", problem.Metric, problem.Text)
	}
	if len(series) < 40 {
		t.Errorf("only %d series: %v", len(series), slices.Sorted(maps.Keys(series)))
	}
	for _, name := range []string{
		"ready", "database_schema_version", "database_size_bytes", "heartbeats_pending",
		`database_connections{pool="write",state="idle"}`, `database_connections_max{pool="read"}`,
	} {
		if series[name] == "" {
			t.Errorf("%s is missing", name)
		}
	}
	if !regexp.MustCompile(`build_info{goversion="go[^"]+",version="1.2.3"} 1`).MatchString(text) || !strings.Contains(text, "\ngo_goroutines ") {
		t.Error("version or Go's own metrics are missing")
	}
}

// Without its database the manager still tells of itself.
func TestScrapeWithoutDatabase(t *testing.T) {
	w := newWorld(t, 10)
	w.checkIn(t, w.site(t, "lab"), "agent", 0, checkin.Request{})
	if err := w.store.Close(); err != nil {
		t.Fatal(err)
	}
	_, series := w.scrape(t)
	if series["ready"] != "0" || series[`checkins_total{answer="304"}`] != "0" {
		t.Errorf("%v", series)
	}
	if _, found := series[`agents{state="online"}`]; found {
		t.Error("agents are counted without a database")
	}
	if !strings.Contains(w.log.String(), "some metrics could not be read") {
		t.Errorf("log: %q", w.log)
	}
}

// BenchmarkScrape is a scrape of 20,000 agents in as many sites, of which none
// has said anything new since the last one.
func BenchmarkScrape(b *testing.B) {
	w := newWorld(b, 500)
	for i := range 20_000 {
		w.checkIn(b, w.site(b, fmt.Sprint("site", i)), "agent", 0, service(checkin.OutcomeApplied, nil))
	}
	w.scrape(b)
	b.ReportAllocs()
	for b.Loop() {
		w.now = w.now.Add(15 * time.Second)
		w.scrape(b)
	}
}
