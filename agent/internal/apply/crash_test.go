package apply

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"

	"opensource.internal/agent/checkin"
	"opensource.internal/agent/internal/atomicfile"
)

// crash tells a child process what to apply and after which step to die.
type crash struct {
	Dir, Refuses, Step string
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
	s := &site{dir: c.Dir, refuses: c.Refuses}
	e := engine()
	e.reached = func(step string) {
		if step == c.Step {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	e.Apply(context.Background(), s.service(), s.wanted("B"), nil)
	os.Exit(0) // not reached by a step that exists
}

func die(t *testing.T, s *site, step string) {
	t.Helper()
	order, err := json.Marshal(crash{s.dir, s.refuses, step})
	must(t, err)
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), crashVariable+"="+string(order))
	err = child.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the child was not killed at %q: %v", step, err)
	}
}

// Whenever a run is killed, the next one ends with what is wanted then, whole,
// in the files and in the process. Wanted may be the same, or something newer,
// or again what there was before.
func TestKilledAtEachStep(t *testing.T) {
	for _, refuses := range []string{"", "B"} {
		for _, step := range steps(t, refuses) {
			for _, next := range []string{"A", "B", "C"} {
				t.Run(refuses+" "+step+" then "+next, func(t *testing.T) {
					s := newSite(t)
					s.runs(t, "A")
					s.refuses = refuses
					die(t, s, step)
					s.refuses = ""

					report := engine().Apply(t.Context(), s.service(), s.wanted(next), nil)
					if !slices.Contains([]checkin.Outcome{checkin.OutcomeApplied, checkin.OutcomeUnchanged}, report.Outcome) {
						t.Errorf("got %s %s", report.Outcome, report.Message)
					}
					s.check(t, next)
				})
			}
		}
	}
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
				report := engine().Apply(t.Context(), s.service(), s.wanted(next), nil)
				if report.Outcome != checkin.OutcomeRolledBack {
					t.Errorf("got %s %s", report.Outcome, report.Message)
				}
				s.check(t, "A")
			})
		}
	}
}

// A run is killed between two commits, and what is wanted next does not pass
// the test: the half that was committed must not stay.
func TestKilledThenRefused(t *testing.T) {
	for _, step := range []string{"committed hosts", "committed main.conf"} {
		s := newSite(t)
		s.runs(t, "A")
		die(t, s, step)
		s.testFault = errors.New("unknown directive")
		report := engine().Apply(t.Context(), s.service(), s.wanted("C"), nil)
		if report.Outcome != checkin.OutcomeRolledBack || report.Message != "unknown directive" {
			t.Errorf("%s: got %s %s", step, report.Outcome, report.Message)
		}
		s.check(t, "A")
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
		report := engine().Apply(t.Context(), s.service(), s.wanted(next), nil)
		if report.Outcome != checkin.OutcomeApplied {
			t.Errorf("then %s: got %s %s", next, report.Outcome, report.Message)
		}
		s.check(t, next)
	}
}

// Between a killed run and the next one, somebody has the process read its
// side files: it shows the wanted revision, but not the main file's content.
func TestKilledThenSignalledByHand(t *testing.T) {
	s := newSite(t)
	s.runs(t, "A")
	die(t, s, "committed main.conf")
	s.load(false)
	engine().Apply(t.Context(), s.service(), s.wanted("B"), nil)
	s.check(t, "B")
}

func TestWhatAKilledRunWroteIsNoDrift(t *testing.T) {
	s := newSite(t)
	s.runs(t, "A")
	last := engine().Apply(t.Context(), s.service(), s.wanted("A"), nil).Digests
	die(t, s, "committed main.conf")
	report := engine().Apply(t.Context(), s.service(), s.wanted("A"), last)
	if report.Drifted != nil {
		t.Errorf("told as drift: %v", report.Drifted)
	}
	s.check(t, "A")
}
