package dashboard

import (
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"opensource.internal/manager/internal/health"
	"opensource.internal/manager/internal/store/storetest"
)

// TestWhoDoesTheTasksInWords: this manager, another one, or nobody.
func TestWhoDoesTheTasksInWords(t *testing.T) {
	s := storetest.Open(t)
	mine, theirs := s.NewLease("tasks", time.Minute), s.NewLease("tasks", time.Minute)
	now := time.Now()
	d := &dashboard{store: s, log: slog.New(slog.DiscardHandler), about: About{Tasks: mine}}
	want := func(at time.Time, state, words string) {
		t.Helper()
		v := &visit{Context: &gin.Context{Request: httptest.NewRequestWithContext(t.Context(), "GET", "/settings", nil)}, Now: at}
		if got := d.checkTasks(v); got.State != state || !strings.Contains(got.Message, words) || (got.Fix != "") != (state == health.Warn) {
			t.Errorf("%+v, want %s: %s", got, state, words)
		}
	}
	want(now, health.Warn, "done by nobody at the moment")
	if until, err := theirs.Hold(t.Context()); err != nil || until.IsZero() {
		t.Fatal(until, err)
	}
	want(now, health.Fine, "done by another manager")
	want(now.Add(lateTasks+time.Minute), health.Warn, "done by nobody at the moment")
	if err := theirs.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	want(now, health.Warn, "done by nobody at the moment")
	if until, err := mine.Hold(t.Context()); err != nil || until.IsZero() {
		t.Fatal(until, err)
	}
	want(now, health.Fine, "done by this manager")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	want(now, health.Fail, "cannot be asked")
}
