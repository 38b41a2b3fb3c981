package store

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
)

// Versions are the change counters of one moment. A counter moves with every
// committed change of what it stands for, whichever process made it; whoever
// caches something remembers the counter it was read under and drops it when
// the counter has moved.
type Versions struct {
	Keys   uint64 // API keys: any change but their last use
	Agents uint64 // agents: deletions only
	sites  map[int64]uint64
}

// Site returns the counter of everything a site's snapshot is built from,
// and of the status of its volumes. It is 0 for a site that never existed.
func (v Versions) Site(id int64) uint64 { return v.sites[id] }

// Versions returns the counters. It sees everything committed before the
// call, costs a few microseconds, and is meant to be asked on every request:
// concurrent calls share one look at the database. It never waits for a writer,
// and no longer than a second for a database that is locked as a whole.
func (s *Store) Versions(ctx context.Context) (Versions, error) {
	if err := ctx.Err(); err != nil {
		return Versions{}, err
	}
	versions, err := s.changes.look(ctx)
	if err != nil {
		return Versions{}, fmt.Errorf("look for changes: %w", err)
	}
	return versions, nil
}

// changes watches the database on a connection of its own.
type changes struct {
	joining sync.Mutex
	next    *look // what calls that arrive now take part in; nil if none waits

	mu        sync.Mutex // held while looking
	source    counterSource
	connected bool
	seen      any
	current   Versions
	closed    bool
}

// counterSource is the connection on which the counters are read.
type counterSource interface {
	connect() error
	// mark returns something that differs from what it returned before if
	// anything was committed meanwhile. It is asked far more often than read.
	mark() (any, error)
	read(*Versions) error
	disconnect()
}

// look is one look at the database, for all calls that arrived before it began.
type look struct {
	done     chan struct{}
	versions Versions
	err      error
}

func watchChanges(source counterSource) (*changes, error) {
	c := &changes{source: source}
	_, err := c.look(context.Background())
	return c, err
}

// look takes part in the next look, no longer than its context lasts, and makes
// it if it is the first to: others may take part in that, whatever its context.
func (c *changes) look(ctx context.Context) (Versions, error) {
	c.joining.Lock()
	if joined := c.next; joined != nil {
		c.joining.Unlock()
		select {
		case <-joined.done:
			return joined.versions, joined.err
		case <-ctx.Done():
			return Versions{}, ctx.Err()
		}
	}
	mine := &look{done: make(chan struct{})}
	c.next = mine
	c.joining.Unlock()

	// Let those who are on their way join: with many of them, one look does for
	// all; with none, this costs nothing.
	runtime.Gosched()
	c.mu.Lock()
	c.joining.Lock()
	c.next = nil
	c.joining.Unlock()
	mine.err = c.refresh()
	if mine.err != nil {
		c.disconnect() // a new connection next time: a passing fault must not stay
	}
	mine.versions = c.current
	c.mu.Unlock()
	close(mine.done)
	return mine.versions, mine.err
}

func (c *changes) refresh() error {
	if c.closed {
		return errors.New("the database is closed")
	}
	fresh := !c.connected
	if fresh {
		if err := c.source.connect(); err != nil {
			return err
		}
		c.connected = true
	}
	mark, err := c.source.mark()
	if err != nil {
		return err
	}
	if !fresh && mark == c.seen {
		return nil
	}
	// The counters are read after the mark: they are at least as new, and a
	// commit in between is seen again by the next look.
	current := Versions{sites: map[int64]uint64{}}
	if err := c.source.read(&current); err != nil {
		return err
	}
	c.current, c.seen = current, mark
	return nil
}

func (c *changes) disconnect() {
	c.source.disconnect()
	c.connected = false
}

func (c *changes) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.disconnect()
	return nil
}

func (v *Versions) count(scope string, id int64, version uint64) {
	switch scope {
	case "site":
		v.sites[id] = version
	case "keys":
		v.Keys = version
	case "agents":
		v.Agents = version
	}
}
