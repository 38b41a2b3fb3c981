package store

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"
)

//go:embed migrations/*/*.sql
var migrations embed.FS

// migrator is a connection on which a database is migrated. It is the only one
// of its pool: what goose does happens in the transaction begun on it.
type migrator struct {
	db      *sql.DB
	dialect goose.Dialect
	files   fs.FS
	// begin starts the transaction; check looks at what it is about to commit.
	begin func(context.Context, *sql.DB) error
	check func(context.Context, *sql.DB) error
	close func() error
}

// Migrate brings a database to the current schema. An SQLite file is created
// if there is none. It may be called any number of times, by several processes
// at once; what is broken off leaves the database as it was. A database of a
// newer schema is refused with a *SchemaError.
func Migrate(ctx context.Context, database Database) error {
	err := migrate(ctx, database)
	if err != nil {
		return fmt.Errorf("migrate database %s: %w", database, err)
	}
	return nil
}

func migrate(ctx context.Context, database Database) error {
	engine, err := database.engine()
	if err != nil {
		return err
	}
	m, err := engine.migrator(ctx)
	if err != nil {
		return err
	}
	if err := m.run(ctx, database); err != nil {
		_ = m.close() // rolls back; the first error says it all
		return err
	}
	return m.close()
}

// run runs all pending migrations in one transaction, so that a broken one
// leaves nothing behind.
func (m *migrator) run(ctx context.Context, database Database) error {
	if err := m.begin(ctx, m.db); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	committed := false
	defer func() {
		if !committed {
			_, _ = m.db.ExecContext(context.WithoutCancel(ctx), "ROLLBACK") // closing the connection does it too
		}
	}()
	// Isolated DDL means that goose opens no transactions of its own.
	provider, err := goose.NewProvider(m.dialect, m.db, m.files,
		goose.WithIsolateDDL(true), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	have, want, err := provider.GetVersions(ctx)
	if err != nil {
		return fmt.Errorf("read schema version: %w", err)
	}
	if have > want {
		return &SchemaError{Database: database.String(), Have: have, Want: want}
	}
	if _, err := provider.Up(ctx); err != nil {
		return err
	}
	if have < schemaOfSummaries && want >= schemaOfSummaries {
		if err := summariseAgents(ctx, m.db); err != nil {
			return err
		}
	}
	if err := m.check(ctx, m.db); err != nil {
		return err
	}
	if _, err := m.db.ExecContext(ctx, "COMMIT"); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	committed = true
	return nil
}

// migrationsOf are the migrations of a folder: the same numbers for every
// database.
func migrationsOf(folder string) fs.FS {
	files, err := fs.Sub(migrations, "migrations/"+folder)
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
	var version int64
	err := s.read.WithContext(ctx).Raw("SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied").Scan(&version).Error
	if err != nil {
		return 0, fmt.Errorf("read schema version: %w", err)
	}
	return version, nil
}

// requireSchema refuses a database that this program does not know by heart.
func requireSchema(ctx context.Context, engine engine, database Database) error {
	want, err := newestSchema(migrationsOf("sqlite"))
	if err != nil {
		return err
	}
	have, err := engine.schema(ctx)
	if err != nil {
		return err
	}
	if have != want {
		return &SchemaError{Database: database.String(), Have: have, Want: want}
	}
	return nil
}
