package apply

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"opensource.internal/agent/checkin"
)

func TestATestLeavesNothingBehind(t *testing.T) {
	for _, fault := range []error{nil, errors.New("bad line")} {
		s := newSite(t)
		s.runs(t, "good")
		s.testFault = fault
		for _, revision := range []string{"other", "good"} {
			if _, err := s.engine().Test(t.Context(), s.service(), s.wanted(revision)); !errors.Is(err, fault) {
				t.Errorf("%s: got %v, want %v", revision, err, fault)
			}
			s.check(t, "good")
		}
		if s.tests != 2 || s.activations != 0 {
			t.Errorf("%d tests and %d activations", s.tests, s.activations)
		}
	}
}

func TestATestThatCannotBeMadeIsNoVerdict(t *testing.T) {
	s := newSite(t)
	must(t, os.Mkdir(s.main(), 0o755))
	var fault *Fault
	if _, err := s.engine().Test(t.Context(), s.service(), s.wanted("a")); err == nil || errors.As(err, &fault) || s.tests != 0 {
		t.Errorf("got %v after %d tests", err, s.tests)
	}
	s.checkClean(t)
}

func TestAReportTellsTheFault(t *testing.T) {
	said := &Fault{Words: "bad line", Places: []Place{{File: "/a", Lines: []int{3}, Words: "bad"}}}
	s := newSite(t)
	s.runs(t, "good")
	s.testFault = fmt.Errorf("test: %w", said)
	if r := s.engine().Apply(t.Context(), s.service(), s.wanted("bad"), nil); r.Fault != said || r.Outcome != checkin.OutcomeRejected {
		t.Errorf("refused by the test: %+v", r)
	}
	s.testFault = nil
	s.reloadFaults = []error{said}
	if r := s.engine().Apply(t.Context(), s.service(), s.wanted("bad"), nil); r.Fault != said || r.Outcome != checkin.OutcomeRolledBack {
		t.Errorf("refused by the process: %+v", r)
	}
	s.testFault = errors.New("no memory")
	if r := s.engine().Apply(t.Context(), s.service(), s.wanted("bad"), nil); r.Fault != nil || r.Outcome != checkin.OutcomeRejected {
		t.Errorf("no test could be made: %+v", r)
	}
	s.check(t, "good")
}
