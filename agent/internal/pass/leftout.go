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
