package store

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Sites returns the counters of all sites.
func (v Versions) Sites() map[int64]uint64 { return maps.Clone(v.sites) }

// ReportCounters returns, by site, the counters of what agents tell. One moves
// when an agent of the site appears, tells something new or is forgotten; its
// heartbeats do not count.
func (s *Store) ReportCounters(ctx context.Context) (map[int64]uint64, error) {
	var rows []struct {
		SiteID  int64
		Version uint64
	}
	if err := s.read.WithContext(ctx).Raw("SELECT site_id, version FROM report_counters").Scan(&rows).Error; err != nil {
		return nil, fmt.Errorf("read counters of reports: %w", err)
	}
	counters := make(map[int64]uint64, len(rows))
	for _, row := range rows {
		counters[row.SiteID] = row.Version
	}
	return counters, nil
}

// AgentsToldAt returns, by site and id, when the agents last told something
// new: those of one site, or all if siteID is 0.
func (s *Store) AgentsToldAt(ctx context.Context, siteID int64) (map[int64]map[int64]time.Time, error) {
	var rows []Agent
	query := where(s.read.WithContext(ctx), "site_id", siteID)
	if err := query.Select("id", "site_id", "changed_at").Find(&rows).Error; err != nil {
		return nil, fmt.Errorf("read when agents told something new: %w", err)
	}
	told := map[int64]map[int64]time.Time{}
	for _, row := range rows {
		if told[row.SiteID] == nil {
			told[row.SiteID] = map[int64]time.Time{}
		}
		told[row.SiteID][row.ID] = row.ChangedAt.UTC()
	}
	return told, nil
}

// EventMark is an event, as far as live pages need to know it.
type EventMark struct {
	ID      int64  `json:"id"`
	SiteID  int64  `json:"siteId"`
	AgentID int64  `json:"agentId"`
	Kind    string `json:"kind"`
}

// latestEvents is how many events LatestEvents returns.
const latestEvents = 200

// LatestEvents returns the latest events, the oldest of them first. PostgreSQL
// may commit an event after one of a higher id: whoever compares what this
// returns with what it returned before misses none of them.
func (s *Store) LatestEvents(ctx context.Context) ([]EventMark, error) {
	var rows []EventMark
	err := s.read.WithContext(ctx).Table("events").Select("id", "site_id", "agent_id", "kind").
		Order("id DESC").Limit(latestEvents).Find(&rows).Error
	if err != nil {
		return nil, fmt.Errorf("read latest events: %w", err)
	}
	slices.Reverse(rows)
	return rows, nil
}
