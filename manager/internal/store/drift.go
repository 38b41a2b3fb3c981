package store

import (
	"database/sql/driver"
	"encoding/json"
	"maps"
	"time"

	"opensource.internal/agent/checkin"
)

// driftKept is how long people can see that files were edited on a host. An
// agent tells it with one check-in, and nobody looks in that half minute.
const driftKept = 24 * time.Hour

// maxKept is how much is kept beyond what one check-in tells, in bytes.
const maxKept = 256 << 10

// KeptDrift is what was last found edited, by service.
type KeptDrift map[string]DriftAt

// DriftAt is what one check-in told.
type DriftAt struct {
	At    time.Time       `json:"at" doc:"By the manager's clock"`
	Files []checkin.Drift `json:"files"`
	// Restored is false if the service refused what was to take their place.
	Restored bool `json:"restored" doc:"Whether the edit was undone"`
}

// Recent leaves out what is older than a day, or as far ahead of a clock that
// was set back.
func (d KeptDrift) Recent(now time.Time) KeptDrift {
	recent := KeptDrift{}
	for service, drift := range d {
		if now.Sub(drift.At).Abs() < driftKept {
			recent[service] = drift
		}
	}
	return recent
}

// toldDrift is what a check-in says about edited files.
func toldDrift(c CheckIn) KeptDrift {
	told := KeptDrift{}
	for name, service := range c.Report.Services {
		if len(service.Drift) > 0 {
			told[name] = DriftAt{At: c.At, Files: service.Drift, Restored: !service.Outcome.Failed()}
		}
	}
	return told
}

// addedToKept is told drift with what is kept of other services, as far as that
// is not too much: names of services can be made up without end.
func addedToKept(kept, told KeptDrift) KeptDrift {
	all := maps.Clone(kept)
	maps.Copy(all, told)
	if stored, err := json.Marshal(all); err != nil || len(stored) > maxKept {
		return told
	}
	return all
}

// Scan implements sql.Scanner. Damage costs no more than what is damaged.
func (d *KeptDrift) Scan(value any) error {
	*d = nil
	stored, _ := value.(string)
	if json.Unmarshal([]byte(stored), d) != nil {
		*d = nil
	}
	return nil
}

// Value implements driver.Valuer.
func (d KeptDrift) Value() (driver.Value, error) {
	if d == nil {
		d = KeptDrift{}
	}
	data, err := json.Marshal(d)
	return string(data), err
}
