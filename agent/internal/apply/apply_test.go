package apply

import (
	"context"
	"errors"
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

func TestApply(t *testing.T) {
	noBus := errors.New("no connection to systemd")
	for name, test := range map[string]struct {
		set         func(t *testing.T, s *site)
		outcome     checkin.Outcome
		message     string
		runs        string // the revision that runs afterwards
		tests       int    // also of what was there before, of which nothing is known
		activations int
	}{
		"good": {
			func(*testing.T, *site) {},
			checkin.OutcomeApplied, "", "B", 1, 1,
		},
		"nothing to do": {
			func(t *testing.T, s *site) { s.runs(t, "B") },
			checkin.OutcomeUnchanged, "", "B", 0, 0,
		},
		"live but not loaded": {
			func(t *testing.T, s *site) {
				s.runs(t, "B")
				must(t, os.Remove(s.process()))
			},
			checkin.OutcomeApplied, "", "", 1, 1,
		},
		"live, not loaded, and cannot be": {
			func(t *testing.T, s *site) {
				s.runs(t, "B")
				must(t, os.WriteFile(s.process(), []byte(`{"Main":"main B","Side":"other"}`), 0o644))
				s.reloadFaults = []error{errors.New("port is taken")}
			},
			checkin.OutcomeStuck, "port is taken\nthe live files are the wanted ones: there is nothing to go back to", "", 1, 1,
		},
		"not installed": {
			func(_ *testing.T, s *site) { s.notInstalled = errors.New("install it") },
			checkin.OutcomeRejected, "install it", "A", 0, 0,
		},
		"no bus": {
			func(_ *testing.T, s *site) { s.notReady = noBus },
			checkin.OutcomeRejected, "not applied, since stub could not be reloaded: no connection to systemd", "A", 0, 0,
		},
		"main file is a folder": {
			func(t *testing.T, s *site) {
				must(t, os.Remove(s.main()))
				must(t, os.Mkdir(s.main(), 0o755))
			},
			checkin.OutcomeRejected, "main.conf is not a regular file but drwx", "", 0, 0,
		},
		"side file is a pipe": {
			func(t *testing.T, s *site) {
				must(t, os.Remove(s.side()))
				must(t, syscall.Mkfifo(s.side(), 0o644))
			},
			checkin.OutcomeRejected, "hosts is not a regular file but p", "", 0, 0,
		},
		"test fails": {
			func(_ *testing.T, s *site) { s.testFault = errors.New("unknown directive") },
			checkin.OutcomeRejected, "unknown directive", "A", 1, 0,
		},
		"second commit fails": {
			func(_ *testing.T, s *site) { s.unstage = s.main() },
			checkin.OutcomeRolledBack, "main.conf: no such file", "A", 1, 0,
		},
		"first commit fails": {
			func(_ *testing.T, s *site) { s.unstage = s.side() },
			checkin.OutcomeRejected, "hosts: no such file", "A", 1, 0,
		},
		"reload fails": {
			func(_ *testing.T, s *site) { s.reloadFaults = []error{errors.New("job failed")} },
			checkin.OutcomeRolledBack, "job failed", "A", 2, 2,
		},
		"proof fails": {
			func(_ *testing.T, s *site) { s.refuses = "B" },
			checkin.OutcomeRolledBack, "still could not bind()", "A", 2, 2,
		},
		"reload fails twice": {
			func(_ *testing.T, s *site) {
				s.reloadFaults = []error{errors.New("job failed"), errors.New("job failed again")}
			},
			checkin.OutcomeStuck, "job failed\ngoing back to the previous configuration: job failed again", "A", 2, 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.runs(t, "A")
			test.set(t, s)
			report := s.engine().Apply(t.Context(), s.service(), s.wanted("B"), nil)
			if report.Outcome != test.outcome || !strings.Contains(report.Message, test.message) {
				t.Errorf("got %s %q, want %s %q", report.Outcome, report.Message, test.outcome, test.message)
			}
			if s.tests != test.tests || s.activations != test.activations {
				t.Errorf("%d tests, %d activations, want %d, %d", s.tests, s.activations, test.tests, test.activations)
			}
			if test.runs != "" {
				s.check(t, test.runs)
			}
			if (report.Digests != nil) != (report.Outcome == checkin.OutcomeApplied || report.Outcome == checkin.OutcomeUnchanged) {
				t.Errorf("digests %v with %s", report.Digests, report.Outcome)
			}
		})
	}
}

func TestNothingToManageIsSkipped(t *testing.T) {
	s := newSite(t)
	report := s.engine().Apply(t.Context(), s.service(), render.Result{Skipped: "site has no gateway"}, nil)
	want := Report{Outcome: checkin.OutcomeSkipped, Message: "site has no gateway"}
	if diff := cmp.Diff(want, report); diff != "" {
		t.Error(diff)
	}
}

// An interrupted commit of a single changed file must not touch the other.
func TestOnlyChangedFilesAreWritten(t *testing.T) {
	s := newSite(t)
	s.runs(t, "A")
	before, err := os.Stat(s.main())
	must(t, err)
	want := s.wanted("B")
	want.Files[1].Content = []byte("main A")
	report := s.engine().Apply(t.Context(), s.service(), want, nil)
	if diff := cmp.Diff([]string{s.side()}, report.Changed); diff != "" {
		t.Error(diff)
	}
	after, err := os.Stat(s.main())
	must(t, err)
	if !os.SameFile(before, after) || before.ModTime() != after.ModTime() {
		t.Error("the main file was written although it did not change")
	}
	if diff := cmp.Diff(loaded{"main A", "B"}, s.running()); diff != "" {
		t.Error(diff)
	}
}

func TestDriftIsRepairedAndTold(t *testing.T) {
	s := newSite(t)
	s.runs(t, "A")
	first := s.engine().Apply(t.Context(), s.service(), s.wanted("A"), nil)
	must(t, os.WriteFile(s.main(), nil, 0o644))

	report := s.engine().Apply(t.Context(), s.service(), s.wanted("A"), first.Digests)
	if diff := cmp.Diff([]string{s.main()}, report.Drifted); diff != "" || report.Outcome != checkin.OutcomeApplied {
		t.Errorf("%s: %s", report.Outcome, diff)
	}
	s.check(t, "A")

	report = s.engine().Apply(t.Context(), s.service(), s.wanted("B"), first.Digests)
	if report.Drifted != nil {
		t.Errorf("a change of what is wanted was told as drift: %v", report.Drifted)
	}

	// An edit is one also if something else is wanted by the time it is found.
	must(t, os.WriteFile(s.main(), []byte("edited"), 0o644))
	must(t, os.Remove(s.side()))
	report = s.engine().Apply(t.Context(), s.service(), s.wanted("C"), report.Digests)
	if diff := cmp.Diff([]string{s.side(), s.main()}, report.Drifted); diff != "" || report.Outcome != checkin.OutcomeApplied {
		t.Errorf("%s: %s", report.Outcome, diff)
	}
}

// An administrator's owner, mode and links are respected where the content is
// not: they stay, and alone they are no drift.
func TestDriftRepairKeepsOwnerModeAndLinks(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("NOT TESTED: needs root")
	}
	s := newSite(t)
	s.runs(t, "A")
	last := s.engine().Apply(t.Context(), s.service(), s.wanted("A"), nil).Digests
	elsewhere := filepath.Join(t.TempDir(), "hosts.real")
	must(t, os.Rename(s.side(), elsewhere))
	must(t, os.Symlink(elsewhere, s.side()))
	must(t, os.Chown(s.main(), 12, 34))
	must(t, os.Chmod(s.main(), 0o640))
	check := func() {
		t.Helper()
		info, err := os.Stat(s.main())
		must(t, err)
		if stat := info.Sys().(*syscall.Stat_t); info.Mode() != 0o640 || stat.Uid != 12 || stat.Gid != 34 {
			t.Errorf("main.conf is %v of %d:%d", info.Mode(), stat.Uid, stat.Gid)
		}
		if to, err := os.Readlink(s.side()); err != nil || to != elsewhere {
			t.Errorf("the link leads to %q, %v", to, err)
		}
		s.check(t, "A")
	}
	report := s.engine().Apply(t.Context(), s.service(), s.wanted("A"), last)
	if report.Outcome != checkin.OutcomeUnchanged || report.Drifted != nil || !Undisturbed(last) {
		t.Errorf("with the content as it was: %+v", report)
	}
	check()

	must(t, os.WriteFile(elsewhere, []byte("edited"), 0o644))
	must(t, os.WriteFile(s.main(), []byte("edited too"), 0o644))
	if Undisturbed(last) {
		t.Error("the edits were not seen")
	}
	report = s.engine().Apply(t.Context(), s.service(), s.wanted("A"), last)
	if diff := cmp.Diff([]string{s.side(), s.main()}, report.Drifted); diff != "" || report.Outcome != checkin.OutcomeApplied {
		t.Errorf("%s: %s", report.Outcome, diff)
	}
	check()

	// Going back after an edit leaves them too.
	s.refuses = "B"
	if report := s.engine().Apply(t.Context(), s.service(), s.wanted("B"), last); report.Outcome != checkin.OutcomeRolledBack {
		t.Errorf("got %s %s", report.Outcome, report.Message)
	}
	check()
}

func TestAFileThatWasRemovedIsDrift(t *testing.T) {
	s := newSite(t)
	s.runs(t, "A")
	last := s.engine().Apply(t.Context(), s.service(), s.wanted("A"), nil).Digests
	must(t, os.Remove(s.side()))
	report := s.engine().Apply(t.Context(), s.service(), s.wanted("A"), last)
	if diff := cmp.Diff([]string{s.side()}, report.Drifted); diff != "" || report.Outcome != checkin.OutcomeApplied {
		t.Errorf("%s: %s", report.Outcome, diff)
	}
	s.check(t, "A")
}

func TestOriginalIsPreservedOnce(t *testing.T) {
	s := newSite(t)
	s.runs(t, "A")
	must(t, os.WriteFile(s.main(), []byte("Debian's"), 0o640))
	last := s.engine().Apply(t.Context(), s.service(), s.wanted("B"), nil).Digests
	last = s.engine().Apply(t.Context(), s.service(), s.wanted("C"), last).Digests
	s.engine().Apply(t.Context(), s.service(), s.wanted("D"), nil)
	got, err := os.ReadFile(s.main() + OriginalSuffix)
	must(t, err)
	if string(got) != "Debian's" {
		t.Errorf("the original is %q", got)
	}
	if last == nil {
		t.Error("no digests")
	}
}

func TestFailedApplyIsTriedAgain(t *testing.T) {
	s := newSite(t)
	s.runs(t, "A")
	s.testFault = errors.New("disk is full")
	if report := s.engine().Apply(t.Context(), s.service(), s.wanted("B"), nil); report.Outcome != checkin.OutcomeRejected {
		t.Errorf("got %s", report.Outcome)
	}
	s.testFault = nil
	if report := s.engine().Apply(t.Context(), s.service(), s.wanted("B"), nil); report.Outcome != checkin.OutcomeApplied {
		t.Errorf("got %s %s", report.Outcome, report.Message)
	}
	s.check(t, "B")
}

func TestWithoutReloadOnlyFilesAreWritten(t *testing.T) {
	s := newSite(t)
	s.dir = filepath.Join(s.dir, "etc", "nginx") // is made
	s.notReady = errors.New("no bus")
	e := s.engine()
	e.Reload = false
	for _, want := range []checkin.Outcome{checkin.OutcomeApplied, checkin.OutcomeUnchanged} {
		report := e.Apply(t.Context(), s.service(), s.wanted("B"), nil)
		if report.Outcome != want || report.Message != "" {
			t.Errorf("got %s %q, want %s", report.Outcome, report.Message, want)
		}
	}
	if s.activations != 0 || s.tests != 1 {
		t.Errorf("%d activations, %d tests", s.activations, s.tests)
	}
	s.checkClean(t)
}

func TestNothingIsBegunThatCannotBeProvenInTime(t *testing.T) {
	s := newSite(t)
	s.runs(t, "A")
	s.testTime, s.least = time.Minute, time.Minute
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	report := s.engine().Apply(ctx, s.service(), s.wanted("B"), nil)
	if report.Outcome != checkin.OutcomeRejected || !strings.Contains(report.Message, "proving it may take 1m1s") {
		t.Errorf("got %s %q", report.Outcome, report.Message)
	}
	s.check(t, "A")
}

// A large site takes long to test, and a manager that does not answer takes a
// third of the pass: what is left has to do.
func TestTheProofIsCutToTheTimeThatIsLeft(t *testing.T) {
	s := newSite(t)
	s.runs(t, "A")
	s.testTime, s.least = time.Minute, 5*time.Second
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	report := s.engine().Apply(ctx, s.service(), s.wanted("B"), nil)
	if report.Outcome != checkin.OutcomeApplied || s.window < 5*time.Second || s.window > 29*time.Second {
		t.Errorf("got %s %q with a window of %v", report.Outcome, report.Message, s.window)
	}
	s.check(t, "B")
}

// The time in which the process is watched has to fit in too, and not where
// things went back.
func TestTheWatchAfterTheProof(t *testing.T) {
	s := newSite(t)
	s.runs(t, "A")
	s.testTime, s.least = time.Minute, 5*time.Second
	service := s.service()
	service.Steady = 3 * time.Second
	apply := func(left time.Duration, revision string) Report {
		ctx, cancel := context.WithTimeout(t.Context(), left)
		defer cancel()
		return s.engine().Apply(ctx, service, s.wanted(revision), nil)
	}
	if report := apply(6500*time.Millisecond, "B"); report.Outcome != checkin.OutcomeRejected || !strings.Contains(report.Message, "proving it may take 7s") {
		t.Errorf("with too little time: %s %q", report.Outcome, report.Message)
	}
	if report := apply(20*time.Second, "B"); report.Outcome != checkin.OutcomeApplied || s.steady != 3*time.Second || s.window > 18*time.Second {
		t.Errorf("%s %q, watched for %v after a window of %v", report.Outcome, report.Message, s.steady, s.window)
	}
	s.refuses = "C"
	if report := apply(20*time.Second, "C"); report.Outcome != checkin.OutcomeRolledBack || s.steady != 0 {
		t.Errorf("%s %q, watched for %v after going back", report.Outcome, report.Message, s.steady)
	}
	s.check(t, "B")
}

// SIGTERM cancels the context. Whatever has been reached, the site ends with
// one configuration, in its files and in its process.
func TestCancelledAtEachStep(t *testing.T) {
	for _, step := range steps(t, "") {
		t.Run(step, func(t *testing.T) {
			s := newSite(t)
			s.runs(t, "A")
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			e := s.engine()
			e.reached = func(now string) {
				if now == step {
					cancel()
				}
			}
			switch report := e.Apply(ctx, s.service(), s.wanted("B"), nil); report.Outcome {
			case checkin.OutcomeApplied:
				s.check(t, "B")
			case checkin.OutcomeRejected:
				s.check(t, "A")
				if !strings.Contains(report.Message, "before any live file was written") {
					t.Error(report.Message)
				}
			default:
				t.Errorf("got %s %s", report.Outcome, report.Message)
			}
		})
	}
}

// steps returns the names of the steps that an apply goes through, where the
// process refuses the given revision.
func steps(t *testing.T, refuses string) []string {
	t.Helper()
	s := newSite(t)
	s.runs(t, "A")
	s.refuses = refuses
	var names []string
	e := s.engine()
	e.reached = func(step string) { names = append(names, step) }
	e.Apply(t.Context(), s.service(), s.wanted("B"), nil)
	return names
}
