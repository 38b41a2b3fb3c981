// Package store keeps everything the manager knows, in SQLite or PostgreSQL. It
// is the only package that knows gorm and SQL. Records are normalised and
// checked before they are written; what has to be unique is unique in the
// database, whoever writes to it.
//
// One transaction writes at a time, on both databases and whichever process it
// is of, so what it has read still holds when it writes. A pool of connections
// reads, and one watches for the changes of other processes (see Versions).
package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"gorm.io/gorm"
)

// Options are the settings of a Store. The zero value is fit for a command
// that opens a database of the current schema.
type Options struct {
	// Migrate brings an older or empty database to the current schema first.
	Migrate bool
	// ReservedPorts are never given to a transport service, on top of
	// inventory.ReservedPorts: the manager's own.
	ReservedPorts []int
	// HeartbeatInterval is how long heartbeats are gathered in memory before
	// one transaction writes them; 5 s if 0.
	HeartbeatInterval time.Duration
	// Log gets what happens behind the callers' back; slog.Default() if nil.
	Log *slog.Logger
}

// Store is an open database. It is safe for concurrent use.
type Store struct {
	engine     engine
	log        *slog.Logger
	name       string // of the database
	reserved   []int
	write      *gorm.DB
	read       *gorm.DB
	changes    *changes
	heartbeats *heartbeats
	damaged    damagedReports
	probe      probe
	moved      func() error // says that the SQLite file was moved away or replaced
	closing    sync.Once
}

// Open opens a database, and brings it to the current schema first if
// opts.Migrate says so. A database of another schema is refused with a
// *SchemaError. Run by root, it leaves an SQLite file to the owner of its
// folder.
func Open(ctx context.Context, database Database, opts Options) (*Store, error) {
	if opts.Migrate {
		if err := Migrate(ctx, database); err != nil {
			return nil, err
		}
	}
	engine, err := database.engine()
	if err != nil {
		return nil, fmt.Errorf("open database %s: %w", database, err)
	}
	if err := requireSchema(ctx, engine, database); err != nil {
		return nil, err
	}
	if opts.Log == nil {
		opts.Log = slog.Default()
	}
	if opts.HeartbeatInterval == 0 {
		opts.HeartbeatInterval = 5 * time.Second
	}
	s := &Store{engine: engine, name: database.String(), log: opts.Log, reserved: opts.ReservedPorts, damaged: damagedReports{log: opts.Log}}
	if err := s.connect(); err != nil {
		s.Close()
		return nil, fmt.Errorf("open database %s: %w", database, err)
	}
	s.heartbeats = startHeartbeats(s, opts.HeartbeatInterval, opts.Log)
	return s, nil
}

func (s *Store) connect() (err error) {
	if s.write, err = s.engine.writer(); err != nil {
		return err
	}
	if s.read, err = s.engine.reader(); err != nil {
		return err
	}
	if s.moved, err = s.engine.watchFile(); err != nil {
		return err
	}
	s.changes, err = watchChanges(s.engine.counters())
	return err
}

// Close flushes the heartbeats and closes all connections. Closing again does
// nothing.
func (s *Store) Close() (err error) {
	s.closing.Do(func() { err = s.close() })
	return err
}

func (s *Store) close() error {
	var errs []error
	if s.heartbeats != nil {
		errs = append(errs, s.heartbeats.stop())
	}
	if s.changes != nil {
		errs = append(errs, s.changes.close())
	}
	for _, pool := range []*gorm.DB{s.read, s.write} {
		if pool != nil {
			db, err := pool.DB()
			if err == nil {
				err = db.Close()
			}
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Ping reports whether the database can be read.
func (s *Store) Ping(ctx context.Context) error {
	var one int
	return s.read.WithContext(ctx).Raw("SELECT 1 FROM goose_db_version LIMIT 1").Scan(&one).Error
}

// update runs fn in one write transaction, that of the context if it has one.
// It is the only one to write: it never fails halfway for want of a lock, and
// nothing changes under it.
func (s *Store) update(ctx context.Context, fn func(tx *gorm.DB) error) error {
	if tx, within := transactionOf(ctx); within {
		return fn(tx.WithContext(ctx))
	}
	err := s.write.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		if err := s.engine.begin(tx); err != nil {
			return fmt.Errorf("wait to write: %w", err)
		}
		s.probe.writing.Add(1)
		defer s.probe.writing.Add(-1)
		if err := s.moved(); err != nil {
			return err
		}
		return fn(tx)
	})
	s.probe.note(err)
	return err
}
