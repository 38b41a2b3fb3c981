package volumes

import (
	"os"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"opensource.internal/agent/checkin"
)

// Looking comes to what Ensure comes to, and makes nothing.
func TestLookDecidesAsEnsure(t *testing.T) {
	dir := inMountNamespace(t)
	if dir == "" {
		return
	}
	mkdir(t, dir+"/unmounted", 0, 0, 0o755)
	mount(t, "none", dir+"/tmpfs", "tmpfs", 0, "")
	bind(t, dir+"/ro")
	mount(t, "", dir+"/ro", "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, "")
	bind(t, dir+"/disk")
	mkdir(t, dir+"/disk/there", 70, 70, 0o700)
	if err := os.Symlink("/etc", dir+"/disk/link"); err != nil {
		t.Fatal(err)
	}
	all := []checkin.Volume{
		volume(1, dir+"/unmounted/app"), volume(2, dir+"/tmpfs/app"), volume(3, dir+"/ro/app"), volume(4, dir+"/disk/there"),
		volume(5, dir+"/disk/new/app"), volume(6, dir+"/disk/link/app"), volume(7, "relative"), volume(8, dir+"/disk/there/inside"),
	}
	found := Look(t.Context(), all, Options{})
	missing(t, dir+"/disk/new")
	results, _ := run(t, nil, all...)
	for _, v := range all {
		result := results[strconv.FormatInt(v.ID, 10)]
		if err := found[v.ID]; (err == nil) != result.Applied || err != nil && err.Error() != result.Message {
			t.Errorf("volume %d: looked at: %v; ensured: %+v", v.ID, err, result)
		}
	}
	if len(found) != 6 {
		t.Errorf("found %v", found)
	}
}
