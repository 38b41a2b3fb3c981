package atomicfile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"opensource.internal/agent/internal/atomicfile"
)

func TestWriteMakesNewFileWithModeWhateverTheUmask(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o077))
	path := filepath.Join(t.TempDir(), "hosts")
	must(t, atomicfile.Write(path, []byte("new\n"), 0o644))
	wantFile(t, path, "new\n")
	info, err := os.Stat(path)
	must(t, err)
	if info.Mode() != 0o644 {
		t.Errorf("mode = %v, want 0644", info.Mode())
	}
	wantNames(t, filepath.Dir(path), "hosts")
}

func TestWriteKeepsOwnerAndMode(t *testing.T) {
	needRoot(t)
	path := write(t, filepath.Join(t.TempDir(), "dnsmasq.conf"), "old")
	must(t, os.Chown(path, 12, 34))
	must(t, os.Chmod(path, 0o640))
	must(t, atomicfile.Write(path, []byte("new"), 0o644))
	wantFile(t, path, "new")
	info, err := os.Stat(path)
	must(t, err)
	stat := info.Sys().(*syscall.Stat_t)
	if info.Mode() != 0o640 || stat.Uid != 12 || stat.Gid != 34 {
		t.Errorf("got %v %d:%d, want 0640 12:34", info.Mode(), stat.Uid, stat.Gid)
	}
}

func TestWriteFollowsLinks(t *testing.T) {
	for name, exists := range map[string]bool{"to a file": true, "dangling": false} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			must(t, os.MkdirAll(filepath.Join(dir, "real"), 0o755))
			target := filepath.Join(dir, "real", "site.conf")
			if exists {
				write(t, target, "old")
			}
			link := filepath.Join(dir, "nginx.conf")
			must(t, os.Symlink("middle", link))
			must(t, os.Symlink("real/site.conf", filepath.Join(dir, "middle")))

			must(t, atomicfile.Write(link, []byte("new"), 0o644))
			wantFile(t, target, "new")
			if to, err := os.Readlink(link); err != nil || to != "middle" {
				t.Errorf("the link leads to %q, %v", to, err)
			}
			wantNames(t, dir, "middle", "nginx.conf", "real")
			wantNames(t, filepath.Join(dir, "real"), "site.conf")
		})
	}
}

func TestStagedNameIsLoadedByNoInclude(t *testing.T) {
	path := filepath.Join(t.TempDir(), "nginx.conf")
	staged, err := atomicfile.Stage(path, []byte("x"), 0o644)
	must(t, err)
	defer staged.Discard()
	name := filepath.Base(staged.Path())
	if filepath.Dir(staged.Path()) != filepath.Dir(path) || name[0] != '.' || strings.HasSuffix(name, ".conf") {
		t.Errorf("staged at %s", staged.Path())
	}
}

func TestRefusals(t *testing.T) {
	dir := t.TempDir()
	loop := filepath.Join(dir, "loop")
	must(t, os.Symlink("loop", loop))
	for name, test := range map[string]struct {
		path string
		want error
	}{
		"folder":         {dir, nil},
		"missing folder": {filepath.Join(dir, "none", "file"), fs.ErrNotExist},
		"link loop":      {loop, syscall.ELOOP},
		"below a file":   {filepath.Join(write(t, filepath.Join(dir, "plain"), "x"), "file"), syscall.ENOTDIR},
	} {
		t.Run(name, func(t *testing.T) {
			err := atomicfile.Write(test.path, []byte("new"), 0o644)
			if err == nil || test.want != nil && !errors.Is(err, test.want) {
				t.Fatalf("got %v, want %v", err, test.want)
			}
			if !strings.Contains(err.Error(), test.path) {
				t.Errorf("%q does not name %s", err, test.path)
			}
		})
	}
}

func TestFullDiskKeepsOldContentAndLeavesNothing(t *testing.T) {
	dir := mount(t, "tmpfs", "size=64k")
	path := write(t, filepath.Join(dir, "nginx.conf"), "old")
	err := atomicfile.Write(path, make([]byte, 128<<10), 0o644)
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "free some space") {
		t.Errorf("got %v", err)
	}
	wantFile(t, path, "old")
	wantNames(t, dir, "nginx.conf")
	must(t, atomicfile.Write(path, []byte("new"), 0o644))
	wantFile(t, path, "new")
}

func TestRestoreNeedsNoSpace(t *testing.T) {
	dir := mount(t, "tmpfs", "size=64k")
	path := write(t, filepath.Join(dir, "nginx.conf"), "old")
	commitKeeping(t, path, "new")
	if err := os.WriteFile(filepath.Join(dir, "fill"), make([]byte, 64<<10), 0o644); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	must(t, atomicfile.Restore(path))
	wantFile(t, path, "old")
}

func TestReadOnlyFolder(t *testing.T) {
	dir := mount(t, "tmpfs", "size=64k")
	path := write(t, filepath.Join(dir, "hosts"), "old")
	must(t, syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))
	err := atomicfile.Write(path, []byte("new"), 0o644)
	if !errors.Is(err, syscall.EROFS) || !strings.Contains(err.Error(), "read-only") {
		t.Errorf("got %v", err)
	}
	wantFile(t, path, "old")
}

func TestBindMountedFileIsRefusedWhenStaged(t *testing.T) {
	dir := mount(t, "tmpfs", "size=64k")
	source := write(t, filepath.Join(dir, "source"), "old")
	path := write(t, filepath.Join(dir, "nginx.conf"), "")
	must(t, syscall.Mount(source, path, "", syscall.MS_BIND, ""))
	t.Cleanup(func() { _ = syscall.Unmount(path, 0) })
	_, err := atomicfile.Stage(path, []byte("new"), 0o644)
	if !errors.Is(err, syscall.EBUSY) || !strings.Contains(err.Error(), "mount its folder instead") {
		t.Errorf("got %v", err)
	}
	wantFile(t, path, "old")
	wantNames(t, dir, "nginx.conf", "source")
}

func TestKeepRestoreForget(t *testing.T) {
	const absent = ""
	for name, test := range map[string]struct {
		before string
		do     func(t *testing.T, path string)
		after  string
	}{
		"restore": {"old", func(t *testing.T, path string) {
			commitKeeping(t, path, "new")
			must(t, atomicfile.Restore(path))
		}, "old"},
		"restore goes back to the last one known to work": {"old", func(t *testing.T, path string) {
			commitKeeping(t, path, "killed before it was proven")
			commitKeeping(t, path, "new")
			must(t, atomicfile.Restore(path))
		}, "old"},
		"forget": {"old", func(t *testing.T, path string) {
			commitKeeping(t, path, "new")
			must(t, atomicfile.Forget(path))
			must(t, atomicfile.Restore(path))
		}, "new"},
		"restore a file that was not there": {absent, func(t *testing.T, path string) {
			commitKeeping(t, path, "new")
			must(t, atomicfile.Restore(path))
		}, absent},
		"forget that it was not there": {absent, func(t *testing.T, path string) {
			commitKeeping(t, path, "new")
			must(t, atomicfile.Forget(path))
		}, "new"},
		"nothing kept": {"old", func(t *testing.T, path string) {
			must(t, atomicfile.Restore(path))
			must(t, atomicfile.Forget(path))
		}, "old"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "hosts")
			if test.before != absent {
				write(t, path, test.before)
			}
			test.do(t, path)
			if test.after == absent {
				wantNames(t, dir)
				return
			}
			wantFile(t, path, test.after)
			wantNames(t, dir, "hosts")
			if pending(t, path) {
				t.Error("still pending")
			}
		})
	}
}

func TestKeepInsteadOfAnEdit(t *testing.T) {
	needRoot(t)
	for name, edit := range map[string]func(t *testing.T, path string){
		"another content": func(t *testing.T, path string) { must(t, os.WriteFile(path, []byte("edited"), 0o644)) },
		"removed":         func(t *testing.T, path string) { must(t, os.Remove(path)) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := write(t, filepath.Join(dir, "hosts"), "old")
			must(t, os.Chown(path, 12, 34))
			edit(t, path)
			must(t, atomicfile.KeepInstead(path, []byte("old"), 0o644))
			if !pending(t, path) {
				t.Error("not pending")
			}
			must(t, atomicfile.KeepInstead(path, []byte("another"), 0o644)) // too late
			commitKeeping(t, path, "new")
			must(t, atomicfile.Restore(path))
			wantFile(t, path, "old")
			wantNames(t, dir, "hosts")
			info, err := os.Stat(path)
			must(t, err)
			if uid := info.Sys().(*syscall.Stat_t).Uid; info.Mode() != 0o644 || name != "removed" && uid != 12 {
				t.Errorf("mode %v, owner %d", info.Mode(), uid)
			}
		})
	}
}

func TestPendingAfterCommitKeeping(t *testing.T) {
	path := write(t, filepath.Join(t.TempDir(), "hosts"), "old")
	commitKeeping(t, path, "new")
	if !pending(t, path) {
		t.Error("not pending")
	}
}

// A process can be killed after it has kept the old version and before the
// commit.
func TestKeptVersionThatIsLiveIsNotPending(t *testing.T) {
	dir := t.TempDir()
	path := write(t, filepath.Join(dir, "hosts"), "old")
	must(t, os.Link(path, filepath.Join(dir, ".hosts.opensource-agent.old")))
	if pending(t, path) {
		t.Error("pending")
	}
	must(t, atomicfile.Restore(path))
	wantFile(t, path, "old")
	wantNames(t, dir, "hosts")
}

func TestCommittedContentIsNewerThanItsStaging(t *testing.T) {
	path := write(t, filepath.Join(t.TempDir(), "hosts"), "old")
	staged, err := atomicfile.Stage(path, []byte("new"), 0o644)
	must(t, err)
	before, err := os.Stat(staged.Path())
	must(t, err)
	must(t, staged.CommitKeeping())
	after, err := os.Stat(path)
	must(t, err)
	if !after.ModTime().After(before.ModTime()) {
		t.Errorf("committed at %v, staged at %v", after.ModTime(), before.ModTime())
	}
}

func TestPreserveKeepsTheFirstOriginal(t *testing.T) {
	path := write(t, filepath.Join(t.TempDir(), "nginx.conf"), "Debian's")
	for _, content := range []string{"first", "second"} {
		must(t, atomicfile.Preserve(path, ".before"))
		must(t, atomicfile.Write(path, []byte(content), 0o644))
	}
	wantFile(t, path+".before", "Debian's")
	must(t, atomicfile.Preserve(filepath.Join(t.TempDir(), "missing"), ".before"))
}

func TestSweepRemovesOnlyOwnLeftovers(t *testing.T) {
	dir := t.TempDir()
	stay := []string{
		".nginx.conf.opensource-agent.new-", ".nginx.conf.opensource-agent.new-12x", ".opensource-agent.new-1",
		".nginx.conf.opensource-agent.old", ".nginx.conf.swp", "nginx.conf", "x.opensource-agent.new-1",
	}
	for _, name := range stay {
		write(t, filepath.Join(dir, name), "")
	}
	must(t, os.Mkdir(filepath.Join(dir, ".nginx.conf.opensource-agent.new-1"), 0o755))
	staged, err := atomicfile.Stage(filepath.Join(dir, "nginx.conf"), nil, 0o644)
	must(t, err)

	removed, err := atomicfile.SweepFor(filepath.Join(dir, "nginx.conf"))
	must(t, err)
	if diff := cmp.Diff([]string{staged.Path()}, removed); diff != "" {
		t.Error(diff)
	}
	wantNames(t, dir, append(stay, ".nginx.conf.opensource-agent.new-1")...)
}

// Other files of the folder may be staged by somebody else at the same time.
func TestSweepForOneFileFollowsItsLink(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(t.TempDir(), "nginx.conf")
	must(t, os.Symlink(filepath.Join(dir, "site.conf"), link))
	leftover, err := atomicfile.Stage(link, nil, 0o644)
	must(t, err)
	other, err := atomicfile.Stage(filepath.Join(dir, "other.conf"), nil, 0o644)
	must(t, err)

	removed, err := atomicfile.SweepFor(link)
	must(t, err)
	if diff := cmp.Diff([]string{leftover.Path()}, removed); diff != "" {
		t.Error(diff)
	}
	wantNames(t, dir, filepath.Base(other.Path()))
	if removed, err := atomicfile.SweepFor(filepath.Join(t.TempDir(), "missing", "file")); removed != nil || err != nil {
		t.Errorf("missing folder: %v, %v", removed, err)
	}
}

// mount returns a folder with a file system of its own, in a mount namespace
// that ends with the test.
func mount(t *testing.T, kind, options string) string {
	t.Helper()
	needRoot(t)
	runtime.LockOSThread() // never unlocked: the thread dies with the test
	must(t, syscall.Unshare(syscall.CLONE_FS|syscall.CLONE_NEWNS))
	must(t, syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""))
	dir := t.TempDir()
	must(t, syscall.Mount("none", dir, kind, 0, options))
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("NOT TESTED: needs root")
	}
}

func commitKeeping(t *testing.T, path, content string) {
	t.Helper()
	staged, err := atomicfile.Stage(path, []byte(content), 0o644)
	must(t, err)
	must(t, staged.CommitKeeping())
}

func pending(t *testing.T, path string) bool {
	t.Helper()
	is, err := atomicfile.Pending(path)
	must(t, err)
	return is
}

func write(t *testing.T, path, content string) string {
	t.Helper()
	must(t, os.WriteFile(path, []byte(content), 0o644))
	return path
}

func wantFile(t *testing.T, path, want string) {
	t.Helper()
	got, err := os.ReadFile(path)
	must(t, err)
	if string(got) != want {
		t.Errorf("%s holds %q, want %q", path, got, want)
	}
}

// wantNames checks what lies in a folder, hidden names included.
func wantNames(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	got := map[string]bool{}
	for _, entry := range entries {
		got[entry.Name()] = true
	}
	wanted := map[string]bool{}
	for _, name := range want {
		wanted[name] = true
	}
	if diff := cmp.Diff(wanted, got); diff != "" {
		t.Errorf("files in %s: %s", dir, diff)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
