package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"opensource.internal/agent/checkin"
	"opensource.internal/agent/internal/config"
	"opensource.internal/agent/internal/pass"
)

// enrolling is a manager that enrolls whoever has the token, and accepts check-ins
// with the key.
func enrolling(t *testing.T) *httptest.Server {
	t.Helper()
	manager := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		body, _ := io.ReadAll(r.Body)
		var asked checkin.EnrollRequest
		switch {
		case r.URL.Path == checkin.EnrollPath && json.Unmarshal(body, &asked) == nil && asked.Token == "ose_token" && asked.Hostname == "gateway":
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, `{"data":{"siteId":7,"hostname":"gateway","key":"osk_key"}}`)
		case r.URL.Path == checkin.Path && r.Header.Get("Authorization") == "Bearer osk_key" && bytes.Contains(body, []byte(`"siteId":7`)):
			w.Header().Set("ETag", `"tag"`)
			_, _ = io.WriteString(w, `{"data":{"site":null,"nginx":{"httpServices":[],"streamServices":[],"externalDomains":[]}}}`)
		default:
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"error":{"code":"unauthorized","message":"no such token"}}`)
		}
	}))
	t.Cleanup(manager.Close)
	return manager
}

func TestEnrollCommand(t *testing.T) {
	manager := enrolling(t)
	root := t.TempDir()
	env := []string{"AGENT_HOSTNAME=gateway"}
	enroll := func(more ...string) (pass.Code, string) {
		var out bytes.Buffer
		args := append([]string{"enroll", "--root", root, "--manager", manager.URL}, more...)
		code := run(args, environment{stdin: strings.NewReader("ose_token\n"), stdout: &out, stderr: &out, environ: env})
		return code, out.String()
	}
	for name, test := range map[string]struct {
		args []string
		code pass.Code
		says string
	}{
		"no token":    {nil, pass.Usage, "--token"},
		"wrong token": {[]string{"--token", "x"}, pass.ManagerAway, "no such token"},
		"no such CA":  {[]string{"--token", "x", "--ca-file", "/nonexistent"}, pass.Usage, "MANAGER_CA_FILE"},
	} {
		if code, out := enroll(test.args...); code != test.code || !strings.Contains(out, test.says) {
			t.Errorf("%s: %d %s", name, code, out)
		}
	}
	if _, err := os.Stat(root + config.File); err == nil {
		t.Fatal("a refused enrollment wrote settings")
	}

	code, out := enroll("--token", "-")
	if code != pass.Settled || !strings.Contains(out, "gateway of site 7") || strings.Contains(out, "osk_key") || strings.Contains(out, "ose_token") {
		t.Fatalf("%d %s", code, out)
	}
	if key, err := os.ReadFile(root + config.KeyFile); err != nil || string(key) != "osk_key\n" {
		t.Errorf("%q, %v", key, err)
	}
	if code := runWith([]string{"--root", root}, env, io.Discard, io.Discard); code != pass.Settled {
		t.Errorf("a pass of the timer: %d", code)
	}

	if code, out := enroll("--token", "ose_token", "--no-pass"); code != pass.Usage || !strings.Contains(out, "--force") || !strings.Contains(out, "SITE_ID=7") {
		t.Errorf("again: %d %s", code, out)
	}
	if code, out := enroll("--token", "ose_token", "--no-pass", "--force"); code != pass.Settled {
		t.Errorf("again, forced: %d %s", code, out)
	}
	container := filepath.Join(root, "/run/opensource-agent/environment")
	if err := os.MkdirAll(filepath.Dir(container), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(container, []byte("API_KEY=stronger\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out := enroll("--token", "ose_token", "--force"); code != pass.Usage || !strings.Contains(out, container) {
		t.Errorf("a key that would win: %d %s", code, out)
	}
}
