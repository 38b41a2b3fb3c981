package servicestest

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

const insideVariable = "TEST_INSIDE_NAMESPACES"

// Main is a TestMain that runs the tests in a network, process and mount namespace of their
// own: real servers can listen on the real ports there, nothing of the machine
// is in their way, and none of them outlives the tests.
func Main(m *testing.M) {
	if os.Getenv(insideVariable) != "" {
		if err := exec.Command("ip", "link", "set", "lo", "up").Run(); err != nil {
			_ = os.Setenv(insideVariable, "no network: "+err.Error())
		}
		os.Exit(m.Run())
	}
	if os.Geteuid() != 0 {
		os.Exit(m.Run()) // the tests that need it are skipped
	}
	child := exec.Command(os.Args[0], os.Args[1:]...)
	child.Env = append(os.Environ(), insideVariable+"=yes")
	child.Stdin, child.Stdout, child.Stderr = os.Stdin, os.Stdout, os.Stderr
	child.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWNS,
		Pdeathsig:  syscall.SIGKILL,
	}
	err := child.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		os.Exit(exit.ExitCode())
	}
	if err != nil {
		panic(err)
	}
}

// Need skips a test where it has no network of its own, or its tool
// is missing.
func Need(t testing.TB, tools ...string) {
	t.Helper()
	if inside := os.Getenv(insideVariable); inside != "yes" {
		t.Skipf("NOT TESTED: needs root and network namespaces (%s)", inside)
	}
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("NOT TESTED: %s is not installed", tool)
		}
	}
}
