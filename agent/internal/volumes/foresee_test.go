package volumes

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"opensource.internal/agent/checkin"
)

// What Foresee says is what Ensure then does.
func TestForeseeChangesNothing(t *testing.T) {
	dir := inMountNamespace(t)
	if dir == "" {
		return
	}
	bind(t, dir+"/mnt")
	there, kept, fresh := volume(1, dir+"/mnt/there"), volume(2, dir+"/mnt/kept"), volume(3, dir+"/mnt/a/fresh")
	begun, elsewhere, bad := volume(4, dir+"/mnt/begun"), volume(5, dir+"/srv/data"), volume(6, "relative")
	_, records := run(t, nil, there, kept)
	mkdir(t, begun.HostPath, 0, 0, unfinished)
	there.UID = 2000
	volumes := []checkin.Volume{there, kept, fresh, begun, elsewhere, bad}

	got := map[int64]string{}
	for _, plan := range Foresee(t.Context(), volumes, records, Options{}) {
		if plan.Would == "" && plan.Err == nil {
			continue
		}
		if got[plan.Volume.ID] = plan.Would; plan.Err != nil {
			got[plan.Volume.ID] = plan.Err.Error()
		}
	}
	for id, want := range map[int64]string{
		1: "change the directory: owner 2000:1001, mode 0755",
		3: "make the directory, owner 1000:1001, mode 0755",
		4: "finish the directory: owner 1000:1001, mode 0755",
		5: "not on a separate mount",
		6: "hostPath",
	} {
		if !strings.Contains(got[id], want) {
			t.Errorf("volume %d: %q, want %q", id, got[id], want)
		}
	}
	if _, told := got[2]; told || len(got) != 5 {
		t.Errorf("got %v", got)
	}
	isOwner(t, there.HostPath, 1000, 1001, 0o755)
	isOwner(t, begun.HostPath, 0, 0, unfinished)
	missing(t, dir+"/mnt/a")

	results, _ := run(t, records, volumes...)
	for id, plan := range map[int64]bool{1: true, 3: true, 4: true, 5: false, 6: false} {
		if plan {
			applied(t, results, id, "")
		} else {
			failed(t, results, id)
		}
	}
	isOwner(t, there.HostPath, 2000, 1001, 0o755)
	isOwner(t, begun.HostPath, 1000, 1001, 0o755)
	isOwner(t, fresh.HostPath, 1000, 1001, 0o755)
	if diff := cmp.Diff(Foresee(t.Context(), []checkin.Volume{kept}, records, Options{}), []Plan{{Volume: kept}}); diff != "" {
		t.Error(diff)
	}
}
