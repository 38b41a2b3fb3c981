package store

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/url"
	"runtime"
	"sync"

	"github.com/mattn/go-sqlite3"
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
	versions, err := s.changes.look()
	if err != nil {
		return Versions{}, fmt.Errorf("look for changes: %w", err)
	}
	return versions, nil
}

// changes watches the database on a connection of its own: `PRAGMA
// data_version` differs from its last value there if any other connection, of
// this process or another, has committed meanwhile (sqlite.org/pragma.html).
// That costs no disk access; only when it moved are the counters read.
type changes struct {
	source string

	joining sync.Mutex
	next    *look // what calls that arrive now take part in; nil if none waits

	mu          sync.Mutex // held while looking
	conn        driver.Conn
	dataVersion statement
	counters    statement
	seen        int64
	current     Versions
	closed      bool
}

// look is one look at the database, for all calls that arrived before it began.
type look struct {
	done     chan struct{}
	versions Versions
	err      error
}

func watchChanges(path string) (*changes, error) {
	c := &changes{source: dataSource(path, url.Values{"_query_only": {"1"}, "_busy_timeout": {"1000"}})}
	_, err := c.look()
	return c, err
}

// look takes part in the next look, and makes it if it is the first to.
func (c *changes) look() (Versions, error) {
	c.joining.Lock()
	if joined := c.next; joined != nil {
		c.joining.Unlock()
		<-joined.done
		return joined.versions, joined.err
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
	fresh := c.conn == nil
	if fresh {
		if err := c.connect(); err != nil {
			return err
		}
	}
	version, err := c.readDataVersion()
	if err != nil {
		return err
	}
	if !fresh && version == c.seen {
		return nil
	}
	// The counters are read after data_version: they are at least as new, and
	// a commit in between is seen again by the next look.
	current, err := c.readCounters()
	if err != nil {
		return err
	}
	c.current, c.seen = current, version
	return nil
}

func (c *changes) connect() (err error) {
	if c.conn, err = (&sqlite3.SQLiteDriver{}).Open(c.source); err != nil {
		return err
	}
	if c.dataVersion, err = c.prepare("PRAGMA data_version"); err != nil {
		return err
	}
	c.counters, err = c.prepare("SELECT scope, id, version FROM change_counters")
	return err
}

// statement is what go-sqlite3 prepares.
type statement interface {
	driver.Stmt
	driver.StmtQueryContext
}

func (c *changes) prepare(query string) (statement, error) {
	prepared, err := c.conn.Prepare(query)
	if err != nil {
		return nil, err
	}
	return prepared.(*sqlite3.SQLiteStmt), nil
}

// ask runs a statement without parameters. The context is one that never ends:
// with any other the driver starts a goroutine, which costs more than the query.
func ask(s statement) (driver.Rows, error) {
	return s.QueryContext(context.Background(), nil)
}

func (c *changes) disconnect() {
	for _, closer := range []io.Closer{c.dataVersion, c.counters, c.conn} {
		if closer != nil {
			_ = closer.Close() // nothing was written on it
		}
	}
	c.conn, c.dataVersion, c.counters = nil, nil, nil
}

func (c *changes) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.disconnect()
	return nil
}

func (c *changes) readDataVersion() (int64, error) {
	row := []driver.Value{nil}
	rows, err := ask(c.dataVersion)
	if err != nil {
		return 0, err
	}
	if err := errors.Join(rows.Next(row), rows.Close()); err != nil {
		return 0, err
	}
	version, ok := row[0].(int64)
	if !ok {
		return 0, fmt.Errorf("data_version is a %T", row[0])
	}
	return version, nil
}

func (c *changes) readCounters() (Versions, error) {
	rows, err := ask(c.counters)
	if err != nil {
		return Versions{}, err
	}
	defer rows.Close()
	versions := Versions{sites: map[int64]uint64{}}
	row := make([]driver.Value, 3)
	for {
		if err := rows.Next(row); errors.Is(err, io.EOF) {
			return versions, nil
		} else if err != nil {
			return Versions{}, err
		}
		scope, _ := row[0].(string)
		id, _ := row[1].(int64)
		version, _ := row[2].(int64)
		versions.count(scope, id, uint64(version))
	}
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
