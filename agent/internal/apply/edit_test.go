package apply

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"opensource.internal/agent/checkin"
	"opensource.internal/agent/render"
)

// edited is a site that runs A, with a main file that somebody has edited, and
// an engine that knows what is in force, or not.
func edited(t *testing.T, known bool) (*site, *Engine, map[string]string) {
	t.Helper()
	s := newSite(t)
	s.runs(t, "A")
	last := s.engine().Apply(t.Context(), s.service(), s.wanted("A"), nil).Digests
	must(t, os.WriteFile(s.main(), []byte("edited"), 0o644))
	e := s.engine()
	e.InForce = func(service string) []render.File {
		if !known || service != "stub" {
			return nil
		}
		return s.wanted("A").Files
	}
	return s, e, last
}

// A failed apply goes back to what was in force, not to what somebody has made
// of it: that was never tested.
func TestGoingBackUndoesAnEdit(t *testing.T) {
	for _, revision := range []string{"A", "B"} {
		t.Run("wanted "+revision, func(t *testing.T) {
			s, e, last := edited(t, true)
			s.reloadFaults = []error{errors.New("still could not bind()")}
			report := e.Apply(t.Context(), s.service(), s.wanted(revision), last)
			if report.Outcome != checkin.OutcomeRolledBack || len(report.Drifted) != 1 || string(report.Managed[s.main()]) != "main A" {
				t.Errorf("%+v", report)
			}
			s.check(t, "A")
		})
	}
}

func TestKilledWithAnEdit(t *testing.T) {
	for _, step := range []string{"noted", "committed hosts", "committed main.conf", "activated"} {
		t.Run(step, func(t *testing.T) {
			s, e, last := edited(t, true)
			killed := errors.New("killed")
			e.reached = func(reached string) {
				if reached == step {
					panic(killed)
				}
			}
			func() {
				defer func() {
					if recover() != killed {
						t.Errorf("%q was not reached", step)
					}
				}()
				e.Apply(t.Context(), s.service(), s.wanted("B"), last)
			}()

			s.testFault = errors.New("refused")
			report := s.engine().Apply(t.Context(), s.service(), s.wanted("C"), last)
			if step == "committed main.conf" || step == "activated" {
				if report.Outcome != checkin.OutcomeRolledBack {
					t.Errorf("%+v", report)
				}
				s.check(t, "A")
			} else if report.Outcome != checkin.OutcomeStuck || s.running() != (loaded{"main A", "A"}) {
				t.Errorf("%+v, runs %+v", report, s.running()) // the edit is live still, and refused
			}

			s.testFault = nil
			if report := s.engine().Apply(t.Context(), s.service(), s.wanted("C"), last); report.Outcome != checkin.OutcomeApplied {
				t.Errorf("%+v", report)
			}
			s.check(t, "C")
		})
	}
}

// Where it is not known what was in force, the edit comes back, and is loaded
// if it passes its test.
func TestGoingBackToAnEdit(t *testing.T) {
	for name, refused := range map[string]bool{"fit": false, "refused": true} {
		t.Run(name, func(t *testing.T) {
			s, e, last := edited(t, false)
			s.reloadFaults = []error{errors.New("still could not bind()")}
			service := s.service()
			service.Test = func(_ context.Context, candidate, live string) error {
				if refused && candidate == live {
					return errors.New("no such directive")
				}
				return nil
			}
			report := e.Apply(t.Context(), service, s.wanted("B"), last)
			if content, _ := os.ReadFile(s.main()); string(content) != "edited" || report.Managed[s.main()] != nil {
				t.Errorf("%s, %+v", content, report)
			}
			switch {
			case refused:
				if report.Outcome != checkin.OutcomeStuck || s.running() != (loaded{"main A", "A"}) ||
					!strings.Contains(report.Message, "not loaded, since it is refused, and not what this agent has put there: no such directive") {
					t.Errorf("%+v, runs %+v", report, s.running())
				}
			case report.Outcome != checkin.OutcomeRolledBack || s.running() != (loaded{"edited", "A"}):
				t.Errorf("%+v, runs %+v", report, s.running())
			}
			s.checkClean(t)
		})
	}
}

// A run that could not remember what it had put into force is nobody else.
func TestWhatIsInForceAndNotRememberedIsNoEdit(t *testing.T) {
	s := newSite(t)
	s.runs(t, "A")
	last := s.engine().Apply(t.Context(), s.service(), s.wanted("A"), nil).Digests
	s.runs(t, "B")
	e := s.engine()
	e.InForce = func(string) []render.File { return s.wanted("B").Files }
	s.reloadFaults = []error{errors.New("still could not bind()")}
	report := e.Apply(t.Context(), s.service(), s.wanted("C"), last)
	if report.Outcome != checkin.OutcomeRolledBack || report.Drifted != nil {
		t.Errorf("%+v", report)
	}
	s.check(t, "B")
}

// With its memory, an agent has lost what was in force: what it goes back to may
// be anything.
func TestGoingBackToWhatNobodyKnows(t *testing.T) {
	s, _, _ := edited(t, false)
	s.reloadFaults = []error{errors.New("still could not bind()")}
	service := s.service()
	service.Test = func(_ context.Context, candidate, live string) error {
		if candidate == live {
			return &Fault{Words: "no such directive"}
		}
		return nil
	}
	report := s.engine().Apply(t.Context(), service, s.wanted("B"), nil)
	if report.Outcome != checkin.OutcomeStuck || report.Fault != nil || s.running() != (loaded{"main A", "A"}) {
		t.Errorf("%+v, runs %+v", report, s.running())
	}
}
