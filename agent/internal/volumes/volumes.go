// Package volumes makes sure that the directories of a site's volumes exist,
// with the owner and mode they were ordered with, and only on storage that is
// mounted: never on the disk the agent's own root filesystem lies on, never
// through a symbolic link, and never at the cost of what a workload has made
// of its directory since. Nothing is ever removed.
package volumes

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"opensource.internal/agent/checkin"
)

// Record is what the agent remembers of a volume between passes.
type Record struct {
	Path string `json:"path"`
	// UID, GID and Mode ("rw" or "ro") are those of the last order that was
	// carried out or found in place. They tell a changed order from a
	// directory that its workload has changed.
	UID  int64  `json:"uid"`
	GID  int64  `json:"gid"`
	Mode string `json:"mode"`
	// Created is true if the agent made the directory.
	Created bool `json:"created,omitempty"`
	// Finished is false while a directory the agent made still lacks its owner
	// or mode.
	Finished bool `json:"finished"`
}

// Options adjusts Ensure.
type Options struct {
	// Root is put before every host path (the agent's --root), or empty. It
	// may itself lead through links. It does not change what counts as
	// separately mounted.
	Root string
	// Patience is how long one volume may take before it is given up as hung;
	// DefaultPatience if zero.
	Patience time.Duration
}

// DefaultPatience is how long the storage of one volume may take to answer.
const DefaultPatience = 5 * time.Second

// Ensure makes sure of every volume, one after the other, and never stops at
// a bad one. It returns one result per volume by decimal id, and the records
// to pass as previous the next time. Nil volumes mean that the manager does
// not know about volumes: there are no results then, and the records stay.
//
// A directory that is missing is made. One that exists is left as it is, with
// a note if its owner or mode is not the ordered one, except that Ensure
// finishes what it began, and follows an order that changed: for a directory
// that it made, or that stood exactly as the previous order wanted it.
//
// Storage that hangs (a dead NFS server) is given up after opts.Patience or at
// the end of ctx. The system call itself cannot be given up: a goroutine and
// a thread stay behind in it until the storage answers or the process ends,
// and make no change after that.
func Ensure(ctx context.Context, volumes []checkin.Volume, previous map[int64]Record, opts Options) (map[string]checkin.VolumeReport, map[int64]Record) {
	if volumes == nil {
		return nil, previous
	}
	results := make(map[string]checkin.VolumeReport, len(volumes))
	records := make(map[int64]Record, len(volumes))
	for i, done := range each(ctx, volumes, previous, opts, false) {
		id := volumes[i].ID
		if record, known := previous[id]; known {
			records[id] = record
		}
		if done.record != nil {
			records[id] = *done.record
		}
		results[strconv.FormatInt(id, 10)] = done.report()
	}
	return results, records
}

// each carries out every order, or only looks, and returns the outcomes in the
// order of the volumes.
func each(ctx context.Context, volumes []checkin.Volume, previous map[int64]Record, opts Options, lookOnly bool) []outcome {
	if opts.Patience == 0 {
		opts.Patience = DefaultPatience
	}
	outcomes := make([]outcome, len(volumes))
	refused := findFaults(volumes)
	host, hostErr := readHost(strings.TrimSuffix(opts.Root, "/"))
	for i, volume := range volumes {
		record, known := previous[volume.ID]
		if record.Path != volume.HostPath {
			record, known = Record{}, false // the record of another directory
		}
		switch {
		case refused[i] != nil:
			outcomes[i].err = refused[i]
		case hostErr != nil:
			outcomes[i].err = hostErr
		default:
			outcomes[i] = host.ensureInTime(ctx, order{Volume: volume, before: record, known: known, lookOnly: lookOnly}, opts.Patience)
		}
	}
	return outcomes
}

// order is a volume as it is wanted, and what was remembered of it.
type order struct {
	checkin.Volume
	before Record
	known  bool
	// lookOnly says to find out what there is to do, and not to do it.
	lookOnly bool
}

func (o order) record(created, finished bool) *Record {
	return &Record{Path: o.HostPath, UID: o.UID, GID: o.GID, Mode: string(o.Mode), Created: created, Finished: finished}
}

// outcome is what came of one order.
type outcome struct {
	record *Record // nil if the previous one stays
	note   string
	would  string // what is to be done, if it was only looked
	err    error
}

func (o outcome) report() checkin.VolumeReport {
	if o.err != nil {
		return checkin.VolumeReport{Message: checkin.CleanMessage(o.err.Error(), checkin.MaxMessage)}
	}
	return checkin.VolumeReport{Applied: true, Message: checkin.CleanMessage(o.note, checkin.MaxMessage)}
}

// findFaults returns, by position, the volumes that are refused as they
// stand: for their own values, or since two of them claim one directory.
func findFaults(volumes []checkin.Volume) map[int]error {
	faults := map[int]error{}
	count := map[int64]int{}
	for i, v := range volumes {
		count[v.ID]++
		if err := checkValues(v); err != nil {
			faults[i] = err
		}
	}
	byPath := map[string]int64{}
	for i, v := range volumes {
		switch first, taken := byPath[v.HostPath]; {
		case count[v.ID] > 1:
			faults[i] = fmt.Errorf("id: %d volumes have the id %d", count[v.ID], v.ID)
		case faults[i] != nil:
		case taken:
			faults[i] = fmt.Errorf("hostPath: %q is the directory of volume %d already", v.HostPath, first)
		default:
			byPath[v.HostPath] = v.ID
		}
	}
	for i, v := range volumes {
		if faults[i] != nil {
			continue
		}
		if outer, nested := enclosing(byPath, v.HostPath); nested {
			faults[i] = fmt.Errorf("hostPath: %q lies inside the directory of volume %d, whose workload owns what is in it",
				v.HostPath, outer)
		}
	}
	return faults
}

func checkValues(v checkin.Volume) error {
	var errs []error
	add := func(field string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", field, err))
		}
	}
	if v.ID <= 0 {
		add("id", fmt.Errorf("%d is not a positive number", v.ID))
	}
	add("hostPath", checkin.CheckHostPath(v.HostPath))
	add("uid", checkin.CheckUnixID(v.UID))
	add("gid", checkin.CheckUnixID(v.GID))
	_, err := checkin.DirectoryMode(string(v.Mode))
	add("mode", err)
	return errors.Join(errs...)
}

// enclosing returns the volume one of whose subdirectories path is.
func enclosing(byPath map[string]int64, path string) (id int64, found bool) {
	for i := len(path) - 1; i > 0; i-- {
		if path[i] != '/' {
			continue
		}
		if id, found := byPath[path[:i]]; found {
			return id, true
		}
	}
	return 0, false
}
