package volumes

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"opensource.internal/agent/checkin"
)

func TestNamesThatMountinfoEscapes(t *testing.T) {
	dir := inMountNamespace(t)
	if dir == "" {
		return
	}
	var volumes []checkin.Volume
	for i, name := range []string{"vol a", "vol\ta", "vol\na", `vol\a`, `vol\040a`, `vol\\040`, "vol#a", "völ", "\xff"} {
		bind(t, filepath.Join(dir, name))
		volumes = append(volumes, volume(int64(i+1), filepath.Join(dir, name, "data")))
	}
	results, _ := run(t, nil, volumes...)
	for _, v := range volumes {
		applied(t, results, v.ID, "")
		isOwner(t, v.HostPath, 1000, 1001, 0o755)
		if got := mountPoint(t, v.HostPath); got != filepath.Dir(v.HostPath) {
			t.Errorf("%q was taken to lie on %q", v.HostPath, got)
		}
	}
}

func mountPoint(t *testing.T, path string) string {
	t.Helper()
	mounts, err := readMounts()
	if err != nil {
		t.Fatal(err)
	}
	return mounts.pointOf(path)
}

func TestOnlySeparateLastingStorageIsUsed(t *testing.T) {
	dir := inMountNamespace(t)
	if dir == "" {
		return
	}
	mkdir(t, dir+"/unmounted", 0, 0, 0o755)
	mkdir(t, dir+"/existing", 1000, 1001, 0o755)
	mount(t, "none", dir+"/tmpfs", "tmpfs", 0, "")
	mount(t, "proc", dir+"/proc", "proc", 0, "")
	bind(t, dir+"/ro")
	bind(t, dir+"/ro2")
	for _, path := range []string{dir + "/ro", dir + "/ro2"} {
		mount(t, "", path, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, "")
	}
	// What lies below a later mount does not count, in either direction.
	bind(t, dir+"/hidden/disk")
	mkdir(t, dir+"/plain/disk", 0, 0, 0o755)
	mount(t, dir+"/plain", dir+"/hidden", "", unix.MS_BIND, "")
	mount(t, "none", dir+"/hidden", "tmpfs", 0, "")
	bind(t, dir+"/under")
	mount(t, "none", dir+"/under", "tmpfs", 0, "")
	mount(t, "none", dir+"/over", "tmpfs", 0, "")
	bind(t, dir+"/over")

	// A program that wrongly makes it must not leave it to later runs.
	t.Cleanup(func() { _, _ = os.Remove("/new-at-the-root/app"), os.Remove("/new-at-the-root") })
	results, records := run(t, nil,
		volume(1, dir+"/unmounted/app"), volume(2, dir+"/existing"), volume(3, "/new-at-the-root/app"),
		volume(4, dir+"/tmpfs/app"), volume(5, dir+"/proc/app"), volume(6, dir+"/ro/app"), volume(7, dir+"/ro2"),
		volume(8, dir+"/hidden/disk/app"), volume(9, dir+"/under/app"), volume(10, dir+"/over/app"), volume(11, "/proc/sys/app"))
	failed(t, results, 1, dir+"/unmounted", "not on a separate mount", dir+"/unmounted/app")
	failed(t, results, 2, "not on a separate mount")
	failed(t, results, 3, `"/" is on the root filesystem`)
	failed(t, results, 4, "tmpfs", dir+"/tmpfs")
	failed(t, results, 5, "pseudo filesystem")
	failed(t, results, 6, "read-only")
	failed(t, results, 7, "read-only")
	failed(t, results, 8, "tmpfs")
	failed(t, results, 9, "tmpfs")
	applied(t, results, 10, "")
	failed(t, results, 11, "pseudo filesystem")
	missing(t, dir+"/unmounted/app")
	missing(t, dir+"/tmpfs/app")
	missing(t, dir+"/ro/app")
	missing(t, "/new-at-the-root")
	if len(records) != 1 {
		t.Errorf("records of what was refused: %+v", records)
	}
}

func TestDiskIsMountedLater(t *testing.T) {
	dir := inMountNamespace(t)
	if dir == "" {
		return
	}
	mkdir(t, dir+"/disk1", 0, 0, 0o755)
	v := volume(1, dir+"/disk1/app")
	results, records := run(t, nil, v)
	failed(t, results, 1, "not on a separate mount")
	missing(t, v.HostPath)

	bind(t, dir+"/disk1")
	results, records = run(t, records, v)
	applied(t, results, 1, "")
	isOwner(t, v.HostPath, 1000, 1001, 0o755)

	// The disk goes, and what is known of the directory stays.
	if err := unix.Unmount(dir+"/disk1", 0); err != nil {
		t.Fatal(err)
	}
	results, records = run(t, records, v)
	failed(t, results, 1, "not on a separate mount")
	missing(t, v.HostPath)
	if !records[1].Created {
		t.Errorf("record was lost: %+v", records[1])
	}
}

func TestNoLinkIsFollowed(t *testing.T) {
	dir := inMountNamespace(t)
	if dir == "" {
		return
	}
	bind(t, dir+"/data")
	mkdir(t, dir+"/victim", 0, 0, 0o700)
	for link, target := range map[string]string{"/data/link": dir + "/victim", "/data/app": dir + "/victim", "/data/inside": "."} {
		if err := os.Symlink(target, dir+link); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"/data/file", "/data/file2"} {
		if err := os.WriteFile(dir+name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	results, _ := run(t, nil,
		volume(1, dir+"/data/link/app"), volume(2, dir+"/data/app"), volume(3, dir+"/data/inside/x"),
		volume(4, dir+"/data/file"), volume(5, dir+"/data/file2/x"), volume(6, dir+"/data/../victim/x"),
		volume(7, dir+"/data/"+strings.Repeat("x", 256)), volume(8, dir+"/data/good"))
	failed(t, results, 1, dir+"/data/link", "symbolic link")
	failed(t, results, 2, dir+"/data/app", "symbolic link")
	failed(t, results, 3, dir+"/data/inside", "symbolic link")
	failed(t, results, 4, dir+"/data/file", "not a directory")
	failed(t, results, 5, dir+"/data/file2", "not a directory")
	failed(t, results, 6, "hostPath", "not a clean path")
	failed(t, results, 7, "name too long")
	applied(t, results, 8, "")
	isOwner(t, dir+"/victim", 0, 0, 0o700)
	missing(t, dir+"/victim/app")
	missing(t, dir+"/victim/x")
}

func TestHungStorage(t *testing.T) {
	dir := inMountNamespace(t)
	if dir == "" {
		return
	}
	// A FUSE server that never answers is as dead as an NFS server can be.
	server, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Skipf("SKIPPED: no FUSE here: %v", err)
	}
	mount(t, "hung", dir+"/hung", "fuse", 0, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", server))
	bind(t, dir+"/mnt")

	started := time.Now()
	volumes := []checkin.Volume{
		volume(1, dir+"/hung/a"), volume(2, dir+"/hung/b"), volume(3, dir+"/mnt/good"), volume(4, dir+"/hung/c"),
	}
	results, _ := Ensure(t.Context(), volumes, nil, Options{Patience: 200 * time.Millisecond})
	if took := time.Since(started); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
	failed(t, results, 1, dir+"/hung", "did not answer in time")
	failed(t, results, 2, "did not answer for another volume")
	applied(t, results, 3, "")
	failed(t, results, 4, "did not answer for another volume")

	over, cancel := context.WithCancel(t.Context())
	cancel()
	results, _ = Ensure(over, volumes, nil, Options{})
	failed(t, results, 3, "ran out of time")
}
