package volumes

import (
	"fmt"
	"os"
	"strings"
	"testing"

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
	mode := func(mode string) func(*checkin.Volume) {
		return func(v *checkin.Volume) { v.Mode = checkin.VolumeMode(mode) }
	}
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
