package volumes

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"opensource.internal/agent/checkin"
)

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
