//go:build e2e

// Package e2e tests the packages as an administrator meets them: installed
// into booted Debian machines, with real timers, D-Bus, nginx and dnsmasq.
package e2e

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"opensource.internal/e2e/internal/machine"
	"opensource.internal/e2e/internal/sandbox"
)

func TestMain(m *testing.M) {
	os.Exit(sandbox.Run(
		func() error { return machine.BuildRoots(machine.Debian13, machine.Debian12) },
		m.Run,
	))
}

// deb returns the package that packaging/build-deb made.
func deb(t testing.TB, name string) string {
	t.Helper()
	version, err := os.ReadFile("../VERSION")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("../../build", name+"_"+strings.TrimSpace(string(version))+"_"+runtime.GOARCH+".deb")
	if _, err := os.Stat(file); err != nil {
		t.Fatalf("%s is missing: run packaging/build-deb first", file)
	}
	return file
}
