package state

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
			_, err = d.Lock(context.Background(), ByTimer, 0)
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
	other := otherHolder(t, d.Path())

	started := time.Now()
	_, err := d.Lock(t.Context(), ByHand, 100*time.Millisecond)
	var locked *LockedError
	if !errors.As(err, &locked) {
		t.Fatalf("got %v, want a LockedError", err)
	}
	if waited := time.Since(started); waited < 100*time.Millisecond || waited > 5*time.Second {
		t.Errorf("waited %v", waited)
	}
	if locked.Holder.PID != other.Process.Pid || locked.Holder.What != ByTimer || time.Since(locked.Holder.Since) > time.Minute {
		t.Errorf("holder %+v, want process %d", locked.Holder, other.Process.Pid)
	}
	for _, want := range []string{fmt.Sprint(other.Process.Pid), ByTimer, locked.Holder.Since.Format("2006-01-02")} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}

	// The second waits while the first is killed.
	go func() { _ = other.Process.Kill() }()
	unlock, err := d.Lock(t.Context(), ByHand, 10*time.Second)
	if err != nil {
		t.Fatalf("a killed holder blocks: %v", err)
	}
	unlock()
	unlock, err = d.Lock(t.Context(), ByHand, 0)
	if err != nil {
		t.Fatalf("after unlock: %v", err)
	}
	unlock()
}

func TestLockEndsWithItsContext(t *testing.T) {
	d := open(t)
	unlock, err := d.Lock(t.Context(), ByHand, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := d.Lock(ctx, ByTimer, time.Hour); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestLockFileOfAnyContent(t *testing.T) {
	for _, content := range []string{"", "null", "garbage\x00", `{"pid":1,"what":"x\ny"}`, strings.Repeat("[", 10_000)} {
		d := open(t)
		holder, err := os.OpenFile(filepath.Join(d.Path(), lockFile), os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer holder.Close()
		if _, err := holder.WriteString(content); err != nil {
			t.Fatal(err)
		}
		if err := unix.Flock(int(holder.Fd()), unix.LOCK_EX); err != nil {
			t.Fatal(err)
		}
		_, err = d.Lock(t.Context(), ByHand, 0)
		var locked *LockedError
		if !errors.As(err, &locked) || err.Error() != "another pass is running" {
			t.Errorf("%.20q: got %v", content, err)
		}
		holder.Close()
		unlock, err := d.Lock(t.Context(), ByHand, 0)
		if err != nil {
			t.Errorf("%.20q: %v", content, err)
			continue
		}
		if got := readHolder(mustOpen(t, filepath.Join(d.Path(), lockFile))); got.PID != os.Getpid() || got.What != ByHand {
			t.Errorf("%.20q: the lock names %+v", content, got)
		}
		unlock()
	}
}

func mustOpen(t *testing.T, path string) *os.File {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return file
}

func mkfifo(t *testing.T, path string) {
	t.Helper()
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
}
