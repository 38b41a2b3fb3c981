package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
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
		{&pgconn.PgError{Code: "57P01"}, true},  // shut down
		{&pgconn.PgError{Code: "57P03"}, true},  // starting up
		{&pgconn.PgError{Code: "57014"}, true},  // took too long
		{&pgconn.PgError{Code: "55P03"}, true},  // somebody else has locked it
		{&pgconn.PgError{Code: "53100"}, true},  // the disk is full
		{&pgconn.PgError{Code: "53300"}, true},  // too many connections
		{&pgconn.PgError{Code: "40001"}, true},  // to be tried again
		{&pgconn.PgError{Code: "28P01"}, true},  // another password
		{&pgconn.PgError{Code: "25006"}, true},  // read-only
		{&pgconn.PgError{Code: "42P01"}, false}, // no such table: a fault of ours
		{&pgconn.PgError{Code: "23505"}, false}, // taken
		{&pgconn.PgError{Code: "22021"}, false}, // not text
		{io.ErrUnexpectedEOF, true},             // the server is gone amid an answer
		{&net.OpError{Op: "dial", Err: io.ErrUnexpectedEOF}, true},
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
