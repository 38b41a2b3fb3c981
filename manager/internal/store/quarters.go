package store

import (
	"context"
	"fmt"
	"time"

	"gorm.io/gorm"
)

// Quarter is how the check-ins of an agent went in a quarter hour.
type Quarter struct {
	BeganAt time.Time
	// Looks is how often somebody has looked who is silent: none if no manager
	// was there. Late and Offline is how often the agent was.
	Looks, Late, Offline int
}

// QuarterLength is the length of a quarter.
const QuarterLength = 15 * time.Minute

// quartersKept are those of a day, and the present one.
const quartersKept = int64(24*time.Hour/QuarterLength) + 1

func quarterOf(at time.Time) int64 { return at.Unix() / int64(QuarterLength/time.Second) }

// NoteSilence notes which agents are silent at this moment. As with MarkOffline,
// silence counts only from heardSince on. It is of no concern to who checks in:
// those that are heard need no row.
func (s *Store) NoteSilence(ctx context.Context, heardSince time.Time) error {
	at := now()
	late, offline := OnlineFor+otherManagers, LateFor+otherManagers
	if at.Sub(heardSince) < late {
		return nil
	}
	if err := s.heartbeats.flush(flushWait); err != nil {
		return fmt.Errorf("write heartbeats: %w", err)
	}
	quarter := quarterOf(at)
	return s.update(ctx, func(tx *gorm.DB) error {
		for _, statement := range []struct {
			sql  string
			args []any
		}{
			{`INSERT INTO watched_quarters (quarter, looks) VALUES (?, 1)
				ON CONFLICT (quarter) DO UPDATE SET looks = watched_quarters.looks + 1`, []any{quarter}},
			{
				`INSERT INTO silent_quarters (quarter, agent_id, late, offline)
				SELECT CAST(? AS BIGINT), id, CASE WHEN last_seen_at >= ? THEN 1 ELSE 0 END, CASE WHEN last_seen_at >= ? THEN 0 ELSE 1 END
				FROM agents WHERE last_seen_at < ?
				ON CONFLICT (quarter, agent_id) DO UPDATE SET late = silent_quarters.late + excluded.late, offline = silent_quarters.offline + excluded.offline`,
				[]any{quarter, at.Add(-offline), at.Add(-offline), at.Add(-late)},
			},
			{"DELETE FROM watched_quarters WHERE quarter <= ?", []any{quarter - quartersKept}},
			{"DELETE FROM silent_quarters WHERE quarter <= ?", []any{quarter - quartersKept}},
		} {
			if err := tx.Exec(statement.sql, statement.args...).Error; err != nil {
				return fmt.Errorf("note who is silent: %w", err)
			}
		}
		return nil
	})
}

// Quarters returns the quarters of the day before a moment, the oldest first, and
// the present one: 97 of them.
func (s *Store) Quarters(ctx context.Context, agentID int64, until time.Time) ([]Quarter, error) {
	last := quarterOf(until)
	first := last - quartersKept + 1
	var rows []struct {
		Quarter              int64
		Looks, Late, Offline int
	}
	err := s.reader(ctx).Raw(`SELECT w.quarter, w.looks, COALESCE(q.late, 0) AS late, COALESCE(q.offline, 0) AS offline
		FROM watched_quarters w LEFT JOIN silent_quarters q ON q.quarter = w.quarter AND q.agent_id = ?
		WHERE w.quarter BETWEEN ? AND ?`, agentID, first, last).Scan(&rows).Error
	if err != nil {
		return nil, fmt.Errorf("read how agent %d checked in: %w", agentID, err)
	}
	quarters := make([]Quarter, quartersKept)
	for i := range quarters {
		quarters[i].BeganAt = time.Unix((first+int64(i))*int64(QuarterLength/time.Second), 0).UTC()
	}
	for _, row := range rows {
		at := &quarters[row.Quarter-first]
		at.Looks, at.Late, at.Offline = row.Looks, row.Late, row.Offline
	}
	return quarters, nil
}
