package main

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/show"
	"opensource.internal/manager/internal/store"
)

func TestAudit(t *testing.T) {
	s := newShell(t)
	s.env["SUDO_USER"] = "ada"
	s.must("", "apikey", "create", "--role", "admin", "--name", "deploy")
	opened := s.store()
	site, err := opened.CreateSite(t.Context(), inventory.Site{Name: "lab"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := opened.UpdateSite(t.Context(), site.ID, func(s *inventory.Site) error { s.Gateway = "192.0.2.1"; return nil }); err != nil {
		t.Fatal(err)
	}
	list := s.must("", "audit")
	lines := strings.Split(strings.TrimSpace(list), "\n")
	for i, want := range [][]string{
		{"TIME", "WHO", "CHANGES"},
		{"ada (command)", "key_created", "api_key deploy", `name: "deploy"`},
		{"manager (system)", "create", "site lab"},
		{"update", "site lab", `gateway: "" → "192.0.2.1"`},
	} {
		for _, word := range want {
			if i >= len(lines) || !strings.Contains(lines[i], word) {
				t.Errorf("%q is not in line %d of\n%s", word, i, list)
			}
		}
	}
	for _, test := range []struct {
		args []string
		want int
	}{
		{nil, 3},
		{[]string{"--site", "1"}, 2},
		{[]string{"--site", "lab"}, 2},
		{[]string{"--site", "7"}, 0}, // it may have been
		{[]string{"--actor", "ada"}, 1},
		{[]string{"--action", "update"}, 1},
		{[]string{"--resource", "site"}, 2},
		{[]string{"--text", "DEPLOY"}, 1},
		{[]string{"--limit", "1"}, 1},
		{[]string{"--limit", "0"}, 3},
		{[]string{"--since", "24h"}, 3},
		{[]string{"--since", "7d"}, 3},
		{[]string{"--since", "2020-01-01"}, 3},
		{[]string{"--since", "2120-01-01T00:00:00Z"}, 0},
	} {
		if got := decode[[]show.AuditEntry](t, s.must("", append([]string{"audit", "--json"}, test.args...)...)); len(got) != test.want {
			t.Errorf("%v: %d entries, want %d", test.args, len(got), test.want)
		}
	}
	if r := s.run("", "audit", "--limit", "1"); !strings.Contains(r.stderr, "the last 1 of 3") || !strings.Contains(r.stdout, "gateway") {
		t.Errorf("%+v", r)
	}
	for _, args := range [][]string{{"--since", "yesterday"}, {"--limit", "-1"}} {
		if r := s.run("", append([]string{"audit"}, args...)...); r.code != exitUsage || r.stderr == "" {
			t.Errorf("%v: %+v", args, r)
		}
	}
}

func TestEvents(t *testing.T) {
	s := withAgents(t)
	list := s.must("", "events")
	for _, want := range []string{"TIME", "first_seen", "checked in for the first time, version 1.2.3", "guard_held"} {
		if !strings.Contains(list, want) {
			t.Errorf("%q is not in\n%s", want, list)
		}
	}
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"--agent", "well"}, "first_seen"},
		{[]string{"--severity", "error", "--site", "1"}, "apply_failed certificate_expired"},
		{[]string{"--kind", "guard_held"}, "guard_held"},
		{[]string{"--severity", "error", "--site", "lab"}, "apply_failed certificate_expired"},
		{[]string{"--site", "7"}, ""},
		{[]string{"--limit", "1", "--agent", "ill"}, "guard_held"},
		{[]string{"--since", "1m"}, "first_seen"}, // the other one's clock is an hour behind
	} {
		var kinds []string
		for _, e := range decode[[]show.Event](t, s.must("", append([]string{"events", "--json"}, test.args...)...)) {
			kinds = append(kinds, string(e.Kind))
		}
		if got := strings.Join(kinds, " "); got != test.want {
			t.Errorf("%v: %s", test.args, got)
		}
	}
	for _, args := range [][]string{{"--kind", "party"}, {"--severity", "none"}, {"--since", "x"}} {
		if r := s.run("", append([]string{"events"}, args...)...); r.code != exitUsage || r.stderr == "" {
			t.Errorf("%v: %+v", args, r)
		}
	}
}

// lines is written to by a command and read by the test.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
	came chan struct{}
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(p)
	select {
	case l.came <- struct{}{}:
	default:
	}
	return len(p), nil
}

func (l *lines) wait(t *testing.T, want string) {
	t.Helper()
	late := time.After(20 * time.Second)
	for {
		l.mu.Lock()
		text := l.text.String()
		l.mu.Unlock()
		if strings.Contains(text, want) {
			return
		}
		select {
		case <-l.came:
		case <-late:
			t.Fatalf("%q never came: %s", want, text)
		}
	}
}

// What is misspelled is not a list of nothing.
func TestLogsOfWhatIsNotThere(t *testing.T) {
	s := withAgents(t)
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"audit", "--action", "deleted"}, `--action: "deleted" is none of [create update delete`},
		{[]string{"audit", "--resource", "containers"}, `--resource: "containers" is none of [site node container`},
		{[]string{"events", "--kind", "off"}, `--kind: "off" is none of [first_seen offline`},
		{[]string{"events", "--agent", "wel"}, `there is no agent "wel", and no event of it: there are ill, well`},
	} {
		if got := s.run("", test.args...); got.code == 0 || !strings.Contains(got.stderr, test.want) {
			t.Errorf("%v: %+v", test.args, got)
		}
	}
	s.must("", "events", "--agent", "WELL", "--kind", "stuck")
}

func TestEventsAreFollowed(t *testing.T) {
	s := withAgents(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out, ended := &lines{came: make(chan struct{}, 1)}, make(chan int, 1)
	go func() {
		ended <- execute(ctx, []string{"events", "--follow", "--agent", "well"}, s.env, nil, strings.NewReader(""), out, &bytes.Buffer{})
	}()
	out.wait(t, "well  info     first_seen")
	report := checkin.Request{Agent: &checkin.AgentInfo{Version: "2.0.0"}}
	if _, err := s.store().RecordCheckIn(t.Context(), store.CheckIn{SiteID: 1, Hostname: "well", At: time.Now(), Report: report}); err != nil {
		t.Fatal(err)
	}
	out.wait(t, "agent_updated  the agent's version is 2.0.0, it was 1.2.3")
	stop()
	if code := <-ended; code != exitOK {
		t.Errorf("exit %d", code)
	}
	out.mu.Lock()
	defer out.mu.Unlock()
	if got := strings.Count(out.text.String(), "\n"); got != 2 {
		t.Errorf("%d lines: %s", got, out.text.String())
	}
}
