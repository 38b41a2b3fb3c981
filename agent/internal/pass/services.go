package pass

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"opensource.internal/agent/checkin"
	"opensource.internal/agent/internal/apply"
	"opensource.internal/agent/internal/services"
	"opensource.internal/agent/internal/state"
	"opensource.internal/agent/render"
)

// ensureServices applies every managed service, unless nothing at all has
// changed since everything was in force.
func (p *pass) ensureServices(ctx context.Context) {
	fingerprint := p.fingerprint()
	if fingerprint == p.state.Fingerprint && p.undisturbed() && !p.retestDue(fingerprint) {
		p.noteReceived()
		p.logStillLeftOut()
		return
	}
	if err := p.complete(); err != nil {
		p.fault(err)
		return
	}
	facts := p.renderFacts()
	results := make([]state.Service, len(p.services))
	var running sync.WaitGroup
	for i, service := range p.services {
		previous := p.state.Services[service.Name]
		running.Go(func() {
			results[i] = previous
			results[i].ReceivedETag = p.accepted.ETag
			if !p.held(service.Name) && !p.waiting(service, fingerprint) {
				results[i] = p.ensureService(ctx, service, facts, previous, fingerprint)
			}
		})
	}
	running.Wait()

	p.state.Fingerprint = fingerprint
	for i, service := range p.services {
		p.state.Services[service.Name] = results[i]
		if !inForce(results[i].Outcome) && !p.held(service.Name) {
			p.state.Fingerprint = ""
		}
	}
	p.askUnits(ctx)
}

// ensureService renders and applies one service, and says how it stands then.
func (p *pass) ensureService(ctx context.Context, service services.Service, facts render.Facts, previous state.Service, fingerprint string) state.Service {
	now := previous
	now.ReceivedETag = p.accepted.ETag
	search := p.newSearch(service, facts, previous, fingerprint)
	result, report, err := search.apply(ctx)
	if err != nil {
		report = p.engine.Refuse(ctx, service.Service, err)
		if stopped(ctx) {
			return previous
		}
		p.logApply(service.Name, report)
		now.LastApply, now.Outcome, now.Message = checkin.ApplyFailure, report.Outcome, report.Message
		now.Retry = nextTry(previous.Retry, fingerprint, time.Now())
		now.Retry.Edits = apply.Edits(previous.Digests)
		return now
	}
	if report.Outcome == checkin.OutcomeRejected && stopped(ctx) {
		return previous // it was told to stop before anything was tried: no fault
	}
	p.logApply(service.Name, report)
	if search.found {
		p.Log.Info("looked for refused records", "service", service.Name, "refused", len(search.refused), "tests", search.tests)
	}

	now.Outcome, now.Message = report.Outcome, report.Message
	search.conclude(&now, result)
	if now.Retry != nil && !inForce(report.Outcome) {
		now.Retry.Edits = apply.Edits(previous.Digests)
	}
	now.LastApply = lastApply(report.Outcome, now.Quarantined)
	for _, path := range report.Drifted {
		p.Log.Warn("edited by somebody else", "service", service.Name, "path", path, "outcome", report.Outcome)
	}
	now.Drift = latest(now.Drift, drift(report, search.before, result.Files))
	if report.Digests != nil {
		now.Digests, now.RunningETag = report.Digests, p.accepted.ETag
		p.noteInForce(service.Name, result)
	}
	if report.Outcome == checkin.OutcomeSkipped {
		now.Digests = nil // not managed any more: what is there stays as it is
	}
	if report.Outcome == checkin.OutcomeApplied {
		at := time.Now().UTC().Truncate(time.Second)
		now.AppliedAt = &at
	}
	p.logLeftOut(service.Name, now.Outcome, now.Quarantined)
	if len(now.Quarantined) > 0 && now.Message == "" {
		now.Message = leftOutMessage(now.Quarantined)
	}
	return now
}

// filesInForce renders again what a service was given last, as far as that is
// remembered: with other facts or templates it may come out otherwise.
func (p *pass) filesInForce(name string) []render.File {
	at := slices.IndexFunc(p.services, func(s services.Service) bool { return s.Name == name })
	result, err := p.services[at].Render(p.running(name), p.renderFacts(), p.templates)
	if err != nil {
		return nil
	}
	return result.Files
}

// noteInForce remembers what is in force, for the previous versions of records
// that are refused later.
func (p *pass) noteInForce(service string, result render.Result) {
	running, err := p.asRendered(result)
	if err == nil {
		err = p.dir.SaveRunning(service, running)
	}
	if err != nil {
		p.Log.Warn("going on with less knowledge", "error", err)
	}
}

func inForce(outcome checkin.Outcome) bool {
	return outcome == checkin.OutcomeUnchanged || outcome == checkin.OutcomeApplied || outcome == checkin.OutcomeSkipped
}

func lastApply(outcome checkin.Outcome, leftOut []checkin.QuarantinedItem) checkin.LastApply {
	switch {
	case outcome == checkin.OutcomeSkipped:
		return checkin.ApplyUnknown
	case !inForce(outcome) || len(leftOut) > 0:
		return checkin.ApplyFailure
	}
	return checkin.ApplySuccess
}

func leftOutMessage(leftOut []checkin.QuarantinedItem) string {
	var message strings.Builder
	for _, item := range leftOut {
		what := "left out"
		if item.KeptPrevious {
			what = "previous version kept"
		}
		fmt.Fprintf(&message, "%s: %s %s: %s\n", what, item.Kind, item.Name, item.Reason)
	}
	return message.String()
}

// fingerprint identifies everything that decides what should be in force,
// except the live files themselves.
func (p *pass) fingerprint() string {
	facts, _ := json.Marshal(p.renderFacts()) // strings, numbers and addresses only
	hash := sha256.New()
	for _, part := range []string{p.Version, p.ensured, p.templates.Digest(), p.facts.Signature(), string(facts)} {
		fmt.Fprintf(hash, "%d %s\n", len(part), part)
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// undisturbed reports whether every managed file is what was last put into
// force, no pass was cut short while it replaced one, and every service that
// has one runs. One that is held does not count.
func (p *pass) undisturbed() bool {
	return !slices.ContainsFunc(p.services, func(s services.Service) bool {
		return !p.held(s.Name) && (!p.serviceUndisturbed(s) || p.engine.CutShort(s.Name))
	})
}

func (p *pass) serviceUndisturbed(service services.Service) bool {
	return p.runs(service) && apply.Undisturbed(p.state.Services[service.Name].Digests)
}

// runs reports whether a service runs, if it has anything to run.
func (p *pass) runs(service services.Service) bool {
	return p.Root != "" || len(p.state.Services[service.Name].Digests) == 0 || p.unitStates[service.Name] == "active"
}

// noteReceived takes over the tag of a snapshot with the content of the last.
func (p *pass) noteReceived() {
	for name, service := range p.state.Services {
		service.ReceivedETag = p.accepted.ETag
		if service.Digests != nil && !p.held(name) {
			service.RunningETag = p.accepted.ETag
		}
		p.state.Services[name] = service
	}
}

func (p *pass) renderFacts() render.Facts {
	facts := p.facts.Render()
	facts.ManagerUpstream = p.ManagerUpstream
	facts.ManagerHostname = p.ManagerHostname
	facts.DocsRoot = docsRoot(p.Root)
	facts.Paths = p.paths
	return facts
}
