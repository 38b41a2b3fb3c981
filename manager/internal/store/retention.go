package store

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"gorm.io/gorm"
)

// Retention is how long a log is kept: nothing older than Age, and at most Rows
// of the newest. Zero is no limit.
type Retention struct {
	Age  time.Duration
	Rows int
}

// maxKeptFailures is how many entries of failed sign-ins are kept. They are
// counted apart: whoever guesses passwords is not to push out what else was done.
const maxKeptFailures = 10_000

// PruneAudit drops what is too old, or too much, from the audit log.
func (s *Store) PruneAudit(ctx context.Context, keep Retention) error {
	if keep == (Retention{}) {
		return nil
	}
	failures := Retention{Age: keep.Age, Rows: min(cmp.Or(keep.Rows, maxKeptFailures), maxKeptFailures)}
	if err := s.prune(ctx, "audit", "action = 'sign_in_failed'", failures); err != nil {
		return err
	}
	return s.prune(ctx, "audit", "action <> 'sign_in_failed'", keep)
}

// PruneEvents drops what is too old, or too much, from the events.
func (s *Store) PruneEvents(ctx context.Context, keep Retention) error {
	return s.prune(ctx, "events", "TRUE", keep)
}

// logBatch is how many rows one transaction deletes: others want to write, too.
const logBatch = 1000

// prune deletes rows of a table that meet a condition, in the order of their ids.
func (s *Store) prune(ctx context.Context, table, condition string, keep Retention) error {
	tooOld := fmt.Sprintf("SELECT id FROM %s WHERE %s AND at < ? ORDER BY id LIMIT ?", table, condition)
	tooMany := fmt.Sprintf(`SELECT id FROM %[1]s WHERE %[2]s AND id <=
		(SELECT id FROM %[1]s WHERE %[2]s ORDER BY id DESC LIMIT 1 OFFSET ?) ORDER BY id LIMIT ?`, table, condition)
	for _, drop := range []struct {
		limited bool
		query   string
		bound   any
	}{{keep.Age > 0, tooOld, now().Add(-keep.Age)}, {keep.Rows > 0, tooMany, keep.Rows}} {
		if !drop.limited {
			continue
		}
		for deleted := int64(logBatch); deleted == logBatch; {
			err := s.update(ctx, func(tx *gorm.DB) error {
				result := tx.Exec(fmt.Sprintf("DELETE FROM %s WHERE id IN (%s)", table, drop.query), drop.bound, logBatch)
				deleted = result.RowsAffected
				return result.Error
			})
			if err != nil {
				return fmt.Errorf("drop old rows of %s: %w", table, err)
			}
		}
	}
	return nil
}
