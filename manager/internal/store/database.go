package store

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

// Database says where the records are kept: in an SQLite file, or in a
// PostgreSQL database that several managers may share.
type Database struct {
	// Path is the SQLite file.
	Path string
	// URL is that of a PostgreSQL database (postgres://…), with its password.
	// If it is set, Path means nothing.
	URL string
}

// String names the database for logs and errors: never with a password.
func (d Database) String() string {
	if d.URL != "" {
		return postgresName(d.URL)
	}
	return d.Path
}

// GoString keeps the password out of %#v.
func (d Database) GoString() string { return "store.Database(" + d.String() + ")" }

// MarshalText keeps it out of JSON, and LogValue out of every log.
func (d Database) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// LogValue implements slog.LogValuer.
func (d Database) LogValue() slog.Value { return slog.StringValue(d.String()) }

// engine is what differs between the databases; sqlite.go and postgres.go have
// one each. All other SQL of this package runs on both.
type engine interface {
	// writer opens the one connection of this process that writes.
	writer() (*gorm.DB, error)
	// reader opens the pool of connections that read.
	reader() (*gorm.DB, error)
	// spectator opens a connection that changes nothing, not even the files of a
	// database that nobody has open.
	spectator() (*gorm.DB, error)
	// prober opens a connection of its own for one attempt to write, which
	// waits no longer than probeWait for somebody else's.
	prober() (*gorm.DB, error)
	// watchFile returns what tells, from now on, whether the path of an SQLite
	// file leads to another one, or to none.
	watchFile() (func() error, error)
	// begin makes a transaction the only one that writes, whichever process
	// the others are in.
	begin(tx *gorm.DB) error
	// noteIDs notes which ids of an inventory's records come next. giveBack makes
	// them come next again, after what used them was taken back.
	noteIDs(tx *gorm.DB) (giveBack func(tx *gorm.DB) error, err error)
	// beat stores heartbeats, but for those whose Told is not the agent's, and
	// says which it stored.
	beat(tx *gorm.DB, beats []Heartbeat) (written map[int64]bool, err error)
	// counters opens the connection that watches for changes.
	counters() counterSource
	// listen calls heard when something was committed, until the context ends or
	// a fault comes.
	listen(ctx context.Context, heard func()) error
	// migrator opens a connection to migrate on and keeps other migrators away
	// until it is closed.
	migrator(ctx context.Context) (*migrator, error)
	// size is how much room the database takes, in bytes.
	size(tx *gorm.DB) (int64, error)
	// schema is the schema version: 0 for a database without tables.
	schema(ctx context.Context) (int64, error)
}

func (d Database) engine() (engine, error) {
	if d.URL != "" {
		return newPostgres(d.URL)
	}
	return sqliteFile(d.Path), nil
}

// openGorm is how every connection is used.
func openGorm(dialector gorm.Dialector) (*gorm.DB, error) {
	return gorm.Open(dialector, &gorm.Config{
		Logger:                 logger.Discard, // errors are returned, and logged once by whoever handles them
		SkipDefaultTransaction: true,
		NowFunc:                now,
		TranslateError:         true, // constraint faults by the database's codes, not by text
	})
}

// now is the time of every record: UTC, of a resolution that JSON and both
// databases keep alike.
func now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

// readSchema reads the schema version, if the query says that there is a table
// of migrations.
func readSchema(ctx context.Context, db *sql.DB, hasTable string) (version int64, err error) {
	var tables int
	if err := db.QueryRowContext(ctx, hasTable).Scan(&tables); err != nil {
		return 0, fmt.Errorf("read schema version: %w", err)
	}
	if tables == 0 {
		return 0, nil
	}
	err = db.QueryRowContext(ctx, "SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied").Scan(&version)
	if err != nil {
		return 0, fmt.Errorf("read schema version: %w", err)
	}
	return version, nil
}
