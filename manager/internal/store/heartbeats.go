package store

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"gorm.io/gorm"

	"opensource.internal/agent/checkin"
)

// Heartbeat is a check-in of a known agent that said nothing new.
type Heartbeat struct {
	AgentID     int64
	At          time.Time
	PeerAddress string
	ClockSkewMS *int64
	Report      *checkin.Request // not modified after it was handed over
}

// Beat notes a heartbeat in memory. One transaction writes all of an interval;
// ListAgents and GetAgent know them at once.
func (s *Store) Beat(beat Heartbeat) { s.heartbeats.add(beat) }

// heartbeats gathers the latest heartbeat of each agent.
type heartbeats struct {
	store *Store
	log   *slog.Logger
	quit  chan struct{}
	done  chan struct{}

	mu      sync.RWMutex
	pending map[int64]Heartbeat
	writing map[int64]Heartbeat // taken from pending, not committed yet
}

// How long one write of heartbeats may wait, and the last one at Close.
const (
	flushWait = 2 * time.Second
	closeWait = 300 * time.Millisecond
)

func startHeartbeats(s *Store, interval time.Duration, log *slog.Logger) *heartbeats {
	h := &heartbeats{store: s, log: log, quit: make(chan struct{}), done: make(chan struct{}), pending: map[int64]Heartbeat{}}
	go h.run(interval)
	return h
}

func (h *heartbeats) run(interval time.Duration) {
	defer close(h.done)
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if err := h.flush(flushWait); err != nil {
				h.log.Error("heartbeats stay in memory", "err", err)
			}
		case <-h.quit:
			return
		}
	}
}

// stop writes what is left.
func (h *heartbeats) stop() error {
	close(h.quit)
	<-h.done
	return h.flush(closeWait)
}

func (h *heartbeats) add(beat Heartbeat) {
	h.mu.Lock()
	h.pending[beat.AgentID] = beat
	h.mu.Unlock()
}

// drop forgets the heartbeat of an agent that has been recorded since. Which is
// newer is not asked of the clock: it may have been set back.
func (h *heartbeats) drop(agentID int64) {
	h.mu.Lock()
	delete(h.pending, agentID)
	delete(h.writing, agentID)
	h.mu.Unlock()
}

// flush writes all pending heartbeats. After a fault they wait for the next
// flush, unless newer ones have come.
func (h *heartbeats) flush(wait time.Duration) error {
	h.mu.Lock()
	batch := h.pending
	h.pending, h.writing = map[int64]Heartbeat{}, maps.Clone(batch)
	h.mu.Unlock()

	var err error
	if len(batch) > 0 {
		ctx, cancel := context.WithTimeout(context.Background(), wait)
		defer cancel()
		err = h.store.update(ctx, func(tx *gorm.DB) error { return writeHeartbeats(tx, batch) })
	}

	h.mu.Lock()
	defer h.mu.Unlock()
	if err != nil {
		for id, beat := range h.writing {
			if _, newer := h.pending[id]; !newer {
				h.pending[id] = beat
			}
		}
	}
	h.writing = nil
	return err
}

func writeHeartbeats(tx *gorm.DB, batch map[int64]Heartbeat) error {
	for id, beat := range batch {
		err := tx.Exec("UPDATE agents SET last_seen_at = ?, peer_address = ?, clock_skew_ms = ?, report = ? WHERE id = ?",
			beat.At, beat.PeerAddress, beat.ClockSkewMS, Report{Request: *beat.Report}, id).Error
		if err != nil {
			return fmt.Errorf("write heartbeat of agent %d: %w", id, err)
		}
	}
	return nil
}

// mergeInto brings agents from the database up to date.
func (h *heartbeats) mergeInto(agents []Agent) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	for i := range agents {
		for _, beats := range []map[int64]Heartbeat{h.writing, h.pending} {
			if beat, ok := beats[agents[i].ID]; ok {
				agents[i].LastSeenAt, agents[i].PeerAddress = beat.At, beat.PeerAddress
				agents[i].ClockSkewMS, agents[i].Report = beat.ClockSkewMS, Report{Request: *beat.Report}
			}
		}
	}
}
