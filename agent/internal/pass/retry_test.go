package pass

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"opensource.internal/agent/internal/state"
)

func TestPausesGrow(t *testing.T) {
	now := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	var retry *state.Retry
	for i, want := range []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 15 * time.Minute, 15 * time.Minute} {
		retry = nextTry(retry, "a", now)
		if got := retry.After.Sub(now) + earlier; got != want || retry.Failures != i+1 {
			t.Errorf("failure %d: a pause of %v, want %v", retry.Failures, got, want)
		}
	}
	other := nextTry(retry, "b", now.Add(time.Hour))
	if other.Failures != 1 || !other.Since.Equal(now) {
		t.Errorf("another configuration has failed %d times, the service since %v", other.Failures, other.Since)
	}
}

func TestWaits(t *testing.T) {
	now := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	retry := &state.Retry{Fingerprint: "a", After: now.Add(time.Minute)}
	for _, test := range []struct {
		name        string
		retry       *state.Retry
		fingerprint string
		now         time.Time
		want        bool
	}{
		{"in its pause", retry, "a", now, true},
		{"pause over", retry, "a", now.Add(time.Minute), false},
		{"something changed", retry, "b", now, false},
		{"never failed", nil, "a", now, false},
		{"clock set back", retry, "a", now.AddDate(-1, 0, 0), false},
	} {
		if got := waits(test.retry, test.fingerprint, test.now); got != test.want {
			t.Errorf("%s: %v", test.name, got)
		}
	}
}

// attempts runs a pass and returns its exit code and how often nginx was tried.
func (s *site) attempts(byHand bool) (Code, int) {
	s.t.Helper()
	var log strings.Builder
	options := s.options()
	options.ByHand = byHand
	options.Log = slog.New(slog.NewTextHandler(&log, nil))
	code := Run(s.t.Context(), options)
	if code == Rejected && !strings.Contains(log.String(), "no_such_directive") {
		s.t.Errorf("the pass does not say why it ends with %d:\n%s", code, log.String())
	}
	return code, strings.Count(log.String(), "configuration not applied")
}

func TestARefusedConfigurationIsNotTriedInEveryPass(t *testing.T) {
	s := newSite(t)
	s.publish(lab())
	s.pass(Settled)
	const override = "etc/opensource-agent/templates/nginx/listen.tmpl"
	s.write(override, "no_such_directive;")
	try := func(name string, byHand bool, wantCode Code, want int) {
		t.Helper()
		if code, got := s.attempts(byHand); code != wantCode || got != want {
			t.Errorf("%s: exit code %d after %d attempts, want %d after %d", name, code, got, wantCode, want)
		}
	}
	try("first", false, Rejected, 1)
	try("second", false, Rejected, 0)
	try("third", false, Rejected, 0)
	try("by hand", true, Rejected, 1)
	s.write("etc/nginx/nginx.conf", "edited")
	try("edited meanwhile", false, Rejected, 1)
	try("the same edit", false, Rejected, 0)
	s.write("etc/nginx/nginx.conf", "edited again")
	try("another edit", false, Rejected, 1)
	try("the same once more", false, Rejected, 0)
	if err := os.Remove(filepath.Join(s.root, "etc/nginx/nginx.conf")); err != nil {
		t.Fatal(err)
	}
	try("removed", false, Rejected, 1)
	try("removed still", false, Rejected, 0)
	s.write(override, "no_such_directive on;")
	try("another template", false, Rejected, 1)
	changed := lab()
	changed.Site.Name = "other"
	s.publish(changed)
	try("another snapshot", false, Rejected, 1)
	s.write(override, "listen 8443 ssl;")
	if code, _ := s.attempts(false); code != Settled {
		t.Errorf("a mended template: exit code %d", code)
	}
}
