// Package servicestest runs the real programs of managed services in tests, in
// namespaces of their own and without systemd.
package servicestest

import (
	"context"
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

// Machine stands in for systemd with one unit: it starts, signals and stops a
// real program.
type Machine struct {
	argv   []string // runs in the foreground
	check  []string // as ExecStartPre
	reload []string // as ExecReload; without it, reloading is restarting

	process  *exec.Cmd
	ended    chan struct{}
	started  time.Time
	Restarts int // how often it was started
	HUPs     int // how often it was told to read its files again

	log  *os.File // what the program writes
	told int64    // how much of it the journal has told
}

// NGINX returns a machine with nginx, which ends with the test.
func NGINX(t testing.TB, conf string) *Machine {
	return run(t, &Machine{
		argv:   []string{"nginx", "-g", "daemon off; master_process on;", "-c", conf},
		check:  []string{"nginx", "-t", "-q", "-c", conf},
		reload: []string{"nginx", "-c", conf, "-s", "reload"},
	})
}

// DNSMasq returns a machine with dnsmasq, which ends with the test.
func DNSMasq(t testing.TB, conf string) *Machine {
	dir := t.TempDir()
	return run(t, &Machine{argv: []string{
		"dnsmasq", "--keep-in-foreground", "--user=root", "--log-facility=-",
		"--pid-file=" + filepath.Join(dir, "pid"), "--dhcp-leasefile=" + filepath.Join(dir, "leases"), "-C", conf,
	}})
}

func run(t testing.TB, m *Machine) *Machine {
	t.Helper()
	var err error
	m.log, err = os.OpenFile(filepath.Join(t.TempDir(), "log"), os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		m.Stop()
		_ = m.log.Close()
	})
	return m
}

// Log is the file that the program writes its log to.
func (m *Machine) Log() string { return m.log.Name() }

// Journal returns what was logged since it was called last, whatever its
// priority.
func (m *Machine) Journal(context.Context, string, string, time.Time) []string {
	content, _ := io.ReadAll(io.NewSectionReader(m.log, m.told, 1<<20))
	m.told += int64(len(content))
	var lines []string
	for line := range strings.Lines(string(content)) {
		_, message, _ := strings.Cut(strings.TrimSpace(line), ": ") // without the program's name
		lines = append(lines, message)
	}
	return lines
}

func (m *Machine) alive() bool {
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

// ActiveState is systemd's word for whether the program runs.
func (m *Machine) ActiveState(context.Context, string) (string, error) {
	if m.alive() {
		return "active", nil
	}
	return "failed", nil
}

// LoadState is that of a unit that is there.
func (m *Machine) LoadState(context.Context, string) (string, error) { return "loaded", nil }

// MainProcess is the program that runs, if one does.
func (m *Machine) MainProcess(context.Context, string) (systemd.Process, error) {
	if !m.alive() {
		return systemd.Process{}, nil
	}
	return systemd.Process{PID: m.process.Process.Pid, Started: m.started}, nil
}

// ReloadOrRestart reloads the program, or starts it if it does not run.
func (m *Machine) ReloadOrRestart(ctx context.Context, unit string) error {
	if !m.alive() {
		return m.Restart(ctx, unit)
	}
	return m.run(ctx, m.reload)
}

// Restart returns when the program runs, or has ended at once.
func (m *Machine) Restart(ctx context.Context, _ string) error {
	m.Restarts++
	m.Stop()
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

// HUP signals the program.
func (m *Machine) HUP(context.Context, string) error {
	m.HUPs++
	return m.process.Process.Signal(syscall.SIGHUP)
}

func (m *Machine) run(ctx context.Context, argv []string) error {
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

// Stop ends the program.
func (m *Machine) Stop() {
	if m.alive() {
		_ = m.process.Process.Signal(syscall.SIGTERM)
		<-m.ended
	}
}

// PID returns the program's process id, or 0.
func (m *Machine) PID() int {
	if !m.alive() {
		return 0
	}
	return m.process.Process.Pid
}
