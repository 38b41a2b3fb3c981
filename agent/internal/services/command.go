package services

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// maxOutput is how much of a tool's output is kept, in bytes: the last of it,
// since what has ended a tool comes after all its warnings.
const maxOutput = 64 << 10

// program finds a tool on the path, or where Debian puts those for root.
func program(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		path, err = exec.LookPath(filepath.Join("/usr/sbin", name))
	}
	return path, err
}

// installed returns an error unless the tool is there.
func installed(name, debianPackage string) error {
	if _, err := program(name); err != nil {
		return fmt.Errorf("%s is not installed: install the Debian package %s", name, debianPackage)
	}
	return nil
}

// verdict is what a tool has written before it ended, by itself, with a
// failure.
type verdict struct{ words string }

func (v *verdict) Error() string { return v.words }

// command runs a tool to its end, or kills it with all it has started when the
// time is over. If it fails, its output is the error: a verdict.
func command(ctx context.Context, timeout time.Duration, name string, args ...string) error {
	_, err := Output(ctx, timeout, name, args...)
	return err
}

// Output runs a tool as command does, and returns what it has written on either
// stream.
func Output(ctx context.Context, timeout time.Duration, name string, args ...string) (string, error) {
	var written tail
	err := Run(ctx, timeout, &written, name, args...)
	text := strings.TrimSpace(string(written))
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Exited() && text != "" {
		return text, &verdict{text}
	}
	return text, err
}

// Run runs a tool to its end, or kills it with all it has started when the time
// is over. What it writes on either stream goes to out.
func Run(ctx context.Context, timeout time.Duration, out io.Writer, name string, args ...string) error {
	path, err := program(name)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = inEnglish(os.Environ())
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second

	err = cmd.Run()
	if ctx.Err() != nil {
		return fmt.Errorf("%s %s was stopped before it ended: %w", name, args[0], ctx.Err())
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", name, args[0], err)
	}
	return nil
}

// inEnglish adds to an environment that messages are not translated, as those of
// dnsmasq are. The character set stays: names in its files can be written in it.
func inEnglish(environment []string) []string {
	environment = append(environment, "LC_MESSAGES=C")
	if all := os.Getenv("LC_ALL"); all != "" { // it would win
		environment = append(environment, "LC_CTYPE="+all, "LC_ALL=")
	}
	return environment
}

// tail is the last maxOutput bytes of what was written.
type tail []byte

func (t *tail) Write(p []byte) (int, error) {
	all := append(*t, p...)
	*t = all[max(0, len(all)-maxOutput):]
	return len(p), nil
}
