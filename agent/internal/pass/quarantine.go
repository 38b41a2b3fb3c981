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
	errNoTime     = errors.New("the search for the record at fault goes on in the next pass")
	errNoRecord   = errors.New("the fault is in no record: without any of them it is refused too")
	errNoSingle   = errors.New("no record is refused by itself, so none is left out")
)

// boundError says that a bound other than the time was reached.
type boundError string

func (e boundError) Error() string { return string(e) }

func isBound(err error) bool {
	var bound boundError
	return errors.As(err, &bound)
}

// search puts a service into force without the records that its own program
// refuses.
type search struct {
	pass    *pass
	service services.Service
	last    map[string]string // digests of what is in force
	facts   render.Facts      // with what is refused
	refused []render.Record   // in the order in which they were found
	// anew is true if nothing is left out at first: what was refused before may
	// be good again. That is known, from a configuration that has changed since
	// or from the same one.
	anew, changed bool
	known         []checkin.QuarantinedItem
	// asWhole is true if just this was refused as a whole a while ago: it is
	// tested, since something has disturbed the service, but not searched.
	asWhole bool

	before map[string]string // the live files, by path
	looked bool              // for previous versions
	tests  int               // candidates tested so far, by earlier passes too
	tested time.Duration     // what the test of the whole takes
	found  bool              // that another record is refused
	ended  error             // why the service is not in force, if the search has ended
}

func (p *pass) newSearch(service services.Service, facts render.Facts, previous state.Service, fingerprint string) *search {
	s := &search{pass: p, service: service, last: previous.Digests, facts: facts}
	s.facts.Refused = map[render.Record]render.Refusal{}
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
		s.asWhole = true
	default:
		s.anew, s.changed, s.known = true, !same, known.Refused
	}
	return s
}

// refuse takes over what an earlier pass has found.
func (s *search) refuse(items []checkin.QuarantinedItem) {
	for _, item := range items {
		record := recordOf(item)
		s.refused = append(s.refused, record)
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
		report := s.pass.engine.Apply(ctx, s.service.Service, result, s.last)
		if report.Tested > 0 {
			s.tests, s.tested = s.tests+1, report.Tested
		}
		if report.Fault == nil || s.asWhole {
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

// leaveOut refuses the records for which the candidate was refused. An error
// says why there is no candidate without them to be tried.
func (s *search) leaveOut(ctx context.Context, result render.Result, report apply.Report) error {
	err := s.refuseGuilty(ctx, result, report)
	if err == nil {
		err = s.affords(ctx, 1)
	}
	// Where the search ends, what was refused before will do.
	if (errors.Is(err, errNoTime) || isBound(err)) && s.hasTime(ctx, 1) && s.refuseKnown(result) {
		return nil
	}
	return err
}

// refuseGuilty finds the records at fault, by the lines that the program has
// named or else by tests.
func (s *search) refuseGuilty(ctx context.Context, result render.Result, report apply.Report) error {
	if report.Fault.Elsewhere != "" {
		return errNotRecords
	}
	guilty := s.blamed(result, report.Fault)
	if len(guilty) == 0 {
		if report.Outcome != checkin.OutcomeRejected {
			return errNotRecords // the test has passed, and the process names no line
		}
		// What was refused before is refused still, most likely: one test tells.
		if s.changed && s.refuseKnown(result) {
			return nil
		}
		var err error
		if guilty, err = s.bisect(ctx, result); err != nil {
			return err
		}
	}
	for _, g := range guilty {
		s.add(g, result)
	}
	if refused, most := len(s.refused), s.most(result); refused > most {
		return boundError(fmt.Sprintf("at least %d records are refused, and no more than %d may be left out: nothing is changed", refused, most))
	}
	return nil
}

// add refuses a record, or its previous version if that is what was rendered.
func (s *search) add(g guilt, result render.Result) {
	refusal, known := s.facts.Refused[g.record]
	if !known {
		refusal.Reason = checkin.CleanMessage(strings.ReplaceAll(g.words, "\n", "; "), checkin.MaxMessage)
		s.refused = append(s.refused, g.record)
	}
	refusal.Previous = keepsPrevious(result, g.record)
	s.facts.Refused[g.record] = refusal
	s.found = true
}

// refuseKnown refuses, once, what an earlier search has found, as far as it is
// still there. It reports whether there was anything.
func (s *search) refuseKnown(result render.Result) bool {
	var still []guilt
	for _, item := range s.known {
		for _, record := range recordsOf(result.Files...) {
			if _, refused := s.facts.Refused[record]; !refused && record.Key() == recordOf(item).Key() {
				still = append(still, guilt{record, item.Reason})
			}
		}
	}
	s.known = nil
	if len(s.refused)+len(still) > s.most(result) {
		return false
	}
	for _, g := range still {
		s.add(g, result)
	}
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

// affords returns an error if so many further tests of the whole are too many,
// or too long. One more is kept for a candidate without what was refused before.
func (s *search) affords(ctx context.Context, tests int) error {
	if len(s.known) > 0 {
		tests++
	}
	if s.tests+tests > maxTests {
		return boundError(fmt.Sprintf("after %d tests it is refused still, without %d records that are refused too: nothing is changed", s.tests, len(s.refused)))
	}
	if !s.hasTime(ctx, tests) {
		return errNoTime
	}
	return nil
}

// hasTime reports whether the pass lasts for so many tests of the whole, and for
// what follows the last of them.
func (s *search) hasTime(ctx context.Context, tests int) bool {
	deadline, limited := ctx.Deadline()
	needed := time.Duration(tests)*s.tested + s.pass.engine.Needs(s.service.Service, s.tested)
	return ctx.Err() == nil && (!limited || time.Until(deadline) >= needed)
}
