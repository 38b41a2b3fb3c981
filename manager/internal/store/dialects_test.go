package store_test

import (
	"database/sql"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"opensource.internal/manager/internal/store/storetest"
)

// TestDatabasesAreAlike compares what the migrations of both databases make.
func TestDatabasesAreAlike(t *testing.T) {
	if diff := cmp.Diff(fileNames(t, "migrations/sqlite"), fileNames(t, "migrations/postgres")); diff != "" {
		t.Errorf("migrations (-sqlite +postgres):\n%s", diff)
	}
	sqlite, postgres := storetest.SQLite(t), storetest.EmptyPostgreSQL(t)
	storetest.OpenAt(t, sqlite)
	storetest.OpenAt(t, postgres)
	const sqliteColumns = `SELECT m.name, c.name, CASE WHEN c."notnull" = 1 OR c.pk > 0 THEN 'NO' ELSE 'YES' END
		FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%'`
	const postgresColumns = `SELECT c.table_name, c.column_name, c.is_nullable FROM information_schema.columns c
		JOIN information_schema.tables t USING (table_schema, table_name) WHERE table_schema = 'public' AND t.table_type = 'BASE TABLE'`
	if diff := cmp.Diff(columns(t, storetest.Raw(t, sqlite), sqliteColumns), columns(t, storetest.Raw(t, postgres), postgresColumns)); diff != "" {
		t.Errorf("columns and whether they may be null (-sqlite +postgres):\n%s", diff)
	}
	const sqliteIndexes = `SELECT tbl_name, name, CASE WHEN sql LIKE '% UNIQUE %' THEN 'unique' ELSE '' END
		FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL`
	const postgresIndexes = `SELECT tablename, indexname, CASE WHEN indexdef LIKE '% UNIQUE %' THEN 'unique' ELSE '' END FROM pg_indexes
		WHERE schemaname = 'public' AND indexname NOT IN (SELECT conname FROM pg_constraint)`
	if diff := cmp.Diff(columns(t, storetest.Raw(t, sqlite), sqliteIndexes), columns(t, storetest.Raw(t, postgres), postgresIndexes)); diff != "" {
		t.Errorf("indexes (-sqlite +postgres):\n%s", diff)
	}
}

func fileNames(t *testing.T, folder string) []string {
	t.Helper()
	names, err := fs.Glob(os.DirFS(folder), "*")
	if err != nil || len(names) == 0 {
		t.Fatalf("%s: %v, %v", folder, names, err)
	}
	return names
}

// columns reads rows of table, name and property, but for the tables of the
// migrations' own and of sequences.
func columns(t *testing.T, db *sql.DB, query string) map[string]string {
	t.Helper()
	rows, err := db.Query(query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	found := map[string]string{}
	for rows.Next() {
		var table, name, property string
		if err := rows.Scan(&table, &name, &property); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(table, "goose_") {
			found[table+"."+name] = property
		}
	}
	if err := rows.Err(); err != nil || len(found) < 10 {
		t.Fatalf("%v: %v", found, err)
	}
	return found
}
