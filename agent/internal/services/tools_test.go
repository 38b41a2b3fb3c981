package services

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"opensource.internal/agent/internal/systemd"
)

func TestUnitArguments(t *testing.T) {
	for name, test := range map[string]struct {
		content string
		want    []string
		fault   string
	}{
		"Debian's": {
			"#DNSMASQ_OPTS=\"--conf-file=/etc/dnsmasq.alt\"\nCONFIG_DIR=/etc/dnsmasq.d,.dpkg-dist,.dpkg-old,.dpkg-new\n",
			[]string{"-7", "/etc/dnsmasq.d,.dpkg-dist,.dpkg-old,.dpkg-new"},
			"",
		},
		"options": {
			"DNSMASQ_OPTS=\"--log-queries  -i eth0\" # more\nexport CONFIG_DIR=''\n",
			[]string{"--log-queries", "-i", "eth0"},
			"",
		},
		"the last one counts": {"CONFIG_DIR=/a\nCONFIG_DIR=/b\n", []string{"-7", "/b"}, ""},
		"another main file": {
			"DNSMASQ_OPTS='--conf-file=/etc/dnsmasq.alt'\n", nil,
			"DNSMASQ_OPTS in FILE has the option --conf-file=/etc/dnsmasq.alt: dnsmasq would not read",
		},
		"short option":            {"DNSMASQ_OPTS='-C/x'\n", nil, "has the option -C/x"},
		"left to the shell":       {"CONFIG_DIR=$DIR\nDNSMASQ_OPTS=\"$(id)\"\n", nil, ""},
		"broken quotes":           {"CONFIG_DIR=\"/a\nDNSMASQ_OPTS='x' y\n", nil, ""},
		"two words are a command": {"CONFIG_DIR=/a reboot\n", nil, ""},
		"empty":                   {"", nil, ""},
		"NUL bytes":               {strings.Repeat("\x00", 4096), nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "dnsmasq")
			must(t, os.WriteFile(path, []byte(test.content), 0o644))
			got, err := unitArguments(path)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			fault := strings.ReplaceAll(test.fault, "FILE", path)
			if (err == nil) != (fault == "") || err != nil && !strings.Contains(err.Error(), fault) {
				t.Errorf("got %v, want %q", err, fault)
			}
		})
	}
	if args, err := unitArguments(filepath.Join(t.TempDir(), "missing")); args != nil || err != nil {
		t.Errorf("missing file: %v, %v", args, err)
	}
}

func TestCommandSpeaksEnglish(t *testing.T) {
	tool := filepath.Join(t.TempDir(), "tool")
	must(t, os.WriteFile(tool, []byte("#!/bin/sh\necho LC_ALL=$LC_ALL LC_CTYPE=$LC_CTYPE LC_MESSAGES=$LC_MESSAGES LANG=$LANG\n"), 0o755))
	t.Setenv("LANG", "de_DE.UTF-8")
	for all, want := range map[string]string{
		"":            "LC_ALL= LC_CTYPE= LC_MESSAGES=C LANG=de_DE.UTF-8",
		"de_DE.UTF-8": "LC_ALL= LC_CTYPE=de_DE.UTF-8 LC_MESSAGES=C LANG=de_DE.UTF-8",
	} {
		t.Setenv("LC_ALL", all)
		if got, err := Output(t.Context(), time.Second, tool, "-t"); err != nil || got != want {
			t.Errorf("LC_ALL=%s: got %s, %v", all, got, err)
		}
	}
}

// The tool ignores SIGTERM and has a child that holds its output open.
func TestCommandThatHangsIsKilledWithItsChildren(t *testing.T) {
	dir := t.TempDir()
	tool := filepath.Join(dir, "hang")
	must(t, os.WriteFile(tool, []byte("#!/bin/sh\ntrap '' TERM\necho started\nsleep 60 &\nsleep 60\n"), 0o755))
	start := time.Now()
	err := command(t.Context(), 300*time.Millisecond, tool, "-t")
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "was stopped before it ended") {
		t.Errorf("got %v", err)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
}

// What has ended a tool comes after all its warnings.
func TestTheEndOfACommandsOutputIsKept(t *testing.T) {
	tool := filepath.Join(t.TempDir(), "chatty")
	must(t, os.WriteFile(tool, []byte("#!/bin/sh\nhead -c 1000000 /dev/zero | tr '\\0' x\necho the cause\nexit 1\n"), 0o755))
	err := command(t.Context(), 10*time.Second, tool, "-t")
	if err == nil || len(err.Error()) != maxOutput-1 || !strings.HasSuffix(err.Error(), "xthe cause") {
		t.Errorf("an error of %d bytes", len(err.Error()))
	}
}

func TestInstalledSaysWhatToInstall(t *testing.T) {
	err := installed("no-such-tool", "a-package")
	if err == nil || err.Error() != "no-such-tool is not installed: install the Debian package a-package" {
		t.Error(err)
	}
}

func TestNewLogLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "error.log")
	must(t, os.WriteFile(path, []byte("1 [emerg] 1#1: old\n"), 0o644))
	mark := markLog(path)
	log, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	must(t, err)
	defer log.Close()
	_, err = log.WriteString("2 [emerg] 1#1: bind() failed\n3 [error] 1#1: a request\n4 [emerg] 1#1: bind() failed\n5 [alert] 1#1: other\n" +
		"5 [alert] 1#1: setrlimit(RLIMIT_NOFILE, 65536) failed (1: Operation not permitted)\n")
	must(t, err)
	want := []string{"2 [emerg] 1#1: bind() failed", "5 [alert] 1#1: other"}
	if diff := cmp.Diff(want, mark.newLines(gravest)); diff != "" {
		t.Error(diff)
	}

	mark = markLog(path)
	_, err = log.WriteString(strings.Repeat("5 [error] 1#1: a request\n", 10_000) + "5 [emerg] 1#1: still could not bind()\n")
	must(t, err)
	if diff := cmp.Diff([]string{"5 [emerg] 1#1: still could not bind()"}, mark.newLines(givesUp)); diff != "" {
		t.Errorf("on a busy site: %s", diff)
	}

	must(t, os.Rename(path, path+".1"))
	must(t, os.WriteFile(path, []byte("6 [emerg] 1#1: the log is rotated, and longer again than it was when it was marked\n"), 0o644))
	if diff := cmp.Diff([]string{"6 [emerg] 1#1: the log is rotated, and longer again than it was when it was marked"}, mark.newLines(gravest)); diff != "" {
		t.Error(diff)
	}
	if lines := markLog(filepath.Join(t.TempDir(), "missing")).newLines(gravest); lines != nil {
		t.Errorf("missing log: %v", lines)
	}
}

// states answers with a load state.
type states struct {
	noBus
	load string
}

func (s states) LoadState(context.Context, string) (string, error) { return s.load, nil }

func TestReady(t *testing.T) {
	for load, want := range map[string]string{
		"loaded":    "",
		"not-found": "systemd has no unit nginx.service: install the Debian package nginx",
		"masked":    "unit nginx.service is masked: run systemctl unmask nginx.service",
	} {
		err := ready(t.Context(), states{load: load}, "nginx.service", "nginx")
		if (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("%s: got %v", load, err)
		}
	}
	if err := ready(t.Context(), noBus{}, "nginx.service", "nginx"); !errors.Is(err, systemd.ErrNoBus) {
		t.Errorf("no bus: got %v", err)
	}
}
