package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/mattn/go-sqlite3"
	"gorm.io/gorm"
)

// Unavailable reports whether an error means that the database cannot be used
// at the moment: it is locked, full, read-only, damaged or gone, or did not
// answer in time.
func Unavailable(err error) bool {
	var fault sqlite3.Error
	if errors.As(err, &fault) {
		return sqliteUnavailable[fault.Code]
	}
	if err == nil || errors.Is(err, context.Canceled) {
		return false
	}
	return unavailableOnPostgres(err) || errors.Is(err, errReadOnly) || errors.Is(err, errMoved) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone)
}

const (
	// probeWait bounds how long a probe waits for another writer.
	probeWait = 500 * time.Millisecond
	// probeAge is how long the result of a probe holds: health is asked by
	// anybody, as often as they like.
	probeAge = time.Second
	// busyFor is how long another writer may be at it before that counts as not
	// writable: a manifest of thousands of records takes seconds.
	busyFor = 10 * time.Second
)

// probe finds out whether the database can be written.
type probe struct {
	// failed is set by a write that ended with an Unavailable error, until a
	// probe has written.
	failed atomic.Bool

	// writing counts the transactions of our own that are being written.
	writing atomic.Int64

	mu        sync.Mutex // held while probing
	at        time.Time
	last      error
	busySince time.Time // zero if no other writer was met
}

// note remembers that a write has failed. One that succeeds proves nothing: it
// may have found that there was nothing to change.
func (p *probe) note(err error) {
	if Unavailable(err) {
		p.failed.Store(true)
	}
}

// Writable reports why the database cannot be written, in about a second; that
// others are writing is no reason, unless they do not come to an end. It
// opens the database anew and begins a write, which it takes back. Only after a
// write has failed, say on a full disk, it tries a small one. The result of the
// last second is used again.
func (s *Store) Writable(ctx context.Context) error {
	s.probe.mu.Lock()
	defer s.probe.mu.Unlock()
	if age := time.Since(s.probe.at); age >= 0 && age < probeAge {
		return s.probe.last
	}
	s.probe.last = s.probe.pardon(s.tryWrite(ctx))
	s.probe.at = time.Now()
	return s.probe.last
}

// pardon forgives that somebody else writes: where one can, others can after it.
// Who is not of this process has no more than busyFor.
func (p *probe) pardon(err error) error {
	if !busy(err) {
		p.busySince = time.Time{}
		return err
	}
	if p.busySince.IsZero() {
		p.busySince = time.Now()
	}
	if p.writing.Load() > 0 || time.Since(p.busySince) < busyFor {
		return nil
	}
	return err
}

// busy reports whether an error means that another writer was waited for.
func busy(err error) bool {
	var fault sqlite3.Error
	if errors.As(err, &fault) {
		return fault.Code == sqlite3.ErrBusy
	}
	refused, ok := errors.AsType[*pgconn.PgError](err)
	return ok && refused.Code == lockNotAvailable
}

func (s *Store) tryWrite(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*probeWait) // the result is for others, too
	defer cancel()
	if err := s.moved(); err != nil {
		return err
	}
	pool, err := s.engine.prober()
	if err != nil {
		return fmt.Errorf("open database: %w", err)
	}
	db, err := pool.DB()
	if err != nil {
		return fmt.Errorf("open database: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	tx := pool.WithContext(ctx).Begin()
	if tx.Error != nil {
		return fmt.Errorf("begin to write: %w", tx.Error)
	}
	if err := s.engine.begin(tx); err != nil {
		return fmt.Errorf("begin to write: %w", errors.Join(err, tx.Rollback().Error))
	}
	if !s.probe.failed.Load() {
		return tx.Rollback().Error
	}
	return s.writeSomething(tx)
}

// writeSomething writes a counter that nobody reads.
func (s *Store) writeSomething(tx *gorm.DB) error {
	if err := tx.Exec("INSERT INTO changed VALUES ('probe', 0)").Error; err != nil {
		return fmt.Errorf("write again after a fault: %w", errors.Join(err, tx.Rollback().Error))
	}
	if err := tx.Commit().Error; err != nil {
		return fmt.Errorf("write again after a fault: %w", err)
	}
	s.probe.failed.Store(false)
	return nil
}
