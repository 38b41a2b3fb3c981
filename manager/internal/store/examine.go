package store

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
)

// Examination is how a database is found, without changing it.
type Examination struct {
	Schema, Newest int64  // its schema, and that of this program
	JournalMode    string // of an SQLite file; "wal" as a rule
	Bytes          int64  // of an SQLite file and its log
	Damage         error  // what a quick check of an SQLite file has found
}

// Examine looks at a database. The error says that it cannot be read at all.
func Examine(ctx context.Context, database Database) (Examination, error) {
	var e Examination
	engine, err := database.engine()
	if err != nil {
		return e, err
	}
	if e.Newest, err = newestSchema(migrationsOf("sqlite")); err != nil {
		return e, err
	}
	if e.Schema, err = engine.schema(ctx); err != nil {
		return e, err
	}
	if database.URL != "" {
		return e, nil
	}
	for _, suffix := range []string{"", "-wal"} {
		if info, err := os.Stat(database.Path + suffix); err == nil {
			e.Bytes += info.Size()
		}
	}
	db, err := sql.Open("sqlite3", sqliteFile(database.Path).dataSource(url.Values{"_query_only": {"1"}}))
	if err != nil {
		return e, err
	}
	defer db.Close()
	if err := db.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&e.JournalMode); err != nil {
		return e, fmt.Errorf("read journal mode: %w", err)
	}
	e.Damage = checkIntegrity(ctx, db, "quick_check")
	return e, nil
}
