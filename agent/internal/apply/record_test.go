package apply

import (
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"opensource.internal/agent/checkin"
	"opensource.internal/agent/render"
)

// The record lies there before the first live file is replaced, and says what
// a person wants to know of it.
func TestTheRecordOfACommit(t *testing.T) {
	s := newSite(t)
	s.runs(t, "A")
	must(t, os.Remove(s.side()))
	var seen []record
	e := s.engine()
	e.reached = func(step string) {
		if step == "tested" && e.CutShort("stub") {
			t.Error("there is a record although nothing was replaced")
		}
		if step != "noted" && step != "committed main.conf" {
			return
		}
		content, err := os.ReadFile(s.record())
		must(t, err)
		var now record
		must(t, json.Unmarshal(content, &now))
		seen = append(seen, now)
		if live := liveDigest(s.main()) == digest([]byte("main B")); live != (step != "noted") {
			t.Errorf("main.conf is replaced: %v at the step %s", live, step)
		}
	}
	e.Apply(t.Context(), s.service(), s.wanted("B"), nil)
	want := record{Service: "stub", Revision: "B", Files: []recordedFile{
		{Path: s.side(), Old: "absent", New: digest([]byte("B"))},
		{Path: s.main(), Old: digest([]byte("main A")), New: digest([]byte("main B"))},
	}}
	if len(seen) != 2 || time.Since(seen[0].Begun).Abs() > time.Minute {
		t.Fatalf("records: %+v", seen)
	}
	want.Begun = seen[0].Begun
	if diff := cmp.Diff([]record{want, want}, seen); diff != "" {
		t.Error(diff)
	}
	s.check(t, "B")
}

// The log says once that a pass was cut short, with its files, and then what
// became of its work.
func TestAKilledRunIsToldOf(t *testing.T) {
	for name, test := range map[string]struct {
		next func(s *site, e *Engine) Report
		says string
	}{
		"same": {func(s *site, e *Engine) Report {
			return e.Apply(t.Context(), s.service(), s.wanted("B"), nil)
		}, "what the earlier pass had begun is finished"},
		"newer": {func(s *site, e *Engine) Report {
			return e.Apply(t.Context(), s.service(), s.wanted("C"), nil)
		}, "what the earlier pass had begun is replaced by what is wanted now"},
		"as before": {func(s *site, e *Engine) Report {
			return e.Apply(t.Context(), s.service(), s.wanted("A"), nil)
		}, "what the earlier pass had begun is undone"},
		"skipped": {func(s *site, e *Engine) Report {
			return e.Apply(t.Context(), s.service(), render.Result{Skipped: "no gateway"}, nil)
		}, "what the earlier pass had begun is undone"},
		"refused": {func(s *site, e *Engine) Report {
			return e.Refuse(t.Context(), s.service(), errors.New("no template"))
		}, "what the earlier pass had begun is undone"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.runs(t, "A")
			die(t, s, "committed hosts")
			var log strings.Builder
			e := s.engine()
			e.Log = slog.New(slog.NewTextHandler(&log, nil))
			test.next(s, e)
			e.Apply(t.Context(), s.service(), s.wanted("B"), nil)
			for _, line := range []string{
				`level=WARN msg="an earlier pass was cut short" service=stub begun="20`, // and the time
				"files=\"[" + s.side() + " " + s.main() + "]\"",
				`level=INFO msg="` + test.says + `" service=stub`,
			} {
				if strings.Count(log.String(), line) != 1 {
					t.Errorf("the log does not say once %s:\n%s", line, &log)
				}
			}
		})
	}
}

// Nothing could be undone yet: that is tried again, and said again.
func TestAKilledRunThatCannotBeMadeGoodYet(t *testing.T) {
	for name, next := range map[string]func(s *site) Report{
		"wanted":  func(s *site) Report { return s.engine().Apply(t.Context(), s.service(), s.wanted("B"), nil) },
		"skipped": func(s *site) Report { return s.engine().Apply(t.Context(), s.service(), render.Result{}, nil) },
		"refused": func(s *site) Report { return s.engine().Refuse(t.Context(), s.service(), errors.New("no template")) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.runs(t, "A")
			die(t, s, "committed hosts")
			s.notReady = errors.New("no connection to systemd")
			if report := next(s); report.Outcome != checkin.OutcomeRejected || !strings.Contains(report.Message, "no connection to systemd") {
				t.Errorf("got %s %q", report.Outcome, report.Message)
			}
			if s.activations != 0 || !s.engine().CutShort("stub") {
				t.Errorf("%d activations; is there to be made good: %v", s.activations, s.engine().CutShort("stub"))
			}
			s.notReady = nil
			next(s)
			if s.running().Side != map[string]string{"wanted": "B", "skipped": "A", "refused": "A"}[name] {
				t.Errorf("runs %+v", s.running())
			}
			s.checkClean(t)
		})
	}
}

func TestADamagedRecordStopsNothing(t *testing.T) {
	for name, put := range map[string]func(path string) error{
		"empty": func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"half":  func(path string) error { return os.WriteFile(path, []byte(`{"service":"stub","files":[{"pa`), 0o600) },
		"zeros": func(path string) error { return os.WriteFile(path, make([]byte, 4096), 0o600) },
		"null":  func(path string) error { return os.WriteFile(path, []byte("null"), 0o600) },
		"other service": func(path string) error {
			return os.WriteFile(path, []byte(`{"service":"x","files":[{"path":"/x"}]}`), 0o600)
		},
		"no absolute path": func(path string) error {
			return os.WriteFile(path, []byte(`{"service":"stub","files":[{"path":"x"}]}`), 0o600)
		},
		"pipe":   func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"folder": func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		for _, next := range []string{"A", "B", "skipped"} {
			t.Run(name+" then "+next, func(t *testing.T) {
				s := newSite(t)
				s.runs(t, "A")
				if next != "skipped" {
					die(t, s, "committed hosts")
					must(t, os.Remove(s.record()))
				}
				must(t, put(s.record()))
				var log strings.Builder
				e := s.engine()
				e.Log = slog.New(slog.NewTextHandler(&log, nil))
				if next == "skipped" {
					e.Apply(t.Context(), s.service(), render.Result{}, nil)
					s.check(t, "A")
				} else {
					if report := e.Apply(t.Context(), s.service(), s.wanted(next), nil); name != "folder" && name != "pipe" && report.Outcome != checkin.OutcomeApplied {
						t.Errorf("got %s %s", report.Outcome, report.Message)
					}
					e.Apply(t.Context(), s.service(), s.wanted(next), nil)
					s.check(t, next)
				}
				if !strings.Contains(log.String(), "read the record of a commit "+s.record()) {
					t.Errorf("the log does not tell: %s", &log)
				}
			})
		}
	}
}

// Where nothing can be written down, nothing is begun.
func TestARecordThatCannotBeWritten(t *testing.T) {
	for name, test := range map[string]struct {
		breaks func(t *testing.T, s *site)
		mends  func(t *testing.T, s *site)
		says   string
	}{
		"full": {
			func(t *testing.T, s *site) { fill(t, s.records) },
			func(t *testing.T, s *site) { must(t, os.Remove(filepath.Join(s.records, "fill"))) },
			"commit-stub.json: no space left on device (free some space on its file system)",
		},
		"read-only": {
			func(t *testing.T, s *site) {
				must(t, syscall.Mount("", s.records, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))
			},
			func(t *testing.T, s *site) { must(t, syscall.Mount("", s.records, "", syscall.MS_REMOUNT, "")) },
			"commit-stub.json: read-only file system (its file system is mounted read-only)",
		},
		"missing": {
			func(_ *testing.T, s *site) { s.records = filepath.Join(s.records, "none") },
			func(t *testing.T, s *site) { must(t, os.Mkdir(s.records, 0o700)) },
			"commit-stub.json: no such file or directory",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.runs(t, "A")
			smallDisk(t, s.records)
			test.breaks(t, s)
			before := names(t, s.dir)
			report := s.engine().Apply(t.Context(), s.service(), s.wanted("B"), nil)
			if report.Outcome != checkin.OutcomeRejected || !strings.Contains(report.Message, "not applied, since what is about to be replaced could not be written down: ") ||
				!strings.Contains(report.Message, test.says) {
				t.Errorf("got %s %q", report.Outcome, report.Message)
			}
			if diff := cmp.Diff(before, names(t, s.dir)); diff != "" || s.activations != 0 {
				t.Errorf("%d activations; the folder has changed: %s", s.activations, diff)
			}
			test.mends(t, s)
			s.check(t, "A")
			if report := s.engine().Apply(t.Context(), s.service(), s.wanted("B"), nil); report.Outcome != checkin.OutcomeApplied {
				t.Errorf("after mending it: got %s %s", report.Outcome, report.Message)
			}
			s.check(t, "B")
		})
	}
}

func TestWithoutAFolderThereAreNoRecords(t *testing.T) {
	s := newSite(t)
	s.runs(t, "A")
	s.records = ""
	e := s.engine()
	e.reached = func(step string) {
		if step == "noted" || step == "closed" || e.CutShort("stub") {
			t.Errorf("%s: there is a record", step)
		}
	}
	if report := e.Apply(t.Context(), s.service(), s.wanted("B"), nil); report.Outcome != checkin.OutcomeApplied {
		t.Errorf("got %s %s", report.Outcome, report.Message)
	}
}

// names lists all that is below a folder.
func names(t *testing.T, dir string) []string {
	t.Helper()
	var all []string
	must(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		all = append(all, path)
		return err
	}))
	return all
}
