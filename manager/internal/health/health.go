// Package health looks at what a manager depends on beside its database: what the
// doctor says on the command line, and the pages in the browser.
package health

import (
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"opensource.internal/manager/internal/store"
)

// The states of a finding.
const (
	Fine = "ok"
	Warn = "warn"
	Fail = "fail"
)

// Finding is what a check has found, and what to do about it.
type Finding struct{ Check, State, Message, Fix string }

// lowDisk is how much room a database should have.
const lowDisk = 256 << 20

// Disk is how much room there is in a folder.
func Disk(folder string) Finding {
	var disk unix.Statfs_t
	if err := unix.Statfs(folder, &disk); err != nil {
		return Finding{"disk", Fail, fmt.Sprintf("%s: %v", folder, err), ""}
	}
	free := int64(disk.Bavail) * disk.Bsize
	switch {
	case disk.Flags&unix.ST_RDONLY != 0:
		return Finding{"disk", Fail, folder + " is on a read-only file system", "dmesg says why, if nobody mounted it so; mount -o remount,rw"}
	case free < lowDisk:
		return Finding{"disk", Fail, fmt.Sprintf("%s free for %s", Size(free), folder), "free some space: without it every change is refused"}
	}
	return Finding{"disk", Fine, fmt.Sprintf("%s free for %s", Size(free), folder), ""}
}

// Size is a number of bytes as people read it.
func Size(bytes int64) string {
	switch {
	case bytes >= 10<<30:
		return fmt.Sprintf("%d GiB", bytes>>30)
	case bytes >= 10<<20:
		return fmt.Sprintf("%d MiB", bytes>>20)
	}
	return fmt.Sprintf("%d KiB", (bytes+1023)>>10)
}

// Clock is whether the kernel keeps the clock right.
func Clock() Finding {
	var clock unix.Timex
	switch state, err := unix.Adjtimex(&clock); {
	case err != nil:
		return Finding{"clock", Warn, "cannot ask the kernel: " + err.Error(), ""}
	case state == unix.TIME_ERROR:
		return Finding{"clock", Warn, "not synchronised, as far as the kernel knows", "timedatectl set-ntp true, or see to the clock of the host if this is a container"}
	}
	return Finding{"clock", Fine, "synchronised", ""}
}

// skewed is from when on the clocks of agents say that the manager's is wrong.
const skewed = 30 * time.Second

// agreeing says that the clocks of agents are right.
func agreeing(agents int) string {
	if agents == 1 {
		return "that of the one agent online agrees with this one"
	}
	return fmt.Sprintf("those of %d agents agree with this one", agents)
}

// differing says how far the clocks of half of the agents are off, or more.
func differing(agents int, ahead time.Duration) string {
	who, where := fmt.Sprintf("half of %d agents are", agents), "ahead of"
	if agents == 1 {
		who = "the one agent online is"
	}
	if ahead < 0 {
		where = "behind"
	}
	return fmt.Sprintf("%s %s or more %s this clock", who, ahead.Abs(), where)
}

// Clocks takes the middle of what agents that are online say.
func Clocks(agents []store.Agent, now time.Time) []Finding {
	var ahead []time.Duration
	for _, agent := range agents {
		if agent.ClockSkewMS != nil && agent.Presence(now) == store.Online {
			ahead = append(ahead, time.Duration(*agent.ClockSkewMS)*time.Millisecond)
		}
	}
	if len(ahead) == 0 {
		return nil
	}
	slices.Sort(ahead)
	middle := ahead[len(ahead)/2].Round(time.Second)
	if middle.Abs() < skewed {
		return []Finding{{"agents' clocks", Fine, agreeing(len(ahead)), ""}}
	}
	return []Finding{{"agents' clocks", Warn, differing(len(ahead), middle), "if their clocks are right, this one is not"}}
}
