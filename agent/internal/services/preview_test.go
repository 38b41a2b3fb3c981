package services

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"opensource.internal/agent/checkin"
	"opensource.internal/agent/internal/apply"
	"opensource.internal/agent/render"
)

// traces is every file below a folder with its content and the times of its
// changes: the same twice means that nothing was touched.
func traces(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	must(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		must(t, err)
		stat := info.Sys().(*syscall.Stat_t)
		found[path] = fmt.Sprintf("%v %d %d %d", info.Mode(), stat.Ino, stat.Mtim.Nano(), stat.Ctim.Nano())
		if info.Mode().IsRegular() {
			found[path] += " " + read(t, path)
		}
		return nil
	}))
	return found
}

// untouched runs do and wants no trace of it below the folder.
func untouched(t *testing.T, do func(), dir string) {
	t.Helper()
	before := traces(t, dir)
	do()
	if diff := cmp.Diff(before, traces(t, dir)); diff != "" {
		t.Errorf("%s was touched (-before +after):\n%s", dir, diff)
	}
}

// previews returns what would be done.
func previews(t *testing.T, service apply.Service, engine apply.Engine, result render.Result) apply.Previewed {
	t.Helper()
	engine.Preview = apply.NewPreview(t.TempDir())
	report := engine.Apply(t.Context(), service, result, nil)
	previewed, found := engine.Preview.Of(service.Name)
	if diff := cmp.Diff(report, previewed.Report); !found || diff != "" {
		t.Errorf("found %v, report (-returned +noted):\n%s", found, diff)
	}
	return previewed
}

func TestNGINXPreviewTouchesNothing(t *testing.T) {
	s := newWebSite(t)
	must(t, os.WriteFile(filepath.Join(s.dir, "conf.d", "local.conf"), []byte("server { listen 8081; include shared; }\n"), 0o644))
	must(t, os.WriteFile(filepath.Join(s.dir, "shared"), []byte("return 204;\n"), 0o644))
	good := s.wanted("")
	want(t, s.apply(t, good), checkin.OutcomeApplied)
	process := s.machine.PID()

	for name, test := range map[string]struct {
		result  render.Result
		outcome checkin.Outcome
		says    string
		action  string
		changed bool
	}{
		"nothing":     {good, checkin.OutcomeUnchanged, "", "", false},
		"a change":    {s.wanted("# another"), checkin.OutcomeApplied, "", "reload", true},
		"a bad one":   {s.wanted("nonsense on;"), checkin.OutcomeRejected, `unknown directive "nonsense" in ` + s.conf() + ":13", "", true},
		"a bad place": {s.wanted("access_log /nonexistent/log;"), checkin.OutcomeRejected, `"/nonexistent/log" failed`, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			untouched(t, func() {
				got := previews(t, s.service, *s.engine, test.result)
				want(t, got.Report, test.outcome, test.says)
				if got.Action != test.action || (len(got.Report.Changed) == 1) != test.changed || strings.Contains(got.Report.Message, "/beside/") {
					t.Errorf("got %+v", got)
				}
			}, s.dir)
		})
	}
	s.check(t, good)
	if s.machine.PID() != process {
		t.Error("nginx is another process")
	}

	// A fault beyond a relative include, in a file that is not managed.
	must(t, os.WriteFile(filepath.Join(s.dir, "shared"), []byte("garbage;\n"), 0o644))
	want(t, previews(t, s.service, *s.engine, s.wanted("# another")).Report, checkin.OutcomeRejected, "the fault is in "+filepath.Join(s.dir, "shared")+",")

	s.machine.Stop()
	must(t, os.WriteFile(filepath.Join(s.dir, "shared"), []byte("return 204;\n"), 0o644))
	untouched(t, func() { // there is no empty pid file either
		if got := previews(t, s.service, *s.engine, good); got.Action != "start" || got.Report.Outcome != checkin.OutcomeApplied {
			t.Errorf("got %+v", got)
		}
	}, s.dir)
}

func TestDNSMasqPreviewTouchesNothing(t *testing.T) {
	s := newNameSite(t)
	first := s.wanted("", "")
	want(t, s.apply(t, first), checkin.OutcomeApplied)
	for action, result := range map[string]render.Result{
		"": first, "SIGHUP": s.wanted("", "192.0.2.7 web.lab.internal"), "restart": s.wanted("domain-needed", ""),
	} {
		untouched(t, func() {
			if got := previews(t, s.dnsmasq.service(), *s.engine, result); got.Action != action {
				t.Errorf("got %+v, want %q", got, action)
			}
		}, s.dir)
	}
	untouched(t, func() {
		got := previews(t, s.dnsmasq.service(), *s.engine, s.wanted("garbage", ""))
		want(t, got.Report, checkin.OutcomeRejected, "at line 6 of "+s.conf())
	}, s.dir)
	s.check(t, first)
	if got := s.counts(); got != [2]int{1, 0} {
		t.Errorf("restarts and signals: %v", got)
	}
}
