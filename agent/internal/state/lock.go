package state

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// The ways a pass is started.
const (
	ByTimer = "by the timer"
	ByHand  = "by hand"
)

// Holder is the process that holds the lock.
type Holder struct {
	PID  int
	What string // ByTimer or ByHand
}

// LockedError says that another process holds the lock.
type LockedError struct {
	Holder Holder // zero if it could not be found out
}

func (e *LockedError) Error() string {
	if e.Holder.PID == 0 {
		return "another pass is running"
	}
	return fmt.Sprintf("another pass is running: process %d, started %s", e.Holder.PID, e.Holder.What)
}

// retryLock is how often a taken lock is tried again.
const retryLock = 50 * time.Millisecond

// Lock takes the lock of the state directory for this process. If another
// process holds it, it waits at most wait for its release and then returns a
// *LockedError. The kernel releases the lock when its holder ends, however
// that ends (flock(2)). It is the directory itself that is locked: on a full
// or read-only disk a pass can still look after the site, as far as no file has
// to be replaced, and say what is wrong.
func (d *Dir) Lock(ctx context.Context, wait time.Duration) (unlock func(), err error) {
	file, err := os.Open(d.path)
	if err != nil {
		return nil, fmt.Errorf("lock state directory: %w", err)
	}
	if err := flock(ctx, file, wait); err != nil {
		defer file.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, &LockedError{Holder: findHolder(file)}
		}
		return nil, fmt.Errorf("lock state directory: %w", err)
	}
	return func() { _ = file.Close() }, nil
}

// flock tries until it has the lock or the time is up; the error is then
// EWOULDBLOCK. (A blocking flock could not be given up again.)
func flock(ctx context.Context, file *os.File, wait time.Duration) error {
	deadline := time.NewTimer(wait)
	defer deadline.Stop()
	again := time.NewTicker(retryLock)
	defer again.Stop()
	for {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil || !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return err
		}
		select {
		case <-again.C:
		case <-deadline.C:
			return unix.EWOULDBLOCK
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// findHolder asks the kernel who holds the lock of file, so that a pass that
// meets nobody has nothing to write. What cannot be found out stays zero.
func findHolder(file *os.File) Holder {
	var stat unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &stat); err != nil {
		return Holder{}
	}
	locks, err := os.ReadFile("/proc/locks")
	if err != nil {
		return Holder{}
	}
	pid := flockHolder(string(locks), stat.Ino)
	if pid == 0 {
		return Holder{}
	}
	holder := Holder{PID: pid, What: ByHand}
	environ, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ"))
	bySystemd := "SYSTEMD_EXEC_PID=" + strconv.Itoa(pid) // systemd.exec(5)
	if err == nil && slices.Contains(strings.Split(string(environ), "\x00"), bySystemd) {
		holder.What = ByTimer
	}
	return holder
}

// flockHolder returns the process that holds a flock on the inode, or 0. The
// lines of /proc/locks are described in proc_locks(5):
//
//	1: FLOCK  ADVISORY  WRITE 708 00:13:340 0 EOF
func flockHolder(locks string, inode uint64) int {
	for line := range strings.Lines(locks) {
		fields := strings.Fields(line)
		if len(fields) < 6 || fields[1] != "FLOCK" || !strings.HasSuffix(fields[5], ":"+strconv.FormatUint(inode, 10)) {
			continue
		}
		if pid, err := strconv.Atoi(fields[4]); err == nil && pid > 0 {
			return pid
		}
	}
	return 0
}
