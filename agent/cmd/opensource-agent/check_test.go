package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"opensource.internal/agent/internal/pass"
)

// okManager answers every question, and takes no check-in.
func okManager(t *testing.T) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			t.Errorf("the manager may record %s %s", r.Method, r.URL)
		}
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/api/v1/health":
			_, _ = io.WriteString(w, `{"data":{"ready":true,"publicUrlMismatch":null}}`)
		case "/api/v1/session":
			_, _ = io.WriteString(w, `{"data":{"name":"edge","role":"agent","siteId":1}}`)
		}
	}))
	t.Cleanup(server.Close)
	return server
}

func TestCheckLooksAtEverythingAndChangesNothing(t *testing.T) {
	root := t.TempDir()
	var stdout, stderr bytes.Buffer
	code := runWith([]string{"check", "--root", root}, []string{"SITE_ID=1", "API_KEY=secret-key", "MANAGER_URL=" + okManager(t).URL}, &stdout, &stderr)
	for _, line := range []string{
		"OK    settings: SITE_ID is 1, from the environment", "OK    systemd: left alone", "OK    timer: left alone", "OK    nginx.service: left alone", "OK    manager: http://127.0.0.1",
		`OK    API key: "edge"`, "OK    ports: left alone", "OK    in force: nothing is held", "  IPv6: ", "  disk: ", "OK    volumes: ", "OK    templates: none", "OK    leftovers: none",
	} {
		if !strings.Contains(stdout.String(), line) {
			t.Errorf("%q is not in:\n%s", line, stdout.String())
		}
	}
	if fails := strings.Contains(stdout.String(), "\nFAIL"); fails != (code == pass.Rejected) || !fails && code != pass.Settled || stderr.Len() > 0 {
		t.Errorf("exit status %d, %s", code, stderr.String())
	}
	if strings.Contains(stdout.String(), "secret-key") {
		t.Error("the key is shown")
	}
	if made := treeOf(t, root); len(made) > 0 {
		t.Errorf("made: %q", made)
	}
}

func TestCheckGoesOnWithWrongSettings(t *testing.T) {
	for name, environ := range map[string][]string{
		"mistakes":           {"SITE_ID=1abc", "MANAGER_URL=manager", "LOG_LEVEL=loud"},
		"not configured yet": nil,
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			code := runWith([]string{"check", "--json", "--root", t.TempDir()}, environ, &stdout, &stderr)
			var found []struct{ Level, Check, Found, Fix string }
			if err := json.Unmarshal(stdout.Bytes(), &found); err != nil {
				t.Fatalf("%v in %s", err, stdout.String())
			}
			failed, checks := 0, map[string]bool{}
			for _, f := range found {
				checks[f.Check] = true
				if f.Check == "settings" && f.Level == "fail" {
					failed++
				}
			}
			if code != pass.Usage || failed != max(1, len(environ)) || !checks["disk"] || !checks["leftovers"] {
				t.Errorf("exit status %d, %d mistakes, %v", code, failed, checks)
			}
		})
	}
}

func TestCheckRefusesTheHostAsRoot(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if code := runWith([]string{"check", "--root", "/"}, nil, &stdout, &stderr); code != pass.Usage || !strings.Contains(stderr.String(), "--root") {
		t.Errorf("exit status %d, %s", code, stderr.String())
	}
}
