package main

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"opensource.internal/manager/servertest"
)

// What --json prints is what the API answers: a script that reads the one can
// read the other.
func TestJSONIsThatOfTheAPI(t *testing.T) {
	s := withAgents(t)
	s.must("correct horse battery", "user", "create", "ada")
	s.must("", "apikey", "create", "--role", "agent", "--site", "lab", "--expires", "90d")
	s.must("", "apikey", "create", "--role", "viewer")
	s.must("", "revisions", "lab")
	s.must("", "pin", "lab", "1", "--reason", "looking")
	s.must("ntfy://ntfy.example.com/x", "notify", "add", "ops", "--site", "lab")
	s.must("", "notify", "silence", "lab", "--for", "7d", "--reason", "moving")
	manager := servertest.Start(t, servertest.Options{Database: s.database()})
	for command, path := range map[string]string{
		"agents":               "/agents?sort=siteId",
		"agents --state late":  "/agents?status=late",
		"sites":                "/sites",
		"events --limit 0":     "/events?sort=id",
		"audit --limit 0":      "/audit?sort=id",
		"apikey list":          "/api-keys",
		"user list":            "/users?sort=name",
		"revisions lab":        "/sites/1/revisions",
		"revisions diff lab 1": "/sites/1/revisions/1/diff",
		"pending lab":          "/sites/1/pending",
		"notify targets":       "/notification-targets",
		"notify silences":      "/notification-silences",
	} {
		printed := s.must("", append(strings.Fields(command), "--json")...)
		got := decode[any](t, strings.ReplaceAll(printed, "this manager, "+version, "this manager, test")) // both name themselves
		want := servertest.Data[any](t, manager.Call(t, http.MethodGet, path, nil))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s --json is not GET %s (-API +CLI):\n%s", command, path, diff)
		}
	}
}

func TestTimes(t *testing.T) {
	for text, want := range map[string]time.Time{
		"90m": time.Now().Add(-90 * time.Minute), "7d": time.Now().Add(-7 * 24 * time.Hour), "0s": time.Now(),
		"2026-01-31": time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC), "2026-01-31T12:00:00+01:00": time.Date(2026, 1, 31, 11, 0, 0, 0, time.UTC),
	} {
		var got past
		if err := got.UnmarshalText([]byte(text)); err != nil || got.Sub(want).Abs() > time.Minute {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	s := newShell(t)
	s.store()
	for _, args := range [][]string{
		{"events", "--since", "yesterday"},
		{"audit", "--since=-1h"},
		{"audit", "--since", "31.1.2026"},
		{"notify", "silence", "1", "--until", "tomorrow"},
	} {
		r := s.run("", args...)
		if r.code != exitUsage || !strings.Contains(r.stderr, "2026-01-31T12:00:00Z or 2026-01-31, nor a time span such as 90m, 24h or 7d") || strings.Contains(r.stderr, "2006") {
			t.Errorf("%v: %+v", args, r)
		}
	}
	if r := s.run("", "notify", "silence", "1", "--for", "long"); r.code != exitUsage || !strings.Contains(r.stderr, `--for: "long" is not a time span such as 90m`) {
		t.Errorf("%+v", r)
	}
}
