// Package store keeps everything the manager knows, in SQLite. It is the only
// package that knows gorm and SQL. Records are normalised and checked before
// they are written; what has to be unique is unique in the database, whoever
// writes to it.
//
// One connection writes (SQLite has one writer, and a queue in Go is fairer
// than its busy handler), a pool reads, and one watches for the changes of
// other processes (see Versions).
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
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
	path       string
	reserved   []int
	write      *gorm.DB
	read       *gorm.DB
	changes    *changes
	heartbeats *heartbeats
	damaged    damagedReports
	probe      probe
	closing    sync.Once
}

// busyTimeout is how long SQLite waits for another process's write.
const busyTimeout = 5 * time.Second

// Open opens the database file at path and creates it if opts.Migrate says so.
// A database of another schema is refused with a *SchemaError. Run by root, it
// leaves the files to the owner of their folder.
func Open(ctx context.Context, path string, opts Options) (*Store, error) {
	if opts.Migrate {
		if err := Migrate(ctx, path); err != nil {
			return nil, err
		}
	}
	if err := requireSchema(ctx, path); err != nil {
		return nil, err
	}
	if opts.Log == nil {
		opts.Log = slog.Default()
	}
	if opts.HeartbeatInterval == 0 {
		opts.HeartbeatInterval = 5 * time.Second
	}
	s := &Store{path: path, reserved: opts.ReservedPorts, damaged: damagedReports{log: opts.Log}}
	if err := s.connect(); err != nil {
		s.Close()
		return nil, fmt.Errorf("open database %s: %w", path, err)
	}
	s.heartbeats = startHeartbeats(s, opts.HeartbeatInterval, opts.Log)
	return s, nil
}

func (s *Store) connect() (err error) {
	// FULL: what was answered with success survives a power cut.
	if s.write, err = openPool(s.path, 1, url.Values{"_txlock": {"immediate"}, "_synchronous": {"FULL"}}); err != nil {
		return err
	}
	if s.read, err = openPool(s.path, max(4, runtime.NumCPU()), url.Values{"_query_only": {"1"}}); err != nil {
		return err
	}
	s.changes, err = watchChanges(s.path)
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

func openPool(path string, size int, more url.Values) (*gorm.DB, error) {
	db, err := sql.Open("sqlite3", dataSource(path, more))
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(size)
	db.SetMaxIdleConns(size)
	pool, err := gorm.Open(sqlite.New(sqlite.Config{Conn: db}), &gorm.Config{
		Logger:                 logger.Discard, // errors are returned, and logged once by whoever handles them
		SkipDefaultTransaction: true,
		NowFunc:                now,
		TranslateError:         true, // constraint faults by SQLite's extended codes, not by text
	})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return pool, nil
}

// now is the time of every record: UTC, of a resolution that JSON and SQLite
// keep alike.
func now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

// dataSource returns the name by which go-sqlite3 opens the database file.
func dataSource(path string, more url.Values) string {
	if absolute, err := filepath.Abs(path); err == nil {
		path = absolute
	}
	params := url.Values{
		"_journal_mode": {"WAL"},
		"_busy_timeout": {fmt.Sprint(busyTimeout.Milliseconds())},
		"_foreign_keys": {"1"},
		"mode":          {"rw"},
	}
	for name, values := range more {
		params[name] = values
	}
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + params.Encode()
}

// update runs fn in one write transaction, that of the context if it has one.
// It begins as a writer, so it never fails halfway for want of the write lock.
func (s *Store) update(ctx context.Context, fn func(tx *gorm.DB) error) error {
	if tx, within := transactionOf(ctx); within {
		return fn(tx.WithContext(ctx))
	}
	err := s.write.WithContext(ctx).Transaction(fn)
	s.probe.note(err)
	return err
}
