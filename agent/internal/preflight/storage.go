package preflight

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"opensource.internal/agent/internal/volumes"
)

// What has to be free on a file system: below the first a person should know,
// below the second not even a candidate can be written beside a live file.
const (
	lowBytes  = 100 << 20
	noBytes   = 8 << 20
	lowInodes = 1000
	noInodes  = 16
)

// disks tells what is free where the agent, and what it looks after, writes.
func disks(ctx context.Context, o *Options) []Finding {
	return space(ctx, []string{
		o.Root + "/", o.Root + "/var", filepath.Dir(o.Facts.Paths.NGINXConf), filepath.Dir(o.Facts.Paths.DNSMasqConf),
		o.Facts.Paths.DNSMasqDir, filepath.Dir(o.Facts.Paths.NGINXErrorLog), o.StateDirectory,
	})
}

// filesystem is what the kernel tells of one.
type filesystem struct {
	paths []string // that lie on it
	stat  unix.Statfs_t
}

// mounted is a file system in one of the ways in which it is mounted: a bind
// mount may be read-only where the others are not.
type mounted struct {
	id       unix.Fsid
	readOnly bool
}

// space looks at the file system of each folder, each file system once.
func space(ctx context.Context, folders []string) []Finding {
	var found []Finding
	known := map[mounted]*filesystem{}
	var order []*filesystem
	for _, folder := range folders {
		stat, err := statfs(ctx, existing(folder))
		if err != nil {
			found = append(found, warn("ls -ld "+folder, "%s: %v", folder, err))
			continue
		}
		way := mounted{stat.Fsid, stat.Flags&unix.ST_RDONLY != 0}
		if fs := known[way]; fs != nil {
			fs.paths = append(fs.paths, folder)
			continue
		}
		fs := &filesystem{[]string{folder}, stat}
		known[way] = fs
		order = append(order, fs)
	}
	for _, fs := range order {
		found = append(found, fs.finding())
	}
	return found
}

// existing returns the folder, or the nearest one above that is there.
func existing(folder string) string {
	var stat unix.Stat_t
	for folder != "/" && unix.Stat(folder, &stat) != nil {
		folder = filepath.Dir(folder)
	}
	return folder
}

// patience is how long one file system may take to answer.
const patience = 3 * time.Second

// statfs is statfs(2) for storage that may hang: the call itself cannot be
// given up.
func statfs(ctx context.Context, path string) (unix.Statfs_t, error) {
	type answer struct {
		stat unix.Statfs_t
		err  error
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	done := make(chan answer, 1)
	go func() {
		var got answer
		got.err = unix.Statfs(path, &got.stat)
		done <- got
	}()
	select {
	case got := <-done:
		return got.stat, got.err
	case <-ctx.Done():
		return unix.Statfs_t{}, fmt.Errorf("the storage did not answer in time")
	}
}

func (f *filesystem) finding() Finding {
	free := f.stat.Bavail * uint64(f.stat.Bsize)
	where := f.where()
	amount := fmt.Sprintf("%s free, %s inodes", bytes(free), f.inodes())
	makeRoom := "make room: df -h " + f.paths[0] + "; journalctl --vacuum-size=100M; apt-get clean"
	switch {
	case f.stat.Flags&unix.ST_RDONLY != 0:
		return fail("mount -o remount,rw "+f.paths[0]+"; after an error of the disk: dmesg", "%s: mounted read-only", where)
	case free < noBytes || f.countsInodes() && f.stat.Ffree < noInodes:
		return fail(makeRoom, "%s: %s: nothing can be written", where, amount)
	case free < lowBytes || f.countsInodes() && f.stat.Ffree < lowInodes:
		return warn(makeRoom, "%s: %s", where, amount)
	}
	return ok("%s: %s", where, amount)
}

// where names the folders, if they are few.
func (f *filesystem) where() string {
	const few = 8
	paths := slices.Compact(slices.Sorted(slices.Values(f.paths)))
	if len(paths) <= few {
		return strings.Join(paths, ", ")
	}
	return fmt.Sprintf("%s and %d others", paths[0], len(paths)-1)
}

// countsInodes is false where the file system makes them as they are needed.
func (f *filesystem) countsInodes() bool { return f.stat.Files > 0 }

func (f *filesystem) inodes() string {
	if !f.countsInodes() {
		return "any number of"
	}
	return fmt.Sprint(f.stat.Ffree)
}

func bytes(n uint64) string {
	const mebibyte = 1 << 20
	if n < 10<<30 {
		return fmt.Sprintf("%d MiB", n/mebibyte)
	}
	return fmt.Sprintf("%d GiB", n>>30)
}

// siteVolumes tells whether the storage of the site's volumes is there.
func siteVolumes(ctx context.Context, o *Options) []Finding {
	if o.Unread {
		return list(o.notKnown())
	}
	if o.Snapshot == nil || o.Snapshot.Site == nil || len(o.Snapshot.Site.Volumes) == 0 {
		return list(ok("the site has none"))
	}
	all := o.Snapshot.Site.Volumes
	faults := volumes.Look(ctx, all, volumes.Options{Root: o.Root})
	var good []string // which have answered just now
	for _, volume := range all {
		if faults[volume.ID] == nil {
			good = append(good, o.Root+volume.HostPath)
		}
	}
	free := space(ctx, good)
	if len(faults) == 0 {
		return append(list(ok("the storage of all %d is mounted", len(all))), free...)
	}
	byWords := map[string][]string{}
	for _, id := range slices.Sorted(maps.Keys(faults)) {
		words := faults[id].Error()
		byWords[words] = append(byWords[words], fmt.Sprint(id))
	}
	var found []Finding
	for _, words := range slices.Sorted(maps.Keys(byWords)) {
		found = append(found, fail("compare findmnt with the path; storage is mounted from the node", "volume %s: %s", strings.Join(byWords[words], ", "), words))
	}
	return append(found, free...)
}
