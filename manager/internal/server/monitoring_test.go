package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/auth"
	"opensource.internal/manager/internal/config"
	"opensource.internal/manager/servertest"
)

// monitoring is the folder of what we ship for Prometheus and Grafana.
const monitoring = "../../../contrib/monitoring/"

// busyManager has answered a bit of everything that is measured.
func busyManager(t *testing.T) *servertest.Server {
	t.Helper()
	s := servertest.Start(t, servertest.Options{Configure: func(c *config.Config) { c.MetricsDetail = 100 }})
	s.Create(t, "/notification-targets", object{"name": "ops", "url": "generic+http://127.0.0.1:1/hook"})
	site := s.Create(t, "/sites", object{"name": "lab"})
	told := report(site)
	told.Services["nginx"] = checkin.ServiceReport{State: "active", LastApply: checkin.ApplyFailure, Outcome: checkin.OutcomeRejected}
	agent := agentClient(s, "")
	for _, etag := range []string{"", `"x"`} {
		if _, err := agent.CheckIn(t.Context(), told, etag); err != nil {
			t.Fatal(err)
		}
	}
	node := s.Create(t, fmt.Sprintf("/sites/%d/nodes", site), object{"name": "pve1"})
	container := s.Create(t, fmt.Sprintf("/sites/%d/containers", site), object{"nodeId": node, "hostname": "web", "ipv4Address": "198.51.100.101"})
	volume := s.Create(t, fmt.Sprintf("/containers/%d/volumes", container), object{"name": "data", "mountPath": "/data", "mode": "rw"})
	told.Volumes = map[string]checkin.VolumeReport{fmt.Sprint(volume): {Message: "no room"}}
	if _, err := agent.CheckIn(t.Context(), told, ""); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestMetricsNeedAReader(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	site := s.Create(t, "/sites", object{"name": "lab"})
	for _, test := range []struct {
		key    string
		status int
	}{
		{"", 401},
		{"junk", 401},
		{s.Key(t, auth.NewKey{Name: "a", Role: auth.RoleAgent, SiteID: site}), 403},
		{s.Key(t, auth.NewKey{Name: "v", Role: auth.RoleViewer}), 200},
		{s.AdminKey, 200},
	} {
		header := http.Header{}
		if test.key != "" {
			header.Set("Authorization", "Bearer "+test.key)
		}
		answer := s.Do(t, "GET", "/metrics", nil, header)
		if answer.Status != test.status || (test.status == 200) != strings.Contains(string(answer.Body), "opensource_manager_ready 1") {
			t.Errorf("status %d, want %d: %.200s", answer.Status, test.status, answer.Body)
		}
	}
}

func TestMetricsOnTheirOwnAddress(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	free.Close()
	s := servertest.Start(t, servertest.Options{Configure: func(c *config.Config) { c.MetricsListen = address }})
	get := func(path string) int {
		t.Helper()
		answer, err := http.Get("http://" + address + path)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		return answer.StatusCode
	}
	if got := get("/metrics"); got != 200 {
		t.Errorf("metrics: %d", got)
	}
	if got := get("/api/v1/sites"); got != 404 {
		t.Errorf("the API is open there: %d", got)
	}
	s.Stop(t)
	if _, err := http.Get("http://" + address + "/metrics"); err == nil {
		t.Error("it is served after the stop")
	}
}

// No path, name or key of a client makes a series.
func TestRoutesAreMeasuredByTheirPattern(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	s.Create(t, "/sites", object{"name": "lab"})
	for _, path := range []string{"/sites/1", "/sites/777", "/nope-secretive", "/agents?hostname=secretive"} {
		s.Call(t, "GET", path, nil)
	}
	s.Call(t, "SECRETIVE", "/sites", nil)
	text := string(s.Do(t, "GET", "/metrics", nil, http.Header{"X-Api-Key": {s.AdminKey}}).Body)
	for _, wanted := range []string{
		`http_requests_total{method="GET",route="/api/v1/sites/:id",status="200"} 1`,
		`http_requests_total{method="GET",route="/api/v1/sites/:id",status="404"} 1`,
		`http_requests_total{method="GET",route="none",status="404"} 1`,
		`http_requests_total{method="other",route="none",status="405"} 1`,
	} {
		if !strings.Contains(text, wanted) {
			t.Errorf("%s is missing", wanted)
		}
	}
	if strings.Contains(strings.ToLower(text), "secretive") || strings.Contains(text, "/777") {
		t.Error("what a client made up is in a series")
	}
}

func promtool(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed (Debian package prometheus)")
	}
	return path
}

func TestAlertRulesAreRightAndAlert(t *testing.T) {
	tool := promtool(t)
	for _, args := range [][]string{{"check", "rules", "alerts.yml"}, {"test", "rules", "alerts_test.yml"}} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		command := exec.CommandContext(ctx, tool, args...)
		command.Dir = monitoring
		if out, err := command.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

var metricName = regexp.MustCompile(`\b(?:opensource_manager|process|go)_[a-z0-9_]+\b`)

// Every metric that the rules and the dashboard name is one of a real scrape,
// and every alert is tried.
func TestRulesAndDashboardNameRealMetrics(t *testing.T) {
	s := busyManager(t)
	text := string(s.Do(t, "GET", "/metrics", nil, http.Header{"X-Api-Key": {s.AdminKey}}).Body)
	known := map[string]bool{}
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "#") {
			known[metricName.FindString(line)] = true
		}
	}
	for _, file := range []string{"alerts.yml", "alerts_test.yml", "dashboard.json"} {
		content, err := os.ReadFile(monitoring + file)
		if err != nil {
			t.Fatal(err)
		}
		names := metricName.FindAllString(string(content), -1)
		if len(names) < 10 {
			t.Errorf("%s: only %d names of metrics", file, len(names))
		}
		for _, name := range names {
			if !known[name] {
				t.Errorf("%s: there is no metric %s", file, name)
			}
		}
	}
	rules, _ := os.ReadFile(monitoring + "alerts.yml")
	tests, _ := os.ReadFile(monitoring + "alerts_test.yml")
	for _, alert := range regexp.MustCompile(`alert: (\w+)`).FindAllStringSubmatch(string(rules), -1) {
		if !strings.Contains(string(tests), alert[1]) {
			t.Errorf("no test raises the alert %s", alert[1])
		}
	}
}

// TestDashboardIsImportable checks what Grafana needs to take the file without
// edits; Grafana itself is not asked.
func TestDashboardIsImportable(t *testing.T) {
	content, err := os.ReadFile(monitoring + "dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	type source struct{ Type, UID string }
	var board struct {
		ID            *int   `json:"id"`
		UID           string `json:"uid"`
		Title         string `json:"title"`
		SchemaVersion int    `json:"schemaVersion"`
		Templating    struct {
			List []struct{ Name, Type, Query any }
		}
		Panels []struct {
			ID         int
			Type       string
			Title      string
			Datasource source
			GridPos    struct{ X, Y, W, H int }
			Targets    []struct {
				RefID, Expr string
				Datasource  source
			}
		}
	}
	if err := json.Unmarshal(content, &board); err != nil {
		t.Fatal(err)
	}
	if board.ID != nil || board.UID != "" || board.Title == "" || board.SchemaVersion < 36 {
		t.Errorf("id %v, uid %q, title %q, schemaVersion %d", board.ID, board.UID, board.Title, board.SchemaVersion)
	}
	if list := board.Templating.List; len(list) == 0 || list[0].Name != "datasource" || list[0].Type != "datasource" || list[0].Query != "prometheus" {
		t.Errorf("the first variable does not choose the data source: %+v", list)
	}
	ids, taken := map[int]bool{}, map[[2]int]string{}
	for _, panel := range board.Panels {
		if ids[panel.ID] || panel.ID == 0 {
			t.Errorf("panel %q: id %d is taken or missing", panel.Title, panel.ID)
		}
		ids[panel.ID] = true
		place := panel.GridPos
		if place.X+place.W > 24 || place.W == 0 || place.H == 0 {
			t.Errorf("panel %q lies outside: %+v", panel.Title, place)
		}
		for x := place.X; x < place.X+place.W; x++ {
			for y := place.Y; y < place.Y+place.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" {
					t.Fatalf("panel %q covers %q", panel.Title, other)
				}
				taken[[2]int{x, y}] = panel.Title
			}
		}
		if panel.Type == "row" {
			continue
		}
		if panel.Datasource.UID != "${datasource}" || len(panel.Targets) == 0 {
			t.Errorf("panel %q: data source %q, %d queries", panel.Title, panel.Datasource.UID, len(panel.Targets))
		}
		for _, target := range panel.Targets {
			if target.Datasource.UID != "${datasource}" || target.RefID == "" {
				t.Errorf("panel %q: query %q of data source %q", panel.Title, target.RefID, target.Datasource.UID)
			}
		}
	}
}

// TestPrometheusScrapesTheManager runs the real Prometheus with the settings
// and rules that we ship, on the dashboard's queries too.
func TestPrometheusScrapesTheManager(t *testing.T) {
	program, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skip("prometheus is not installed (Debian package prometheus)")
	}
	s := busyManager(t)
	base := startPrometheus(t, program, s)
	query := func(expression string) (status int, results []string) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), "GET", base+"/api/v1/query", nil)
		if err != nil {
			t.Fatal(err)
		}
		values := request.URL.Query()
		values.Set("query", expression)
		request.URL.RawQuery = values.Encode()
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return 0, nil // not up yet
		}
		defer answer.Body.Close()
		var body struct {
			Data struct{ Result []struct{ Value []any } }
		}
		_ = json.NewDecoder(answer.Body).Decode(&body) // not ready yet
		for _, result := range body.Data.Result {
			results = append(results, fmt.Sprint(result.Value[1]))
		}
		return answer.StatusCode, results
	}
	for deadline := time.Now().Add(30 * time.Second); ; {
		if _, got := query("sum(opensource_manager_agents)"); slices.Equal(got, []string{"1"}) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("no scrape of the manager:\n%s", s.Log)
		}
		time.Sleep(100 * time.Millisecond) // a poll with a deadline
	}
	if _, got := query(`opensource_manager_agents_with_problem{problem="apply_failed"}`); !slices.Equal(got, []string{"1"}) {
		t.Errorf("apply_failed: %v", got)
	}
	for _, expression := range dashboardQueries(t) {
		if status, _ := query(expression); status != http.StatusOK {
			t.Errorf("Prometheus refuses a query of the dashboard: %d %s", status, expression)
		}
	}
}

func startPrometheus(t *testing.T, program string, s *servertest.Server) (base string) {
	t.Helper()
	folder := t.TempDir()
	rules, err := filepath.Abs(monitoring + "alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	shipped, err := os.ReadFile(monitoring + "prometheus.yml")
	if err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(folder, "key")
	settings := string(shipped)
	for from, to := range map[string]string{
		"/etc/prometheus/opensource-manager/alerts.yml": rules, "/etc/prometheus/opensource-manager/key": key,
		"scheme: https": "scheme: http", "manager.example.com": strings.TrimPrefix(s.URL, "http://"),
	} {
		if !strings.Contains(settings, from) {
			t.Fatalf("prometheus.yml has no %s", from)
		}
		settings = strings.ReplaceAll(settings, from, to)
	}
	settings = "global: {scrape_interval: 1s, evaluation_interval: 1s}\n" + settings
	file := filepath.Join(folder, "prometheus.yml")
	viewer := s.Key(t, auth.NewKey{Name: "prometheus", Role: auth.RoleViewer})
	for name, content := range map[string]string{file: settings, key: viewer + "\n"} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	free.Close()
	command := exec.CommandContext(t.Context(), program, "--config.file="+file, "--storage.tsdb.path="+filepath.Join(folder, "data"),
		"--web.listen-address="+address, "--log.level=warn")
	var out servertest.Log
	command.Stdout, command.Stderr = &out, &out
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		if t.Failed() {
			t.Logf("prometheus: %s", out.String())
		}
	})
	return "http://" + address
}

// dashboardQueries are the expressions of all panels, with Grafana's variables
// filled in.
func dashboardQueries(t *testing.T) []string {
	t.Helper()
	content, err := os.ReadFile(monitoring + "dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	if err := json.Unmarshal(content, &board); err != nil {
		t.Fatal(err)
	}
	queries := map[string]bool{}
	for _, panel := range board.Panels {
		for _, target := range panel.Targets {
			queries[strings.NewReplacer("$__rate_interval", "1m", "$instance", ".*").Replace(target.Expr)] = true
		}
	}
	return slices.Sorted(maps.Keys(queries))
}
