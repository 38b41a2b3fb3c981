package store_test

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/store"
	"opensource.internal/manager/internal/store/storetest"
)

func openFile(t *testing.T, path string) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), store.Database{Path: path}, store.Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func siteNames(t *testing.T, s *store.Store) (names []string) {
	t.Helper()
	rows, _, err := s.ListSites(t.Context(), store.SiteFilter{}, store.ListOptions{Limit: store.All})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		names = append(names, row.Name)
	}
	return names
}

func onlyFiles(t *testing.T, folder string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	if strings.Join(names, " ") != strings.Join(want, " ") {
		t.Errorf("%s holds %q, want %q", folder, names, want)
	}
}

// While two writers write, each backup holds a whole number of their
// transactions, and all that ended before it began.
func TestBackupUnderLoad(t *testing.T) {
	path, out := filepath.Join(t.TempDir(), "manager.db"), t.TempDir()
	s := openFile(t, path)
	world := storetest.NewWorld(t, s, 1)
	ctx, stop := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	started := make(chan struct{})
	var once sync.Once
	for w := range 2 {
		writers.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				name := fmt.Sprintf("w%d-%d", w, n)
				_, err := s.CreateContainer(t.Context(), world.Site.ID, inventory.Container{NodeID: world.Node.ID, Hostname: name})
				if err != nil {
					t.Errorf("write: %v", err)
					return
				}
				once.Do(func() { close(started) })
			}
		})
	}
	<-started
	for n := range 10 {
		before, _, err := s.ListContainers(t.Context(), store.ContainerFilter{}, store.ListOptions{Limit: store.All})
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(out, fmt.Sprint(n))
		done, err := store.Backup(t.Context(), store.Database{Path: path}, file, false, nil)
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(file)
		if err != nil || info.Mode().Perm() != 0o600 || info.Size() != done.Bytes {
			t.Errorf("%v %v %+v", err, info.Mode(), done)
		}
		copied := openFile(t, file)
		after, _, err := copied.ListContainers(t.Context(), store.ContainerFilter{}, store.ListOptions{Limit: store.All})
		if err != nil {
			t.Fatal(err)
		}
		if len(after) < len(before) {
			t.Errorf("%d containers before, %d in the backup", len(before), len(after))
		}
		copied.Close()
	}
	stop()
	writers.Wait()
}

// A killed backup or restore cannot remove its copy. The next one to that place
// does, and nothing else.
func TestAbandonedCopiesAreRemoved(t *testing.T) {
	folder := t.TempDir()
	path, file := filepath.Join(folder, "manager.db"), filepath.Join(folder, "b")
	openFile(t, path).Close()
	leave := func(name string, age time.Duration) {
		t.Helper()
		left := filepath.Join(folder, name)
		if err := os.WriteFile(left, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(left, time.Time{}, time.Now().Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{".b.123.part", ".b.123.part-journal", ".manager.db.9.part", ".manager.db.9.part-wal", ".manager.db.9.part.lock"} {
		leave(name, 2*time.Hour)
	}
	others := []string{".b.77.part", ".b.x.part", ".bb.123.part", "b.123.part", ".b.123.partial"}
	for _, name := range others {
		leave(name, 2*time.Hour)
	}
	leave(".b.77.part", 0) // in the making
	if _, err := store.Backup(t.Context(), store.Database{Path: path}, file, false, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Restore(t.Context(), store.Database{Path: path}, file); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, entry := range entries {
		if strings.Contains(entry.Name(), ".part") {
			left = append(left, entry.Name())
		}
	}
	slices.Sort(others)
	if diff := cmp.Diff(others, left); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
}

func TestBackupIsOneFile(t *testing.T) {
	path, out := filepath.Join(t.TempDir(), "manager.db"), t.TempDir()
	storetest.NewWorld(t, openFile(t, path), 1)
	file := filepath.Join(out, "b")
	calls := 0
	if _, err := store.Backup(t.Context(), store.Database{Path: path}, file, false, func(done, total int) { calls++ }); err != nil {
		t.Fatal(err)
	}
	if calls == 0 {
		t.Error("no progress was told")
	}
	onlyFiles(t, out, "b")
	if _, err := store.Backup(t.Context(), store.Database{Path: path}, file, false, nil); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a file was there: %v", err)
	}
	if _, err := store.Backup(t.Context(), store.Database{Path: path}, file, true, nil); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := store.Backup(ctx, store.Database{Path: path}, file, true, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	onlyFiles(t, out, "b")
	if _, err := store.Backup(t.Context(), store.Database{URL: "postgres://x/y"}, file, true, nil); !errors.Is(err, store.ErrNotSQLite) {
		t.Errorf("PostgreSQL: %v", err)
	}
	if _, err := store.Backup(t.Context(), store.Database{Path: filepath.Join(out, "nothing")}, filepath.Join(out, "c"), true, nil); err == nil {
		t.Error("no database, and no error")
	}
	if _, err := store.Backup(t.Context(), store.Database{Path: path}, filepath.Join(out, "no", "folder"), true, nil); err == nil {
		t.Error("no folder, and no error")
	}
	onlyFiles(t, out, "b")
}

func TestRestore(t *testing.T) {
	folder, out := t.TempDir(), t.TempDir()
	path, file := filepath.Join(folder, "manager.db"), filepath.Join(out, "b")
	s := openFile(t, path)
	world := storetest.NewWorld(t, s, 1)
	if _, err := s.RecordCheckIn(t.Context(), store.CheckIn{SiteID: world.Site.ID, Hostname: "a", At: world.Site.CreatedAt, Volumes: map[int64]checkin.VolumeReport{world.Volume.ID: {Applied: true}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Backup(t.Context(), store.Database{Path: path}, file, false, nil); err != nil {
		t.Fatal(err)
	}
	want := siteNames(t, s)
	if _, err := s.CreateSite(t.Context(), inventory.Site{Name: "later"}); err != nil {
		t.Fatal(err)
	}
	s.Close()

	done, err := store.Restore(t.Context(), store.Database{Path: path}, file)
	if err != nil {
		t.Fatal(err)
	}
	restored := openFile(t, path)
	if got := siteNames(t, restored); strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("sites %q, want %q", got, want)
	}
	if got := siteNames(t, openFile(t, done.Former)); len(got) != len(want)+1 {
		t.Errorf("the former database has the sites %q", got)
	}
	volume, err := restored.GetVolume(t.Context(), world.Volume.ID)
	if err != nil || volume.Status != store.VolumePending {
		t.Errorf("the volume is %s, %v: agents do not tell it anew", volume.Status, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	onlyFiles(t, out, "b")
	if _, err := store.Restore(t.Context(), store.Database{Path: filepath.Join(t.TempDir(), "new.db")}, file); err != nil {
		t.Errorf("where there was none: %v", err)
	}
}

func TestWhatIsNoBackupIsRefusedAndChangesNothing(t *testing.T) {
	folder, out := t.TempDir(), t.TempDir()
	path, good := filepath.Join(folder, "manager.db"), filepath.Join(out, "good")
	s := openFile(t, path)
	storetest.NewWorld(t, s, 1)
	s.Close()
	if _, err := store.Backup(t.Context(), store.Database{Path: path}, good, false, nil); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	damaged := append([]byte(nil), whole...)
	for i := 8192; i < len(damaged)-4096; i += 4096 {
		copy(damaged[i:], "this is no page of a database any more, nothing of it can be read")
	}
	edited := func(statements string) func(string) error {
		return func(name string) error {
			if err := os.WriteFile(name, whole, 0o600); err != nil {
				return err
			}
			db, err := sql.Open("sqlite3", name)
			if err != nil {
				return err
			}
			defer db.Close()
			_, err = db.Exec(statements)
			return err
		}
	}
	content := func(data []byte) func(string) error {
		return func(name string) error { return os.WriteFile(name, data, 0o600) }
	}
	for name, test := range map[string]struct {
		make func(string) error
		want string
	}{
		"missing":     {func(string) error { return nil }, "no such file"},
		"folder":      {func(name string) error { return os.Mkdir(name, 0o700) }, "not a file"},
		"empty":       {content(nil), "not one of this manager"},
		"text":        {content([]byte(strings.Repeat("hello ", 1000))), "not a database"},
		"truncated":   {content(whole[:len(whole)/2]), "malformed"},
		"damaged":     {content(damaged), "malformed"},
		"another's":   {edited("DROP TABLE goose_db_version"), "not one of this manager"},
		"newer":       {edited("INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, 1)"), "newer version"},
		"broken keys": {edited("PRAGMA foreign_keys = OFF; DELETE FROM nodes"), "does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "file")
			if err := test.make(file); err != nil {
				t.Fatal(err)
			}
			_, err := store.Restore(t.Context(), store.Database{Path: path}, file)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
			onlyFiles(t, folder, "manager.db", "manager.db.lock")
		})
	}
}

// A process that has the database open, even idle, is noticed.
func TestRestoreIsRefusedWhileTheManagerRuns(t *testing.T) {
	if path := os.Getenv("HOLD_DATABASE"); path != "" {
		s, err := store.Open(t.Context(), store.Database{Path: path}, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println("open")
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		s.Close()
		return
	}
	folder := t.TempDir()
	path, file := filepath.Join(folder, "manager.db"), filepath.Join(t.TempDir(), "b")
	s := openFile(t, path)
	storetest.NewWorld(t, s, 1)
	s.Close()
	if _, err := store.Backup(t.Context(), store.Database{Path: path}, file, false, nil); err != nil {
		t.Fatal(err)
	}
	holder := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestRestoreIsRefusedWhileTheManagerRuns$")
	holder.Env = append(os.Environ(), "HOLD_DATABASE="+path)
	stdin, err := holder.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil || line != "open\n" {
		t.Fatalf("%q %v", line, err)
	}
	_, err = store.Restore(t.Context(), store.Database{Path: path}, file)
	var running *store.RunningError
	if !errors.As(err, &running) || int(running.PID) != holder.Process.Pid {
		t.Errorf("%v", err)
	}
	stdin.Close()
	if err := holder.Wait(); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Restore(t.Context(), store.Database{Path: path}, file); err != nil {
		t.Errorf("after it has ended: %v", err)
	}
}
