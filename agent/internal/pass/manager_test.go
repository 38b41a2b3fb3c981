package pass

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"opensource.internal/agent/checkin"
)

// fakeManager answers check-ins with the snapshot it holds, as a manager does,
// unless answer is set.
type fakeManager struct {
	t      testing.TB
	mutex  sync.Mutex
	data   []byte
	etag   string
	answer http.HandlerFunc
	// requests are the check-ins so far.
	requests []checkin.Request
	statuses []int
	server   *httptest.Server
}

func newManager(t testing.TB) *fakeManager {
	m := &fakeManager{t: t}
	m.server = httptest.NewServer(m)
	t.Cleanup(m.server.Close)
	return m
}

// publish makes snapshot the one that is answered.
func (m *fakeManager) publish(snapshot checkin.Snapshot) {
	m.t.Helper()
	data, etag, err := checkin.Encode(snapshot)
	if err != nil {
		m.t.Fatal(err)
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.data, m.etag, m.answer = data, etag, nil
}

// respond makes handler give the answers from now on.
func (m *fakeManager) respond(handler http.HandlerFunc) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.answer = handler
}

func (m *fakeManager) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	var request checkin.Request
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(body, &request)
	}
	if err != nil {
		m.t.Errorf("check-in: %v", err)
	}
	m.requests = append(m.requests, request)
	recorder := httptest.NewRecorder()
	if m.answer != nil {
		m.answer(recorder, r)
	} else {
		answerSnapshot(recorder, r, m.data, m.etag)
	}
	m.statuses = append(m.statuses, recorder.Code)
	for key, values := range recorder.Header() {
		w.Header()[key] = values
	}
	w.WriteHeader(recorder.Code)
	_, _ = w.Write(recorder.Body.Bytes())
}

func answerSnapshot(w http.ResponseWriter, r *http.Request, data []byte, etag string) {
	w.Header().Set("ETag", etag)
	if checkin.MatchETag(r.Header.Get("If-None-Match"), etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"data":`+string(data)+`}`)
}

// take returns the check-ins since the last call.
func (m *fakeManager) take() ([]checkin.Request, []int) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	requests, statuses := m.requests, m.statuses
	m.requests, m.statuses = nil, nil
	return requests, statuses
}

// site is one agent host: a root of its own, and its manager.
type site struct {
	*fakeManager
	root     string
	siteID   int64
	hostname string
	byHand   bool
	guard    int // see Options.RemovalGuard
	confirm  bool
	probes   bool
}

// newSite makes a host. Its validators are the real ones.
func newSite(t testing.TB) *site {
	t.Helper()
	for _, tool := range []string{"nginx", "dnsmasq"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("needs %s: %v", tool, err)
		}
	}
	if os.Getuid() != 0 {
		t.Skip("needs root: nginx -t binds ports below 1024")
	}
	return &site{fakeManager: newManager(t), root: t.TempDir(), siteID: 1, hostname: "agent"}
}

func (s *site) options() Options {
	base, err := url.Parse(s.server.URL)
	if err != nil {
		s.t.Fatal(err)
	}
	return Options{
		SiteID:          s.siteID,
		Client:          &checkin.Client{URL: base, UserAgent: "test"},
		Version:         "test",
		Hostname:        s.hostname,
		StateDirectory:  filepath.Join(s.root, "var/lib/opensource-agent"),
		Root:            s.root,
		ByHand:          s.byHand,
		RemovalGuard:    s.guard,
		ConfirmRemovals: s.confirm,
		SiteProbes:      s.probes,
		Log:             slog.New(slog.NewTextHandler(testLog{s.t}, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
}

// pass runs one pass and checks its exit code.
func (s *site) pass(want Code) {
	s.t.Helper()
	if got := Run(s.t.Context(), s.options()); got != want {
		s.t.Errorf("exit code %d, want %d", got, want)
	}
}

func (s *site) read(path string) string {
	s.t.Helper()
	content, err := os.ReadFile(filepath.Join(s.root, path))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(content)
}

func (s *site) write(path, content string) {
	s.t.Helper()
	path = filepath.Join(s.root, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

// files returns every file below the root with its inode and change time: the
// same twice means that nothing was written in between.
func (s *site) files() map[string]string {
	s.t.Helper()
	found := map[string]string{}
	out, err := exec.Command("find", s.root, "-type", "f", "-printf", "%P\t%i %C@ %s\n").Output()
	if err != nil {
		s.t.Fatal(err)
	}
	for _, line := range splitLines(string(out)) {
		path, identity, _ := cutTab(line)
		found[path] = identity
	}
	return found
}

// last returns the last check-in of the pass before.
func last(t testing.TB, requests []checkin.Request) checkin.Request {
	t.Helper()
	if len(requests) == 0 {
		t.Fatal("there was no check-in")
	}
	return requests[len(requests)-1]
}

type testLog struct{ t testing.TB }

func (l testLog) Write(p []byte) (int, error) {
	l.t.Log(string(p))
	return len(p), nil
}
