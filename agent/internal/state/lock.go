package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
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
	PID   int       `json:"pid"`
	What  string    `json:"what"` // ByTimer or ByHand
	Since time.Time `json:"since"`
}

// LockedError says that another process holds the lock.
type LockedError struct {
	Holder Holder // zero if the holder has not said who it is
}

func (e *LockedError) Error() string {
	if e.Holder.PID == 0 {
		return "another pass is running"
	}
	return fmt.Sprintf("another pass is running: process %d, started %s, since %s",
		e.Holder.PID, e.Holder.What, e.Holder.Since.Format(time.RFC3339))
}

// retryLock is how often a taken lock is tried again.
const retryLock = 50 * time.Millisecond

// Lock takes the lock of the state directory for this process, started what
// (ByTimer or ByHand). If another process holds it, it waits at most wait for
// its release and then returns a *LockedError. The kernel releases the lock
// when its holder ends, however that ends (flock(2)).
func (d *Dir) Lock(ctx context.Context, what string, wait time.Duration) (unlock func(), err error) {
	file, err := os.OpenFile(filepath.Join(d.path, lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock state directory: %w", err)
	}
	if err := flock(ctx, file, wait); err != nil {
		defer file.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, &LockedError{Holder: readHolder(file)}
		}
		return nil, fmt.Errorf("lock state directory: %w", err)
	}
	// The lock holds without it, so a full disk is no reason to give up.
	_ = writeHolder(file, Holder{PID: os.Getpid(), What: what, Since: time.Now().Truncate(time.Second)})
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

func writeHolder(file *os.File, holder Holder) error {
	content, err := json.Marshal(holder)
	if err != nil {
		return err
	}
	if err := file.Truncate(0); err != nil {
		return err
	}
	_, err = file.WriteAt(append(content, '\n'), 0)
	return err
}

// readHolder returns the zero Holder for anything but a holder's own words.
func readHolder(file *os.File) Holder {
	content, err := io.ReadAll(io.NewSectionReader(file, 0, 4<<10))
	if err != nil {
		return Holder{}
	}
	var holder Holder
	if json.Unmarshal(content, &holder) != nil {
		return Holder{}
	}
	if holder.What != ByTimer && holder.What != ByHand {
		return Holder{}
	}
	return holder
}
