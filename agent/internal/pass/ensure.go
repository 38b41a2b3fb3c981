package pass

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/aymanbagabas/go-udiff"

	"opensource.internal/agent/checkin"
	"opensource.internal/agent/internal/host"
	"opensource.internal/agent/internal/services"
	"opensource.internal/agent/internal/state"
	"opensource.internal/agent/internal/volumes"
	"opensource.internal/agent/render"
)

// look finds out how host and services stand.
func (p *pass) look(ctx context.Context) {
	p.probe(ctx)
	p.askUnits(ctx)
}

// probe finds out what the host can do, for the accepted snapshot.
func (p *pass) probe(ctx context.Context) {
	p.facts = host.Probe(ctx, host.Inputs{
		Root:     p.Root,
		StateDir: p.StateDirectory,
		Domains:  domains(p.accepted.Snapshot),
		CertDir:  p.paths.CertDir,
		KeyDir:   p.paths.KeyDir,
		Cache:    p.state.Host,
	})
	p.state.Host = p.facts.Cache
	for _, warning := range p.facts.Warnings {
		p.warnOnce(warning.Error())
	}
}

// warnOnce logs what is known to be wrong with the host, once a pass.
func (p *pass) warnOnce(text string) {
	if p.warned == nil {
		p.warned = map[string]bool{}
	}
	if !p.warned[text] {
		p.warned[text] = true
		p.Log.Warn(text)
	}
}

// domains returns the external domains of a snapshot, each once.
func domains(s checkin.Snapshot) []string {
	var names []string
	for _, domain := range s.NGINX.ExternalDomains {
		names = append(names, domain.Name)
	}
	for _, service := range s.NGINX.HTTPServices {
		names = append(names, service.ExternalDomain.Name)
	}
	sort.Strings(names)
	return slices.Compact(names)
}

// askUnits asks systemd for the state of every unit.
func (p *pass) askUnits(ctx context.Context) {
	p.unitStates = map[string]string{}
	for _, service := range p.services {
		p.unitStates[service.Name] = checkin.StateUnknown
		if p.Root != "" {
			continue
		}
		active, err := p.units.ActiveState(ctx, service.Unit)
		if err != nil {
			p.Log.Warn("state unknown", "service", service.Name, "error", err)
			continue
		}
		p.unitStates[service.Name] = active
	}
}

// ensure makes what is on disk and running what the accepted snapshot means.
// Services and volumes do not wait for each other.
func (p *pass) ensure(ctx context.Context) {
	if p.accepted.Data == nil {
		p.Log.Debug("nothing to put into force: no snapshot was ever accepted")
		return
	}
	ctx, cancel := context.WithDeadline(ctx, p.started.Add(workLimit))
	defer cancel()
	p.ensured = digest(p.accepted.Data)
	p.probe(ctx)

	var running sync.WaitGroup
	running.Go(func() { p.ensureVolumes(ctx) })
	p.ensureServices(ctx)
	running.Wait()

	p.noteRunning()
	p.save()
}

// ensureVolumes makes sure of the volume directories and notes results that
// are new.
func (p *pass) ensureVolumes(ctx context.Context) {
	if p.accepted.Snapshot.Site == nil {
		return
	}
	v := &p.state.Volumes
	results, records := volumes.Ensure(ctx, p.accepted.Snapshot.Site.Volumes, v.Records, volumes.Options{Root: p.Root})
	v.Records = records
	for id, result := range results {
		if previous, known := v.Results[id]; known && previous == result {
			continue
		}
		v.Told = false
		if result.Applied {
			p.Log.Info("volume ready", "volume", id, "message", result.Message)
		} else {
			p.Log.Error("volume failed", "volume", id, "message", result.Message)
		}
	}
	v.Results = results
}

// ensureServices applies every managed service, unless nothing at all has
// changed since everything was in force.
func (p *pass) ensureServices(ctx context.Context) {
	fingerprint := p.fingerprint()
	if fingerprint == p.state.Fingerprint && p.undisturbed() {
		p.noteReceived()
		return
	}
	for domain, note := range p.facts.CertificateNotes {
		p.Log.Warn("certificate", "domain", domain, "error", note)
	}
	facts := p.renderFacts()
	results := make([]state.Service, len(p.services))
	var running sync.WaitGroup
	for i, service := range p.services {
		previous := p.state.Services[service.Name]
		running.Go(func() { results[i] = p.ensureService(ctx, service, facts, previous) })
	}
	running.Wait()

	p.state.Fingerprint = fingerprint
	for i, service := range p.services {
		p.state.Services[service.Name] = results[i]
		if !inForce(results[i].Outcome) {
			p.state.Fingerprint = ""
		}
	}
	p.askUnits(ctx)
}

// ensureService renders and applies one service, and says how it stands then.
func (p *pass) ensureService(ctx context.Context, service services.Service, facts render.Facts, previous state.Service) state.Service {
	now := previous
	now.ReceivedETag = p.accepted.ETag
	result, err := service.Render(p.accepted.Snapshot, facts, p.templates)
	if err != nil {
		p.Log.Error("configuration not applied", "service", service.Name, "message", err)
		now.LastApply, now.Outcome, now.Message = checkin.ApplyFailure, checkin.OutcomeRejected, err.Error()
		return now
	}
	before := contents(result.Files)
	report := p.engine.Apply(ctx, service.Service, result, previous.Digests)

	now.Outcome, now.Message = report.Outcome, report.Message
	now.Quarantined = result.LeftOut
	now.LastApply = lastApply(report.Outcome, result.LeftOut)
	now.Drift = append(now.Drift, drift(report.Drifted, before, result.Files)...)
	if report.Digests != nil {
		now.Digests, now.RunningETag = report.Digests, p.accepted.ETag
	}
	if report.Outcome == checkin.OutcomeSkipped {
		now.Digests = nil // not managed any more: what is there stays as it is
	}
	if report.Outcome == checkin.OutcomeApplied {
		at := time.Now().UTC().Truncate(time.Second)
		now.AppliedAt = &at
	}
	for _, left := range result.LeftOut {
		p.Log.Warn("record left out", "service", service.Name, "kind", left.Kind, "id", left.ID, "name", left.Name, "reason", left.Reason)
	}
	if len(result.LeftOut) > 0 && now.Message == "" {
		now.Message = leftOutMessage(result.LeftOut)
	}
	return now
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
		fmt.Fprintf(&message, "left out: %s %s: %s\n", item.Kind, item.Name, item.Reason)
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
// force, and every service that has one runs.
func (p *pass) undisturbed() bool {
	for _, service := range p.services {
		digests := p.state.Services[service.Name].Digests
		for path, want := range digests {
			content, err := os.ReadFile(path)
			if err != nil || digest(content) != want {
				return false
			}
		}
		if p.Root == "" && len(digests) > 0 && p.unitStates[service.Name] != "active" {
			return false
		}
	}
	return true
}

// noteReceived takes over the tag of a snapshot with the content of the last.
func (p *pass) noteReceived() {
	for name, service := range p.state.Services {
		service.ReceivedETag = p.accepted.ETag
		if service.Digests != nil {
			service.RunningETag = p.accepted.ETag
		}
		p.state.Services[name] = service
	}
}

// noteRunning moves the running tag once everything of the snapshot is in
// force.
func (p *pass) noteRunning() {
	for _, service := range p.services {
		stands := p.state.Services[service.Name]
		if !inForce(stands.Outcome) || stands.LastApply == checkin.ApplyFailure {
			return
		}
	}
	for _, volume := range p.state.Volumes.Results {
		if !volume.Applied {
			return
		}
	}
	if p.accepted.ETag != "" && (p.state.Running == nil || p.state.Running.ETag != p.accepted.ETag) {
		p.state.Running = &checkin.Running{ETag: p.accepted.ETag, Since: time.Now().UTC().Truncate(time.Second)}
		p.Log.Info("everything in force", "etag", p.accepted.ETag)
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

// contents reads the live versions of files; one that cannot be read is
// empty.
func contents(files []render.File) map[string]string {
	live := make(map[string]string, len(files))
	for _, file := range files {
		content, err := os.ReadFile(file.Path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			continue // the engine meets the same fault, and reports it
		}
		live[file.Path] = string(content)
	}
	return live
}

// drift describes what somebody else had changed in managed files.
func drift(drifted []string, before map[string]string, wanted []render.File) []checkin.Drift {
	var found []checkin.Drift
	for _, file := range wanted {
		if slices.Contains(drifted, file.Path) {
			diff := udiff.Unified("managed", "found", string(file.Content), before[file.Path])
			found = append(found, checkin.Drift{Path: file.Path, Diff: beginning(diff, checkin.MaxDiff)})
		}
	}
	return found
}

// beginning cuts text to at most max bytes of valid UTF-8 and says so.
func beginning(text string, max int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= max {
		return text
	}
	const cut = "\n[cut]"
	return strings.ToValidUTF8(text[:max-len(cut)], "") + cut
}
