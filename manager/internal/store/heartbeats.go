package store

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
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
	// Told is the Agent.Told that Report goes with.
	Told int64
}

// Beat notes a heartbeat in memory. One transaction writes all of an interval;
// ListAgents and GetAgent know them at once. It refuses one, once, if the agent
// has told another manager something new since: what it says may be old by
// now, or new once more, and the database has to be asked.
func (s *Store) Beat(beat Heartbeat) (taken bool) { return s.heartbeats.add(beat) }

// heartbeats gathers the latest heartbeat of each agent.
type heartbeats struct {
	store *Store
	log   *slog.Logger
	quit  chan struct{}
	done  chan struct{}

	flushing sync.Mutex // held while writing

	mu      sync.RWMutex
	pending map[int64]Heartbeat
	writing map[int64]Heartbeat // taken from pending, not committed yet
	stale   map[int64]bool      // agents of which this manager has missed something
}

// How long one write of heartbeats may wait, and the last one at Close.
const (
	flushWait = 2 * time.Second
	closeWait = 300 * time.Millisecond
)

func startHeartbeats(s *Store, interval time.Duration, log *slog.Logger) *heartbeats {
	h := &heartbeats{store: s, log: log, quit: make(chan struct{}), done: make(chan struct{}), pending: map[int64]Heartbeat{}, stale: map[int64]bool{}}
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

func (h *heartbeats) add(beat Heartbeat) (taken bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stale[beat.AgentID] {
		delete(h.stale, beat.AgentID)
		return false
	}
	h.pending[beat.AgentID] = beat
	return true
}

// drop forgets the heartbeat of an agent that has been recorded since. Which is
// newer is not asked of the clock: it may have been set back.
func (h *heartbeats) drop(agentID int64) {
	h.mu.Lock()
	delete(h.pending, agentID)
	delete(h.writing, agentID)
	delete(h.stale, agentID)
	h.mu.Unlock()
}

// flush writes all pending heartbeats. After a fault they wait for the next
// flush, unless newer ones have come.
func (h *heartbeats) flush(wait time.Duration) error {
	h.flushing.Lock()
	defer h.flushing.Unlock()
	h.mu.Lock()
	batch := h.pending
	h.pending, h.writing = map[int64]Heartbeat{}, maps.Clone(batch)
	h.mu.Unlock()

	var err error
	var missed []int64
	if len(batch) > 0 {
		ctx, cancel := context.WithTimeout(context.Background(), wait)
		defer cancel()
		err = h.store.update(ctx, func(tx *gorm.DB) (err error) {
			missed, err = h.write(tx, batch)
			return err
		})
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
	for _, id := range missed {
		if _, newer := h.writing[id]; err == nil && newer { // not recorded anew meanwhile
			h.stale[id] = true
			delete(h.pending, id)
		}
	}
	h.writing = nil
	return err
}

// write leaves out what goes with an older report than the one that is
// stored, and what goes with an agent that was deleted.
func (h *heartbeats) write(tx *gorm.DB, batch map[int64]Heartbeat) (missed []int64, err error) {
	offline, err := offlineAgents(tx)
	if err != nil {
		return nil, err
	}
	heard := maps.Clone(batch)
	for some := range slices.Chunk(slices.Sorted(maps.Keys(batch)), beatsAtOnce) {
		beats := make([]Heartbeat, len(some))
		for i, id := range some {
			beats[i] = batch[id]
		}
		written, err := h.store.engine.beat(tx, beats)
		if err != nil {
			return nil, fmt.Errorf("write heartbeats: %w", err)
		}
		for _, id := range some {
			if !written[id] {
				missed = append(missed, id)
				delete(heard, id)
			}
		}
	}
	return missed, markBack(tx, offline, heard)
}

// beatsAtOnce is how many heartbeats go to the database in one message.
const beatsAtOnce = 500

// mergeInto brings agents from the database up to date.
func (h *heartbeats) mergeInto(agents []Agent) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	for i := range agents {
		if beat, ok := h.of(agents[i].ID, agents[i].Told); ok {
			agents[i].LastSeenAt, agents[i].PeerAddress = beat.At, beat.PeerAddress
			agents[i].ClockSkewMS, agents[i].Report = beat.ClockSkewMS, Report{Request: *beat.Report}
		}
	}
}

// of is the latest heartbeat of an agent that goes with what it has told by
// then: that of an older report is left out, here as when it is written. The
// caller holds mu.
func (h *heartbeats) of(agentID, told int64) (beat Heartbeat, ok bool) {
	for _, beats := range []map[int64]Heartbeat{h.pending, h.writing} {
		if beat, ok = beats[agentID]; ok && beat.Told == told {
			return beat, true
		}
	}
	return Heartbeat{}, false
}
