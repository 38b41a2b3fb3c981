package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func settingsFile(t *testing.T, content string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "manager.env")
	if err := os.WriteFile(name, []byte(content), 0o640); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestWhereEachValueComesFrom(t *testing.T) {
	file := settingsFile(t, "STATE_DIRECTORY='/srv/state'\nLISTEN=127.0.0.1:4000\nPUBLIC_URL=\nLOG_LEVEL=debug\n")
	c, settings, err := Explain(Flags{LogLevel: "warn"}, map[string]string{"LISTEN": "127.0.0.1:5000"}, file)
	if err != nil {
		t.Fatal(err)
	}
	if c.Database != "/srv/state/manager.db" || c.Listen != "127.0.0.1:5000" {
		t.Errorf("%+v", c)
	}
	from := map[string]string{}
	for _, s := range settings {
		from[s.Name] = s.From
	}
	want := map[string]string{
		"STATE_DIRECTORY": file, "DATABASE": byDefault, "LISTEN": byEnvironment, "LOOPBACK_SITE": byDefault, "LOG_LEVEL": byFlag,
	}
	for name, place := range want {
		if from[name] != place {
			t.Errorf("%s comes from %q, want %q", name, from[name], place)
		}
	}
	if _, given := from["PUBLIC_URL"]; given {
		t.Error("an empty PUBLIC_URL counts as given")
	}
}

func TestSystemdHasReadTheFiles(t *testing.T) {
	file := settingsFile(t, "LISTEN=127.0.0.1:4000\n")
	c, err := Load(Flags{}, map[string]string{"SYSTEMD_EXEC_PID": strconv.Itoa(os.Getpid())}, file)
	if err != nil || c.Listen != Defaults.Listen {
		t.Errorf("Listen = %q, %v", c.Listen, err)
	}
}

func TestAFileThatCannotBeReadIsAMistake(t *testing.T) {
	folder := t.TempDir() // reading a folder fails, for root as well
	if _, err := Load(Flags{}, nil, folder); err == nil || !strings.Contains(err.Error(), folder) {
		t.Errorf("%v", err)
	}
	if _, err := Load(Flags{Database: "/srv/manager.db"}, nil, folder); err != nil {
		t.Errorf("with the database known: %v", err)
	}
	file := settingsFile(t, "A=1\n")
	var err error
	asNobody(t, func() { _, err = Load(Flags{}, nil, file) })
	if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "sudo") {
		t.Errorf("%v", err)
	}
}

// asNobody runs work on a thread that may not read other people's files.
func asNobody(t *testing.T, work func()) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("NOT TESTED: only root can become somebody else")
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		err := unix.Setfsuid(65534)
		work()
		done <- err
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestPasswordsAreNotShown(t *testing.T) {
	for value, want := range map[string]string{
		"postgres://manager:geheim@db.example.com/manager":      "postgres://manager:xxxxx@db.example.com/manager",
		"postgres://db/manager?password=geheim&sslmode=require": "postgres://db/manager?password=xxxxx&sslmode=require",
		"postgres://db.example.com/manager":                     "postgres://db.example.com/manager",
		"info":                                                  "info",
	} {
		if diff := cmp.Diff(want, shown(value)); diff != "" {
			t.Error(diff)
		}
	}
}

func TestNoPasswordIsShown(t *testing.T) {
	_, settings, err := Explain(Flags{}, map[string]string{"DATABASE_URL": "postgres://u:s3cret@db/manager?sslpassword=s3cret&password=s3cret"})
	if err != nil || strings.Contains(fmt.Sprint(settings), "s3cret") {
		t.Errorf("%v, %v", settings, err)
	}
}

// Whoever says where the database is needs none of the files that only root reads.
func TestUnreadFilesAreNotNeeded(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "database-url"), []byte("postgres://db/manager"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"DATABASE_URL_FILE": filepath.Join(folder, "database-url"), "CREDENTIALS_DIRECTORY": folder} {
		if _, err := Load(Flags{}, map[string]string{name: value}, folder); err != nil { // a folder cannot be read
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Load(Flags{}, nil, folder); err == nil {
		t.Error("a file that could not be read was passed over")
	}
}
