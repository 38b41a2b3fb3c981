package store

import (
	"database/sql"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

// TestMigrationThatRebuildsATable stands for every later migration: the child
// rows of a table that is copied, dropped and renamed stay, and a migration
// that fails, or that leaves a row without its parent, changes nothing.
func TestMigrationThatRebuildsATable(t *testing.T) {
	first := "-- +goose Up\n" +
		"CREATE TABLE parents (id INTEGER PRIMARY KEY, name TEXT);\n" +
		"CREATE TABLE children (id INTEGER PRIMARY KEY, parent INTEGER NOT NULL REFERENCES parents (id) ON DELETE CASCADE);\n" +
		"INSERT INTO parents VALUES (1, 'a'), (2, 'b'), (3, 'c');\n" +
		"INSERT INTO children (parent) VALUES (1), (2), (3), (3);\n"
	rebuild := "-- +goose Up\n" +
		"CREATE TABLE parents_new (id INTEGER PRIMARY KEY, name TEXT NOT NULL, more TEXT);\n" +
		"INSERT INTO parents_new SELECT id, name, '' FROM parents WHERE $which;\n" +
		"DROP TABLE parents;\nALTER TABLE parents_new RENAME TO parents;\n"
	tests := map[string]struct {
		second    string
		fault     string
		wantMore  bool
		wantChild int
	}{
		"good":         {strings.ReplaceAll(rebuild, "$which", "TRUE"), "", true, 4},
		"loses a row":  {strings.ReplaceAll(rebuild, "$which", "id < 3"), "row 3 of children refers to a row of parents", false, 4},
		"fails midway": {strings.ReplaceAll(rebuild, "$which", "TRUE") + "CREATE TABLE parents (x);\n", "already exists", false, 4},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "test.db")
			db, err := sql.Open("sqlite3", dataSource(path, url.Values{"_foreign_keys": {"0"}, "mode": {"rwc"}}))
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			db.SetMaxOpenConns(1)
			files := fstest.MapFS{"00001_first.sql": {Data: []byte(first)}}
			if err := migrateIn(t.Context(), db, path, files); err != nil {
				t.Fatal(err)
			}
			files["00002_second.sql"] = &fstest.MapFile{Data: []byte(test.second)}
			err = migrateIn(t.Context(), db, path, files)
			if test.fault == "" && err != nil || test.fault != "" && (err == nil || !strings.Contains(err.Error(), test.fault)) {
				t.Errorf("error: %v", err)
			}
			var children, more int
			if err := db.QueryRow("SELECT count(*) FROM children").Scan(&children); err != nil {
				t.Fatal(err)
			}
			if err := db.QueryRow("SELECT count(*) FROM pragma_table_info('parents') WHERE name = 'more'").Scan(&more); err != nil {
				t.Fatal(err)
			}
			if children != test.wantChild || (more == 1) != test.wantMore {
				t.Errorf("%d children, new column is %v", children, more == 1)
			}
			version, err := schemaVersion(t.Context(), db)
			if want := map[bool]int64{true: 2, false: 1}[test.wantMore]; err != nil || version != want {
				t.Errorf("schema %d, %v", version, err)
			}
		})
	}
}
