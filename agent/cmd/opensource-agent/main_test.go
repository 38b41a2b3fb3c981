package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"opensource.internal/agent/internal/config"
	"opensource.internal/agent/internal/pass"
)

// runWith runs the agent with these arguments and this environment alone.
func runWith(args, environ []string, stdout, stderr io.Writer) pass.Code {
	return run(args, environment{stdin: strings.NewReader(""), stdout: stdout, stderr: stderr, environ: environ})
}

func TestRunWithoutAPass(t *testing.T) {
	root := t.TempDir()
	for _, test := range []struct {
		name           string
		args, env      []string
		want           pass.Code
		stdout, stderr string // a part of it; empty means empty
	}{
		{"version", []string{"--version"}, nil, pass.Settled, "opensource-agent " + version, ""},
		{"help", []string{"--help"}, nil, pass.Settled, "Exit status: 0 settled", ""},
		{"unknown flag", []string{"--nope"}, nil, pass.Usage, "", "--nope"},
		{"by its name", []string{"run", "--root", root}, nil, pass.Usage, "", config.File},
		{"flags before the name", []string{"--root", root, "run"}, nil, pass.Usage, "", config.File},
		{"help of a command", []string{"run", "--help"}, nil, pass.Settled, "Usage: opensource-agent run", ""},
		{"argument", []string{"now"}, nil, pass.Usage, "", "now"},
		{"not configured", []string{"--root", root}, nil, pass.Usage, "", config.File},
		{"mistakes", []string{"--root", root}, []string{"SITE_ID=1abc", "MANAGER_URL=manager"}, pass.Usage, "", "MANAGER_URL"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			if got := runWith(test.args, test.env, &stdout, &stderr); got != test.want {
				t.Errorf("exit status %d, want %d", got, test.want)
			}
			for _, stream := range []struct{ got, want string }{{stdout.String(), test.stdout}, {stderr.String(), test.stderr}} {
				if !strings.Contains(stream.got, stream.want) || stream.want == "" && stream.got != "" {
					t.Errorf("got %q, want %q", stream.got, stream.want)
				}
			}
		})
	}
}

func TestEveryCommandCanBeRun(t *testing.T) {
	parser, err := kong.New(&commandLine{})
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range parser.Model.Children {
		if _, ok := node.Target.Addr().Interface().(command); !ok {
			t.Errorf("%s is no command", node.Name)
		}
		if node.Help == "" || !strings.Contains(node.Detail, "opensource-agent") {
			t.Errorf("%s has no help, or no example in it", node.Name)
		}
	}
}

// Without arguments nothing is parsed.
func TestNoArgumentsAreAPassWithoutFlags(t *testing.T) {
	var line commandLine
	chosen, _ := line.parse(nil, environment{})
	if got, ok := chosen.(*runCommand); !ok || *got != *new(runCommand) || line.settings() != (config.Flags{}) {
		t.Errorf("parsed: %+v, %+v", chosen, line.settings())
	}
	var stderr bytes.Buffer
	bySystemd := "SYSTEMD_EXEC_PID=" + strconv.Itoa(os.Getpid())
	if code := runWith(nil, []string{bySystemd}, &bytes.Buffer{}, &stderr); code != pass.Usage || !strings.Contains(stderr.String(), config.File) {
		t.Errorf("exit status %d: %s", code, stderr.String())
	}
}

func TestMistakesAreALineEach(t *testing.T) {
	var stderr bytes.Buffer
	runWith([]string{"--root", t.TempDir()}, []string{"SITE_ID=1abc", "MANAGER_URL=manager", "LOG_LEVEL=loud"}, &bytes.Buffer{}, &stderr)
	if lines := strings.Count(stderr.String(), "opensource-agent: "); lines != 3 || strings.Count(stderr.String(), "\n") != 3 {
		t.Errorf("got %q, want three lines", stderr.String())
	}
}

// The key must reach the manager, and nothing else.
func TestRunSendsTheKeyAndNeverShowsIt(t *testing.T) {
	const key = `se#cr$et"=x`
	var got string
	manager := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Get("Authorization")
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(`{"error":{"code":"unauthorized","message":"the API key is not valid"}}`))
	}))
	defer manager.Close()
	root := t.TempDir()
	var stdout, stderr bytes.Buffer
	code := runWith([]string{"--root", root, "--log-level", "debug", "--manager-url", manager.URL}, []string{"SITE_ID=1", "API_KEY=" + key}, &stdout, &stderr)
	if code != pass.ManagerAway || got != "Bearer "+key {
		t.Errorf("exit status %d, sent %q", code, got)
	}
	if !strings.Contains(stderr.String(), "the API key is not valid") || strings.Contains(stderr.String()+stdout.String(), key) {
		t.Errorf("stderr: %s", stderr.String())
	}
}

// A removal is confirmed by a flag of the pass, with and without its name.
func TestConfirmRemovals(t *testing.T) {
	for _, args := range []string{"run --confirm-removals", "--confirm-removals", "run"} {
		var stderr bytes.Buffer
		root := t.TempDir()
		code := runWith(append([]string{"--root", root, "--manager-url", "http://127.0.0.1:1"}, strings.Fields(args)...), []string{"SITE_ID=1"}, io.Discard, &stderr)
		asked := strings.Contains(args, "confirm")
		if code != pass.ManagerAway || strings.Contains(stderr.String(), "there is nothing to confirm") != asked {
			t.Errorf("%s: exit status %d, %s", args, code, stderr.String())
		}
	}
}

func TestLinesForAPerson(t *testing.T) {
	var out bytes.Buffer
	log := logger(slog.LevelInfo, &out).With("service", "nginx")
	log.Debug("not shown")
	log.Info("configuration applied", "files", 1, "empty", "")
	log.Error("configuration not applied", "message", "first line\nsecond line\n", "outcome", "rejected")
	want := `configuration applied service=nginx files=1
error: configuration not applied service=nginx outcome=rejected
  message:
    first line
    second line
`
	if out.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", out.String(), want)
	}
}

func TestJournalMessageHoldsTheAttributes(t *testing.T) {
	inner := &lastRecord{}
	log := slog.New(&journalHandler{Handler: inner}).With("service", "nginx")
	log.Warn("record left out", "reason", "a\nb")
	if want := "record left out service=nginx\n  reason:\n    a\n    b"; inner.record.Message != want || inner.record.Level != slog.LevelWarn {
		t.Errorf("got %v %q, want %q", inner.record.Level, inner.record.Message, want)
	}
	if journalName("receivedEtag-x") != "RECEIVEDETAG_X" {
		t.Error(journalName("receivedEtag-x"))
	}
}

// lastRecord keeps the last record it was given.
type lastRecord struct{ record slog.Record }

func (l *lastRecord) Enabled(context.Context, slog.Level) bool { return true }

func (l *lastRecord) Handle(_ context.Context, r slog.Record) error {
	l.record = r
	return nil
}

func (l *lastRecord) WithAttrs([]slog.Attr) slog.Handler { return l }

func (l *lastRecord) WithGroup(string) slog.Handler { return l }
