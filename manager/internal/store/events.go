package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"

	"opensource.internal/manager/internal/events"
	"opensource.internal/manager/internal/inventory"
)

// Event is something that has happened to an agent. The agent, and its site, may
// be gone.
type Event struct {
	ID       int64
	At       time.Time
	SiteID   int64
	AgentID  int64
	Hostname string
	Kind     events.Kind
	Severity events.Severity
	Summary  string
	Detail   Values
}

// EventFilter chooses events. Zero fields choose all.
type EventFilter struct {
	SiteID   int64
	AgentID  int64
	Hostname string
	Kind     events.Kind
	Severity events.Severity
	Since    time.Time // inclusive
	Until    time.Time // exclusive
	// After chooses those that came after the one of this id.
	After int64
}

var eventSort = map[string]string{"at": "at"}

// ListEvents returns a page of events, the newest first, and the number of all
// that match. Sort: id, at. An agent that nobody has ever heard of is an
// *InvalidError and not a list of nothing.
func (s *Store) ListEvents(ctx context.Context, filter EventFilter, opts ListOptions) ([]Event, int64, error) {
	filter.Hostname = inventory.FoldSearch(filter.Hostname)
	query := where(s.reader(ctx), "site_id", filter.SiteID)
	query = where(query, "agent_id", filter.AgentID)
	query = where(query, "hostname", filter.Hostname)
	query = where(query, "kind", filter.Kind)
	query = where(query, "severity", filter.Severity)
	if filter.After > 0 {
		query = query.Where("id > ?", filter.After)
	}
	rows, total, err := list[Event](between(query, filter.Since, filter.Until), opts.newestFirst(), eventSort, "hostname", "summary", "detail")
	if err == nil && total == 0 {
		err = s.requireHeardOf(ctx, filter)
	}
	return rows, total, err
}

// requireHeardOf refuses agents that are not there, and of which no event is kept.
func (s *Store) requireHeardOf(ctx context.Context, filter EventFilter) error {
	if filter.AgentID == 0 && filter.Hostname == "" {
		return nil
	}
	var agents, kept int64
	err := errors.Join(
		where(where(s.reader(ctx).Model(&Agent{}), "id", filter.AgentID), "hostname", filter.Hostname).Count(&agents).Error,
		where(where(s.reader(ctx).Model(&Event{}), "agent_id", filter.AgentID), "hostname", filter.Hostname).Count(&kept).Error)
	if err != nil {
		return fmt.Errorf("look for an agent: %w", err)
	}
	switch {
	case agents+kept > 0:
		return nil
	case filter.AgentID > 0:
		return invalid("agentId", "there is no agent %d, and no event of it", filter.AgentID)
	}
	const some = 10
	var names []string
	if err := s.reader(ctx).Model(&Agent{}).Distinct("hostname").Order("hostname").Limit(some+1).Pluck("hostname", &names).Error; err != nil {
		return fmt.Errorf("list the names of agents: %w", err)
	}
	known := "there are none"
	if len(names) > 0 {
		known = "there are " + strings.Join(names[:min(len(names), some)], ", ")
	}
	if len(names) > some {
		known += " and more"
	}
	return invalid("agent", "there is no agent %q, and no event of it: %s", filter.Hostname, known)
}

// An agent that says something else, or has another name, with every check-in,
// broken or hostile, is not to fill the disk: so many events of a site are kept.
const (
	maxEvents    = 300
	eventsWithin = time.Hour
)

// keepEvents keeps what a report tells in the transaction that records it.
func keepEvents(tx *gorm.DB, agent Agent, at time.Time, happened ...events.Event) error {
	if len(happened) == 0 {
		return nil
	}
	var kept int64
	err := tx.Model(&Event{}).Where("site_id = ? AND at > ?", agent.SiteID, at.UTC().Add(-eventsWithin)).Count(&kept).Error
	if err != nil {
		return fmt.Errorf("count events: %w", err)
	}
	switch room := maxEvents - int(kept); {
	case room < 0:
		return nil // that there are too many was said
	case len(happened) > room:
		happened = append(happened[:room], events.OfTooMany(maxEvents, eventsWithin))
	}
	return writeEvents(tx, agent, at, happened...)
}

func writeEvents(tx *gorm.DB, agent Agent, at time.Time, happened ...events.Event) error {
	if len(happened) == 0 {
		return nil
	}
	rows := make([]Event, 0, len(happened))
	for _, e := range happened {
		rows = append(rows, Event{
			At: at.UTC().Truncate(time.Millisecond), SiteID: agent.SiteID, AgentID: agent.ID, Hostname: agent.Hostname,
			Kind: e.Kind, Severity: e.Severity, Summary: e.Summary, Detail: Values(e.Detail),
		})
	}
	if err := tx.Create(&rows).Error; err != nil {
		return fmt.Errorf("keep events: %w", err)
	}
	return nil
}

// failedServices are the services of an agent of which the last that was told is
// that an apply failed.
func failedServices(tx *gorm.DB, agentID int64) (map[string]bool, error) {
	told, err := applyEvents(tx, agentID)
	if err != nil {
		return nil, err
	}
	failed := map[string]bool{}
	for _, event := range told {
		if name, ok := event.Detail["service"].(string); ok {
			failed[name] = event.Kind != events.ApplyRecovered
		}
	}
	return failed, nil
}

// otherManagers is how much longer than LateFor an agent has to be silent, since
// another manager may have heard it and not written that yet: heartbeats stay in
// memory for an interval.
const otherManagers = 15 * time.Second

// MarkOffline notes, as an event, which agents have been silent for longer than
// LateFor. Silence counts only from heardSince on, since when some manager has
// been there to hear them: after a time without any manager all agents get the
// time to come back, and those that do not are noted then.
func (s *Store) MarkOffline(ctx context.Context, heardSince time.Time) error {
	limit := LateFor + otherManagers
	if at := now(); at.Sub(heardSince) < limit {
		return nil
	}
	if err := s.heartbeats.flush(flushWait); err != nil {
		return fmt.Errorf("write heartbeats: %w", err)
	}
	return s.update(ctx, func(tx *gorm.DB) error {
		at := now()
		var agents []Agent
		err := tx.Select("id", "site_id", "hostname", "last_seen_at").
			Where("offline_at IS NULL AND last_seen_at < ?", at.Add(-limit)).Order("id").Find(&agents).Error
		if err != nil {
			return fmt.Errorf("look for silent agents: %w", err)
		}
		for _, agent := range agents {
			if err := tx.Model(&agent).Update("offline_at", at).Error; err != nil {
				return fmt.Errorf("mark agent %d as offline: %w", agent.ID, err)
			}
			if err := writeEvents(tx, agent, at, events.OfSilence(agent.LastSeenAt)); err != nil {
				return err
			}
		}
		return nil
	})
}

// offlineAgents are those that are marked as offline, as they were seen last.
func offlineAgents(tx *gorm.DB) ([]Agent, error) {
	var agents []Agent
	err := tx.Select("id", "site_id", "hostname", "last_seen_at").Where("offline_at IS NOT NULL").Order("id").Find(&agents).Error
	if err != nil {
		return nil, fmt.Errorf("look for offline agents: %w", err)
	}
	return agents, nil
}

// markBack notes which of the agents that were offline have been heard.
func markBack(tx *gorm.DB, offline []Agent, heard map[int64]Heartbeat) error {
	for _, agent := range offline {
		beat, back := heard[agent.ID]
		if !back {
			continue
		}
		if err := tx.Model(&Agent{}).Where("id = ?", agent.ID).Update("offline_at", nil).Error; err != nil {
			return fmt.Errorf("mark agent %d as back: %w", agent.ID, err)
		}
		if err := writeEvents(tx, agent, beat.At, events.OfReturn(agent.LastSeenAt, beat.At)); err != nil {
			return err
		}
	}
	return nil
}

// ApplyEvents returns the latest events of an agent that say when applying failed
// and worked again, the oldest first.
func (s *Store) ApplyEvents(ctx context.Context, agentID int64) ([]Event, error) {
	return applyEvents(s.reader(ctx), agentID)
}

func applyEvents(tx *gorm.DB, agentID int64) ([]Event, error) {
	var told []Event
	err := tx.Where("agent_id = ? AND kind IN ?", agentID, []events.Kind{events.ApplyFailed, events.Stuck, events.ApplyRecovered}).
		Order("id DESC").Limit(maxEvents).Find(&told).Error
	if err != nil {
		return nil, fmt.Errorf("read what failed before: %w", err)
	}
	slices.Reverse(told)
	return told, nil
}
