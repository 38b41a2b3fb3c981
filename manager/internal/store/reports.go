package store

import (
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"

	"opensource.internal/agent/checkin"
)

// Report is what an agent told with its latest check-in.
type Report struct {
	checkin.Request
	// Fault says why what is stored cannot be read; the Request is empty then.
	// One damaged report must not hide the other agents. The agent's next
	// check-in replaces it.
	Fault error
}

// Scan implements sql.Scanner. What cannot be read is a Fault, not an error.
func (r *Report) Scan(value any) error {
	*r = Report{}
	switch stored := value.(type) {
	case string:
		r.Fault = json.Unmarshal([]byte(stored), &r.Request)
	case []byte:
		r.Fault = json.Unmarshal(stored, &r.Request)
	default:
		r.Fault = fmt.Errorf("the report is a %T", value)
	}
	if r.Fault != nil {
		r.Request = checkin.Request{} // not the half before the fault
	}
	return nil
}

// Value implements driver.Valuer.
func (r Report) Value() (driver.Value, error) {
	data, err := json.Marshal(r.Request)
	return string(data), err
}

// damagedReports logs each damaged report once: pages read it every few seconds.
type damagedReports struct {
	log  *slog.Logger
	told sync.Map // agent id
}

func (d *damagedReports) tell(agents []Agent) {
	for _, agent := range agents {
		if agent.Report.Fault == nil {
			continue
		}
		if _, told := d.told.LoadOrStore(agent.ID, struct{}{}); !told {
			d.log.Error("the last report of an agent cannot be read",
				"agent", agent.ID, "hostname", agent.Hostname, "site", agent.SiteID, "err", agent.Report.Fault)
		}
	}
}
