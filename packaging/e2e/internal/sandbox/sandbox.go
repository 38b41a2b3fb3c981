//go:build e2e

// Package sandbox runs the tests of a package in namespaces of their own:
// mounts, network, processes. Whatever they mount, configure or start is gone
// when they end, however they end, and no address of theirs is ever seen by
// the machine they run on.
package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// inside marks the process that runs in the namespaces.
const inside = "E2E_SANDBOX"

// Scratch is a tmpfs for machines and network namespaces, seen only inside.
const Scratch = "/run"

func init() {
	// The signal for a dead parent comes when the thread that started the
	// child ends (prctl(2), PR_SET_PDEATHSIG): stay on the one that lives
	// as long as the process.
	runtime.LockOSThread()
}

// Run calls prepare, then runs this same program again inside, where tests is
// called. It returns the exit code of the tests.
func Run(prepare func() error, tests func() int) int {
	if os.Getenv(inside) != "" {
		if err := arrange(); err != nil {
			fmt.Fprintln(os.Stderr, "e2e: arrange the sandbox:", err)
			return 1
		}
		return tests()
	}
	if os.Geteuid() != 0 {
		fmt.Fprintln(os.Stderr, "e2e: these tests boot machines and need root")
		return 1
	}
	if err := prepare(); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	code, err := enter()
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e: enter the sandbox:", err)
	}
	return code
}

// enter starts this program again in new namespaces and waits for its end.
func enter() (int, error) {
	groups, err := newControlGroup()
	if err != nil {
		return 1, err
	}
	defer groups.remove()

	again := exec.Command("/proc/self/exe", os.Args[1:]...)
	again.Env = append(os.Environ(), inside+"="+groups.path)
	again.Stdin, again.Stdout, again.Stderr = os.Stdin, os.Stdout, os.Stderr
	again.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC,
		Pdeathsig:  syscall.SIGKILL,
	}
	if err := again.Start(); err != nil {
		return 1, err
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGQUIT)
	go func() {
		for s := range signals {
			// The child is the first process of its namespace and
			// ignores what it has no handler for; its death ends
			// everything in there.
			if s == syscall.SIGQUIT {
				_ = again.Process.Signal(s)
				continue
			}
			_ = again.Process.Kill()
		}
	}()
	err = again.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return max(exit.ExitCode(), 1), nil
	}
	return 0, err
}

// arrange sets up what the new namespaces lack: a /proc that shows them, a
// /run of their own and a loopback interface.
func arrange() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	if err := unix.Mount("tmpfs", Scratch, "tmpfs", 0, "mode=0755"); err != nil {
		return fmt.Errorf("mount %s: %w", Scratch, err)
	}
	if out, err := exec.Command("ip", "link", "set", "lo", "up").CombinedOutput(); err != nil {
		return fmt.Errorf("set lo up: %w: %s", err, out)
	}
	return nil
}

// controlGroup is the folder of the cgroup v2 hierarchy below which every
// machine gets a group of its own.
type controlGroup struct{ path string }

func newControlGroup() (controlGroup, error) {
	mount, err := cgroup2Mount()
	if err != nil {
		return controlGroup{}, err
	}
	sweep(mount + groupPrefix)
	group := controlGroup{mount + groupPrefix + strconv.Itoa(os.Getpid())}
	return group, os.Mkdir(group.path, 0o755)
}

const groupPrefix = "/opensource-e2e-"

// sweep removes the groups of runs that were killed, the only thing that can
// outlive one.
func sweep(prefix string) {
	groups, _ := filepath.Glob(prefix + "*")
	for _, group := range groups {
		stat, err := os.ReadFile("/proc/" + strings.TrimPrefix(group, prefix) + "/cmdline")
		if err != nil || len(stat) == 0 {
			controlGroup{group}.remove()
		}
	}
}

func cgroup2Mount() (string, error) {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(line); len(fields) > 2 && fields[2] == "cgroup2" {
			return fields[1], nil
		}
	}
	return "", errors.New("no cgroup2 file system is mounted")
}

// remove deletes the groups, which are empty once every process is gone.
func (g controlGroup) remove() {
	entries, _ := os.ReadDir(g.path)
	for _, entry := range entries {
		if entry.IsDir() {
			controlGroup{g.path + "/" + entry.Name()}.remove()
		}
	}
	_ = os.Remove(g.path)
}

// ControlGroup makes a cgroup for one machine and returns it open, to be
// handed to syscall.SysProcAttr.CgroupFD.
func ControlGroup(name string) (*os.File, error) {
	path := os.Getenv(inside) + "/" + name
	if err := os.Mkdir(path, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	return os.Open(path)
}
