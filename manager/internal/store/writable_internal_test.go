package store

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/mattn/go-sqlite3"
)

func TestUnavailable(t *testing.T) {
	for _, test := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{ErrNotFound, false},
		{errors.New("database is locked"), false}, // words say nothing
		{context.Canceled, false},
		{context.DeadlineExceeded, true},
		{sqlite3.Error{Code: sqlite3.ErrBusy}, true},
		{sqlite3.Error{Code: sqlite3.ErrLocked}, true},
		{sqlite3.Error{Code: sqlite3.ErrFull}, true},
		{sqlite3.Error{Code: sqlite3.ErrIoErr, ExtendedCode: sqlite3.ErrIoErrWrite}, true},
		{sqlite3.Error{Code: sqlite3.ErrReadonly}, true},
		{sqlite3.Error{Code: sqlite3.ErrCantOpen}, true},
		{sqlite3.Error{Code: sqlite3.ErrCorrupt}, true},
		{sqlite3.Error{Code: sqlite3.ErrConstraint, ExtendedCode: sqlite3.ErrConstraintCheck}, false},
		{sqlite3.Error{Code: sqlite3.ErrError}, false}, // no such table: a fault of ours
	} {
		if got := Unavailable(test.err); got != test.want {
			t.Errorf("%v: %v", test.err, got)
		}
		if test.err != nil && Unavailable(fmt.Errorf("list records: %w", test.err)) != test.want {
			t.Errorf("%v, wrapped: not %v", test.err, test.want)
		}
	}
}
