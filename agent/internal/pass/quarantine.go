package pass

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
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

// guilt is a record that was refused, and the words of the program about it.
type guilt struct {
	record render.Record
	words  string
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

// blamed returns the records whose lines the program has named.
func (s *search) blamed(result render.Result, fault *apply.Fault) []guilt {
	var guilty []guilt
	for _, place := range fault.Places {
		for _, file := range result.Files {
			if file.Path == place.File {
				guilty = append(guilty, s.blamedIn(file, place)...)
			}
		}
	}
	return guilty
}

// blamedIn returns the records that the lines of a place belong to, none if one
// of the lines belongs to no record. Of several records, one whose line was in
// force before is not at fault.
func (s *search) blamedIn(file render.File, place apply.Place) []guilt {
	lines := strings.Split(string(file.Content), "\n")
	var all, added []guilt
	for _, number := range place.Lines {
		record, ours := file.Lines[number]
		if !ours {
			return nil
		}
		line := lines[number-1]
		g := guilt{record, fmt.Sprintf("%s (in its line: %s)", place.Words, strings.TrimSpace(line))}
		all = append(all, g)
		if !strings.Contains(s.before[file.Path], line+"\n") {
			added = append(added, g)
		}
	}
	if len(added) > 0 {
		return added
	}
	return all
}

// bisect finds a record at fault of which no line was named. It tests one half
// of the records without the other, then half of the half that is refused, and
// so on: all of it takes about as long as one test of the whole. (To look for
// the first record that is one too many would take a test of nearly the whole in
// every step, and blame a single record for what many bring about together.)
func (s *search) bisect(ctx context.Context, result render.Result) ([]guilt, error) {
	if err := s.affords(ctx, 2); err != nil {
		return nil, err
	}
	all := recordsOf(result.Files[len(result.Files)-1]) // the file that is tested
	fault, err := s.test(ctx, all, nil)
	if err != nil {
		return nil, err
	}
	if fault != nil {
		return nil, errNoRecord
	}
	part := all
	for len(part) > 1 {
		half := part[:len(part)/2]
		if fault, err = s.test(ctx, all, half); err != nil {
			return nil, err
		}
		if fault == nil {
			half = part[len(part)/2:]
		}
		part = half
	}
	if fault, err = s.test(ctx, all, part); err != nil {
		return nil, err
	}
	if fault == nil {
		return nil, errNoSingle
	}
	return []guilt{{part[0], fault.Verdict}}, nil
}

// test tests a candidate with only some of all records. The fault is nil if it
// passes.
func (s *search) test(ctx context.Context, all, only []render.Record) (*apply.Fault, error) {
	if err := s.affords(ctx, 1); err != nil {
		return nil, err
	}
	facts := s.facts
	facts.Refused = maps.Clone(s.facts.Refused)
	for _, record := range all {
		facts.Refused[record] = render.Refusal{Previous: true}
	}
	for _, record := range only {
		if refusal, refused := s.facts.Refused[record]; refused {
			facts.Refused[record] = refusal
		} else {
			delete(facts.Refused, record)
		}
	}
	result, err := s.service.Render(s.pass.accepted.Snapshot, facts, s.pass.templates)
	if err != nil {
		return nil, err
	}
	s.tests++
	_, err = s.pass.engine.Test(ctx, s.service.Service, result)
	var fault *apply.Fault
	switch {
	case err == nil:
		return nil, nil
	case ctx.Err() != nil:
		return nil, errNoTime
	case errors.As(err, &fault) && fault.Elsewhere == "":
		return fault, nil
	}
	return nil, err
}

// leftOut lists the records that are not as they are wanted, and those for which
// the candidate was refused.
func (s *search) leftOut(result render.Result) []checkin.QuarantinedItem {
	items := slices.Clone(result.LeftOut)
	for _, record := range s.refused {
		if !slices.ContainsFunc(items, func(item checkin.QuarantinedItem) bool { return recordOf(item) == record }) {
			items = append(items, itemOf(record, s.facts.Refused[record]))
		}
	}
	return items
}

// memory is what the next pass has to know.
func (s *search) memory(result render.Result, outcome checkin.Outcome, fingerprint string, previous *state.Quarantine) *state.Quarantine {
	now := &state.Quarantine{Fingerprint: fingerprint}
	for _, record := range s.refused {
		item := itemOf(record, s.facts.Refused[record])
		item.KeptPrevious = !s.facts.Refused[record].Previous && (!inForce(outcome) || keepsPrevious(result, record))
		now.Refused = append(now.Refused, item)
	}
	switch {
	case inForce(outcome) && len(now.Refused) == 0:
		return nil
	case inForce(outcome) || errors.Is(s.ended, errNoRecord) || errors.Is(s.ended, errNoSingle) || isBound(s.ended):
		return now
	case errors.Is(s.ended, errNoTime) || s.found:
		now.Tests = max(1, s.tests)
		return now
	}
	return previous
}

// retry says when the service is tried again as it is wanted; nil is with the
// next pass, or with the next change if all is in force.
func (s *search) retry(outcome checkin.Outcome, fingerprint string, previous *state.Retry) *state.Retry {
	switch {
	case errors.Is(s.ended, errNoTime), inForce(outcome) && len(s.refused) == 0:
		return nil
	case inForce(outcome) && !s.anew && !s.found && previous != nil:
		return previous
	}
	return nextTry(previous, fingerprint, time.Now())
}

// retestDue reports whether a service is in force without records that it is
// time to try again.
func (p *pass) retestDue(fingerprint string) bool {
	return slices.ContainsFunc(p.services, func(s services.Service) bool {
		stands := p.state.Services[s.Name]
		return stands.Quarantine != nil && !p.held(s.Name) && (p.ByHand || !waits(stands.Retry, fingerprint, time.Now()))
	})
}

// asRendered is the snapshot that is in force when the result is.
func (p *pass) asRendered(result render.Result) (state.Accepted, error) {
	if len(result.LeftOut) == 0 {
		return p.accepted, nil
	}
	data, err := json.Marshal(result.InForce)
	return state.Accepted{ETag: p.accepted.ETag, Data: data, Snapshot: result.InForce}, err
}

// recordsOf returns the records of files in the order of their lines.
func recordsOf(files ...render.File) []render.Record {
	var records []render.Record
	seen := map[render.Record]bool{}
	for _, file := range files {
		for _, line := range slices.Sorted(maps.Keys(file.Lines)) {
			if record := file.Lines[line]; !seen[record] {
				seen[record] = true
				records = append(records, record)
			}
		}
	}
	return records
}

func recordOf(item checkin.QuarantinedItem) render.Record {
	return render.Record{Kind: item.Kind, ID: item.ID, Name: item.Name}
}

func itemOf(record render.Record, refusal render.Refusal) checkin.QuarantinedItem {
	return checkin.QuarantinedItem{Kind: record.Kind, ID: record.ID, Name: record.Name, Reason: refusal.Reason}
}

// keepsPrevious reports whether the previous version of a record was rendered.
func keepsPrevious(result render.Result, record render.Record) bool {
	return slices.ContainsFunc(result.LeftOut, func(item checkin.QuarantinedItem) bool {
		return item.KeptPrevious && recordOf(item) == record
	})
}
