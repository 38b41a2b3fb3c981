package enroll

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"opensource.internal/agent/checkin"
)

// manager answers enrollments: each with the next of these statuses, the last
// one again and again.
type manager struct {
	*httptest.Server
	statuses []int
	requests []checkin.EnrollRequest
}

func newManager(t *testing.T, statuses ...int) *manager {
	t.Helper()
	m := &manager{statuses: statuses}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request checkin.EnrollRequest
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil || r.URL.Path != "/prefix"+checkin.EnrollPath || r.Header.Get("Authorization") != "" {
			t.Errorf("%s %s %v", r.Method, r.URL, err)
		}
		status := m.statuses[min(len(m.requests), len(m.statuses)-1)]
		m.requests = append(m.requests, request)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		if status == http.StatusCreated {
			_, _ = w.Write([]byte(`{"data":{"siteId":7,"hostname":"gateway","key":"osk_secret","more":1}}`))
			return
		}
		_, _ = w.Write([]byte(`{"error":{"code":"enrollment_used","message":"used by another"}}`))
	}))
	t.Cleanup(m.Close)
	return m
}

func (m *manager) options(t *testing.T) Options {
	t.Helper()
	base, err := url.Parse(m.URL + "/prefix")
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	return Options{
		Client: &checkin.Client{URL: base}, Token: "ose_token", Hostname: "gateway", Root: root,
		File: "/etc/opensource-agent/agent.env", KeyFile: "/etc/opensource-agent/api-key", StateDirectory: root + "/var/lib/opensource-agent",
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestEnroll(t *testing.T) {
	m := newManager(t, http.StatusCreated)
	o := m.options(t)
	settings := o.Root + o.File
	if err := os.MkdirAll(filepath.Dir(settings), 0o755); err != nil {
		t.Fatal(err)
	}
	const before = "# mine\nLOG_LEVEL=debug\nAPI_KEY='old'\n"
	if err := os.WriteFile(settings, []byte(before), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(o.Root+o.KeyFile, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	enrolled, err := Run(t.Context(), o)
	if err != nil || enrolled.SiteID != 7 || enrolled.Hostname != "gateway" {
		t.Fatalf("%+v, %v", enrolled, err)
	}
	if got := read(t, o.Root+o.KeyFile); got != "osk_secret\n" {
		t.Errorf("key %q", got)
	}
	want := "# mine\nLOG_LEVEL=debug\n\n# Written by opensource-agent enroll:\nSITE_ID=7\nMANAGER_URL=" + m.URL + "/prefix\nAPI_KEY_FILE=" + o.Root + o.KeyFile + "\n"
	if got := read(t, settings); got != want {
		t.Errorf("settings:\n%s\nwant:\n%s", got, want)
	}
	for path, mode := range map[string]os.FileMode{o.Root + o.KeyFile: 0o600, settings: 0o640} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
	if _, err := os.Stat(o.noncePath()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the nonce stays: %v", err)
	}
}

// TestAnswerIsLost: the manager can tell that it is the same host that asks again,
// in the same run and in the next one.
func TestAnswerIsLost(t *testing.T) {
	m := newManager(t, 500, 502, 503, 500, http.StatusCreated)
	o := m.options(t)
	var failed *ManagerError
	if _, err := Run(t.Context(), o); !errors.As(err, &failed) {
		t.Fatalf("%v", err)
	}
	if info, err := os.Stat(o.noncePath()); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("nonce: %v, %v", info, err)
	}
	if _, err := os.Stat(o.Root + o.KeyFile); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a key was written: %v", err)
	}
	if _, err := Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if len(m.requests) != 5 {
		t.Errorf("%d requests", len(m.requests))
	}
	for _, request := range m.requests {
		if request != m.requests[0] || len(request.Nonce) < 32 {
			t.Errorf("%+v", request)
		}
	}
	other := o
	other.Token = "ose_other"
	if _, err := Run(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	if last := m.requests[5]; last.Nonce == m.requests[0].Nonce {
		t.Error("another token, the same nonce")
	}
}

func TestRefusedTokenIsAskedOnce(t *testing.T) {
	m := newManager(t, http.StatusConflict)
	o := m.options(t)
	if _, err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), "used by another") || len(m.requests) != 1 {
		t.Errorf("%v, %d requests", err, len(m.requests))
	}
	if _, err := os.Stat(o.Root + o.File); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("settings were written: %v", err)
	}
}

// TestTokenIsNotSpentInVain: what could not be stored is not asked for.
func TestTokenIsNotSpentInVain(t *testing.T) {
	m := newManager(t, http.StatusCreated)
	for name, spoil := range map[string]func(o Options) error{
		"key is a folder":      func(o Options) error { return os.MkdirAll(o.Root+o.KeyFile, 0o755) },
		"settings is a folder": func(o Options) error { return os.MkdirAll(o.Root+o.File, 0o755) },
		"open quote": func(o Options) error {
			return errors.Join(os.MkdirAll(filepath.Dir(o.Root+o.File), 0o755), os.WriteFile(o.Root+o.File, []byte("X='a"), 0o640))
		},
		"state is a file": func(o Options) error {
			return errors.Join(os.MkdirAll(filepath.Dir(o.StateDirectory), 0o755), os.WriteFile(o.StateDirectory, nil, 0o600))
		},
	} {
		o := m.options(t)
		if err := spoil(o); err != nil {
			t.Fatal(err)
		}
		if _, err := Run(t.Context(), o); err == nil || len(m.requests) > 0 {
			t.Errorf("%s: %v, %d requests", name, err, len(m.requests))
		}
	}
}
