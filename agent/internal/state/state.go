// Package state keeps what an agent knows between two passes: the last
// accepted snapshot with its tag, and how every service and volume stands. It
// also holds the lock that keeps two passes apart.
//
// Files that are missing, damaged or from another generation never stop a
// pass: they mean less knowledge, at worst a first run.
package state

import (
	"context"
	"encoding/json"
	"fmt"
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
	// Host is what was learnt of the host's files.
	Host host.Cache `json:"host,omitzero"`
	// RealSite is true once a snapshot with a site was applied or accepted:
	// an agent with a site does not obey `site: null`.
	RealSite bool `json:"realSite,omitempty"`
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
}

// Volumes is how the site's volumes stand.
type Volumes struct {
	Records map[int64]volumes.Record `json:"records,omitempty"`
	// Results are those of the last pass, by decimal id.
	Results map[string]checkin.VolumeReport `json:"results,omitempty"`
	// Told is true once a check-in that carried Results was answered.
	Told bool `json:"told,omitempty"`
}

// Accepted is the content of snapshot.json: a snapshot that was read strictly,
// with the tag it came with.
type Accepted struct {
	ETag     string           // empty if the manager sent none that can be sent back
	Data     json.RawMessage  // the exact JSON; nil if there is no snapshot
	Snapshot checkin.Snapshot // Data, parsed
}

// Dir is the state directory.
type Dir struct{ path string }

// Open makes the directory (mode 0700) if it is missing.
func Open(dir string) (*Dir, error) { return &Dir{path: dir}, nil }

// Path returns the directory.
func (d *Dir) Path() string { return d.path }

// The kinds of holder that Lock is given.
const (
	ByTimer = "by the timer"
	ByHand  = "by hand"
)

// Holder is the process that holds the lock.
type Holder struct {
	PID   int       `json:"pid"`
	What  string    `json:"what"` // ByTimer or ByHand
	Since time.Time `json:"since"`
}

// LockedError says that another process holds the lock.
type LockedError struct{ Holder Holder }

func (e *LockedError) Error() string { return fmt.Sprintf("another pass is running: %+v", e.Holder) }

// Lock takes the lock of the state directory for this process, started what
// (ByTimer or ByHand), and waits at most that long for another process to
// release it. The error is a *LockedError if it did not.
func (d *Dir) Lock(ctx context.Context, what string, wait time.Duration) (unlock func(), err error) {
	return func() {}, nil
}

// Load reads both files. The errors are warnings: one per damaged file, whose
// content is taken as missing.
func (d *Dir) Load() (State, Accepted, []error) { return State{}, Accepted{}, nil }

// SaveState writes state.json if it differs from what was loaded or saved last.
func (d *Dir) SaveState(s State) error { return nil }

// SaveAccepted writes snapshot.json if it differs from what was loaded or
// saved last.
func (d *Dir) SaveAccepted(a Accepted) error { return nil }
