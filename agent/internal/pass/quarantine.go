package pass

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"opensource.internal/agent/checkin"
	"opensource.internal/agent/internal/apply"
	"opensource.internal/agent/internal/services"
	"opensource.internal/agent/internal/state"
	"opensource.internal/agent/render"
)

// The bounds of a search for the records that a service's program refuses.
const (
	// maxTests is how many candidates are tested, over as many passes as that
	// takes: each test of nginx binds its ports.
	maxTests = 64
	// One record of so many is left out at most. A configuration that is refused
	// for more of them has another fault than its records.
	maxShare = 4
)

// Why a search ended before the service was in force.
var (
	errNotRecords = errors.New("no record is to blame")
	errNoTime     = errors.New("the search for the record at fault goes on with the next try")
)

// wholeError says why the configuration is refused as a whole.
type wholeError string

func (e wholeError) Error() string { return string(e) }

// search puts a service into force without the records that its own program
// refuses. What it has found is told by conclude, in state.Service.
type search struct {
	pass        *pass
	service     services.Service
	previous    state.Service // as the service stood before
	fingerprint string
	facts       render.Facts             // with what is refused
	refused     []render.Record          // in the order in which they were found
	lines       map[render.Record]string // what was rendered for those, see linesOf

	// known is what an earlier search has found, as long as this one has not
	// taken it over: it may be good again.
	known []state.Refused
	// anew is true if nothing was left out at first. If just this is in force
	// without what is known, stands is true.
	anew, stands bool
	// asWhole is true if just this was refused as a whole a while ago: it is
	// tested, since something has disturbed the service, but not searched.
	asWhole bool

	before map[string]string // the live files, by path
	edited *apply.Report     // tells which of them somebody else had changed
	looked bool              // for previous versions
	tests  int               // candidates tested so far, by earlier passes too
	tested time.Duration     // what the test of the whole takes
	found  bool              // that another record is refused
	ended  error             // why the service is not in force, if the search has ended
}

// newSearch begins where an earlier pass has ended, if it was about the same.
func (p *pass) newSearch(service services.Service, facts render.Facts, previous state.Service, fingerprint string) *search {
	s := &search{pass: p, service: service, previous: previous, fingerprint: fingerprint, facts: facts}
	s.facts.Refused, s.lines = map[render.Record]render.Refusal{}, map[render.Record]string{}
	known := previous.Quarantine
	if known == nil {
		s.anew = true
		return s
	}
	same := known.Fingerprint == fingerprint
	pause := !p.ByHand && waits(previous.Retry, fingerprint, time.Now())
	switch {
	case same && known.Tests > 0: // the pass ended before the search did
		s.tests = known.Tests
		s.refuse(known.Refused)
	case same && pause && inForce(previous.Outcome):
		s.refuse(known.Refused)
	case same && pause:
		s.asWhole, s.known = true, known.Refused
	default:
		s.anew, s.known = true, known.Refused
		s.stands = same && inForce(previous.Outcome)
	}
	return s
}

// refuse takes over what an earlier pass has found.
func (s *search) refuse(items []state.Refused) {
	for _, item := range items {
		record := recordOf(item.QuarantinedItem)
		s.refused, s.lines[record] = append(s.refused, record), item.Lines
		s.facts.Refused[record] = render.Refusal{Reason: item.Reason, Previous: !item.KeptPrevious}
	}
}

// apply applies the service. For as long as its own program refuses it, the
// records at fault are left out, and it is tried again.
func (s *search) apply(ctx context.Context) (render.Result, apply.Report, error) {
	for {
		result, err := s.render()
		if err != nil {
			return result, apply.Report{}, err
		}
		if s.before == nil {
			s.before = contents(result.Files)
		}
		report := s.pass.engine.Apply(ctx, s.service.Service, result, s.previous.Digests)
		s.noteEdits(&report)
		if report.Tested > 0 {
			s.tests, s.tested = s.tests+1, report.Tested
		}
		if inForce(report.Outcome) || s.asWhole {
			return result, report, nil
		}
		if s.ended = s.leaveOut(ctx, result, report); s.ended != nil {
			if !errors.Is(s.ended, errNotRecords) {
				report.Message += "\n" + s.ended.Error()
			}
			return result, report, nil
		}
	}
}

// noteEdits keeps what the first candidate found edited: going back to what was
// in force undoes the edits too.
func (s *search) noteEdits(report *apply.Report) {
	if s.edited == nil {
		s.edited = report
	}
	report.Drifted, report.Managed = s.edited.Drifted, s.edited.Managed
}

// render renders the service without what is refused, and with the previous
// versions there are.
func (s *search) render() (render.Result, error) {
	snapshot := s.pass.accepted.Snapshot
	result, err := s.service.Render(snapshot, s.facts, s.pass.templates)
	if err != nil || len(result.LeftOut) == 0 || s.looked {
		return result, err
	}
	s.looked = true
	running, err := s.pass.dir.LoadRunning(s.service.Name)
	if err != nil {
		s.pass.Log.Warn("going on with less knowledge", "error", err)
	}
	if snapshot.Site == nil || running.Snapshot.Site == nil || running.Snapshot.Site.ID != snapshot.Site.ID {
		return result, nil
	}
	s.facts.Before = &running.Snapshot
	return s.service.Render(snapshot, s.facts, s.pass.templates)
}

// leaveOut refuses the records for which the candidate was not put into force.
// An error says why there is no candidate without them to be tried.
func (s *search) leaveOut(ctx context.Context, result render.Result, report apply.Report) error {
	err := s.refuseGuilty(ctx, result, report)
	if err == nil {
		err = s.affords(ctx, s.toApply())
	}
	if err == nil {
		return nil
	}
	// Where the search ends, what was refused before will do.
	possible := s.stands || !errors.Is(err, errNotRecords) && s.lasts(ctx, s.toApply())
	if ctx.Err() == nil && possible && s.refuseKnown(result) {
		why, _, _ := strings.Cut(report.Message, "\n")
		s.pass.Log.Warn("leaving out what was refused before", "service", s.service.Name, "reason", err, "error", why)
		return nil
	}
	return err
}

// refuseGuilty finds the records at fault, by the lines that the program has
// named or else by tests.
func (s *search) refuseGuilty(ctx context.Context, result render.Result, report apply.Report) error {
	if report.Fault == nil || report.Fault.Elsewhere != "" {
		return errNotRecords
	}
	guilty := s.blamed(result, report.Fault)
	if len(guilty) == 0 {
		if report.Outcome != checkin.OutcomeRejected {
			return errNotRecords // the test has passed, and the process names no line
		}
		// What was refused before is refused still, most likely: one test tells.
		if !s.stands && s.refuseKnown(result) {
			return nil
		}
		var err error
		if guilty, err = s.bisect(ctx, result); err != nil {
			return err
		}
	}
	s.add(guilty, result)
	if refused, most := len(s.refused), s.most(result); refused > most {
		return wholeError(fmt.Sprintf("at least %d records are refused, and no more than %d may be left out: nothing is changed", refused, most))
	}
	return nil
}

// add refuses records, or the previous version of one if that is what was
// rendered.
func (s *search) add(guilty []guilt, result render.Result) {
	lines := linesOf(result.Files)
	for _, g := range guilty {
		refusal, known := s.facts.Refused[g.record]
		if !known {
			refusal.Reason = checkin.CleanMessage(strings.ReplaceAll(g.words, "\n", "; "), checkin.MaxMessage)
			s.refused, s.lines[g.record] = append(s.refused, g.record), lines[g.record]
		}
		refusal.Previous = keepsPrevious(result, g.record)
		s.facts.Refused[g.record] = refusal
		s.found = true
	}
}

// refuseKnown refuses, once, what an earlier search has found, as far as it is
// still there and made of the same lines: one that somebody has corrected gets
// its chance at once. It reports whether there was anything.
func (s *search) refuseKnown(result render.Result) bool {
	records, lines := recordsOf(result.Files...), linesOf(result.Files)
	var still []guilt
	for _, item := range s.known {
		for _, record := range records {
			same := record.Key() == recordOf(item.QuarantinedItem).Key() && lines[record] == item.Lines
			if _, refused := s.facts.Refused[record]; same && !refused {
				still = append(still, guilt{record, item.Reason})
			}
		}
	}
	s.known = nil
	if len(s.refused)+len(still) > s.most(result) {
		return false
	}
	s.add(still, result)
	return len(still) > 0
}

// most is how many records may be refused.
func (s *search) most(result render.Result) int {
	all := map[render.Record]bool{}
	for _, record := range append(recordsOf(result.Files...), s.refused...) {
		all[record] = true
	}
	return max(1, len(all)/maxShare)
}

// affords returns an error if there may be no further test, or the pass does not
// last for as long as is needed. One more test is kept for a candidate without
// what was refused before.
func (s *search) affords(ctx context.Context, needed time.Duration) error {
	tests := 1
	if len(s.known) > 0 && !s.stands {
		tests, needed = 2, needed+s.tested
	}
	if s.tests+tests > maxTests {
		return wholeError(fmt.Sprintf("after %d tests it is refused still, without %d records that are refused too: nothing is changed", s.tests, len(s.refused)))
	}
	if !s.lasts(ctx, needed) {
		return errNoTime
	}
	return nil
}

// lasts reports whether the pass lasts for so long.
func (s *search) lasts(ctx context.Context, needed time.Duration) bool {
	deadline, limited := ctx.Deadline()
	return ctx.Err() == nil && (!limited || time.Until(deadline) >= needed)
}

// toApply is the time needed to test a candidate and to put it into force.
func (s *search) toApply() time.Duration {
	return s.tested + s.pass.engine.Needs(s.service.Service, s.tested)
}
