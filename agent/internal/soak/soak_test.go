// Package soak drives the real agent through random sequences of snapshots,
// faults and local edits, and asserts after every pass what must always hold:
//
//   - what nginx and dnsmasq are made to load was validated before;
//   - what the agent reports is what runs;
//   - what a change does not touch keeps its connections and its names;
//   - nothing is left over;
//   - once the faults are gone, at most two passes lead to exactly what the
//     last snapshot means.
//
// nginx, dnsmasq and the agent are the real programs, the agent as a process
// that can be killed. They live in namespaces of their own, with private
// copies of the folders they write to. Only two things are stand-ins: the
// manager, which is scripted, and systemd, of which there is a small one on a
// message bus that starts, reloads and stops the programs as Debian's units do.
//
// `make test` runs 50 sequences, `make soak SEQUENCES=N` as many as wanted. A
// failure prints what happened, the shortest sequence found that fails too, and
// how to run that again.
package soak

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Settings in the environment.
const (
	sequencesVariable = "SOAK_SEQUENCES" // how many sequences are run
	seedVariable      = "SOAK_SEED"      // the seed of the first worker; each further one has the next
	workersVariable   = "SOAK_WORKERS"   // how many work side by side
	passesVariable    = "SOAK_PASSES"    // how many passes are done in a row
)

// Passed from the test to its workers in their namespaces.
const (
	agentVariable = "SOAK_AGENT" // the agent's program
	dirVariable   = "SOAK_DIR"   // a folder on a real disk
)

// TestMain turns a worker's process into the tests inside its namespaces.
func TestMain(m *testing.M) {
	if os.Getenv(agentVariable) != "" {
		if err := enterWorld(); err != nil {
			fmt.Fprintln(os.Stderr, "prepare the namespace:", err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// TestSequences shares the sequences among workers that mostly wait. They are the
// same each time, unless a seed is given.
func TestSequences(t *testing.T) {
	if os.Getenv(agentVariable) != "" {
		runSequences(t)
		return
	}
	t.Parallel()
	needEverything(t)
	sequences, workers := setting(t, sequencesVariable, 50), setting(t, workersVariable, 4*runtime.NumCPU())
	seed := setting(t, seedVariable, 1)
	agent := buildAgent(t)
	started := time.Now()
	var running sync.WaitGroup
	for i := range workers {
		share := (sequences + i) / workers
		if share == 0 {
			continue
		}
		running.Go(func() {
			inWorld(t, agent, fmt.Sprintf("-rapid.checks=%d", share), fmt.Sprintf("-rapid.seed=%d", seed+i),
				"-rapid.steps=8", "-rapid.nofailfile", "-rapid.shrinktime=60s")
		})
	}
	running.Wait()
	t.Logf("%d sequences in %s, %s=%d %s=%d", sequences, time.Since(started).Round(time.Second), seedVariable, seed, workersVariable, workers)
}

// inWorld runs the calling test once more, in namespaces of their own.
func inWorld(t *testing.T, agent string, args ...string) {
	// The child is killed when the thread that started it ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	dir, err := os.MkdirTemp("/var/tmp", "soak")
	if err != nil {
		t.Error(err)
		return
	}
	defer os.RemoveAll(dir)
	var limit time.Duration // none
	if deadline, limited := t.Deadline(); limited {
		limit = time.Until(deadline) - 10*time.Second // so that it can still say where it was
	}
	// The shell is process 1: it reaps whatever loses its parent.
	args = append([]string{"-c", `"$@"; exit $?`, "sh", os.Args[0], "-test.run=^" + t.Name() + "$", "-test.v", fmt.Sprintf("-test.timeout=%s", limit)}, args...)
	worker := exec.CommandContext(t.Context(), "/bin/sh", args...)
	worker.Env = append(os.Environ(), agentVariable+"="+agent, dirVariable+"="+dir)
	worker.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWNS,
		Pdeathsig:  syscall.SIGKILL,
	}
	var out bytes.Buffer
	worker.Stdout, worker.Stderr = &out, &out
	if testing.Verbose() {
		worker.Stdout, worker.Stderr = os.Stdout, os.Stderr
	}
	if err := worker.Run(); err != nil {
		t.Errorf("%v\n%s", err, &out)
	}
}

// runSequences runs a worker's share, each in a world made anew.
func runSequences(t *testing.T) {
	w := newWorld(t)
	failed := false
	rapid.Check(t, func(rt *rapid.T) {
		s := w.begin(rt)
		defer func() {
			if !failed && rt.Failed() {
				failed = true
				fmt.Println("The first failure, whether or not it can be repeated:")
				fmt.Println(&s.transcript)
			}
			s.end()
		}()
		rt.Repeat(s.actions())
		s.converge()
	})
}

func buildAgent(t *testing.T) string {
	t.Helper()
	agent := filepath.Join(t.TempDir(), "opensource-agent")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", agent, "opensource.internal/agent/cmd/opensource-agent")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the agent: %v\n%s", err, out)
	}
	return agent
}

// needEverything skips the test where it cannot be run.
func needEverything(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("NOT TESTED: needs root, for namespaces")
	}
	for _, tool := range []string{nginxProgram, dnsmasqProgram, "dbus-daemon", "ip", "curl"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("NOT TESTED: %s is not installed", tool)
		}
	}
	if _, err := os.Stat("/etc/ssl/certs/ssl-cert-snakeoil.pem"); err != nil {
		t.Skip("NOT TESTED: the package ssl-cert is not installed")
	}
}

func setting(t *testing.T, name string, value int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return value
	}
	number, err := strconv.Atoi(text)
	if err != nil || number < 1 {
		t.Fatalf("%s=%q is not a number from 1 on", name, text)
	}
	return number
}

// run runs a command to its end; the error holds what it wrote.
func run(name string, args ...string) error {
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %v: %w\n%s", name, args, err, bytes.TrimSpace(out))
	}
	return nil
}

// must ends the test with the errors that are not nil.
func must(t rapid.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}
