package volumes

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"opensource.internal/agent/checkin"
)

func volume(id int64, path string) checkin.Volume {
	return checkin.Volume{ID: id, HostPath: path, Mode: "rw", UID: 1000, GID: 1001}
}

// run is one pass over some volumes.
func run(t *testing.T, previous map[int64]Record, volumes ...checkin.Volume) (map[string]checkin.VolumeReport, map[int64]Record) {
	t.Helper()
	return Ensure(t.Context(), volumes, previous, Options{})
}

func applied(t *testing.T, results map[string]checkin.VolumeReport, id int64, note string) {
	t.Helper()
	result := results[fmt.Sprint(id)]
	if !result.Applied || !strings.Contains(result.Message, note) || note == "" && result.Message != "" {
		t.Errorf("volume %d: %+v, want applied with note %q", id, result, note)
	}
}

func failed(t *testing.T, results map[string]checkin.VolumeReport, id int64, why ...string) {
	t.Helper()
	result, told := results[fmt.Sprint(id)]
	if !told || result.Applied {
		t.Errorf("volume %d: %+v, want a failure", id, result)
	}
	for _, words := range why {
		if !strings.Contains(result.Message, words) {
			t.Errorf("volume %d: %q does not say %q", id, result.Message, words)
		}
	}
}

func isOwner(t *testing.T, path string, uid, gid int64, mode uint32) {
	t.Helper()
	if got, want := stat(t, path), (owner{uid, gid, mode}); got != want {
		t.Errorf("%s is %+v, want %+v", path, got, want)
	}
}

func TestDirectoryIsMade(t *testing.T) {
	dir := inMountNamespace(t)
	if dir == "" {
		return
	}
	unix.Umask(0o077) // a person's shell may have any
	bind(t, dir+"/mnt")
	rw, ro := volume(1, dir+"/mnt/alice/web/data"), volume(2, dir+"/mnt/alice/web/site")
	ro.Mode = "ro"
	high := volume(3, dir+"/mnt/high")
	high.UID, high.GID = checkin.MaxID, checkin.MaxID
	results, records := run(t, nil, rw, ro, high)
	applied(t, results, 1, "")
	applied(t, results, 2, "")
	applied(t, results, 3, "")
	isOwner(t, rw.HostPath, 1000, 1001, 0o755)
	isOwner(t, ro.HostPath, 1000, 1001, 0o555)
	isOwner(t, high.HostPath, checkin.MaxID, checkin.MaxID, 0o755)
	isOwner(t, dir+"/mnt/alice/web", 0, 0, 0o755)
	want := Record{Path: rw.HostPath, UID: 1000, GID: 1001, Mode: "rw", Created: true, Finished: true}
	if diff := cmp.Diff(want, records[1]); diff != "" {
		t.Error(diff)
	}
	again, same := run(t, records, rw, ro, high)
	if diff := cmp.Diff(results, again) + cmp.Diff(records, same); diff != "" {
		t.Error(diff)
	}
}

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

func TestExistingDirectoryIsLeftToItsWorkload(t *testing.T) {
	dir := inMountNamespace(t)
	if dir == "" {
		return
	}
	bind(t, dir+"/mnt")
	mkdir(t, dir+"/mnt/db", 999, 998, 0o700)
	mkdir(t, dir+"/mnt/sticky", 0, 0, unfinished) // as odd as ours, but in use
	mkdir(t, dir+"/mnt/sticky/in", 0, 0, 0o755)
	var before, after unix.Stat_t
	if err := unix.Stat(dir+"/mnt/db", &before); err != nil {
		t.Fatal(err)
	}
	made := volume(3, dir+"/mnt/made")
	var records map[int64]Record
	for range 10 {
		var results map[string]checkin.VolumeReport
		results, records = run(t, records, volume(1, dir+"/mnt/db"), volume(2, dir+"/mnt/sticky"), made)
		applied(t, results, 1, "owner 999:998 and mode 0700")
		applied(t, results, 2, "mode 1700")
		applied(t, results, 3, "")
	}
	if err := unix.Stat(dir+"/mnt/db", &after); err != nil {
		t.Fatal(err)
	}
	if before.Ctim != after.Ctim || before.Atim != after.Atim {
		t.Error("the directory was touched")
	}

	// One that the agent made is its workload's from then on, too.
	mkdir(t, made.HostPath, 70, 70, 0o700)
	results, _ := run(t, records, made)
	applied(t, results, 3, "owner 70:70 and mode 0700")
	isOwner(t, made.HostPath, 70, 70, 0o700)
}

func TestChangedOrderIsFollowed(t *testing.T) {
	dir := inMountNamespace(t)
	if dir == "" {
		return
	}
	bind(t, dir+"/mnt")
	mkdir(t, dir+"/mnt/foreign", 999, 999, 0o700)
	mkdir(t, dir+"/mnt/asked", 1000, 1001, 0o755)
	made, foreign, asked := volume(1, dir+"/mnt/made"), volume(2, dir+"/mnt/foreign"), volume(3, dir+"/mnt/asked")
	_, records := run(t, nil, made, foreign, asked)

	made.UID, foreign.UID, asked.UID = 2000, 2000, 2000
	made.Mode = "ro"
	results, records := run(t, records, made, foreign, asked)
	applied(t, results, 1, "")
	applied(t, results, 2, "left as it is")
	applied(t, results, 3, "")
	isOwner(t, made.HostPath, 2000, 1001, 0o555)
	isOwner(t, foreign.HostPath, 999, 999, 0o700)
	isOwner(t, asked.HostPath, 2000, 1001, 0o755)

	// Only what the order changed: the workload's mode stays.
	mkdir(t, made.HostPath, 70, 70, 0o700)
	made.GID = 3000
	results, records = run(t, records, made)
	applied(t, results, 1, "mode 0700")
	isOwner(t, made.HostPath, 2000, 3000, 0o700)

	// Another path is another directory.
	moved := made
	moved.HostPath = dir + "/mnt/foreign"
	results, _ = run(t, records, moved)
	applied(t, results, 1, "left as it is")
	isOwner(t, moved.HostPath, 999, 999, 0o700)
}

func TestKilledBetweenMakingAndOwner(t *testing.T) {
	dir := inMountNamespace(t)
	if dir == "" {
		return
	}
	bind(t, dir+"/mnt")
	mkdir(t, dir+"/mnt/no-record", 0, 0, unfinished)
	mkdir(t, dir+"/mnt/owner-set", 1000, 1001, unfinished)
	mkdir(t, dir+"/mnt/recorded", 0, 0, 0o755)
	recorded := volume(3, dir+"/mnt/recorded")
	previous := map[int64]Record{3: {Path: recorded.HostPath, UID: 1000, GID: 1001, Mode: "rw", Created: true}}
	results, records := run(t, previous, volume(1, dir+"/mnt/no-record"), volume(2, dir+"/mnt/owner-set"), recorded)
	for id, name := range []string{"no-record", "owner-set", "recorded"} {
		applied(t, results, int64(id+1), "")
		isOwner(t, dir+"/mnt/"+name, 1000, 1001, 0o755)
		if !records[int64(id+1)].Finished {
			t.Errorf("%s: %+v", name, records[int64(id+1)])
		}
	}
}

func TestStorageThatRefusesChown(t *testing.T) {
	dir := inMountNamespace(t)
	if dir == "" {
		return
	}
	if os.Getenv(capDropped) == "" {
		bind(t, dir+"/nfs")
		bind(t, dir+"/other")
		mkdir(t, dir+"/nfs/right", 1000, 1001, 0o755)
	}
	dropCapability(t, unix.CAP_CHOWN)

	own := volume(3, dir+"/other/own")
	own.UID, own.GID = 0, 0
	fresh := volume(2, dir+"/nfs/new")
	results, records := run(t, nil, volume(1, dir+"/nfs/right"), fresh, own)
	applied(t, results, 1, "")
	failed(t, results, 2, dir+"/nfs/new", "1000:1001", "operation not permitted")
	applied(t, results, 3, "")
	isOwner(t, own.HostPath, 0, 0, 0o755)
	if got := records[2]; !got.Created || got.Finished {
		t.Errorf("record %+v", got)
	}

	// It stays a failure, and stays unusable, until the storage allows it.
	results, records = run(t, records, fresh)
	failed(t, results, 2, "operation not permitted")
	isOwner(t, fresh.HostPath, 0, 0, unfinished)
	fresh.UID, fresh.GID = 0, 0
	results, _ = run(t, records, fresh)
	applied(t, results, 2, "")
	isOwner(t, fresh.HostPath, 0, 0, 0o755)
}

func TestUserNamespace(t *testing.T) {
	dir := inUserNamespace(t)
	if dir == "" {
		return
	}
	bind(t, dir+"/mnt")
	mapped := volume(1, dir+"/mnt/mapped")
	mapped.UID, mapped.GID = 33, 34
	unmapped, half := volume(2, dir+"/mnt/unmapped"), volume(3, dir+"/mnt/half")
	unmapped.UID, unmapped.GID = 100000, 100000
	half.UID, half.GID = 100000, 34
	wrong := volume(4, dir+"/mnt/wrong")
	wrong.UID, wrong.GID = 100000, 100000
	mkdir(t, wrong.HostPath, 5, 5, 0o755)
	results, records := run(t, nil, mapped, unmapped, half, wrong)
	applied(t, results, 1, "")
	isOwner(t, mapped.HostPath, 33, 34, 0o755)
	applied(t, results, 2, "does not exist in the agent's user namespace; its root owns the directory, which is 0:0 outside")
	isOwner(t, unmapped.HostPath, 0, 0, 0o755)
	applied(t, results, 3, "outside")
	isOwner(t, half.HostPath, 0, 34, 0o755)
	applied(t, results, 4, "owner 5:5") // exists: its workload's
	again, _ := run(t, records, mapped, unmapped, half, wrong)
	if diff := cmp.Diff(results, again); diff != "" {
		t.Error(diff)
	}

	// An unmapped owner is refused where chown is: only root's directory gets
	// the right owner from the id map.
	unfinishedOne := volume(5, dir+"/mnt/unfinished")
	unfinishedOne.UID, unfinishedOne.GID = 100000, 100000
	mkdir(t, unfinishedOne.HostPath, 7, 7, 0o755)
	results, _ = run(t, map[int64]Record{5: {Path: unfinishedOne.HostPath, UID: 100000, GID: 100000, Mode: "rw", Created: true}}, unfinishedOne)
	failed(t, results, 5, "invalid argument")
}

// TestOverflowOwner makes directories as the host's root before it enters the
// user namespace.
func TestOverflowOwner(t *testing.T) {
	const shared = "TEST_VOLUMES_SHARED"
	if os.Getenv(workDir) == "" && os.Getuid() == 0 {
		outside, err := os.MkdirTemp("/var/tmp", "volumes-test-")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(outside) })
		mkdir(t, outside, 0, 0, 0o755)
		mkdir(t, outside+"/foreign", 5000, 5000, 0o755)
		mkdir(t, outside+"/group", 0, 5000, 0o755)
		t.Setenv(shared, outside)
	}
	dir := inUserNamespace(t)
	if dir == "" {
		return
	}
	mount(t, os.Getenv(shared), dir+"/mnt", "", unix.MS_BIND, "")
	results, records := run(t, nil, volume(1, dir+"/mnt/foreign"), volume(2, dir+"/mnt/group"), volume(3, dir+"/mnt/foreign/sub"))
	failed(t, results, 1, "does not exist in the agent's user namespace", "65534:65534")
	failed(t, results, 2, "does not exist in the agent's user namespace", "0:65534")
	failed(t, results, 3)
	if len(records) > 0 {
		t.Errorf("records %+v", records)
	}
}

func TestNobodyIsARealOwnerWhereItIsMapped(t *testing.T) {
	ids := idMaps{uid: idMap{{0, 100000, 65536}}, gid: idMap{{0, 100000, 65536}}, overflowUID: 65534, overflowGID: 65534}
	dir := t.TempDir()
	d, _, err := reach("", dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	if err := ids.checkKnown(d, owner{65534, 65534, 0o755}); err != nil {
		t.Error(err)
	}
	ids.uid[0].count = 65534
	if ids.checkKnown(d, owner{65534, 65534, 0o755}) == nil {
		t.Error("an unmapped owner passed")
	}
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

func TestRootOption(t *testing.T) {
	dir := inMountNamespace(t)
	if dir == "" {
		return
	}
	bind(t, dir+"/real/mnt")
	if err := os.Symlink(dir+"/real", dir+"/root"); err != nil {
		t.Fatal(err)
	}
	volumes := []checkin.Volume{volume(1, "/mnt/data"), volume(2, "/srv/data")}
	for _, root := range []string{dir + "/root", dir + "/root/"} {
		results, _ := Ensure(t.Context(), volumes, nil, Options{Root: root})
		applied(t, results, 1, "")
		failed(t, results, 2, "not on a separate mount")
	}
	isOwner(t, dir+"/real/mnt/data", 1000, 1001, 0o755)
	results, _ := Ensure(t.Context(), volumes, nil, Options{Root: dir + "/none"})
	failed(t, results, 1, dir+"/none", "no such file")
}

func TestBadValuesFailAlone(t *testing.T) {
	dir := inMountNamespace(t)
	if dir == "" {
		return
	}
	bind(t, dir+"/mnt")
	with := func(id int64, change func(*checkin.Volume)) checkin.Volume {
		v := volume(id, fmt.Sprintf("%s/mnt/%d", dir, id))
		change(&v)
		return v
	}
	set := func(path string) func(*checkin.Volume) { return func(v *checkin.Volume) { v.HostPath = path } }
	mode := func(mode string) func(*checkin.Volume) { return func(v *checkin.Volume) { v.Mode = mode } }
	cases := map[int64]struct {
		change func(*checkin.Volume)
		why    string
	}{
		1:  {set(""), "hostPath"},
		2:  {set("relative/path"), "hostPath"},
		3:  {set(dir + "/mnt/../x"), "hostPath"},
		4:  {set(dir + "/mnt//x"), "hostPath"},
		5:  {set("/"), "hostPath"},
		6:  {set(dir + "/mnt/a\x00b"), "hostPath"},
		7:  {set("/" + strings.Repeat("a/", 4000) + "b"), "hostPath"},
		8:  {mode("755"), "mode"},
		9:  {mode("0755"), "mode"},
		10: {mode("RW"), "mode"},
		11: {mode("rwxr-xr-x"), "mode"},
		12: {mode(""), "mode"},
		13: {func(v *checkin.Volume) { v.UID = -1 }, "uid"},
		14: {func(v *checkin.Volume) { v.UID = 1<<32 - 1 }, "uid"},
		15: {func(v *checkin.Volume) { v.GID = 1 << 40 }, "gid"},
		16: {set(dir + "/mnt/good"), "volume 100 already"},
		17: {set(dir + "/mnt/good/inside"), "inside the directory of volume 100"},
		18: {func(v *checkin.Volume) { v.ID = 0 }, "id"},
	}
	volumes := []checkin.Volume{volume(100, dir+"/mnt/good"), volume(50, dir+"/mnt/twice"), volume(50, dir+"/mnt/again")}
	for id, c := range cases {
		volumes = append(volumes, with(id, c.change))
	}
	volumes = append(volumes, volume(101, dir+"/mnt/last"))
	results, _ := run(t, nil, volumes...)
	for id, c := range cases {
		if id == 18 {
			id = 0
		}
		failed(t, results, id, c.why)
	}
	failed(t, results, 50, "2 volumes have the id 50")
	applied(t, results, 100, "")
	applied(t, results, 101, "")
	entries, err := os.ReadDir(dir + "/mnt")
	if err != nil || len(entries) != 2 {
		t.Errorf("directories %v, %v; want good and last alone", entries, err)
	}
}

func TestNilVolumesAreNotManaged(t *testing.T) {
	previous := map[int64]Record{1: {Path: "/mnt/x"}}
	results, records := Ensure(t.Context(), nil, previous, Options{})
	if results != nil || len(records) != 1 {
		t.Errorf("results %v, records %v", results, records)
	}
	results, records = Ensure(t.Context(), []checkin.Volume{}, previous, Options{})
	if results == nil || len(results) != 0 || len(records) != 0 {
		t.Errorf("results %v, records %v", results, records)
	}
}
