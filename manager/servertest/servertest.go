// Package servertest starts a whole manager for tests: the real server on a
// loopback port, on a database of its own in a temporary folder.
package servertest

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"testing"
	"time"

	"opensource.internal/manager/internal/auth"
	"opensource.internal/manager/internal/config"
	"opensource.internal/manager/internal/server"
	"opensource.internal/manager/internal/store"
	"opensource.internal/manager/internal/store/storetest"
)

// Options change what Start starts. The zero value is a fresh manager.
type Options struct {
	// Database is where the records are: if not set, in a database of its own
	// of the kind that the tests run on (see storetest.Database).
	Database store.Database
	// Configure changes the settings before the start.
	Configure func(*config.Config)
}

// Server is a running manager.
type Server struct {
	// URL is where it listens, without a path.
	URL string
	// AdminKey is an API key that may do everything.
	AdminKey string
	// Store is the server's own open database.
	Store *store.Store
	// Database is where it keeps the records, for whoever looks past the store.
	Database store.Database
	// Config is what the server was started with.
	Config config.Config
	// Log holds everything that was logged, at every level.
	Log *Log

	running *server.Server
	told    sync.Map // what was found to differ from the description
	stop    sync.Once
}

// Start starts a manager and stops it when the test ends.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	database := o.Database
	if database == (store.Database{}) {
		database = storetest.Database(t)
	}
	settings := config.Config{
		StateDirectory: t.TempDir(), Database: database.Path, DatabaseURL: config.Secret(database.URL),
		Listen: "127.0.0.1:0", LoopbackSite: 1, LogLevel: slog.LevelDebug,
	}
	if o.Configure != nil {
		o.Configure(&settings)
	}
	log := &Log{}
	logger := slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: settings.LogLevel}))
	running, err := server.Start(t.Context(), settings, "test", logger)
	if err != nil {
		t.Fatalf("start manager: %v", err)
	}
	s := &Server{URL: running.URL(), Store: running.Store, Database: server.DatabaseOf(settings), Config: settings, Log: log, running: running}
	t.Cleanup(func() { s.Stop(t) })
	s.AdminKey = s.Key(t, auth.NewKey{Name: "test admin", Role: auth.RoleAdmin})
	s.Describe(t) // while nothing is broken yet
	return s
}

// Stop stops the manager; later calls do nothing.
func (s *Server) Stop(t testing.TB) {
	t.Helper()
	s.stop.Do(func() {
		if err := s.running.Stop(); err != nil {
			t.Errorf("stop manager: %v", err)
		}
	})
}

// Key creates an API key.
func (s *Server) Key(t testing.TB, wanted auth.NewKey) string {
	t.Helper()
	key, _, err := auth.CreateKey(t.Context(), s.Store, wanted)
	if err != nil {
		t.Fatalf("create API key: %v", err)
	}
	return key
}

// Answer is an answer of the API, read to its end.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Call sends a request with the admin key to a path of the API such as
// "/sites". A body that is no string is sent as JSON; nil sends none.
func (s *Server) Call(t testing.TB, method, path string, body any) Answer {
	t.Helper()
	return s.Do(t, method, "/api/v1"+path, body, http.Header{"X-Api-Key": {s.AdminKey}})
}

// Do sends a request to any path with any headers. No redirect is followed. An
// answer of the API that is not what its description says fails the test.
func (s *Server) Do(t testing.TB, method, path string, body any, header http.Header) Answer {
	t.Helper()
	answer := s.send(t, method, path, body, header)
	s.check(t, method, path, answer)
	return answer
}

func (s *Server) send(t testing.TB, method, path string, body any, header http.Header) Answer {
	t.Helper()
	var content io.Reader
	switch body := body.(type) {
	case nil:
	case string:
		content = bytes.NewReader([]byte(body))
	default:
		encoded, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		content = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, content)
	if err != nil {
		t.Fatal(err)
	}
	if content != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	for name, values := range header {
		request.Header[http.CanonicalHeaderKey(name)] = values
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	defer response.Body.Close()
	read, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatalf("%s %s: read answer: %v", method, path, err)
	}
	return Answer{Status: response.StatusCode, Header: response.Header, Body: read}
}

var client = &http.Client{
	Timeout:       20 * time.Second,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// Create sends a POST that must succeed and returns the new record's id.
func (s *Server) Create(t testing.TB, path string, body any) int64 {
	t.Helper()
	answer := s.Call(t, http.MethodPost, path, body)
	if answer.Status != http.StatusCreated {
		t.Fatalf("POST %s: status %d: %s", path, answer.Status, answer.Body)
	}
	var envelope struct{ Data struct{ ID int64 } }
	if err := json.Unmarshal(answer.Body, &envelope); err != nil || envelope.Data.ID == 0 {
		t.Fatalf("POST %s: no id in %s", path, answer.Body)
	}
	return envelope.Data.ID
}

// Data decodes the data of a successful answer.
func Data[T any](t testing.TB, answer Answer) T {
	t.Helper()
	var envelope struct{ Data T }
	if err := json.Unmarshal(answer.Body, &envelope); err != nil || answer.Status/100 != 2 {
		t.Fatalf("status %d, body %s: %v", answer.Status, answer.Body, err)
	}
	return envelope.Data
}

// Fault is the body of an error answer.
type Fault struct {
	Code    string
	Message string
	Fields  map[string]string
}

// Error decodes an answer that must be an error in the API's own form.
func Error(t testing.TB, answer Answer) Fault {
	t.Helper()
	var envelope struct{ Error Fault }
	decoder := json.NewDecoder(bytes.NewReader(answer.Body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&envelope); err != nil || envelope.Error.Code == "" || envelope.Error.Message == "" {
		t.Fatalf("status %d, not an error of the API: %s (%v)", answer.Status, answer.Body, err)
	}
	if got := answer.Header.Get("Content-Type"); got != "application/json" {
		t.Fatalf("status %d: error of content type %q", answer.Status, got)
	}
	return envelope.Error
}

// Log keeps what is logged. It is safe for concurrent use.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String is everything logged so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
