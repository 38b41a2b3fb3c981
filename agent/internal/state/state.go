// Package state keeps what an agent knows between two passes: the last
// accepted snapshot with its tag, and how every service and volume stands. It
// also holds the lock that keeps two passes apart.
//
// Files that are missing, damaged or from another generation never stop a
// pass: they mean less knowledge, at worst a first run.
package state

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"opensource.internal/agent/checkin"
	"opensource.internal/agent/internal/host"
	"opensource.internal/agent/internal/volumes"
)

// State is the content of state.json. Every field may be missing.
type State struct {
	// Services is how each managed service stands, by name.
	Services map[string]Service `json:"services,omitempty"`
	Volumes  Volumes            `json:"volumes,omitzero"`
	// Fingerprint is that of the last settled pass.
	Fingerprint string `json:"fingerprint,omitempty"`
	// Running is the snapshot in force as a whole, or nil.
	Running *checkin.Running `json:"running,omitempty"`
	// CertificateNotes are the faults of certificates that were logged, by
	// domain.
	CertificateNotes map[string]string `json:"certificateNotes,omitempty"`
	// Host is what was learnt of the host's files.
	Host host.Cache `json:"host,omitzero"`
	// RealSite is true once a snapshot with a site was accepted: from then on
	// `site: null` is not obeyed any more. Load sets it from snapshot.json too,
	// so that it does not get lost with state.json.
	RealSite bool `json:"realSite,omitempty"`
	// Holds suspend apply for single services, by name.
	Holds map[string]Hold `json:"holds,omitempty"`
	// Guard says what the snapshot of held-back.json would remove, or is nil
	// if none is held back.
	Guard *checkin.Guard `json:"guard,omitempty"`
	// Probes is what the probes of HTTP services have found, or nil if they are
	// off.
	Probes *Probes `json:"probes,omitempty"`
	// MachineID is the hashed id of the machine on which all this was learnt,
	// empty if it had none.
	MachineID string `json:"machineId,omitempty"`
	// Hostname is the name by which the manager knows this agent.
	Hostname string `json:"hostname,omitempty"`
	// Outline is that of the accepted snapshot, or nil.
	Outline *Outline `json:"outline,omitempty"`
}

// Hold suspends apply for a service, from one time until another.
type Hold struct {
	checkin.Hold
	From time.Time `json:"from"`
}

// Service is how the latest apply of a managed service ended.
type Service struct {
	LastApply    checkin.LastApply         `json:"lastApply,omitempty"`
	Outcome      checkin.Outcome           `json:"outcome,omitempty"`
	Message      string                    `json:"message,omitempty"`
	ReceivedETag string                    `json:"receivedEtag,omitempty"`
	RunningETag  string                    `json:"runningEtag,omitempty"`
	AppliedAt    *time.Time                `json:"appliedAt,omitempty"`
	Quarantined  []checkin.QuarantinedItem `json:"quarantined,omitempty"`
	// Drift is kept until a check-in that carried it was answered.
	Drift []checkin.Drift `json:"drift,omitempty"`
	// Digests holds the hexadecimal SHA-256 of every managed file that is in
	// force, by path.
	Digests map[string]string `json:"digests,omitempty"`
	// Retry says when a failed apply is tried again, or one without records that
	// were refused; nil after a success.
	Retry *Retry `json:"retry,omitempty"`
	// Quarantine is nil if the service's own program has refused no record.
	Quarantine *Quarantine `json:"quarantine,omitempty"`
}

// Retry is a failed apply that waits for its next try.
type Retry struct {
	// Fingerprint identifies what was tried: of anything else nothing is known.
	Fingerprint string    `json:"fingerprint"`
	Failures    int       `json:"failures"`
	After       time.Time `json:"after"`
	// Edits identifies what somebody else had made of the files that were in
	// force; empty if they were as they should be.
	Edits string `json:"edits,omitempty"`
	// Since is when the service failed first after it was last in force.
	Since time.Time `json:"since,omitzero"`
}

// Quarantine is what is known of the records that a service's own program has
// refused.
type Quarantine struct {
	// Fingerprint identifies what was tried, as that of a Retry.
	Fingerprint string `json:"fingerprint"`
	// Refused are the records found so far; one that does not keep its previous
	// version is left out.
	Refused []Refused `json:"refused"`
	// Tests is how many candidates a search has tested that has not come to its
	// end; zero after it.
	Tests int `json:"tests,omitempty"`
}

// Refused is a record that a service's own program has refused.
type Refused struct {
	checkin.QuarantinedItem
	// Lines is a digest of what was rendered for it then: made of other lines, it
	// may be good.
	Lines string `json:"lines,omitempty"`
}

// Volumes is how the site's volumes stand.
type Volumes struct {
	Records map[int64]volumes.Record `json:"records,omitempty"`
	// Results are those of the last pass, by decimal id.
	Results map[string]checkin.VolumeReport `json:"results,omitempty"`
	// Told is true once a check-in that carried Results was answered.
	Told bool `json:"told,omitempty"`
}

// Probes is what the latest run of the probes has found, and earlier ones of
// what it has not reached.
type Probes struct {
	At time.Time `json:"at"` // of the latest run
	// Of identifies the configuration that ran then.
	Of       string           `json:"of"`
	Services map[string]Probe `json:"services,omitempty"` // by public name
}

// Probe is what was found of one HTTP service.
type Probe struct {
	checkin.Probe
	At time.Time `json:"at"`
}

// Accepted is the content of snapshot.json: a snapshot that was read strictly,
// with the tag it came with.
type Accepted struct {
	ETag     string           // empty if the manager sent none that can be sent back
	Data     json.RawMessage  // the exact JSON; nil if there is no snapshot
	Snapshot checkin.Snapshot // Data, parsed
	// Outlined is true if Snapshot is not all of Data but its Outline.
	Outlined bool
	// Sum is the digest of Data, if it is known: see Digest.
	Sum string
}

// Digest identifies the content: it is the hexadecimal SHA-256 of Data.
func (a Accepted) Digest() string {
	if a.Sum != "" {
		return a.Sum
	}
	sum := sha256.Sum256(a.Data)
	return hex.EncodeToString(sum[:])
}
