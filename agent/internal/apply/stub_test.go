package apply

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"opensource.internal/agent/render"
)

// site is a folder with the files of a service, and a stand-in for its
// process: it reads the main file when it is restarted and the side file
// always, as dnsmasq does, and shows only the revision in the side file. What
// it has loaded is kept in a file, so that it outlives a killed test process.
type site struct {
	dir      string
	records  string // the engine's folder of that name
	sideName string // of the side file

	notInstalled, notReady, testFault error
	testTime                          time.Duration // the window after a test
	least                             time.Duration // the window at least
	window, steady                    time.Duration // those of the last activation
	reloadFaults                      []error       // of the next activations, nil for none
	refuses                           string        // a revision that it never shows
	unstage                           string        // loses what is staged for this file
	tests, activations                int
}

type loaded struct{ Main, Side string }

func newSite(t *testing.T) *site {
	t.Helper()
	return &site{dir: t.TempDir(), records: t.TempDir(), sideName: "hosts"}
}

// engine applies to the site.
func (s *site) engine() *Engine {
	return &Engine{Reload: true, Records: s.records, Log: slog.New(slog.DiscardHandler)}
}

func (s *site) side() string    { return filepath.Join(s.dir, s.sideName) }
func (s *site) main() string    { return filepath.Join(s.dir, "main.conf") }
func (s *site) process() string { return filepath.Join(s.dir, "process.json") }

// wanted is a result whose files are both named after the revision.
func (s *site) wanted(revision string) render.Result {
	return render.Result{
		Revision: revision,
		Files: []render.File{
			{Path: s.side(), Content: []byte(revision), Mode: 0o644},
			{Path: s.main(), Content: []byte("main " + revision), Mode: 0o644},
		},
	}
}

// runs sets up the site as running the revision.
func (s *site) runs(t *testing.T, revision string) {
	t.Helper()
	for _, file := range s.wanted(revision).Files {
		must(t, os.WriteFile(file.Path, file.Content, 0o644))
	}
	s.load(true)
}

func (s *site) running() loaded {
	var state loaded
	content, _ := os.ReadFile(s.process())
	_ = json.Unmarshal(content, &state)
	return state
}

func (s *site) load(main bool) {
	state := s.running()
	side, _ := os.ReadFile(s.side())
	state.Side = string(side)
	if main {
		content, _ := os.ReadFile(s.main())
		state.Main = string(content)
	}
	content, _ := json.Marshal(state)
	_ = os.WriteFile(s.process(), content, 0o644)
}

func (s *site) service() Service {
	return Service{
		Name:      "stub",
		Unit:      "stub.service",
		Installed: func() error { return s.notInstalled },
		Ready:     func(context.Context) error { return s.notReady },
		Test: func(_ context.Context, candidate, live string) error {
			s.tests++
			if beside, err := filepath.EvalSymlinks(live); err == nil && candidate != live && filepath.Dir(candidate) != filepath.Dir(beside) {
				return errors.New("the candidate does not lie beside the live file")
			}
			if s.unstage != "" {
				staged, _ := filepath.Glob(filepath.Join(s.dir, "."+filepath.Base(s.unstage)+".*"))
				for _, name := range staged {
					_ = os.Remove(name)
				}
			}
			return s.testFault
		},
		Loaded: func(_ context.Context, result render.Result) bool { return s.running().Side == result.Revision },
		Window: func(test time.Duration) time.Duration {
			if test == 0 {
				return s.least
			}
			return s.testTime
		},
		Activate: func(ctx context.Context, a Activation) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			s.activations++
			s.window, s.steady = a.Window, a.Steady
			var fault error
			if len(s.reloadFaults) > 0 {
				fault, s.reloadFaults = s.reloadFaults[0], s.reloadFaults[1:]
			}
			if fault != nil {
				return fault
			}
			if side, _ := os.ReadFile(s.side()); s.refuses != "" && string(side) == s.refuses {
				return errors.New("still could not bind()")
			}
			s.load(a.Main)
			if a.Revision != "" && s.running().Side != a.Revision {
				return errors.New("another revision is in force")
			}
			return nil
		},
	}
}

// check wants both files and the process at the revision, and no other file
// left behind.
func (s *site) check(t *testing.T, revision string) {
	t.Helper()
	for _, file := range s.wanted(revision).Files {
		got, err := os.ReadFile(file.Path)
		must(t, err)
		if string(got) != string(file.Content) {
			t.Errorf("%s holds %q, want %q", file.Path, got, file.Content)
		}
	}
	if diff := cmp.Diff(loaded{"main " + revision, revision}, s.running()); diff != "" {
		t.Errorf("the process runs something else: %s", diff)
	}
	s.checkClean(t)
}

func (s *site) checkClean(t *testing.T) {
	t.Helper()
	must(t, filepath.WalkDir(s.dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(entry.Name(), ".") {
			t.Errorf("left behind: %s", path)
		}
		return err
	}))
	records, err := os.ReadDir(s.records)
	must(t, err)
	for _, record := range records {
		t.Errorf("record left behind: %s", record.Name())
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
