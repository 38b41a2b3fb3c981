package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"opensource.internal/manager/internal/inventory"
)

func TestBackupAndRestore(t *testing.T) {
	s := newFileShell(t)
	opened := s.store()
	if _, err := opened.CreateSite(t.Context(), inventory.Site{Name: "lab"}); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "b")
	if got := s.must("", "backup", file); !strings.Contains(got, file) || !strings.Contains(got, "KiB") {
		t.Errorf("%q", got)
	}
	if r := s.run("", "backup", file); r.code != exitFault || !strings.Contains(r.stderr, "--force") {
		t.Errorf("%+v", r)
	}
	if got := decode[backup](t, s.must("", "backup", "--force", file, "--json")); got.File != file || got.Bytes == 0 || got.SchemaVersion == 0 {
		t.Errorf("%+v", got)
	}
	opened.Close()
	if got := decode[restored](t, s.must("", "restore", file, "--json")); got.Former == "" {
		t.Errorf("%+v", got)
	}
	if got := s.must("", "restore", file); !strings.Contains(got, "former database") || !strings.Contains(got, "apikey list") {
		t.Errorf("%q", got)
	}
	if got := s.must("", "sites"); !strings.Contains(got, "lab") {
		t.Errorf("%q", got)
	}
	if r := s.run("", "restore", file+".not"); r.code != exitFault || !strings.Contains(r.stderr, "no such file") {
		t.Errorf("%+v", r)
	}
}

func TestRestoreNamesTheRunningManager(t *testing.T) {
	s := newFileShell(t)
	s.must("", "migrate")
	file := filepath.Join(t.TempDir(), "b")
	s.must("", "backup", file)
	server := s.program("serve", "--listen", freePort(t))
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	l := load{t: t, url: "http://" + server.Args[len(server.Args)-1] + "/api/v1"}
	l.awaitReady(server)
	if r := s.run("", "restore", file); r.code != exitFault || !strings.Contains(r.stderr, "systemctl stop opensource-manager") {
		t.Errorf("%+v", r)
	}
	_ = server.Process.Signal(syscall.SIGTERM)
	if err := server.Wait(); err != nil {
		t.Error(err)
	}
	s.must("", "restore", file)
}

func TestReadOnlyDatabase(t *testing.T) {
	s := newFileShell(t)
	folder := s.env["STATE_DIRECTORY"]
	if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, "size=4m"); err != nil {
		t.Skipf("NOT TESTED: cannot mount: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(folder, syscall.MNT_DETACH) })
	s.must("", "migrate")
	if err := syscall.Mount("", folder, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	if r := s.run("", "serve", "--listen", freePort(t)); r.code != exitFault || !strings.Contains(r.stderr, "read-only file system") {
		t.Errorf("%+v", r)
	}
	if err := syscall.Mount("", folder, "", syscall.MS_REMOUNT, ""); err != nil {
		t.Fatal(err)
	}
	s.must("", "sites")
	if _, err := os.Stat(filepath.Join(folder, "manager.db")); err != nil {
		t.Error(err)
	}
}
