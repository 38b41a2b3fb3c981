package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"opensource.internal/agent/checkin"
	"opensource.internal/agent/internal/atomicfile"
	"opensource.internal/agent/render"
)

// crash tells a child process what to apply and after which step to die, if at
// all.
type crash struct {
	Dir, Records, SideName string // see site
	Revision, Refuses      string
	Step                   string
}

const crashVariable = "TEST_APPLY_CRASH"

// TestMain turns the test program into one that kills itself in the middle of
// an apply, if it is told to.
func TestMain(m *testing.M) {
	order := os.Getenv(crashVariable)
	if order == "" {
		os.Exit(m.Run())
	}
	var c crash
	if err := json.Unmarshal([]byte(order), &c); err != nil {
		panic(err)
	}
	s := &site{dir: c.Dir, records: c.Records, sideName: c.SideName, refuses: c.Refuses}
	e := s.engine()
	e.reached = func(step string) {
		if step == c.Step {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	report := e.Apply(context.Background(), s.service(), s.wanted(c.Revision), nil)
	_ = json.NewEncoder(os.Stdout).Encode(report)
	os.Exit(0) // not reached by a step that exists
}

// child prepares a process that applies a revision to the site.
func (s *site) child(t *testing.T, revision, step string) *exec.Cmd {
	t.Helper()
	order, err := json.Marshal(crash{s.dir, s.records, s.sideName, revision, s.refuses, step})
	must(t, err)
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), crashVariable+"="+string(order))
	return child
}

// die has a process apply B and killed after the step.
func die(t *testing.T, s *site, step string) {
	t.Helper()
	dieApplying(t, s, "B", step)
}

func dieApplying(t *testing.T, s *site, revision, step string) {
	t.Helper()
	err := s.child(t, revision, step).Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the child was not killed at %q: %v", step, err)
	}
}

// killed runs a test for every step at which a run that goes from A to B can be
// killed: one that ends well, and one of which the process refuses B. The state
// directory is lost afterwards, or not.
func killed(t *testing.T, lost bool, test func(t *testing.T, s *site, step string)) {
	for _, refuses := range []string{"", "B"} {
		for _, step := range steps(t, refuses) {
			t.Run(fmt.Sprintf("%s, B runs %v, state lost %v", step, refuses == "", lost), func(t *testing.T) {
				s := newSite(t)
				s.runs(t, "A")
				s.refuses = refuses
				die(t, s, step)
				s.refuses = ""
				if lost {
					must(t, os.RemoveAll(s.record()))
				}
				test(t, s, step)
			})
		}
	}
}

func (s *site) record() string { return filepath.Join(s.records, "commit-stub.json") }

// Whenever a run is killed, the next one ends with what is wanted then, whole,
// in the files and in the process. Wanted may be the same, or something newer,
// or again what there was before.
func TestKilledAtEachStep(t *testing.T) {
	for _, next := range []string{"A", "B", "C"} {
		t.Run("then "+next, func(t *testing.T) {
			for _, lost := range []bool{false, true} {
				killed(t, lost, func(t *testing.T, s *site, _ string) {
					report := s.engine().Apply(t.Context(), s.service(), s.wanted(next), nil)
					if !slices.Contains([]checkin.Outcome{checkin.OutcomeApplied, checkin.OutcomeUnchanged}, report.Outcome) {
						t.Errorf("got %s %s", report.Outcome, report.Message)
					}
					s.check(t, next)
				})
			}
		})
	}
}

// What is wanted next does not pass the test, or could not even be rendered,
// or is nothing at all: nothing of the half that was committed may stay. Where
// the new files were proven before the kill, they do.
func TestKilledThenNothingToPutIntoForce(t *testing.T) {
	unrendered := errors.New("render template: unexpected EOF")
	for name, test := range map[string]struct {
		next     func(t *testing.T, s *site) Report
		outcomes []checkin.Outcome
		message  string
	}{
		"refused": {func(t *testing.T, s *site) Report {
			s.testFault = errors.New("unknown directive")
			return s.engine().Apply(t.Context(), s.service(), s.wanted("C"), nil)
		}, []checkin.Outcome{checkin.OutcomeRejected, checkin.OutcomeRolledBack}, "unknown directive"},
		"not rendered": {func(t *testing.T, s *site) Report {
			return s.engine().Refuse(t.Context(), s.service(), unrendered)
		}, []checkin.Outcome{checkin.OutcomeRejected, checkin.OutcomeRolledBack}, unrendered.Error()},
		"skipped": {func(t *testing.T, s *site) Report {
			return s.engine().Apply(t.Context(), s.service(), render.Result{Skipped: "no gateway"}, nil)
		}, []checkin.Outcome{checkin.OutcomeSkipped}, "no gateway"},
	} {
		t.Run(name, func(t *testing.T) {
			killed(t, false, func(t *testing.T, s *site, step string) {
				if name != "refused" && (step == "staged" || step == "tested") {
					return // nothing was replaced; see TestKilledWhileTestingThenSkipped
				}
				report := test.next(t, s)
				if !slices.Contains(test.outcomes, report.Outcome) || report.Message != test.message {
					t.Errorf("got %s %q", report.Outcome, report.Message)
				}
				runs := "A"
				if (step == "settled" || step == "closed") && s.running().Side == "B" {
					runs = "B"
				}
				s.check(t, runs)
			})
		})
	}
}

// Until its first file is replaced a run has no record.
func TestKilledWhileTestingThenSkipped(t *testing.T) {
	for _, step := range []string{"staged", "tested"} {
		s := newSite(t)
		s.runs(t, "A")
		last := s.engine().Apply(t.Context(), s.service(), s.wanted("A"), nil).Digests
		die(t, s, step)
		report := s.engine().Apply(t.Context(), s.service(), render.Result{Skipped: "no gateway"}, last)
		if report.Outcome != checkin.OutcomeSkipped || s.activations != 0 {
			t.Errorf("%s: got %s after %d activations", step, report.Outcome, s.activations)
		}
		s.check(t, "A")
	}
}

// The files of the service are others now: those that are not managed any more
// are as they were before.
func TestKilledThenOtherFilesAreManaged(t *testing.T) {
	for _, refuses := range []string{"", "C"} {
		t.Run(refuses, func(t *testing.T) {
			killed(t, false, func(t *testing.T, s *site, step string) {
				if step == "staged" || step == "tested" {
					return // nothing was replaced; what was staged is cleared away when it is managed again
				}
				proven := step == "settled" || step == "closed" && s.running().Side == "B"
				s.sideName, s.refuses = "names", refuses
				report := s.engine().Apply(t.Context(), s.service(), s.wanted("C"), nil)
				s.refuses = ""
				if refuses == "C" {
					if report.Outcome != checkin.OutcomeRolledBack {
						t.Errorf("got %s %s", report.Outcome, report.Message)
					}
					s.sideName = "hosts"
					must(t, expect(filepath.Join(s.dir, "names"), ""))
					s.load(false) // the stand-in reads one side file only
					if !proven {
						s.check(t, "A")
					}
					return
				}
				if report.Outcome != checkin.OutcomeApplied {
					t.Errorf("got %s %s", report.Outcome, report.Message)
				}
				s.check(t, "C")
				if !proven {
					must(t, expect(filepath.Join(s.dir, "hosts"), "A"))
				}
			})
		})
	}
}

// A run is killed, and the one that makes it good is killed too.
func TestKilledTwice(t *testing.T) {
	for _, first := range []string{"committed hosts", "activated"} {
		for _, side := range []string{"hosts", "names"} {
			for _, second := range append(steps(t, ""), "committed "+side) {
				switch {
				case second == "committed hosts" && side != "hosts", second == "closed":
					continue // not reached, or nothing left to do
				case side != "hosts" && (second == "staged" || second == "tested"):
					continue // staged and not noted: cleared away by the next run that manages it
				}
				t.Run(first+", "+side+" "+second, func(t *testing.T) {
					s := newSite(t)
					s.runs(t, "A")
					die(t, s, first)
					s.sideName = side
					dieApplying(t, s, "C", second)

					s.sideName = "hosts"
					report := s.engine().Apply(t.Context(), s.service(), render.Result{Skipped: "no gateway"}, nil)
					if report.Outcome != checkin.OutcomeSkipped {
						t.Errorf("got %s %s", report.Outcome, report.Message)
					}
					if second == "settled" {
						s.sideName = side
						s.check(t, "C")
						return
					}
					s.load(false) // the stand-in reads one side file only
					s.check(t, "A")
					if side != "hosts" {
						must(t, expect(filepath.Join(s.dir, side), ""))
					}
				})
			}
		}
	}
}

// expect returns an error unless the file has the content; empty for no file.
func expect(path, want string) error {
	content, err := os.ReadFile(path)
	if want == "" && errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil && (want == "" || string(content) != want) {
		err = fmt.Errorf("%s holds %q instead of %q", path, content, want)
	}
	return err
}

// A killed run leaves a configuration that cannot be loaded: the next one goes
// back to the last that could, not to the one it found.
func TestKilledThenRolledBack(t *testing.T) {
	for _, step := range []string{"committed hosts", "committed main.conf"} {
		for _, next := range []string{"B", "C"} {
			t.Run(step+" then "+next, func(t *testing.T) {
				s := newSite(t)
				s.runs(t, "A")
				die(t, s, step)
				s.refuses = next
				report := s.engine().Apply(t.Context(), s.service(), s.wanted(next), nil)
				if report.Outcome != checkin.OutcomeRolledBack {
					t.Errorf("got %s %s", report.Outcome, report.Message)
				}
				s.check(t, "A")
			})
		}
	}
}

// A run is killed when it has put back some of the files.
func TestKilledWhileGoingBack(t *testing.T) {
	for _, next := range []string{"A", "B", "C"} {
		s := newSite(t)
		s.runs(t, "A")
		s.refuses = "B"
		die(t, s, "rolling back")
		must(t, atomicfile.Restore(s.main()))
		s.refuses = ""
		report := s.engine().Apply(t.Context(), s.service(), s.wanted(next), nil)
		if report.Outcome != checkin.OutcomeApplied {
			t.Errorf("then %s: got %s %s", next, report.Outcome, report.Message)
		}
		s.check(t, next)
	}
}

// The process had loaded B and died of it. The files are back when the run is
// killed, so that they look as if nothing had happened: only the record tells
// that the process may run something else.
func TestKilledBeforeTheProcessIsTakenBack(t *testing.T) {
	var s *site
	for name, next := range map[string]func() Report{
		"as before": func() Report { return s.engine().Apply(t.Context(), s.service(), s.wanted("A"), nil) },
		"skipped":   func() Report { return s.engine().Apply(t.Context(), s.service(), render.Result{}, nil) },
		"refused": func() Report {
			s.testFault = errors.New("unknown directive")
			return s.engine().Apply(t.Context(), s.service(), s.wanted("C"), nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s = newSite(t)
			s.runs(t, "A")
			s.refuses = "B"
			die(t, s, "restored")
			s.refuses = ""
			must(t, os.WriteFile(s.process(), []byte(`{"Main":"main B","Side":"B"}`), 0o644))
			if !s.engine().CutShort("stub") {
				t.Error("nobody would look")
			}
			next()
			s.check(t, "A")
		})
	}
}

// Between a killed run and the next one, somebody has the process read its
// side files: it shows the wanted revision, but not the main file's content.
func TestKilledThenSignalledByHand(t *testing.T) {
	s := newSite(t)
	s.runs(t, "A")
	die(t, s, "committed main.conf")
	s.load(false)
	s.engine().Apply(t.Context(), s.service(), s.wanted("B"), nil)
	s.check(t, "B")
}

func TestWhatAKilledRunWroteIsNoDrift(t *testing.T) {
	s := newSite(t)
	s.runs(t, "A")
	last := s.engine().Apply(t.Context(), s.service(), s.wanted("A"), nil).Digests
	die(t, s, "committed main.conf")
	report := s.engine().Apply(t.Context(), s.service(), s.wanted("A"), last)
	if diff := cmp.Diff([]string(nil), report.Drifted); diff != "" {
		t.Errorf("told as drift: %s", diff)
	}
	s.check(t, "A")
}
