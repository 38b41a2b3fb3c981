package store

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"opensource.internal/manager/internal/inventory"
)

// killedDatabase is what a manager leaves behind that was killed: its last
// change is in the log alone. Its one site is called "former".
func killedDatabase(t *testing.T) (path string) {
	t.Helper()
	running, path := filepath.Join(t.TempDir(), "manager.db"), filepath.Join(t.TempDir(), "manager.db")
	s, err := Open(t.Context(), Database{Path: running}, Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.CreateSite(t.Context(), inventory.Site{Name: "former"}); err != nil {
		t.Fatal(err)
	}
	for _, suffix := range []string{"", "-wal"} {
		content, err := os.ReadFile(running + suffix)
		if err != nil || len(content) == 0 {
			t.Fatalf("%d bytes, %v", len(content), err)
		}
		if err := os.WriteFile(path+suffix, content, fileMode); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

func requireSite(t *testing.T, path, name string) {
	t.Helper()
	s, err := Open(t.Context(), Database{Path: path}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if sites, _, err := s.ListSites(t.Context(), SiteFilter{}, ListOptions{}); err != nil || len(sites) != 1 || sites[0].Name != name {
		t.Errorf("%s has the sites %+v, %v", path, sites, err)
	}
}

// A restore whose last step fails leaves the former database as it was.
func TestDatabaseThatIsNotReplacedStays(t *testing.T) {
	path := killedDatabase(t)
	if _, err := replaceDatabase(t.Context(), path, path+".gone"); err == nil {
		t.Fatal("a file that is not there took the place of the database")
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("%v is left, %v", entries, err)
	}
	requireSite(t, path, "former")
}

// The log of a database that cannot be read is put aside with it: it must
// neither be lost nor taken for that of the new one.
func TestDamagedDatabaseIsReplacedWithItsLog(t *testing.T) {
	path := killedDatabase(t)
	log, err := os.ReadFile(path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	damaged := []byte("this is no database, whatever its log may be")
	if err := os.WriteFile(path, damaged, fileMode); err != nil {
		t.Fatal(err)
	}
	// Where the new one cannot take its place, log and database stay.
	if _, err := replaceDatabase(t.Context(), path, path+".gone"); err == nil {
		t.Fatal("a file that is not there took the place of the database")
	}
	for name, want := range map[string][]byte{path: damaged, path + "-wal": log} {
		if got, err := os.ReadFile(name); err != nil || string(got) != string(want) {
			t.Errorf("%s has %d bytes, not the %d of before, %v", name, len(got), len(want), err)
		}
	}

	other := killedDatabase(t)
	if err := foldLog(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	file := path + ".new"
	if err := os.Rename(other, file); err != nil {
		t.Fatal(err)
	}
	former, err := replaceDatabase(t.Context(), path, file)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]byte{former: damaged, former + "-wal": log} {
		if got, err := os.ReadFile(name); err != nil || string(got) != string(want) {
			t.Errorf("%s has %d bytes, not the %d of before, %v", name, len(got), len(want), err)
		}
	}
	requireSite(t, path, "former")
}

func TestWhoIsNotSeenIsNotNamed(t *testing.T) {
	if text := (&RunningError{Path: "/x", PID: 0}).Error(); strings.Contains(text, "process 0") || !strings.Contains(text, "outside of this container") {
		t.Error(text)
	}
}

func TestFolderThatIsMissing(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "state")
	err := Migrate(t.Context(), Database{Path: filepath.Join(folder, "manager.db")})
	if err == nil || !strings.Contains(err.Error(), "STATE_DIRECTORY") || !strings.Contains(err.Error(), "install -d") {
		t.Error(err)
	}
}
