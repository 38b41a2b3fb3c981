package store

import (
	"cmp"
	"context"
	"time"

	"gorm.io/gorm"

	"opensource.internal/manager/internal/inventory"
)

// Agent is one agent as its check-ins describe it.
type Agent struct {
	ID       int64
	SiteID   int64
	Hostname string
	// PeerAddress is the address the latest check-in came from.
	PeerAddress string
	// Report is the latest check-in, without its volume results (these are
	// kept with the volumes).
	Report Report `audit:"-"`
	// Drift is what was found edited on the host: see KeptDrift.Recent.
	Drift KeptDrift `audit:"-"`
	// ClockSkewMS is how far the agent's clock is ahead of the manager's, in
	// milliseconds; nil if the agent's time was missing or absurd.
	ClockSkewMS *int64     `gorm:"column:clock_skew_ms" audit:"-"`
	FirstSeenAt time.Time  `audit:"-"`
	LastSeenAt  time.Time  `audit:"-"` // by the manager's clock
	ChangedAt   time.Time  `audit:"-"` // when it last said or was given something new
	OfflineAt   *time.Time `audit:"-"` // since when it counts as gone
	// FetchedETag is the tag of the snapshot it was given last; empty if that was
	// before this was kept.
	FetchedETag string     `gorm:"column:fetched_etag" audit:"-"`
	FetchedAt   *time.Time `audit:"-"` // when it was given that for the first time
	// Told counts the reports that said something new.
	Told int64 `audit:"-"`
	// Summary is that of the report.
	Summary Summary `gorm:"embedded" audit:"-"`
}

// Address is the one that the agent tells of its host, or else the one it checks
// in from, which behind a router is another.
func (a Agent) Address() string {
	return cmp.Or(string(a.Report.IPv4Address), a.PeerAddress)
}

// AgentFilter chooses agents. Zero fields choose all.
type AgentFilter struct {
	SiteID   int64
	Hostname string
	// Presence is that of what is stored, which may lag by a heartbeat interval.
	Presence Presence
}

// Presence says how long ago an agent was last seen.
type Presence string

// The values of Presence.
const (
	Online  Presence = "online"  // up to OnlineFor
	Late    Presence = "late"    // up to LateFor
	Offline Presence = "offline" // longer
)

// How long after its last check-in an agent counts as online and as late.
const (
	OnlineFor = 90 * time.Second
	LateFor   = 5 * time.Minute
)

// Presence tells how present the agent is at the moment now.
func (a Agent) Presence(now time.Time) Presence {
	switch age := a.Age(now); {
	case age <= OnlineFor:
		return Online
	case age <= LateFor:
		return Late
	default:
		return Offline
	}
}

// Age is the time since the agent was last seen, never negative: the manager's
// own clock may have been set back.
func (a Agent) Age(now time.Time) time.Duration { return max(0, now.Sub(a.LastSeenAt)) }

var agentSort = map[string]string{"hostname": "hostname", "siteId": "site_id", "lastSeenAt": "last_seen_at"}

// ListAgents returns a page of agents, with the heartbeats that are still in
// memory, and the number of all that match. Sort: id, hostname, siteId,
// lastSeenAt (by what is stored, which may lag by a heartbeat interval).
func (s *Store) ListAgents(ctx context.Context, filter AgentFilter, opts ListOptions) ([]Agent, int64, error) {
	query := where(s.read.WithContext(ctx), "site_id", filter.SiteID)
	query = lastSeen(query, filter.Presence)
	agents, total, err := list[Agent](where(query, "hostname", inventory.FoldSearch(filter.Hostname)), opts, agentSort, "hostname", "peer_address")
	s.damaged.tell(agents)
	s.heartbeats.mergeInto(agents)
	return agents, total, err
}

// lastSeen chooses agents by their presence, as Agent.Presence tells it.
func lastSeen(query *gorm.DB, presence Presence) *gorm.DB {
	online, late := now().Add(-OnlineFor), now().Add(-LateFor)
	switch presence {
	case Online:
		return query.Where("last_seen_at >= ?", online)
	case Late:
		return query.Where("last_seen_at < ? AND last_seen_at >= ?", online, late)
	case Offline:
		return query.Where("last_seen_at < ?", late)
	}
	return query
}

// GetAgent returns an agent, with the heartbeat that is still in memory, or
// ErrNotFound.
func (s *Store) GetAgent(ctx context.Context, id int64) (Agent, error) {
	agent, err := get[Agent](s.reader(ctx), id)
	if err != nil {
		return Agent{}, err
	}
	one := []Agent{agent}
	s.damaged.tell(one)
	s.heartbeats.mergeInto(one)
	return one[0], nil
}

func (a Agent) subject() Subject {
	return Subject{Resource: "agent", ID: a.ID, Name: a.Hostname, SiteID: a.SiteID}
}

// FindAgent returns the agent of a host name in a site, or ErrNotFound.
func (s *Store) FindAgent(ctx context.Context, siteID int64, hostname string) (Agent, error) {
	agents, _, err := s.ListAgents(ctx, AgentFilter{SiteID: siteID, Hostname: hostname}, ListOptions{})
	if err == nil && len(agents) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return Agent{}, err
	}
	return agents[0], nil
}

// DeleteAgent forgets an agent or returns ErrNotFound. One that still checks
// in appears anew.
func (s *Store) DeleteAgent(ctx context.Context, id int64) error {
	return s.update(ctx, func(tx *gorm.DB) error { return removeOne[Agent](tx, id) })
}
