package store

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode"

	"opensource.internal/agent/checkin"
)

// Severity is how bad it is what a report tells.
type Severity int64

// The values of Severity.
const (
	Well    Severity = iota
	Warning          // it works, but somebody should look
	Failing          // something does not run, or not what it was told to run
)

// Summary is what lists of agents are filtered and sorted by: it is taken from
// the report whenever that is written.
type Summary struct {
	Severity     Severity
	Held         int64 // 1 if a service is on hold, or a configuration is held back
	Address      string
	AddressOrder string
	Version      string
	VersionOrder string
	RunningETag  string `gorm:"column:running_etag"`
}

// noneInForce stands for the tag of what runs where an agent tells that nothing is in
// force as a whole. It is no tag.
const noneInForce = "none"

// summaryColumns are those of a Summary.
var summaryColumns = []string{"severity", "held", "address", "address_order", "version", "version_order", "running_etag"}

// summaryOf sums up a report as it is to be understood at a moment.
func summaryOf(report Report, at time.Time) Summary {
	s := Summary{Severity: severityOf(report, at), Address: column(string(report.IPv4Address))}
	if report.Agent != nil {
		s.Version = column(report.Agent.Version)
	}
	switch {
	case report.Running != nil && checkin.ValidETag(report.Running.ETag):
		s.RunningETag = strings.TrimPrefix(report.Running.ETag, "W/")
	case report.Running == nil && report.TellsTags():
		s.RunningETag = noneInForce
	}
	if report.Guard != nil {
		s.Held = 1
	}
	for _, service := range report.Services {
		if service.Hold != nil {
			s.Held = 1
		}
	}
	s.AddressOrder, s.VersionOrder = NumbersInOrder(s.Address), NumbersInOrder(s.Version)
	return s
}

func severityOf(report Report, at time.Time) Severity {
	worst := Well
	if report.Fault != nil || report.Guard != nil {
		worst = Warning
	}
	for _, service := range report.Services {
		worst = max(worst, severityOfService(service))
	}
	for _, pair := range report.Certificates {
		if pair.StateAt(at) != checkin.CertificateOK || pair.Fallback {
			worst = max(worst, Warning)
		}
	}
	for _, probe := range report.Probes {
		if probe.Hop != checkin.HopNone {
			worst = max(worst, Warning)
		}
	}
	return worst
}

func severityOfService(s checkin.ServiceReport) Severity {
	if s.Failing() || s.State == "failed" {
		return Failing
	}
	switch s.State {
	case "inactive", "activating", "deactivating", "reloading":
		return Warning
	}
	if len(s.Quarantined) > 0 || s.Outcome == checkin.OutcomeHeld || s.Outcome == checkin.OutcomeSkipped && !s.Unwanted() {
		return Warning
	}
	return Well
}

// maxColumn is how much of a text that an agent sent goes into a column.
const maxColumn = 100

// column is a text as every database takes it. An agent may send anything.
func column(text string) string {
	letters := []rune(strings.ToValidUTF8(text, ""))
	if len(letters) > maxColumn {
		letters = letters[:maxColumn]
	}
	return strings.Map(func(letter rune) rune {
		if unicode.IsControl(letter) {
			return -1
		}
		return letter
	}, string(letters))
}

var digits = regexp.MustCompile("[0-9]+")

// NumbersInOrder is a text that sorts as people expect it of numbers: 10 comes
// after 9.
func NumbersInOrder(text string) string {
	return digits.ReplaceAllStringFunc(text, func(number string) string {
		return strings.Repeat("0", max(0, 10-len(number))) + number
	})
}

// schemaOfSummaries is the schema that has room for summaries.
const schemaOfSummaries = 11

// summariseAgents brings the summaries of agents that have none up to their
// reports: those that a migration has left.
func summariseAgents(ctx context.Context, db *sql.DB) error {
	reports, err := unsummarised(ctx, db)
	if err != nil {
		return fmt.Errorf("read reports of agents: %w", err)
	}
	for id, report := range reports {
		s := summaryOf(report, time.Now())
		_, err := db.ExecContext(ctx, `UPDATE agents SET severity = $1, held = $2, address = $3, address_order = $4,
			version = $5, version_order = $6, running_etag = $7 WHERE id = $8`,
			s.Severity, s.Held, s.Address, s.AddressOrder, s.Version, s.VersionOrder, s.RunningETag, id)
		if err != nil {
			return fmt.Errorf("summarise agent %d: %w", id, err)
		}
	}
	return nil
}

func unsummarised(ctx context.Context, db *sql.DB) (map[int64]Report, error) {
	rows, err := db.QueryContext(ctx, "SELECT id, report FROM agents WHERE severity < 0")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	reports := map[int64]Report{}
	for rows.Next() {
		var id int64
		var report Report
		if err := rows.Scan(&id, &report); err != nil {
			return nil, err
		}
		reports[id] = report
	}
	return reports, rows.Err()
}
