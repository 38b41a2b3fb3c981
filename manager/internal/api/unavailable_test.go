package api_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"opensource.internal/manager/internal/store"
	"opensource.internal/manager/internal/store/storetest"
	"opensource.internal/manager/servertest"
)

// wantUnavailable checks that a request has to be sent again later.
func wantUnavailable(t *testing.T, answer servertest.Answer) {
	t.Helper()
	fault := servertest.Error(t, answer)
	if answer.Status != 503 || fault.Code != "unavailable" || answer.Header.Get("Retry-After") == "" {
		t.Errorf("%d %s", answer.Status, answer.Body)
	}
	if strings.Contains(fault.Message, "SQL") || strings.Contains(fault.Message, "disk") {
		t.Errorf("the cause is shown: %s", fault.Message)
	}
}

// awaitHealth asks until health answers so: it looks at the database once a
// second, and forgives another writer for ten.
func awaitHealth(t *testing.T, s *servertest.Server, ready bool) {
	t.Helper()
	want, status := fmt.Sprintf(`"ready":%v`, ready), map[bool]int{true: 200, false: 503}[ready]
	for end := time.Now().Add(30 * time.Second); ; {
		health := s.Do(t, "GET", "/api/v1/health", nil, nil)
		if health.Status == status && strings.Contains(string(health.Body), want) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("health: %d %s", health.Status, health.Body)
		}
	}
}

func TestLockedDatabase(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t, servertest.Options{})
	awaitHealth(t, s, true)
	unlock := storetest.LockWrites(t, s.Database)
	awaitHealth(t, s, false)
	if answer := s.Call(t, "GET", "/sites", nil); answer.Status != 200 {
		t.Errorf("reading: %d %s", answer.Status, answer.Body)
	}
	wantUnavailable(t, s.Call(t, "POST", "/sites", object{"name": "lab"}))
	unlock()
	awaitHealth(t, s, true)
	if list := servertest.Data[[]object](t, s.Call(t, "GET", "/sites", nil)); len(list) != 0 {
		t.Errorf("a request that failed left %v", list)
	}
	s.Create(t, "/sites", object{"name": "lab"})
}

func TestDatabaseFileIsGone(t *testing.T) {
	t.Parallel()
	s := servertest.Start(t, servertest.Options{Database: storetest.SQLite(t)})
	awaitHealth(t, s, true)
	if err := os.Remove(s.Config.Database); err != nil {
		t.Fatal(err)
	}
	awaitHealth(t, s, false)
}

func TestFullDisk(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if err := unix.Mount("tmpfs", folder, "tmpfs", 0, "size=4m"); err != nil {
		t.Skipf("SKIPPED: a full disk was not tried, a small one cannot be mounted: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(folder, unix.MNT_DETACH) })
	s := servertest.Start(t, servertest.Options{Database: store.Database{Path: filepath.Join(folder, "manager.db")}})
	awaitHealth(t, s, true)
	ballast := filepath.Join(folder, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 8<<20), 0o600); err == nil {
		t.Fatal("the disk is not full")
	}
	full := false
	for n := 0; n < 1000 && !full; n++ { // there is some room in the files that exist
		answer := s.Call(t, "POST", "/sites", object{"name": fmt.Sprintf("site-%d", n)})
		if full = answer.Status != 201; full {
			wantUnavailable(t, answer)
		}
	}
	if !full {
		t.Fatal("a full disk takes everything")
	}
	if answer := s.Call(t, "GET", "/sites", nil); answer.Status != 200 {
		t.Errorf("reading: %d %s", answer.Status, answer.Body)
	}
	awaitHealth(t, s, false)
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	awaitHealth(t, s, true)
	s.Create(t, "/sites", object{"name": "lab"})
}
