package apply

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"opensource.internal/agent/checkin"
)

// The side file's and the main file's folders are file systems of their own
// here. Whatever is wrong with one of them, no live file is touched, nothing
// is left behind, and the next apply succeeds when the fault is mended.
func TestBrokenDisk(t *testing.T) {
	for name, test := range map[string]struct {
		breaks func(t *testing.T, s *site)
		mends  func(t *testing.T, s *site)
		says   string
	}{
		"full": {
			func(t *testing.T, s *site) { fill(t, s.dir) },
			func(t *testing.T, s *site) { must(t, os.Remove(filepath.Join(s.dir, "fill"))) },
			"hosts: no space left on device (free some space on its file system)",
		},
		"main file is a mount point": {
			func(t *testing.T, s *site) { must(t, syscall.Mount(s.main(), s.main(), "", syscall.MS_BIND, "")) },
			func(t *testing.T, s *site) { must(t, syscall.Unmount(s.main(), 0)) },
			"main.conf: device or resource busy (it is a mount point and cannot be replaced",
		},
		"side folder is read-only": {
			func(t *testing.T, s *site) {
				must(t, syscall.Mount("", s.dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))
			},
			func(t *testing.T, s *site) { must(t, syscall.Mount("", s.dir, "", syscall.MS_REMOUNT, "")) },
			"hosts: read-only file system",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			smallDisk(t, s.dir)
			s.runs(t, "A")
			test.breaks(t, s)
			report := s.engine().Apply(t.Context(), s.service(), s.wanted("B"), nil)
			if report.Outcome != checkin.OutcomeRejected || !strings.Contains(report.Message, test.says) {
				t.Errorf("got %s %q", report.Outcome, report.Message)
			}
			s.check(t, "A")

			test.mends(t, s)
			report = s.engine().Apply(t.Context(), s.service(), s.wanted("B"), nil)
			if report.Outcome != checkin.OutcomeApplied {
				t.Errorf("after mending it: got %s %s", report.Outcome, report.Message)
			}
			s.check(t, "B")
		})
	}
}

// The disk is filled up after the commit: going back needs no space.
func TestRollBackOnAFullDisk(t *testing.T) {
	s := newSite(t)
	smallDisk(t, s.dir)
	s.runs(t, "A")
	s.refuses = "B"
	e := s.engine()
	e.reached = func(step string) {
		if step == "rolling back" {
			_ = os.WriteFile(filepath.Join(s.dir, "fill"), make([]byte, 128<<10), 0o600)
		}
	}
	report := e.Apply(t.Context(), s.service(), s.wanted("B"), nil)
	if report.Outcome != checkin.OutcomeRolledBack {
		t.Errorf("got %s %s", report.Outcome, report.Message)
	}
	for _, file := range s.wanted("A").Files {
		if content, err := os.ReadFile(file.Path); err != nil || string(content) != string(file.Content) {
			t.Errorf("%s holds %q, %v", file.Path, content, err)
		}
	}
}

func fill(t *testing.T, dir string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "fill"), make([]byte, 128<<10), 0o600); err == nil {
		t.Fatal("the disk is not full")
	}
}

// smallDisk mounts a file system of 64 KiB at dir, in a mount namespace that
// ends with the test.
func smallDisk(t *testing.T, dir string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("NOT TESTED: needs root")
	}
	runtime.LockOSThread() // never unlocked: the thread dies with the test
	must(t, syscall.Unshare(syscall.CLONE_FS|syscall.CLONE_NEWNS))
	must(t, syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""))
	must(t, syscall.Mount("none", dir, "tmpfs", 0, "size=64k"))
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
}
