package server_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"opensource.internal/manager/internal/auth"
	"opensource.internal/manager/internal/config"
	"opensource.internal/manager/servertest"
)

func atInfo(c *config.Config) { c.LogLevel = slog.LevelInfo }

// answered are the lines of the request log.
func answered(s *servertest.Server) []string {
	var lines []string
	for line := range strings.Lines(s.Log.String()) {
		if strings.Contains(line, "msg=answered") {
			lines = append(lines, line)
		}
	}
	return lines
}

// sessionCookie is the cookie of a session that has just begun.
func sessionCookie(t *testing.T, answer servertest.Answer) string {
	t.Helper()
	for _, line := range answer.Header.Values("Set-Cookie") {
		if cookie, _, _ := strings.Cut(line, ";"); strings.HasPrefix(cookie, "opensource_manager_session=") {
			return cookie
		}
	}
	t.Fatalf("no session: %d %s", answer.Status, answer.Body)
	return ""
}

// A change is one line with all there is to know; reading by programs, health
// and heartbeats are none.
func TestRequestLog(t *testing.T) {
	s := servertest.Start(t, servertest.Options{Configure: atInfo})
	s.Create(t, "/sites", object{"name": "lab"})
	s.Call(t, "GET", "/sites/1", nil)
	s.Do(t, "GET", "/metrics", nil, http.Header{"X-Api-Key": {s.AdminKey}})
	s.Do(t, "GET", "/api/v1/health", nil, nil)
	agent := agentClient(s, "")
	first, err := agent.CheckIn(t.Context(), report(1), "")
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if again, err := agent.CheckIn(t.Context(), report(1), first.ETag); err != nil || !again.NotModified {
			t.Fatal(again, err)
		}
	}
	refused := s.Call(t, "PATCH", "/sites/1", object{"gateway": "junk"})

	lines := answered(s)
	if len(lines) != 3 {
		t.Fatalf("%d lines:\n%s", len(lines), strings.Join(lines, ""))
	}
	for i, wanted := range []string{
		`level=INFO msg=answered request=\S+ method=POST route=/api/v1/sites status=201 took=\S+ bytes=[1-9]\d* client=127.0.0.1 actor="key test admin"`,
		`level=INFO msg=answered request=\S+ method=POST route=/api/v1/agents status=200 took=\S+ bytes=[1-9]\d* client=127.0.0.1\n`,
		`level=INFO msg=answered request=` + refused.Header.Get("X-Request-Id") + ` method=PATCH route=/api/v1/sites/:id status=422 .*`,
	} {
		if !regexp.MustCompile(wanted).MatchString(lines[i]) {
			t.Errorf("line %d is %s", i, lines[i])
		}
	}
}

// What people look at is logged with their names, what their pages fetch is not.
func TestRequestLogOfPeople(t *testing.T) {
	s := servertest.Start(t, servertest.Options{Configure: atInfo})
	s.Call(t, "POST", "/users", object{"name": "alice", "password": "correct horse battery", "role": "viewer"})
	signedIn := s.Do(t, "POST", "/api/v1/session", object{"name": "alice", "password": "correct horse battery"}, nil)
	cookie := http.Header{"Cookie": {sessionCookie(t, signedIn)}}
	before := len(answered(s))
	for _, path := range []string{"/agents", "/api/v1/sites"} {
		if answer := s.Do(t, "GET", path, nil, cookie); answer.Status != 200 {
			t.Fatalf("%s: %d", path, answer.Status)
		}
	}
	cookie.Set("X-Refresh", "1")
	if answer := s.Do(t, "GET", "/agents", nil, cookie); answer.Status != 200 {
		t.Fatalf("refresh: %d", answer.Status)
	}
	lines := answered(s)[before:]
	if len(lines) != 2 || !strings.Contains(lines[0], `route=/agents status=200`) || !strings.Contains(lines[1], "route=/api/v1/sites status=200") ||
		strings.Count(strings.Join(lines, ""), `actor="user alice"`) != 2 {
		t.Errorf("%q", lines)
	}
}

// A thousand agents with a revoked key are not all there is in the log.
func TestRefusedCheckInsAreSampled(t *testing.T) {
	s := servertest.Start(t, servertest.Options{Configure: atInfo})
	for range 200 {
		s.Do(t, "POST", "/api/v1/agents", object{"siteId": 1}, http.Header{"X-Api-Key": {"revoked"}})
	}
	lines := answered(s)
	if len(lines) < 20 || len(lines) > 60 {
		t.Errorf("%d lines of 200 refused check-ins", len(lines))
	}
}

// Neither keys nor passwords, nor what is pasted into an address by mistake,
// gets into the log, at any level.
func TestNoSecretIsLogged(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	s.Create(t, "/sites", object{"name": "lab"})
	agent := s.Key(t, auth.NewKey{Name: "a", Role: auth.RoleAgent, SiteID: 1})
	const password = "correct horse battery"
	s.Call(t, "POST", "/users", object{"name": "alice", "password": password, "role": "admin"})
	s.Do(t, "POST", "/api/v1/session", object{"name": "alice", "password": password}, nil)
	signedIn := s.Do(t, "POST", "/api/v1/session", object{"name": "alice", "password": password}, nil)
	cookie := sessionCookie(t, signedIn)
	_, session, _ := strings.Cut(cookie, "=")
	s.Do(t, "GET", "/agents", nil, http.Header{"Cookie": {cookie}})
	for _, key := range []string{agent, s.AdminKey} {
		for _, path := range []string{"/api/v1/sites?key=" + key, "/api/v1/" + key, "/" + key, "/api/v1/sites/" + key, "/agents/" + key + "/removals"} {
			s.Do(t, "GET", path, nil, http.Header{"X-Api-Key": {key}, "Referer": {s.URL + "/?" + key}})
			s.Do(t, "POST", path, `{"name":"`+key+`"}`, http.Header{"Authorization": {"Bearer " + key}, "X-Request-Id": {key}, "User-Agent": {key}})
		}
		s.Do(t, "POST", "/api/v1/agents", report(1), http.Header{"X-Api-Key": {key}})
		s.Do(t, "POST", "/api/v1/agents?key="+key, report(1), http.Header{"X-Api-Key": {key + "x"}})
	}
	log := s.Log.String()
	if strings.Count(log, "msg=answered") < 20 {
		t.Fatalf("too little was logged to say anything:\n%s", log)
	}
	for name, secret := range map[string]string{"the agent's key": agent, "the admin key": s.AdminKey, "the password": password, "the session": session} {
		if secret == "" || strings.Contains(log, secret) || strings.Contains(log, url.QueryEscape(secret)) {
			t.Errorf("%s is in the log", name)
		}
	}
}

func TestRequestIDs(t *testing.T) {
	trusting := servertest.Start(t, servertest.Options{Configure: func(c *config.Config) { c.TrustedProxies = proxies("127.0.0.0/8") }})
	strict := servertest.Start(t, servertest.Options{})
	for _, test := range []struct {
		s    *servertest.Server
		sent []string
		kept bool
	}{
		{trusting, []string{"4bf92f3577b34da6-a3ce_929d.0e0e:4736"}, true},
		{trusting, []string{strings.Repeat("a", 64)}, true},
		{trusting, []string{strings.Repeat("a", 65)}, false},
		{trusting, []string{""}, false},
		{trusting, []string{"one", "two"}, false},
		{trusting, []string{`a" level=ERROR msg="b`}, false},
		{trusting, []string{"naïve"}, false},
		{strict, []string{"from-a-stranger"}, false},
	} {
		answer := test.s.Do(t, "GET", "/api/v1/nope", nil, http.Header{"X-Request-Id": test.sent})
		got := answer.Header.Get("X-Request-Id")
		if (got == test.sent[0]) != test.kept || got == "" {
			t.Errorf("sent %q, got %q", test.sent, got)
		}
		if !strings.Contains(test.s.Log.String(), fmt.Sprintf("request=%s ", got)) {
			t.Errorf("%q is not in the log", got)
		}
	}
}
