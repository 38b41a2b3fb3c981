package pass

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestAWrongClockIsToldOnceAPass(t *testing.T) {
	for name, test := range map[string]struct {
		theirs time.Duration // how far the manager's clock is ahead
		want   string
	}{
		"right":      {0, ""},
		"nearly":     {maxSkew - 10*time.Second, ""},
		"far behind": {time.Hour, "behind the manager's"},
		"far ahead":  {-time.Hour, "ahead of the manager's"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.publish(lab())
			data, etag := s.data, s.etag
			s.respond(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Date", time.Now().Add(test.theirs).UTC().Format(http.TimeFormat))
				answerSnapshot(w, r, data, etag)
			})
			code, log := s.logged()
			if code != Settled {
				t.Errorf("exit code %d", code)
			}
			if count := strings.Count(log, "this host's clock is"); (count == 1) != (test.want != "") || !strings.Contains(log, test.want) {
				t.Errorf("told %d times, want %q in\n%s", count, test.want, log)
			}
			if _, statuses := s.take(); len(statuses) != 2 {
				t.Errorf("answers = %v, want two rounds", statuses)
			}
		})
	}
}
