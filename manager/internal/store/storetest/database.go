package storetest

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"opensource.internal/manager/internal/store"
)

// chosen is the database that tests run on: SQLite, or with
// TEST_DATABASE=postgresql PostgreSQL. `make test` runs the manager's tests on
// one after the other.
const chosen = "TEST_DATABASE"

// OnPostgreSQL reports whether this run of the tests is for PostgreSQL. Only a
// test of something that one of the databases does not have needs to know.
func OnPostgreSQL() bool { return os.Getenv(chosen) == "postgresql" }

// Database returns a database of its own for one test: an SQLite file that does
// not exist yet, or a PostgreSQL database of the current schema.
func Database(t testing.TB) store.Database {
	t.Helper()
	switch os.Getenv(chosen) {
	case "postgresql":
		return PostgreSQL(t)
	case "", "sqlite":
		return SQLite(t)
	}
	t.Fatalf("%s=%s: want sqlite or postgresql", chosen, os.Getenv(chosen))
	return store.Database{}
}

// SQLite returns a file that does not exist yet, whatever the run is for.
func SQLite(t testing.TB) store.Database {
	t.Helper()
	return store.Database{Path: filepath.Join(t.TempDir(), "manager.db")}
}

// Open opens an empty database for one test.
func Open(t testing.TB) *store.Store {
	t.Helper()
	return OpenAt(t, Database(t))
}

// OpenAt opens a database, as another process would.
func OpenAt(t testing.TB, database store.Database) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), database, store.Options{
		Migrate: true, ReservedPorts: []int{3001}, HeartbeatInterval: time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close store: %v", err)
		}
	})
	return s
}

// Raw opens a database without the store, as somebody with a database client
// would. Placeholders are $1, $2 … on both.
func Raw(t testing.TB, database store.Database) *sql.DB {
	t.Helper()
	driver, source := "sqlite3", database.Path+"?_busy_timeout=5000"
	if database.URL != "" {
		driver, source = "pgx", database.URL
	}
	db, err := sql.Open(driver, source)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// LockWrites keeps everybody from writing to a database until unlock is called,
// as another process in a long transaction would.
func LockWrites(t testing.TB, database store.Database) (unlock func()) {
	t.Helper()
	db := Raw(t, database)
	db.SetMaxOpenConns(1) // a lock is the connection's
	lock, release := "BEGIN IMMEDIATE", "ROLLBACK"
	if database.URL != "" {
		lock, release = fmt.Sprintf("SELECT pg_advisory_lock(%d)", store.WriteLock), "SELECT pg_advisory_unlock_all()"
	}
	if _, err := db.Exec(lock); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if _, err := db.Exec(release); err != nil {
			t.Fatal(err)
		}
	}
}
