package store

import (
	"context"
	"database/sql"
	"fmt"
	"os"
)

// Examination is how a database is found, without changing it.
type Examination struct {
	Schema, Newest int64  // its schema, and that of this program
	JournalMode    string // of an SQLite file; "wal", or "rollback" of one that is not the manager's
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
	file := sqliteFile(database.Path)
	e.JournalMode = file.journalMode()
	db, err := sql.Open("sqlite3", file.untouched())
	if err != nil {
		return e, err
	}
	defer db.Close()
	e.Damage = checkIntegrity(ctx, db, "quick_check")
	return e, nil
}

// ExamineAgents reads the agents of a database of the current schema, without
// changing it.
func ExamineAgents(ctx context.Context, database Database) (agents []Agent, err error) {
	engine, err := database.engine()
	if err != nil {
		return nil, err
	}
	if err := requireSchema(ctx, engine, database); err != nil {
		return nil, err
	}
	db, err := engine.spectator()
	if err != nil {
		return nil, fmt.Errorf("open database %s: %w", database, err)
	}
	pool, err := db.DB()
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	if err := db.WithContext(ctx).Order("id").Find(&agents).Error; err != nil {
		return nil, fmt.Errorf("read agents: %w", err)
	}
	return agents, nil
}

// Locked reports whether an error means that another program holds a database.
func Locked(err error) bool { return busy(err) }
