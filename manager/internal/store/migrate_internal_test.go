package store

import (
	"context"
	"database/sql"
	"io/fs"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/pressly/goose/v3"

	"opensource.internal/agent/checkin"
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
			db, err := sql.Open("sqlite3", sqliteFile(path).dataSource(url.Values{"_foreign_keys": {"0"}, "mode": {"rwc"}}))
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			db.SetMaxOpenConns(1)
			files := fstest.MapFS{"00001_first.sql": {Data: []byte(first)}}
			if err := migrateIn(t, db, files); err != nil {
				t.Fatal(err)
			}
			files["00002_second.sql"] = &fstest.MapFile{Data: []byte(test.second)}
			err = migrateIn(t, db, files)
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
			version, err := readSchema(t.Context(), db, "SELECT 1")
			if want := map[bool]int64{true: 2, false: 1}[test.wantMore]; err != nil || version != want {
				t.Errorf("schema %d, %v", version, err)
			}
		})
	}
}

// migrateIn runs migrations on an SQLite database.
func migrateIn(t *testing.T, db *sql.DB, files fs.FS) error {
	t.Helper()
	m := migrator{
		db: db, dialect: goose.DialectSQLite3, files: files, check: checkForeignKeys,
		begin: func(ctx context.Context, db *sql.DB) error {
			_, err := db.ExecContext(ctx, "BEGIN IMMEDIATE")
			return err
		},
	}
	return m.run(t.Context(), Database{})
}

// SchemaOne makes a database as the release left it that knew of no
// confirmations, with rows in it.
func SchemaOne(t *testing.T, path string) *sql.DB {
	t.Helper()
	first, err := fs.ReadFile(migrationsOf("sqlite"), "00001_init.sql")
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite3", sqliteFile(path).dataSource(url.Values{"_foreign_keys": {"0"}, "mode": {"rwc"}}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	if err := migrateIn(t, db, fstest.MapFS{"00001_init.sql": {Data: first}}); err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{
		`INSERT INTO sites (id, name, volumes_root, port_range, created_at, updated_at) VALUES (1, 'lab', '/v', '2000-2999', 0, 0), (2, 'attic', '/v', '2000-2999', 0, 0)`,
		`INSERT INTO nodes (id, site_id, name, type, created_at, updated_at) VALUES (1, 1, 'pve1', 'none', 0, 0)`,
		`INSERT INTO containers (id, site_id, node_id, hostname, created_at, updated_at) VALUES (1, 1, 1, 'web', 0, 0)`,
		`INSERT INTO volumes (id, site_id, container_id, name, mount_path, mode, host_path, uid, gid, created_at, updated_at)
			VALUES (1, 1, 1, 'data', '/data', 'rw', '/v/data', 1, 1, 0, 0)`,
		`INSERT INTO agents (id, site_id, hostname, report, first_seen_at, last_seen_at, changed_at)
			VALUES (1, 1, 'agent', '{"services":{"nginx":{"drift":[{"path":"/a","diff":"b"}]}}}', '2026-01-02 03:04:05+00:00', '2026-01-02 03:04:05+00:00', '2026-01-02 03:04:05+00:00')`,
		`INSERT INTO revisions (site_id, number, etag, data, created_at) VALUES (1, 1, '"a"', '{}', 0)`,
	} {
		if _, err := db.Exec(statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	return db
}

// CountRows tells how many rows each table of SchemaOne has.
func CountRows(t *testing.T, db *sql.DB) string {
	t.Helper()
	var counts strings.Builder
	for _, table := range []string{"sites", "nodes", "containers", "volumes", "agents", "revisions", "change_counters"} {
		var n string
		if err := db.QueryRow("SELECT '" + table + " ' || count(*) || ' ' FROM " + table).Scan(&n); err != nil {
			t.Fatal(err)
		}
		counts.WriteString(n)
	}
	return counts.String()
}

func TestUpgradeFromSchemaOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "manager.db")
	db := SchemaOne(t, path)
	before := CountRows(t, db)
	s, err := Open(t.Context(), Database{Path: path}, Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if after := CountRows(t, db); after != before {
		t.Errorf("before %s, after %s", before, after)
	}
	newest, _ := newestSchema(migrationsOf("sqlite"))
	if version, err := s.SchemaVersion(t.Context()); err != nil || version != newest {
		t.Errorf("schema %d, want %d, %v", version, newest, err)
	}
	agent, err := s.FindAgent(t.Context(), 1, "agent")
	if err != nil || len(agent.Drift) != 0 || len(agent.Report.Services["nginx"].Drift) != 1 {
		t.Errorf("%+v, %v", agent, err)
	}
	requireCounting(t, s)
}

// requireCounting looks at the triggers that the upgrade has changed.
func requireCounting(t *testing.T, s *Store) {
	t.Helper()
	site := func() uint64 {
		versions, err := s.Versions(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return versions.Site(1)
	}
	encode := func(i Inventory) ([]byte, string, error) {
		return []byte(i.Site.Name), checkin.ETag([]byte(i.Site.Name)), nil
	}
	for _, step := range []struct {
		name string
		do   func() error
		left int
	}{
		{"confirm", func() error { _, err := s.ConfirmRemovals(t.Context(), 1, "ada", "", encode); return err }, 1},
		{"volume result", func() error {
			_, err := s.RecordCheckIn(t.Context(), CheckIn{SiteID: 1, Hostname: "agent", Volumes: map[int64]checkin.VolumeReport{1: {Applied: true}}})
			return err
		}, 1},
		{"volume", func() error { return s.write.Exec("UPDATE volumes SET mode = 'ro'").Error }, 0},
	} {
		before := site()
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		list, err := s.ListConfirmedRemovals(t.Context())
		if site() == before || len(list) != step.left || err != nil {
			t.Errorf("%s: the counter was %d and is %d; %d confirmed, want %d; %v", step.name, before, site(), len(list), step.left, err)
		}
	}
}
