package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

// AgentSeen is the little of an agent that is cheap to read of all of them.
type AgentSeen struct {
	ID         int64
	SiteID     int64
	Hostname   string
	LastSeenAt time.Time
	// Told is Agent.Told. It tells whether a report that was read before is still
	// the same, but for what changes with every check-in.
	Told int64
}

// AgentsSeen lists all agents by id, with the heartbeats that are still in
// memory, without their reports.
func (s *Store) AgentsSeen(ctx context.Context) ([]AgentSeen, error) {
	var seen []AgentSeen
	err := s.read.WithContext(ctx).Model(&Agent{}).Order("id").Find(&seen).Error
	if err != nil {
		return nil, fmt.Errorf("list when agents were seen: %w", err)
	}
	s.heartbeats.mu.RLock()
	defer s.heartbeats.mu.RUnlock()
	for i := range seen {
		if beat, ok := s.heartbeats.of(seen[i].ID, seen[i].Told); ok {
			seen[i].LastSeenAt = beat.At
		}
	}
	return seen, nil
}

// AgentsByID reads some agents with their reports, as they are stored. Those
// that are gone are left out.
func (s *Store) AgentsByID(ctx context.Context, ids []int64) ([]Agent, error) {
	var agents []Agent
	if err := s.read.WithContext(ctx).Where("id IN ?", ids).Order("id").Find(&agents).Error; err != nil {
		return nil, fmt.Errorf("read agents: %w", err)
	}
	s.damaged.tell(agents)
	return agents, nil
}

// VolumeCount is how many volumes of a site have a status.
type VolumeCount struct {
	SiteID int64
	Status VolumeStatus
	Total  int
}

// CountVolumes counts all volumes by site and status.
func (s *Store) CountVolumes(ctx context.Context) ([]VolumeCount, error) {
	var counts []VolumeCount
	err := s.read.WithContext(ctx).Model(&Volume{}).Select("site_id, status, count(*) AS total").
		Group("site_id, status").Order("site_id, status").Scan(&counts).Error
	if err != nil {
		return nil, fmt.Errorf("count volumes: %w", err)
	}
	return counts, nil
}

// SiteNames returns the name of every site by its id.
func (s *Store) SiteNames(ctx context.Context) (map[int64]string, error) {
	var sites []Site
	if err := s.read.WithContext(ctx).Select("id", "name").Find(&sites).Error; err != nil {
		return nil, fmt.Errorf("list the names of sites: %w", err)
	}
	names := make(map[int64]string, len(sites))
	for _, site := range sites {
		names[site.ID] = site.Name
	}
	return names, nil
}

// PendingHeartbeats is how many agents have a heartbeat that is not stored yet.
func (s *Store) PendingHeartbeats() int {
	s.heartbeats.mu.RLock()
	defer s.heartbeats.mu.RUnlock()
	return len(s.heartbeats.pending)
}

// Pools returns the state of the connections to the database, by their use.
func (s *Store) Pools() map[string]sql.DBStats {
	pools := map[string]sql.DBStats{}
	if db, err := s.read.DB(); err == nil {
		pools["read"] = db.Stats()
	}
	if db, err := s.write.DB(); err == nil {
		pools["write"] = db.Stats()
	}
	return pools
}

// Size is how much room the database takes, in bytes.
func (s *Store) Size(ctx context.Context) (int64, error) {
	size, err := s.engine.size(s.read.WithContext(ctx))
	if err != nil {
		return 0, fmt.Errorf("size of the database: %w", err)
	}
	return size, nil
}

// SchemaFits returns a *SchemaError unless the database has the schema that
// this program was made for: another one may have migrated it meanwhile.
func (s *Store) SchemaFits(ctx context.Context) error {
	want, err := newestSchema(migrationsOf("sqlite"))
	if err != nil {
		return err
	}
	have, err := s.SchemaVersion(ctx)
	if err != nil {
		return err
	}
	if have != want {
		return &SchemaError{Database: s.name, Have: have, Want: want}
	}
	return nil
}
