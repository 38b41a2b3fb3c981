package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"time"
)

const (
	commandTimeout = 5 * time.Second
	maxOutput      = 64 << 10 // bytes
)

// output runs a program and returns what it prints on either stream, up to
// maxOutput bytes. A program that does not end in time is killed with all it
// has started.
func output(ctx context.Context, path string, arguments ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	command := exec.CommandContext(ctx, path, arguments...)
	command.Env = []string{"LC_ALL=C", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	killGroup := func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	command.Cancel = killGroup
	command.WaitDelay = time.Second // for a grandchild that keeps the pipe
	var out bounded
	command.Stdout, command.Stderr = &out, &out

	err := command.Run()
	if errors.Is(err, exec.ErrWaitDelay) {
		_ = killGroup()
	}
	if ctx.Err() != nil {
		return "", fmt.Errorf("run %s: it did not end in time: %w", path, ctx.Err())
	}
	if err != nil {
		return "", fmt.Errorf("run %s: %w; it printed %.200q", path, err, out.String())
	}
	return out.String(), nil
}

// bounded keeps the first maxOutput bytes that are written to it.
type bounded struct{ bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	if room := maxOutput - b.Len(); room < len(p) {
		_, _ = b.Buffer.Write(p[:room])
		return len(p), nil
	}
	return b.Buffer.Write(p)
}
