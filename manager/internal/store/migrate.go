package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strings"

	"github.com/pressly/goose/v3"
)

//go:embed migrations/sqlite/*.sql
var migrations embed.FS

// Migrate brings the database at path to the current schema, and creates it
// if there is none. It may be called any number of times, by several
// processes at once; what is broken off leaves the database as it was. A
// database of a newer schema is refused with a *SchemaError.
func Migrate(ctx context.Context, path string) error {
	unlock, err := lockMigration(ctx, path)
	if err != nil {
		return fmt.Errorf("migrate database %s: %w", path, err)
	}
	defer unlock()
	if err := createFile(path); err != nil {
		return fmt.Errorf("migrate database %s: %w", path, err)
	}
	// Foreign keys are off: a migration that rebuilds a table would otherwise
	// empty those that refer to it (sqlite.org/lang_altertable.html, 7).
	db, err := sql.Open("sqlite3", dataSource(path, url.Values{"_foreign_keys": {"0"}, "_synchronous": {"FULL"}}))
	if err != nil {
		return fmt.Errorf("migrate database %s: %w", path, err)
	}
	defer db.Close()
	// One connection: what goose does happens in the transaction begun here.
	db.SetMaxOpenConns(1)
	if err := migrateIn(ctx, db, path, currentMigrations()); err != nil {
		return fmt.Errorf("migrate database %s: %w", path, err)
	}
	return ownLikeFolder(path)
}

// migrateIn runs all pending migrations in one transaction, so that a broken
// one leaves nothing behind.
func migrateIn(ctx context.Context, db *sql.DB, path string, files fs.FS) error {
	if _, err := db.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	committed := false
	defer func() {
		if !committed {
			_, _ = db.ExecContext(context.WithoutCancel(ctx), "ROLLBACK") // closing the connection does it too
		}
	}()
	// Isolated DDL means that goose opens no transactions of its own.
	provider, err := goose.NewProvider(goose.DialectSQLite3, db, files,
		goose.WithIsolateDDL(true), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	have, want, err := provider.GetVersions(ctx)
	if err != nil {
		return fmt.Errorf("read schema version: %w", err)
	}
	if have > want {
		return &SchemaError{Path: path, Have: have, Want: want}
	}
	if _, err := provider.Up(ctx); err != nil {
		return err
	}
	if err := checkForeignKeys(ctx, db); err != nil {
		return err
	}
	if _, err := db.ExecContext(ctx, "COMMIT"); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	committed = true
	return nil
}

func checkForeignKeys(ctx context.Context, db *sql.DB) error {
	rows, err := db.QueryContext(ctx, "PRAGMA foreign_key_check")
	if err != nil {
		return fmt.Errorf("check foreign keys: %w", err)
	}
	defer rows.Close()
	if rows.Next() {
		var table, parent string
		var row sql.NullInt64
		var key int
		if err := rows.Scan(&table, &row, &parent, &key); err != nil {
			return fmt.Errorf("check foreign keys: %w", err)
		}
		return fmt.Errorf("check foreign keys: row %d of %s refers to a row of %s that does not exist", row.Int64, table, parent)
	}
	return rows.Err()
}

func currentMigrations() fs.FS {
	files, err := fs.Sub(migrations, "migrations/sqlite")
	if err != nil {
		panic(err) // the folder is embedded above
	}
	return files
}

// newestSchema is the number of the last migration.
func newestSchema(files fs.FS) (int64, error) {
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		return 0, err
	}
	var newest int64
	for _, name := range names {
		number, err := goose.NumericComponent(name)
		if err != nil {
			return 0, fmt.Errorf("migration %s: %w", name, err)
		}
		newest = max(newest, number)
	}
	return newest, nil
}

// SchemaVersion returns the schema version of the database.
func (s *Store) SchemaVersion(ctx context.Context) (int64, error) {
	db, err := s.read.DB()
	if err != nil {
		return 0, fmt.Errorf("read schema version: %w", err)
	}
	return schemaVersion(ctx, db)
}

// requireSchema refuses a database that this program does not know by heart.
func requireSchema(ctx context.Context, path string) error {
	want, err := newestSchema(currentMigrations())
	if err != nil {
		return err
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("open database: %s does not exist: run opensource-manager migrate", path)
	}
	db, err := sql.Open("sqlite3", dataSource(path, url.Values{"_query_only": {"1"}}))
	if err != nil {
		return fmt.Errorf("open database %s: %w", path, err)
	}
	defer db.Close()
	have, err := schemaVersion(ctx, db)
	if err != nil {
		return fmt.Errorf("open database %s: %w", path, err)
	}
	if have != want {
		return &SchemaError{Path: path, Have: have, Want: want}
	}
	return nil
}

// schemaVersion is 0 for a database without a table of migrations.
func schemaVersion(ctx context.Context, db *sql.DB) (int64, error) {
	var tables int
	err := db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_master WHERE name = ?", goose.DefaultTablename).Scan(&tables)
	if err != nil {
		return 0, fmt.Errorf("read schema version: %w", err)
	}
	if tables == 0 {
		return 0, nil
	}
	var version int64
	query := strings.ReplaceAll("SELECT coalesce(max(version_id), 0) FROM $table WHERE is_applied", "$table", goose.DefaultTablename)
	if err := db.QueryRowContext(ctx, query).Scan(&version); err != nil {
		return 0, fmt.Errorf("read schema version: %w", err)
	}
	return version, nil
}
