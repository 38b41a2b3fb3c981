package apply

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

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
		"side file is a mount point": {
			func(t *testing.T, s *site) { must(t, syscall.Mount(s.side(), s.side(), "", syscall.MS_BIND, "")) },
			func(t *testing.T, s *site) { must(t, syscall.Unmount(s.side(), 0)) },
			"hosts: device or resource busy (it is a mount point and cannot be replaced: mount its folder instead of the file)",
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

// The main file becomes a mount point when its turn has almost come: the file
// before it goes back.
func TestMountedBetweenTestAndCommit(t *testing.T) {
	s := newSite(t)
	smallDisk(t, s.dir)
	s.runs(t, "A")
	e := s.engine()
	last := e.Apply(t.Context(), s.service(), s.wanted("A"), nil).Digests
	e.reached = func(step string) {
		if step == "noted" {
			must(t, syscall.Mount(s.main(), s.main(), "", syscall.MS_BIND, ""))
		}
	}
	report := e.Apply(t.Context(), s.service(), s.wanted("B"), last)
	must(t, syscall.Unmount(s.main(), 0))
	if report.Outcome != checkin.OutcomeRolledBack || !strings.Contains(report.Message, "main.conf: invalid cross-device link (it is a mount point") {
		t.Errorf("got %s %q", report.Outcome, report.Message)
	}
	s.check(t, "A")
}

// A file that nobody may replace, not even root (chattr +i).
func TestImmutableFile(t *testing.T) {
	s := newSite(t)
	s.runs(t, "A")
	last := s.engine().Apply(t.Context(), s.service(), s.wanted("A"), nil).Digests
	immutable := func(flag int) error {
		file, err := os.Open(s.main())
		must(t, err)
		defer file.Close()
		return unix.IoctlSetPointerInt(int(file.Fd()), unix.FS_IOC_SETFLAGS, flag)
	}
	const flag = 0x10 // FS_IMMUTABLE_FL of linux/fs.h
	if err := immutable(flag); err != nil {
		t.Skipf("NOT TESTED: no immutable files here: %v", err)
	}
	t.Cleanup(func() { _ = immutable(0) })
	report := s.engine().Apply(t.Context(), s.service(), s.wanted("B"), last)
	must(t, immutable(0))
	if report.Outcome != checkin.OutcomeRolledBack || !strings.Contains(report.Message, "main.conf: operation not permitted (it may be immutable, see lsattr(1))") {
		t.Errorf("got %s %q", report.Outcome, report.Message)
	}
	s.check(t, "A")
}

// In an unprivileged container root has no power over what belongs to a user
// that does not exist there.
func TestFolderThatBelongsToNobodyHere(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("NOT TESTED: needs root")
	}
	s := newSite(t)
	s.runs(t, "A")
	must(t, os.Chmod(s.dir, 0o755))
	must(t, os.Chown(s.dir, 5000, 5000))
	before := names(t, s.dir)
	few := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 1000}}
	child := s.child(t, "B", "")
	child.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, UidMappings: few, GidMappings: few}
	out, err := child.Output()
	must(t, err)
	var report Report
	must(t, json.Unmarshal(out, &report))
	if report.Outcome != checkin.OutcomeRejected ||
		!strings.Contains(report.Message, "hosts: permission denied (run the agent as root; in an unprivileged container, have its root own the folder)") {
		t.Errorf("got %s %q", report.Outcome, report.Message)
	}
	if diff := cmp.Diff(before, names(t, s.dir)); diff != "" {
		t.Error(diff)
	}
	s.check(t, "A")
}

// Where the folder of the files lies does not matter: candidates are staged in
// it, so that nothing is renamed from one file system to another.
func TestFolderOnAnotherFileSystem(t *testing.T) {
	for name, prepare := range map[string]func(t *testing.T, s *site, disk string){
		"symbolic link to the folder": func(t *testing.T, s *site, disk string) {
			must(t, os.Symlink(disk, filepath.Join(s.dir, "link")))
			s.dir = filepath.Join(s.dir, "link")
		},
		"symbolic links to the files": func(t *testing.T, s *site, disk string) {
			for _, path := range []string{s.side(), s.main()} {
				must(t, os.Symlink(filepath.Join(disk, filepath.Base(path)), path))
			}
		},
		"bind mount over the folder": func(t *testing.T, s *site, disk string) {
			must(t, syscall.Mount(disk, s.dir, "", syscall.MS_BIND, ""))
			t.Cleanup(func() { _ = syscall.Unmount(s.dir, syscall.MNT_DETACH) })
		},
		"overlay": func(t *testing.T, s *site, disk string) {
			lower := t.TempDir()
			base := s.dir
			s.dir = lower
			s.runs(t, "A") // in the lower layer
			s.dir = base
			for _, folder := range []string{"upper", "work"} {
				must(t, os.Mkdir(filepath.Join(disk, folder), 0o755))
			}
			layers := "lowerdir=" + lower + ",upperdir=" + disk + "/upper,workdir=" + disk + "/work"
			if err := syscall.Mount("overlay", s.dir, "overlay", 0, layers); err != nil {
				t.Skipf("NOT TESTED: no overlay file system here: %v", err)
			}
			t.Cleanup(func() { _ = syscall.Unmount(s.dir, syscall.MNT_DETACH) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			disk := t.TempDir()
			smallDisk(t, disk)
			prepare(t, s, disk)
			if running := s.running(); running.Main == "" {
				s.runs(t, "A")
			}
			apply := func(revision string, want checkin.Outcome, runs string) {
				t.Helper()
				if report := s.engine().Apply(t.Context(), s.service(), s.wanted(revision), nil); report.Outcome != want {
					t.Errorf("%s: got %s %s", revision, report.Outcome, report.Message)
				}
				s.check(t, runs)
				left, err := filepath.Glob(filepath.Join(disk, ".*.opensource-agent.*"))
				must(t, err)
				if len(left) > 0 {
					t.Errorf("left behind: %v", left)
				}
			}
			apply("B", checkin.OutcomeApplied, "B")
			s.refuses = "C"
			apply("C", checkin.OutcomeRolledBack, "B")
			s.refuses = ""
			for _, path := range []string{s.side(), s.main()} {
				if info, err := os.Lstat(path); err != nil || (info.Mode()&os.ModeSymlink != 0) != (name == "symbolic links to the files") {
					t.Errorf("%s is %v now, %v", path, info.Mode(), err)
				}
			}
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
