package pass

import (
	"encoding/json"
	"errors"
	"slices"
	"time"

	"opensource.internal/agent/checkin"
	"opensource.internal/agent/internal/services"
	"opensource.internal/agent/internal/state"
	"opensource.internal/agent/render"
)

// conclude notes what the search has come to: what is told of it, and what the
// next pass has to know.
func (s *search) conclude(now *state.Service, result render.Result) {
	now.Quarantined = s.leftOut(result, now.Outcome)
	now.Quarantine = s.memory(result, now.Outcome)
	now.Retry = s.retry(now.Outcome)
}

// leftOut lists the records that are not as they are wanted, and those for which
// the candidate was refused. Where none is in force, those refused before are
// still left out of what is.
func (s *search) leftOut(result render.Result, outcome checkin.Outcome) []checkin.QuarantinedItem {
	items := slices.Clone(result.LeftOut)
	add := func(more checkin.QuarantinedItem) {
		if !slices.ContainsFunc(items, func(item checkin.QuarantinedItem) bool { return recordOf(item) == recordOf(more) }) {
			items = append(items, more)
		}
	}
	for _, record := range s.refused {
		add(itemOf(record, s.facts.Refused[record]))
	}
	if !inForce(outcome) && !s.found {
		for _, item := range s.known {
			add(item.QuarantinedItem)
		}
	}
	return items
}

// memory is what the next pass has to know of refused records.
func (s *search) memory(result render.Result, outcome checkin.Outcome) *state.Quarantine {
	now := &state.Quarantine{Fingerprint: s.fingerprint}
	for _, record := range s.refused {
		item := itemOf(record, s.facts.Refused[record])
		item.KeptPrevious = !s.facts.Refused[record].Previous && (!inForce(outcome) || keepsPrevious(result, record))
		now.Refused = append(now.Refused, state.Refused{QuarantinedItem: item, Lines: s.lines[record]})
	}
	var whole wholeError
	switch {
	case inForce(outcome) && len(now.Refused) == 0:
		return nil
	case inForce(outcome) || errors.As(s.ended, &whole):
		return now
	case errors.Is(s.ended, errNoTime) || s.found:
		now.Tests = max(1, s.tests)
		return now
	}
	return s.previous.Quarantine
}

// retry says when the service is tried again as it is wanted; nil is with the
// next pass, or with the next change if all is in force. A search that gets on
// goes on at once.
func (s *search) retry(outcome checkin.Outcome) *state.Retry {
	previous := s.previous.Retry
	switch {
	case errors.Is(s.ended, errNoTime) && s.found, inForce(outcome) && len(s.refused) == 0:
		return nil
	case inForce(outcome) && !s.anew && !s.found && previous != nil:
		return previous
	}
	return nextTry(previous, s.fingerprint, time.Now())
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
