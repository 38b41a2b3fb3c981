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
	"testing"
	"time"

	"opensource.internal/agent/internal/systemd"
)

// machine stands in for systemd with one unit: it starts, signals and stops a
// real program.
type machine struct {
	argv   []string // runs in the foreground
	check  []string // as ExecStartPre
	reload []string // as ExecReload; without it, reloading is restarting

	process  *exec.Cmd
	ended    chan struct{}
	started  time.Time
	restarts int
	hups     int

	log  *os.File // what the programs write
	told int64    // how much of it the journal has told
}

func logFile(t *testing.T) *os.File {
	t.Helper()
	file, err := os.OpenFile(filepath.Join(t.TempDir(), "log"), os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	must(t, err)
	t.Cleanup(func() { _ = file.Close() })
	return file
}

// journal returns what was logged since it was called last.
func (m *machine) journal(context.Context, string, time.Time) []string {
	content, _ := io.ReadAll(io.NewSectionReader(m.log, m.told, 1<<20))
	m.told += int64(len(content))
	var lines []string
	for line := range strings.Lines(string(content)) {
		_, message, _ := strings.Cut(strings.TrimSpace(line), ": ") // without the program's name
		lines = append(lines, message)
	}
	return lines
}

func (m *machine) alive() bool {
	if m.process == nil {
		return false
	}
	select {
	case <-m.ended:
		return false
	default:
		return true
	}
}

func (m *machine) ActiveState(context.Context, string) (string, error) {
	if m.alive() {
		return "active", nil
	}
	return "failed", nil
}

func (m *machine) LoadState(context.Context, string) (string, error) { return "loaded", nil }

func (m *machine) MainProcess(context.Context, string) (systemd.Process, error) {
	if !m.alive() {
		return systemd.Process{}, nil
	}
	return systemd.Process{PID: m.process.Process.Pid, Started: m.started}, nil
}

func (m *machine) ReloadOrRestart(ctx context.Context, unit string) error {
	if !m.alive() {
		return m.Restart(ctx, unit)
	}
	return m.run(ctx, m.reload)
}

// Restart returns when the program runs, or has ended at once.
func (m *machine) Restart(ctx context.Context, _ string) error {
	m.restarts++
	m.stop()
	if err := m.run(ctx, m.check); err != nil {
		return err
	}
	m.process = exec.Command(m.argv[0], m.argv[1:]...)
	m.process.Stdout, m.process.Stderr = m.log, m.log
	m.ended, m.started = make(chan struct{}), time.Now()
	if err := m.process.Start(); err != nil {
		return err
	}
	go func(process *exec.Cmd, ended chan struct{}) {
		_ = process.Wait()
		close(ended)
	}(m.process, m.ended)
	select {
	case <-m.ended:
		return &systemd.JobError{Result: "failed", Unit: "exit-code"}
	case <-time.After(200 * time.Millisecond): // as long as it takes to fail
		return nil
	}
}

func (m *machine) HUP(context.Context, string) error {
	m.hups++
	return m.process.Process.Signal(syscall.SIGHUP)
}

func (m *machine) run(ctx context.Context, argv []string) error {
	if len(argv) == 0 {
		return nil
	}
	command := exec.CommandContext(ctx, argv[0], argv[1:]...)
	command.Stderr = m.log
	if err := command.Run(); err != nil {
		return &systemd.JobError{Result: "failed", Unit: "exit-code"}
	}
	return nil
}

func (m *machine) stop() {
	if m.alive() {
		_ = m.process.Process.Signal(syscall.SIGTERM)
		<-m.ended
	}
}

func (m *machine) pid() int {
	if !m.alive() {
		return 0
	}
	return m.process.Process.Pid
}

var errNoBus = fmt.Errorf("ask: %w", systemd.ErrNoBus)

// noBus is a host without systemd.
type noBus struct{}

func (noBus) ActiveState(context.Context, string) (string, error) { return "", errNoBus }
func (noBus) LoadState(context.Context, string) (string, error)   { return "", errNoBus }
func (noBus) MainProcess(context.Context, string) (systemd.Process, error) {
	return systemd.Process{}, errNoBus
}
func (noBus) ReloadOrRestart(context.Context, string) error { return errNoBus }
func (noBus) Restart(context.Context, string) error         { return errNoBus }
func (noBus) HUP(context.Context, string) error             { return errNoBus }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return string(content)
}
