package state

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// holdLock in the environment makes the test binary hold the lock of that
// directory until it is killed.
const holdLock = "TEST_HOLD_LOCK"

func TestMain(m *testing.M) {
	if dir := os.Getenv(holdLock); dir != "" {
		d, err := Open(dir)
		if err == nil {
			_, err = d.Lock(context.Background(), 0)
		}
		fmt.Println("held", err)
		select {}
	}
	os.Exit(m.Run())
}

// otherHolder starts a process that holds the lock.
func otherHolder(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	other := exec.Command(os.Args[0])
	other.Env = append(os.Environ(), holdLock+"="+dir)
	out, err := other.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Process.Kill(); _ = other.Wait() })
	line := make([]byte, 64)
	n, _ := out.Read(line)
	if string(line[:n]) != "held <nil>\n" {
		t.Fatalf("other process says %q", line[:n])
	}
	return other
}

func TestLockSaysWhoHoldsItAndDiesWithItsHolder(t *testing.T) {
	d := open(t)
	other := otherHolder(t, d.path)

	started := time.Now()
	_, err := d.Lock(t.Context(), 100*time.Millisecond)
	var locked *LockedError
	if !errors.As(err, &locked) {
		t.Fatalf("got %v, want a LockedError", err)
	}
	if waited := time.Since(started); waited < 100*time.Millisecond || waited > 5*time.Second {
		t.Errorf("waited %v", waited)
	}
	if locked.Holder.PID != other.Process.Pid || locked.Holder.What != ByHand {
		t.Errorf("holder %+v, want process %d", locked.Holder, other.Process.Pid)
	}
	for _, want := range []string{fmt.Sprint(other.Process.Pid), ByHand} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}

	// The second waits while the first is killed.
	go func() { _ = other.Process.Kill() }()
	unlock, err := d.Lock(t.Context(), 10*time.Second)
	if err != nil {
		t.Fatalf("a killed holder blocks: %v", err)
	}
	unlock()
	unlock, err = d.Lock(t.Context(), 0)
	if err != nil {
		t.Fatalf("after unlock: %v", err)
	}
	unlock()
}

func TestLockEndsWithItsContext(t *testing.T) {
	d := open(t)
	unlock, err := d.Lock(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := d.Lock(ctx, time.Hour); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestFlockHolder(t *testing.T) {
	const locks = "1: POSIX  ADVISORY  WRITE 11 fe:00:340 0 EOF\n" +
		"2: FLOCK  ADVISORY  WRITE 12 fe:00:3400 0 EOF\n" +
		"3: FLOCK  ADVISORY  WRITE 13 fe:00:340 0 EOF\n" +
		"3: -> FLOCK  ADVISORY  WRITE 14 fe:00:341 0 EOF\n" +
		"4: FLOCK  ADVISORY  WRITE -1 fe:00:342 0 EOF\nodd\n"
	for inode, want := range map[uint64]int{340: 13, 3400: 12, 341: 0, 342: 0, 40: 0} {
		if got := flockHolder(locks, inode); got != want {
			t.Errorf("inode %d: process %d, want %d", inode, got, want)
		}
	}
}

// A read-only disk is no reason to leave the site alone.
func TestLockWritesNothing(t *testing.T) {
	d := open(t)
	if err := unix.Mount(d.path, d.path, "", unix.MS_BIND, ""); err != nil {
		t.Skipf("needs to mount: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(d.path, unix.MNT_DETACH) })
	if err := unix.Mount("", d.path, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Skipf("needs to mount: %v", err)
	}
	unlock, err := d.Lock(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if _, err := d.Lock(t.Context(), 0); !errors.As(err, new(*LockedError)) {
		t.Errorf("second lock: %v", err)
	}
}

func mkfifo(t *testing.T, path string) {
	t.Helper()
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
}
