package store_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"opensource.internal/manager/internal/store"
	"opensource.internal/manager/internal/store/storetest"
)

// migrateThis makes the test binary migrate a database instead of running
// tests: another process, which a test can kill.
const migrateThis = "STORE_TEST_MIGRATE"

func TestMain(m *testing.M) {
	if path := os.Getenv(migrateThis); path != "" {
		database := store.Database{Path: path}
		if strings.HasPrefix(path, "postgres://") {
			database = store.Database{URL: path}
		}
		if err := store.Migrate(context.Background(), database); err != nil {
			os.Stderr.WriteString(err.Error())
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func migrator(t *testing.T, path string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), migrateThis+"="+path)
	return cmd
}

func TestMigrateKilled(t *testing.T) {
	killed := 0
	for range 50 {
		path := filepath.Join(t.TempDir(), "manager.db")
		cmd := migrator(t, path)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		waitForFile(t, path)
		kill := time.AfterFunc(time.Duration(rand.Int64N(int64(15*time.Millisecond))), func() { _ = cmd.Process.Kill() })
		err := cmd.Wait()
		kill.Stop()
		if err != nil {
			killed++
		}
		requireAllOrNothing(t, path)
		if err := store.Migrate(t.Context(), store.Database{Path: path}); err != nil {
			t.Fatalf("after a kill: %v", err)
		}
		s := storetest.OpenAt(t, store.Database{Path: path})
		storetest.NewWorld(t, s, 1)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d of 50 migrations were killed", killed)
	if killed == 0 {
		t.Error("no migration was killed: the test shows nothing")
	}
}

// TestUpgradeKilled upgrades the database of an earlier release, and is killed
// at any moment of it.
func TestUpgradeKilled(t *testing.T) {
	killed := 0
	for range 30 {
		path := filepath.Join(t.TempDir(), "manager.db")
		db := store.SchemaOne(t, path)
		before := store.CountRows(t, db)
		cmd := migrator(t, path)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		waitForFile(t, path+".lock")
		kill := time.AfterFunc(time.Duration(rand.Int64N(int64(15*time.Millisecond))), func() { _ = cmd.Process.Kill() })
		if cmd.Wait() != nil {
			killed++
		}
		kill.Stop()
		var version, tables int
		err := errors.Join(
			db.QueryRow("SELECT max(version_id) FROM goose_db_version").Scan(&version),
			db.QueryRow("SELECT count(*) FROM sqlite_master WHERE name = 'confirmed_removals'").Scan(&tables))
		if err != nil || (version > 1) != (tables > 0) {
			t.Errorf("schema %d with %d new tables, %v", version, tables, err)
		}
		if err := store.Migrate(t.Context(), store.Database{Path: path}); err != nil {
			t.Fatalf("after a kill: %v", err)
		}
		if after := store.CountRows(t, db); after != before {
			t.Errorf("before %s, after %s", before, after)
		}
	}
	t.Logf("%d of 30 upgrades were killed", killed)
	if killed == 0 {
		t.Error("no upgrade was killed: the test shows nothing")
	}
}

// waitForFile returns as soon as another process has created a file.
func waitForFile(t *testing.T, path string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for ctx.Err() == nil {
		if _, err := os.Stat(path); err == nil {
			return
		}
		runtime.Gosched()
	}
	t.Fatalf("%s was never created", path)
}

// requireAllOrNothing checks that a database has the whole schema or none.
func requireAllOrNothing(t *testing.T, path string) {
	t.Helper()
	db := storetest.Raw(t, store.Database{Path: path})
	var tables, triggers int
	err := errors.Join(
		db.QueryRow("SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'").Scan(&tables),
		db.QueryRow("SELECT count(*) FROM sqlite_master WHERE type = 'trigger'").Scan(&triggers))
	if err != nil {
		t.Fatal(err)
	}
	if !(tables == 0 && triggers == 0) && !(tables > 12 && triggers > 30) {
		t.Errorf("%d tables and %d triggers after a kill", tables, triggers)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestMigrateTwoProcesses(t *testing.T) {
	for range 5 {
		path := filepath.Join(t.TempDir(), "manager.db")
		var group sync.WaitGroup
		for range 3 {
			group.Go(func() {
				if out, err := migrator(t, path).CombinedOutput(); err != nil {
					t.Errorf("%v: %s", err, out)
				}
			})
		}
		group.Wait()
		s := storetest.OpenAt(t, store.Database{Path: path})
		if version, err := s.SchemaVersion(t.Context()); err != nil || version < 1 {
			t.Errorf("schema %d, %v", version, err)
		}
	}
}

func TestMigrateIsIdempotentAndKeepsData(t *testing.T) {
	path := filepath.Join(t.TempDir(), "manager.db")
	s := storetest.OpenAt(t, store.Database{Path: path})
	w := storetest.NewWorld(t, s, 1)
	for range 3 {
		if err := store.Migrate(t.Context(), store.Database{Path: path}); err != nil { // also beside a running manager
			t.Fatal(err)
		}
	}
	if _, err := s.GetVolume(t.Context(), w.Volume.ID); err != nil {
		t.Error(err)
	}
}

func TestOpenRefusesOtherSchemas(t *testing.T) {
	path := filepath.Join(t.TempDir(), "manager.db")
	_, err := store.Open(t.Context(), store.Database{Path: path}, store.Options{})
	if err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("no file: %v", err)
	}
	db := storetest.Raw(t, store.Database{Path: path})
	if _, err := db.Exec("CREATE TABLE something (x)"); err != nil {
		t.Fatal(err)
	}
	const foreign = "not one of this manager"
	if _, err := store.Open(t.Context(), store.Database{Path: path}, store.Options{}); err == nil || !strings.Contains(err.Error(), foreign) {
		t.Errorf("another program's: %v", err)
	}
	if err := store.Migrate(t.Context(), store.Database{Path: path}); err == nil || !strings.Contains(err.Error(), foreign) {
		t.Errorf("another program's was migrated: %v", err)
	}
	if _, err := db.Exec("DROP TABLE something"); err != nil {
		t.Fatal(err)
	}
	var schema *store.SchemaError
	_, err = store.Open(t.Context(), store.Database{Path: path}, store.Options{})
	if !errors.As(err, &schema) || schema.Have != 0 || !strings.Contains(err.Error(), "migrate") {
		t.Errorf("empty: %v", err)
	}
	if err := store.Migrate(t.Context(), store.Database{Path: path}); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("INSERT INTO goose_db_version (version_id, is_applied) VALUES (999, 1)"); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"open": second(store.Open(t.Context(), store.Database{Path: path}, store.Options{})), "migrate": store.Migrate(t.Context(), store.Database{Path: path}),
		"open and migrate": second(store.Open(t.Context(), store.Database{Path: path}, store.Options{Migrate: true})),
	} {
		if !errors.As(err, &schema) || schema.Have != 999 || !strings.Contains(err.Error(), "newer version") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func second(_ *store.Store, err error) error { return err }

func TestOpenRefusesWhatIsNoDatabase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "manager.db")
	if err := os.WriteFile(path, []byte(strings.Repeat("not a database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"open":              second(store.Open(t.Context(), store.Database{Path: path}, store.Options{Migrate: true})),
		"folder is missing": second(store.Open(t.Context(), store.Database{Path: filepath.Join(t.TempDir(), "no", "manager.db")}, store.Options{Migrate: true})),
		"a folder":          second(store.Open(t.Context(), store.Database{Path: t.TempDir()}, store.Options{Migrate: true})),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestPathWithSpecialCharacters(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a b?c#d%41.db")
	storetest.NewWorld(t, storetest.OpenAt(t, store.Database{Path: path}), 1)
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
}

func TestFilesBelongToTheFoldersOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: giving files away needs root")
	}
	folder := t.TempDir()
	if err := os.Chown(folder, 12345, 23456); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, "manager.db")
	s := storetest.OpenAt(t, store.Database{Path: path})
	storetest.NewWorld(t, s, 1)
	for _, suffix := range []string{"", "-wal", "-shm", ".lock"} {
		info, err := os.Stat(path + suffix)
		if err != nil {
			t.Error(err)
			continue
		}
		owner := info.Sys().(*syscall.Stat_t)
		if owner.Uid != 12345 || owner.Gid != 23456 || info.Mode().Perm()&0o137 != 0 {
			t.Errorf("%s has %d:%d %v", suffix, owner.Uid, owner.Gid, info.Mode())
		}
	}
}

func TestRootGivesNothingElseAway(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: giving files away needs root")
	}
	for name, link := range map[string]func(string, string) error{"symbolic": os.Symlink, "hard": os.Link} {
		folder, elsewhere := t.TempDir(), filepath.Join(t.TempDir(), "shadow")
		if err := errors.Join(os.WriteFile(elsewhere, nil, 0o600), os.Chown(folder, 12345, 23456)); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(folder, "manager.db")
		if err := link(elsewhere, path); err != nil {
			t.Fatal(err)
		}
		if err := store.Migrate(t.Context(), store.Database{Path: path}); err == nil {
			t.Errorf("%s link: no error", name)
		}
		info, err := os.Stat(elsewhere)
		if err != nil {
			t.Fatal(err)
		}
		if owner := info.Sys().(*syscall.Stat_t); owner.Uid != 0 || info.Size() != 0 {
			t.Errorf("%s link: the file behind it now belongs to %d", name, owner.Uid)
		}
	}
}
