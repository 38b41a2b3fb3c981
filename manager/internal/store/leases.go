package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// Lease is the right to do something that only one manager may do at a time,
// kept in the database. Nobody compares the clocks of two hosts: the holder
// counts renewals up, and whoever waits takes over when it has seen the same
// count for a whole term by its own clock. So Kubernetes elects leaders
// (k8s.io/client-go/tools/leaderelection). It is safe for concurrent use.
type Lease struct {
	store *Store
	name  string
	me    string
	term  time.Duration

	mu     sync.Mutex
	seen   leaseRow
	seenAt time.Time // with the monotonic clock
	until  time.Time // until when it is mine; zero if it is not
}

type leaseRow struct {
	Name      string `gorm:"primaryKey"`
	Holder    string // "" after it was given back
	Renewals  int64
	RenewedAt time.Time
	// UnbrokenSince is since when some manager has always held it.
	UnbrokenSince time.Time
}

// TableName implements gorm's schema.Tabler.
func (leaseRow) TableName() string { return "leases" }

// NewLease returns the lease of a name, which is not held yet. A holder that
// does not renew it for a term loses it to whoever waits for it.
func (s *Store) NewLease(name string, term time.Duration) *Lease {
	return &Lease{store: s, name: name, me: rand.Text(), term: term}
}

// Term is how long the lease lasts without being renewed. Renewing it three
// times as often leaves room for a slow database.
func (l *Lease) Term() time.Duration { return l.term }

// Hold takes the lease or renews it, and reports until when it is held: the zero
// time if somebody else has it. After an error what was held before still is,
// until its time.
func (l *Lease) Hold(ctx context.Context) (until time.Time, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	asked := time.Now()
	var held time.Time
	err = l.store.update(ctx, func(tx *gorm.DB) error {
		row, err := l.read(tx)
		if err != nil {
			return err
		}
		if row.Holder != l.me && row.Holder != "" && !l.stale(row, asked) {
			return nil
		}
		held, err = l.take(tx, row, asked)
		return err
	})
	if err != nil {
		return l.until, fmt.Errorf("hold lease %q: %w", l.name, err)
	}
	l.until = held // only now is it committed
	return l.until, nil
}

func (l *Lease) read(tx *gorm.DB) (leaseRow, error) {
	fresh := leaseRow{Name: l.name, RenewedAt: now(), UnbrokenSince: now()}
	if err := tx.Clauses(clause.OnConflict{DoNothing: true}).Create(&fresh).Error; err != nil {
		return leaseRow{}, err
	}
	var row leaseRow
	return row, tx.Take(&row, "name = ?", l.name).Error
}

// stale reports whether the holder has not renewed for a term while we looked.
func (l *Lease) stale(row leaseRow, at time.Time) bool {
	if row.Holder != l.seen.Holder || row.Renewals != l.seen.Renewals {
		l.seen, l.seenAt = row, at
		return false
	}
	return at.Sub(l.seenAt) >= l.term
}

// take counts up the row that was read, and returns until when the lease is held
// then. That the row is still as it was read is part of the statement: of two who
// want it, one gets it.
func (l *Lease) take(tx *gorm.DB, row leaseRow, asked time.Time) (until time.Time, err error) {
	at := now()
	since := row.UnbrokenSince
	// A clock that jumped looks like a gap, and is to be treated as one: what
	// was heard before it says nothing about how long ago that was.
	if gap := at.Sub(row.RenewedAt); gap > 2*l.term || gap < -2*l.term {
		since = at
	}
	result := tx.Model(&leaseRow{}).Where("name = ? AND holder = ? AND renewals = ?", l.name, row.Holder, row.Renewals).
		Updates(map[string]any{"holder": l.me, "renewals": row.Renewals + 1, "renewed_at": at, "unbroken_since": since})
	if result.Error != nil || result.RowsAffected != 1 {
		return time.Time{}, result.Error
	}
	return asked.Add(l.term), nil
}

// Release gives the lease back, so that nobody has to wait for its term.
func (l *Lease) Release(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until = time.Time{}
	err := l.store.update(ctx, func(tx *gorm.DB) error {
		return tx.Model(&leaseRow{}).Where("name = ? AND holder = ?", l.name, l.me).
			Updates(map[string]any{"holder": "", "renewed_at": now()}).Error
	})
	if err != nil {
		return fmt.Errorf("release lease %q: %w", l.name, err)
	}
	return nil
}

// Mine reports whether the lease is held by this one.
func (l *Lease) Mine() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Now().Before(l.until)
}

// Renewed is when anybody has held or renewed the lease last, and held whether it
// was not given back since.
func (l *Lease) Renewed(ctx context.Context) (at time.Time, held bool, err error) {
	var row leaseRow
	err = l.store.reader(ctx).Take(&row, "name = ?", l.name).Error
	if errors.Is(err, gorm.ErrRecordNotFound) {
		return time.Time{}, false, nil
	}
	if err != nil {
		return time.Time{}, false, fmt.Errorf("read lease %q: %w", l.name, err)
	}
	return row.RenewedAt, row.Holder != "", nil
}

// UnbrokenSince is since when some manager has always held the lease of a name,
// by its own clock: before that, nobody may have been there to hear an agent. It
// returns ErrNotFound if nobody ever held it.
func (s *Store) UnbrokenSince(ctx context.Context, name string) (time.Time, error) {
	var row leaseRow
	err := s.reader(ctx).Take(&row, "name = ?", name).Error
	if errors.Is(err, gorm.ErrRecordNotFound) {
		return time.Time{}, ErrNotFound
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("read lease %q: %w", name, err)
	}
	return row.UnbrokenSince, nil
}
