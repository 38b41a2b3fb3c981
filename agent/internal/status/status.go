// Package status tells how the site of a host stands: from what the last
// passes have noted, the live files, and what systemd says. It only reads,
// takes no lock, and never asks the manager.
package status

import (
	"context"
	"time"

	"opensource.internal/agent/checkin"
	"opensource.internal/agent/internal/pass"
	"opensource.internal/agent/internal/systemd"
)

// Status is the JSON form. Fields are added, never renamed or removed. A list
// or map is never null.
type Status struct {
	At    time.Time `json:"at"`
	Agent Agent     `json:"agent"`
	// Site and Snapshot are null before the first snapshot. Site is null for a
	// site that the manager does not know yet.
	Site     *Site     `json:"site"`
	Snapshot *Snapshot `json:"snapshot"`
	// Running is the latest snapshot that was in force as a whole, or null.
	Running *checkin.Running `json:"running"`
	// Guard is the snapshot that is held back because it removes too much, or
	// null.
	Guard    *checkin.Guard `json:"guard"`
	LastPass *LastPass      `json:"lastPass"`
	// NextPass is when the timer starts the next pass; null if it does not.
	NextPass     *time.Time                      `json:"nextPass"`
	Services     []Service                       `json:"services"`
	Volumes      map[string]checkin.VolumeReport `json:"volumes"`
	Certificates map[string]Certificate          `json:"certificates"`
	// Probes is what the probes of HTTP services have found, by public name.
	Probes map[string]Probe `json:"probes"`
	// Warnings are what could not be found out.
	Warnings []string `json:"warnings"`
	// ExitCode is that of the command: 0, 4 or 5, as of a pass; 4 as well before
	// the first snapshot.
	ExitCode pass.Code `json:"exitCode"`

	timerAsked bool // NextPass is known
}

// Agent is the program itself.
type Agent struct {
	Version string `json:"version"`
	// Templates names the templates that an administrator has overridden.
	Templates []string `json:"templates"`
}

// Site is the site of the accepted snapshot.
type Site struct {
	ID   int64  `json:"id"`
	Name string `json:"name"`
}

// Snapshot is the accepted one: what is meant to be in force.
type Snapshot struct {
	ETag       string    `json:"etag"`
	AcceptedAt time.Time `json:"acceptedAt"`
}

// LastPass is the latest one that the timer has started.
type LastPass struct {
	// Running is true while a pass is running; EndedAt is then of the one before.
	Running bool       `json:"running"`
	EndedAt *time.Time `json:"endedAt"`
	// ExitCode is null if the pass was killed by Signal.
	ExitCode *int `json:"exitCode"`
	Signal   *int `json:"signal"`
}

// Service is how one managed service stands.
type Service struct {
	Name string `json:"name"`
	Unit string `json:"unit"`
	// State is systemd's ActiveState, or "unknown".
	State        string                    `json:"state"`
	LastApply    checkin.LastApply         `json:"lastApply"`
	Outcome      checkin.Outcome           `json:"outcome"`
	Message      string                    `json:"message"`
	ReceivedETag string                    `json:"receivedEtag"`
	RunningETag  string                    `json:"runningEtag"`
	AppliedAt    *time.Time                `json:"appliedAt"`
	Quarantined  []checkin.QuarantinedItem `json:"quarantined"`
	// Failure is null while nothing waits to be tried again.
	Failure *Failure      `json:"failure"`
	Hold    *checkin.Hold `json:"hold"`
	// Drift is what was found changed by others since the manager was told last,
	// and put right unless Outcome is a failure; Edited names the files that are
	// changed at the moment.
	Drift  []checkin.Drift `json:"drift"`
	Edited []string        `json:"edited"`
	// CutShort is true if a pass has not come to the end of an apply. The next
	// one finishes or undoes it.
	CutShort bool `json:"cutShort"`
}

// Failure is an apply that has failed and is tried again, or records that were
// refused and are.
type Failure struct {
	Since time.Time `json:"since"`
	Count int       `json:"count"`
	// Next is when it is tried again, unless something changes before.
	Next time.Time `json:"next"`
}

// Certificate is the pair of one external domain.
type Certificate struct {
	checkin.Certificate
	Note string `json:"note"` // what is wrong with it
}

// Probe is the first hop that fails on the way to an HTTP service, if one does.
type Probe struct {
	checkin.Probe
	At time.Time `json:"at"` // when that was found
}

// The units that run the agent.
const (
	service = "opensource-agent.service"
	timer   = "opensource-agent.timer"
)

// Gather finds out how everything stands. Its error says that this must not be
// read.
func Gather(ctx context.Context, o pass.Options) (Status, error) {
	known := pass.Know(ctx, o)
	s := Status{
		At:           time.Now().UTC().Truncate(time.Second),
		Agent:        Agent{Version: o.Version, Templates: append([]string{}, known.Templates...)},
		Running:      known.Running,
		Guard:        known.Guard,
		Services:     []Service{},
		Volumes:      map[string]checkin.VolumeReport{},
		Certificates: map[string]Certificate{},
		Probes:       map[string]Probe{},
		Warnings:     []string{},
		ExitCode:     known.Code,
	}
	if known.Unread != nil {
		return s, known.Unread
	}
	for _, warning := range known.Warnings {
		s.warn(warning)
	}
	s.snapshot(known)
	if s.Snapshot == nil { // and so nothing is in force
		s.ExitCode = max(s.ExitCode, pass.Rejected)
	}
	for _, service := range known.Services {
		s.Services = append(s.Services, serviceOf(service))
	}
	for id, volume := range known.Volumes {
		s.Volumes[id] = volume
	}
	for domain, certificate := range known.Host.Certificates {
		s.Certificates[domain] = Certificate{Certificate: certificate, Note: known.Host.CertificateNotes[domain]}
	}
	if known.Probes != nil {
		for name, found := range known.Probes.Services {
			s.Probes[name] = Probe(found)
		}
	}
	if o.Root == "" {
		s.passes(ctx)
	}
	return s, nil
}

func (s *Status) warn(err error) {
	if err != nil {
		s.Warnings = append(s.Warnings, err.Error())
	}
}

func (s *Status) snapshot(known pass.Known) {
	if known.Accepted.Data == nil {
		return
	}
	s.Snapshot = &Snapshot{ETag: known.Accepted.ETag, AcceptedAt: known.AcceptedAt.UTC().Truncate(time.Second)}
	if site := known.Accepted.Snapshot.Site; site != nil {
		s.Site = &Site{ID: site.ID, Name: string(site.Name)}
	}
}

func serviceOf(k pass.KnownService) Service {
	s := Service{
		Name: k.Name, Unit: k.Unit, State: k.ActiveState,
		LastApply: k.LastApply, Outcome: k.Outcome, Message: k.Message,
		ReceivedETag: k.ReceivedETag, RunningETag: k.RunningETag, AppliedAt: k.AppliedAt,
		Quarantined: append([]checkin.QuarantinedItem{}, k.Quarantined...),
		Hold:        k.Hold,
		Drift:       append([]checkin.Drift{}, k.Drift...),
		Edited:      append([]string{}, k.Edited...),
		CutShort:    k.CutShort,
	}
	if k.Retry != nil {
		s.Failure = &Failure{Since: k.Retry.Since, Count: k.Retry.Failures, Next: k.Retry.After}
	}
	if s.LastApply == "" {
		s.LastApply = checkin.ApplyUnknown
	}
	return s
}

// passes asks systemd about the passes that the timer starts.
func (s *Status) passes(ctx context.Context) {
	units := systemd.New()
	defer units.Close()
	active, err := units.ActiveState(ctx, service)
	if err != nil {
		s.warn(err)
		return // one warning about systemd is enough
	}
	run, err := units.LastRun(ctx, service)
	s.warn(err)
	s.LastPass = lastPass(active, run)
	next, err := units.NextElapse(ctx, timer)
	s.warn(err)
	s.timerAsked = err == nil
	if !next.IsZero() {
		next = next.UTC().Truncate(time.Second)
		s.NextPass = &next
	}
}

func lastPass(active string, run systemd.Run) *LastPass {
	last := LastPass{Running: active == "activating"}
	switch {
	case !run.Ended.IsZero():
		ended := run.Ended.UTC().Truncate(time.Second)
		last.EndedAt = &ended
		if run.Killed {
			last.Signal = &run.Status
		} else {
			last.ExitCode = &run.Status
		}
	case !last.Running:
		return nil
	}
	return &last
}
