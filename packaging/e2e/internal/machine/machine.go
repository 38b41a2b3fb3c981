//go:build e2e

// Package machine boots Debian machines for tests: systemd as PID 1, real
// timers, real D-Bus, in a container on an overlay of a cached root.
package machine

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"opensource.internal/e2e/internal/sandbox"
	"opensource.internal/e2e/internal/wait"
)

// bootTimeout bounds the way to a booted system; it takes two seconds.
const bootTimeout = 90 * time.Second

// Options say how a machine differs from a freshly installed Debian.
type Options struct {
	Suite Suite
	// Namespace is the network namespace (below /run/netns) it lives in.
	Namespace string
	// Environment is what PID 1 gets, as from `docker run --env`.
	Environment []string
}

// Machine is a booted machine.
type Machine struct {
	Name string

	options Options
	folder  string // its root, before the boot
	leader  int    // its PID 1, as seen from here
	nspawn  *exec.Cmd
	ended   chan struct{} // closed when nspawn has ended
	output  *bytes.Buffer // the console
}

// Boot starts a machine and waits until systemd has started everything. It
// stops with the test.
func Boot(t testing.TB, name string, options Options) *Machine {
	t.Helper()
	m := &Machine{Name: name, options: options}
	if err := m.prepare(); err != nil {
		t.Fatalf("prepare machine %s: %v", name, err)
	}
	t.Cleanup(func() { _ = unix.Unmount(m.folder, unix.MNT_DETACH) })
	m.boot(t)
	t.Cleanup(m.stop)
	return m
}

// PowerCycle takes the machine's power away and boots it again.
func (m *Machine) PowerCycle(t testing.TB) {
	t.Helper()
	m.stop()
	m.boot(t)
}

func (m *Machine) boot(t testing.TB) {
	t.Helper()
	m.leader, m.ended, m.output = 0, make(chan struct{}), new(bytes.Buffer)
	if err := m.start(); err != nil {
		t.Fatalf("start machine %s: %v", m.Name, err)
	}
	wait.For(t, bootTimeout, m.Name+" to boot", m.booted)
}

// prepare lays an overlay over the suite's root, so that the root stays as it
// is, and gives the machine an identity.
func (m *Machine) prepare() error {
	lower, err := root(m.options.Suite)
	if err != nil {
		return err
	}
	base := filepath.Join(sandbox.Scratch, "machines", m.Name)
	upper, work := filepath.Join(base, "upper"), filepath.Join(base, "work")
	m.folder = filepath.Join(base, "root")
	for _, folder := range []string{upper, work, m.folder} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
	}
	layers := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", lower, upper, work)
	if err := unix.Mount("overlay", m.folder, "overlay", 0, layers); err != nil {
		return fmt.Errorf("mount overlay: %w", err)
	}
	id := make([]byte, 16)
	_, _ = rand.Read(id)
	for file, content := range map[string]string{
		"etc/machine-id":  hex.EncodeToString(id) + "\n",
		"etc/hostname":    m.Name + "\n",
		"etc/hosts":       "127.0.0.1 localhost " + m.Name + "\n",
		"etc/resolv.conf": "nameserver 198.51.100.1\n",
	} {
		if err := os.WriteFile(filepath.Join(m.folder, file), []byte(content), 0o644); err != nil {
			return err
		}
	}
	// It asks on the console for what is set above.
	return os.Symlink("/dev/null", filepath.Join(m.folder, "etc/systemd/system/systemd-firstboot.service"))
}

// start runs systemd-nspawn and finds the machine's PID 1.
func (m *Machine) start() error {
	group, err := sandbox.ControlGroup(m.Name)
	if err != nil {
		return fmt.Errorf("make control group: %w", err)
	}
	defer group.Close()

	args := []string{
		"--directory=" + m.folder, "--boot", "--machine=" + m.Name,
		"--network-namespace-path=/run/netns/" + m.options.Namespace,
		// Its network is its own; dnsmasq needs to be told so for DHCP.
		"--capability=CAP_NET_ADMIN",
		"--register=no", "--keep-unit", "--console=pipe", "--link-journal=no", "--resolv-conf=off", "--timezone=off",
	}
	for _, variable := range m.options.Environment {
		args = append(args, "--setenv="+variable)
	}
	m.nspawn = exec.Command("systemd-nspawn", args...)
	// Debian 13 needs cgroup v2 also where this machine still has both.
	m.nspawn.Env = append(os.Environ(), "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1")
	m.nspawn.Stdout, m.nspawn.Stderr = m.output, m.output
	m.nspawn.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(group.Fd())}
	if err := m.nspawn.Start(); err != nil {
		return err
	}
	go func() {
		_ = m.nspawn.Wait()
		close(m.ended)
	}()
	return nil
}

// booted asks systemd whether it has started everything.
func (m *Machine) booted() error {
	select {
	case <-m.ended:
		return fmt.Errorf("%w: the machine ended: %s", wait.ErrHopeless, m.output.String())
	default:
	}
	// Looked for anew each time: the first child only sets up the machine's
	// mounts, starts PID 1 and ends.
	leader, err := child(m.nspawn.Process.Pid)
	if err != nil {
		return err
	}
	m.leader = leader
	out, err := m.Try("systemctl", "is-system-running")
	switch state := strings.TrimSpace(out); state {
	case "running":
		return nil
	case "degraded":
		failed, _ := m.Try("systemctl", "--failed", "--no-legend")
		return fmt.Errorf("%w: failed units: %s", wait.ErrHopeless, failed)
	default:
		return fmt.Errorf("system is %q: %w", state, err)
	}
}

// child returns the only child of a process.
func child(pid int) (int, error) {
	list, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(list))
	if len(fields) != 1 {
		return 0, fmt.Errorf("process %d has %d children", pid, len(fields))
	}
	return strconv.Atoi(fields[0])
}

// stop kills the machine. Its PID 1 takes every process of it along.
func (m *Machine) stop() {
	if m.leader != 0 {
		_ = syscall.Kill(m.leader, syscall.SIGKILL)
	} else {
		_ = m.nspawn.Process.Kill()
	}
	select {
	case <-m.ended:
	case <-time.After(10 * time.Second):
		_ = m.nspawn.Process.Kill()
		<-m.ended
	}
}

// Command prepares a command inside the machine with a clean environment.
func (m *Machine) Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	enter := []string{
		"--target", strconv.Itoa(m.leader), "--all", "--",
		"env", "-i", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LANG=C.UTF-8",
		"DEBIAN_FRONTEND=noninteractive", name,
	}
	command := exec.CommandContext(ctx, "nsenter", append(enter, args...)...)
	// nsenter forks: its end alone would leave the command running.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	command.WaitDelay = time.Second
	return command
}

// commandTimeout bounds one command inside a machine.
const commandTimeout = 2 * time.Minute

// Try runs a command inside the machine and returns what it printed. The error
// is an *exec.ExitError if it ran and failed.
func (m *Machine) Try(name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), commandTimeout)
	defer cancel()
	out, err := m.Command(ctx, name, args...).CombinedOutput()
	return string(out), err
}

// Run runs a command inside the machine, which must succeed.
func (m *Machine) Run(t testing.TB, name string, args ...string) string {
	t.Helper()
	out, err := m.Try(name, args...)
	if err != nil {
		t.Fatalf("%s: %s %s: %v\n%s", m.Name, name, strings.Join(args, " "), err, out)
	}
	return out
}

// ExitCode runs a command inside the machine and returns its exit code and
// what it printed.
func (m *Machine) ExitCode(t testing.TB, name string, args ...string) (int, string) {
	t.Helper()
	out, err := m.Try(name, args...)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s: %s: %v", m.Name, name, err)
	}
	if exit != nil {
		return exit.ExitCode(), out
	}
	return 0, out
}

// Path returns where a file of the running machine is seen from here.
func (m *Machine) Path(path string) string {
	return filepath.Join("/proc", strconv.Itoa(m.leader), "root", path)
}

// Read returns the content of a file of the machine.
func (m *Machine) Read(t testing.TB, path string) string {
	t.Helper()
	content, err := os.ReadFile(m.Path(path))
	if err != nil {
		t.Fatalf("%s: read %s: %v", m.Name, path, err)
	}
	return string(content)
}

// Write puts a file into the machine, with its folders.
func (m *Machine) Write(t testing.TB, path, content string, mode fs.FileMode) {
	t.Helper()
	place := m.Path(path)
	if err := os.MkdirAll(filepath.Dir(place), 0o755); err != nil {
		t.Fatalf("%s: write %s: %v", m.Name, path, err)
	}
	if err := os.WriteFile(place, []byte(content), mode); err != nil {
		t.Fatalf("%s: write %s: %v", m.Name, path, err)
	}
	if err := os.Chmod(place, mode); err != nil {
		t.Fatalf("%s: write %s: %v", m.Name, path, err)
	}
}

// Copy puts a file of this machine into the other and returns its path there.
func (m *Machine) Copy(t testing.TB, from string) string {
	t.Helper()
	content, err := os.ReadFile(from)
	if err != nil {
		t.Fatalf("copy %s: %v", from, err)
	}
	to := "/root/" + filepath.Base(from)
	m.Write(t, to, string(content), 0o644)
	return to
}

// Install installs packages from this machine's files, as an administrator
// would with nobody there to answer questions.
func (m *Machine) Install(t testing.TB, debs ...string) string {
	t.Helper()
	args := []string{"--install"}
	for _, deb := range debs {
		args = append(args, m.Copy(t, deb))
	}
	return m.Run(t, "dpkg", args...)
}

// Journal returns what a unit logged since the boot.
func (m *Machine) Journal(unit string) string {
	out, _ := m.Try("journalctl", "--no-pager", "--boot", "--output=short-precise", "--unit", unit)
	return out
}

// Property returns a property of a unit, see systemctl(1), show.
func (m *Machine) Property(t testing.TB, unit, property string) string {
	t.Helper()
	return strings.TrimSpace(m.Run(t, "systemctl", "show", "--value", "--property", property, unit))
}

// Process finds the one process of the machine that runs a program, and returns
// its id as seen from here.
func (m *Machine) Process(program string) (int, error) {
	processes, err := filepath.Glob("/proc/[0-9]*/exe")
	if err != nil {
		return 0, err
	}
	inside, err := os.Readlink(m.processes(m.leader))
	if err != nil {
		return 0, err
	}
	for _, exe := range processes {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(exe)))
		if err != nil {
			return 0, err
		}
		runs, _ := os.Readlink(exe)
		if where, _ := os.Readlink(m.processes(pid)); runs == program && where == inside {
			return pid, nil
		}
	}
	return 0, os.ErrNotExist
}

// processes is the link to the namespace of a process's process numbers.
func (m *Machine) processes(pid int) string { return fmt.Sprintf("/proc/%d/ns/pid", pid) }
