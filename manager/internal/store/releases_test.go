package store_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/store"
	"opensource.internal/manager/internal/store/storetest"
)

// TestUpgradeFromReleases upgrades what the manager of each released schema has
// left behind: dumps of databases that were filled through its API. (That of
// PostgreSQL has the rows of SQLite's, by pg_dump --inserts.)
func TestUpgradeFromReleases(t *testing.T) {
	dumps, err := filepath.Glob("testdata/*/schema-*.sql")
	if err != nil || len(dumps) < 4 {
		t.Fatalf("%v, %v", dumps, err)
	}
	for _, dump := range dumps {
		t.Run(strings.TrimPrefix(dump, "testdata/"), func(t *testing.T) {
			database, before := restored(t, dump)
			s := storetest.OpenAt(t, database)
			if diff := cmp.Diff(before, rowsOf(t, database, before)); diff != "" {
				t.Errorf("rows (-before +after):\n%s", diff)
			}
			requireSound(t, database)
			requireUsable(t, s)
		})
	}
}

// restored makes a database from a dump, and counts its rows by table.
func restored(t *testing.T, dump string) (store.Database, map[string]int) {
	t.Helper()
	statements, err := os.ReadFile(dump)
	if err != nil {
		t.Fatal(err)
	}
	var database store.Database
	if filepath.Base(filepath.Dir(dump)) == "postgres" {
		database = storetest.EmptyPostgreSQL(t)
	} else {
		database = storetest.SQLite(t)
	}
	if _, err := storetest.Raw(t, database).Exec(string(statements)); err != nil {
		t.Fatal(err)
	}
	tables := map[string]int{}
	for _, found := range regexp.MustCompile(`(?m)^CREATE TABLE (?:IF NOT EXISTS )?(?:public\.)?"?(\w+)`).FindAllSubmatch(statements, -1) {
		tables[string(found[1])] = 0
	}
	delete(tables, "goose_db_version") // grows by every migration
	before := rowsOf(t, database, tables)
	if before["nodes"] != 3 || before["containers"] != 49 || before["services"] != 81 || before["sessions"] != 1 {
		t.Fatalf("the dump is another one: %v", before)
	}
	return database, before
}

func rowsOf(t *testing.T, database store.Database, tables map[string]int) map[string]int {
	t.Helper()
	db := storetest.Raw(t, database)
	counts := map[string]int{}
	for table := range tables {
		var rows int
		if err := db.QueryRow("SELECT count(*) FROM " + table).Scan(&rows); err != nil {
			t.Fatal(err)
		}
		counts[table] = rows
	}
	return counts
}

// requireSound has SQLite look at the whole file. (PostgreSQL checks references
// with every row.)
func requireSound(t *testing.T, database store.Database) {
	t.Helper()
	if database.URL != "" {
		return
	}
	db := storetest.Raw(t, database)
	var integrity string
	if err := db.QueryRow("PRAGMA integrity_check").Scan(&integrity); err != nil || integrity != "ok" {
		t.Errorf("integrity: %s, %v", integrity, err)
	}
	var broken sql.NullString
	if err := db.QueryRow("SELECT max(\"table\") FROM pragma_foreign_key_check").Scan(&broken); err != nil || broken.Valid {
		t.Errorf("rows of %v without their parent, %v", broken, err)
	}
}

// requireUsable does with an upgraded database what a manager does every day.
func requireUsable(t *testing.T, s *store.Store) {
	t.Helper()
	ctx := t.Context()
	if user, err := s.UserByName(ctx, "ada"); err != nil || user.Role != "admin" {
		t.Errorf("%+v, %v", user, err)
	}
	agent, err := s.FindAgent(ctx, 1, "agent")
	if err != nil || agent.Report.Services["nginx"].State != "active" {
		t.Errorf("%+v, %v", agent, err)
	}
	before, err := s.Versions(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.CreateContainer(ctx, 1, inventory.Container{NodeID: 1, Hostname: "new"}); err != nil {
		t.Error(err)
	}
	if after, err := s.Versions(ctx); err != nil || after.Site(1) <= before.Site(1) {
		t.Errorf("a new container is no change: %d, %d, %v", before.Site(1), after.Site(1), err)
	}
	recorded, err := s.RecordCheckIn(ctx, store.CheckIn{SiteID: 1, Hostname: "agent", At: time.Now().UTC(), Report: checkin.Request{Hostname: "agent"}})
	if err != nil || recorded.ID != agent.ID {
		t.Errorf("the agent is %d and was %d, %v", recorded.ID, agent.ID, err)
	}
	if err := s.DeleteSite(ctx, 1, true); err != nil {
		t.Error(err)
	}
}
