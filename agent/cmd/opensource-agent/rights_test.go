package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"opensource.internal/agent/internal/pass"
)

const rootOfNobody = "TEST_ROOT_OF_NOBODY"

// asNobody runs the calling test once more as a user who may not read the state
// of the host below the folder that is returned there, nor what is named.
func asNobody(t *testing.T, unread ...string) (root string, inside bool) {
	t.Helper()
	if root = os.Getenv(rootOfNobody); root != "" {
		return root, true
	}
	if os.Geteuid() != 0 {
		t.Skip("NOT TESTED: only root can become nobody")
	}
	root = siteRoot(t)
	for path, mode := range map[string]os.FileMode{
		"..": 0o755, "etc/opensource-agent/agent.env": 0o644, "var/lib/opensource-agent": 0o700,
	} {
		if err := os.Chmod(filepath.Join(root, path), mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range unread {
		if err := os.Chmod(filepath.Join(root, path), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	child := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=1m")
	child.Env = append(os.Environ(), rootOfNobody+"="+root)
	child.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}, Pdeathsig: syscall.SIGKILL}
	if out, err := child.CombinedOutput(); err != nil {
		t.Errorf("as nobody: %v\n%s", err, out)
	}
	return root, false
}

func TestWhoMayNotIsToldWhatToDo(t *testing.T) {
	root, inside := asNobody(t)
	if !inside {
		return
	}
	for _, args := range []string{
		"status", "run", "run --dry-run", "bundle --out -", "hold", "hold nginx", "release nginx", "release --all",
	} {
		var stdout, stderr bytes.Buffer
		code := runWith(append([]string{"--root", root}, strings.Fields(args)...), nil, &stdout, &stderr)
		words := stderr.String()
		if code != pass.Usage || stdout.Len() > 0 || !strings.Contains(words, "permission denied: run it as root (sudo opensource-agent") ||
			strings.Count(words, root) != 1 {
			t.Errorf("%s: exit status %d, %s%s", args, code, stdout.String(), words)
		}
	}
}

// What is not set elsewhere may well be set in a file that may not be read.
func TestSettingsThatMayNotBeReadAreNotMissed(t *testing.T) {
	root, inside := asNobody(t, "etc/opensource-agent/agent.env")
	if !inside {
		return
	}
	for _, command := range []string{"run", "check"} {
		var stdout, stderr bytes.Buffer
		code := runWith([]string{command, "--root", root}, nil, &stdout, &stderr)
		words := stdout.String() + stderr.String()
		if code != pass.Usage || !strings.Contains(words, "agent.env: permission denied: run it as root") || strings.Contains(words, "not set") {
			t.Errorf("%s: exit status %d, %s", command, code, words)
		}
	}
}

func TestCheckSaysWhatItMayNotKnow(t *testing.T) {
	root, inside := asNobody(t)
	if !inside {
		return
	}
	var stdout, stderr bytes.Buffer
	runWith([]string{"check", "--root", root}, nil, &stdout, &stderr)
	for _, name := range []string{"in force", "volumes", "rendering", "certificates", "leftovers"} {
		if line := "WARN  " + name + ": not known: may not read " + root; !strings.Contains(stdout.String(), line) {
			t.Errorf("%q is not in:\n%s", line, stdout.String())
		}
		if strings.Contains(stdout.String(), "OK    "+name+": ") && name != "certificates" {
			t.Errorf("%s is said to be well:\n%s", name, stdout.String())
		}
	}
}
