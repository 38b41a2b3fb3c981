package pass

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"opensource.internal/agent/checkin"
	"opensource.internal/agent/internal/volumes"
)

// ensure makes what is on disk and running what the accepted snapshot means.
// Services and volumes do not wait for each other.
func (p *pass) ensure(ctx context.Context) {
	if p.accepted.Data == nil {
		p.Log.Debug("nothing to put into force: no snapshot was ever accepted")
		return
	}
	ctx, cancel := context.WithDeadline(ctx, p.started.Add(workLimit))
	defer cancel()
	p.ensured = p.accepted.Digest()
	p.applied[p.ensured] = true
	p.probe(ctx)

	var running sync.WaitGroup
	site := p.accepted.Snapshot.Site
	running.Go(func() { p.ensureVolumes(ctx, site) })
	p.ensureServices(ctx)
	running.Wait()

	p.probeServices(ctx)
	p.logCertificates()
	if stopped(ctx) {
		p.state.Fingerprint = "" // what was not tried must not pass for being in force
	} else {
		p.noteRunning()
	}
	p.save()
}

// ensureVolumes makes sure of the volume directories and notes results that
// are new.
func (p *pass) ensureVolumes(ctx context.Context, site *checkin.Site) {
	if site == nil {
		return
	}
	v := &p.state.Volumes
	results, records := volumes.Ensure(ctx, site.Volumes, v.Records, volumes.Options{Root: p.Root})
	v.Records = records
	if stopped(ctx) {
		return // volumes that were not tried have not failed
	}
	if !maps.Equal(v.Results, results) {
		v.Told = false
	}
	p.logVolumes(v.Results, results)
	v.Results = results
}

// stopped reports whether the agent was told to stop, as opposed to having run
// out of time.
func stopped(ctx context.Context) bool { return errors.Is(ctx.Err(), context.Canceled) }

// noteRunning moves the running tag once everything of the snapshot is in
// force.
func (p *pass) noteRunning() {
	if p.recovered {
		return
	}
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
