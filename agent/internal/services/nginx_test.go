package services

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"opensource.internal/agent/checkin"
	"opensource.internal/agent/internal/apply"
	"opensource.internal/agent/internal/services/servicestest"
	"opensource.internal/agent/render"
)

// webSite is a folder with the files of a real nginx.
type webSite struct {
	dir     string
	machine *servicestest.Machine
	service apply.Service
	engine  *apply.Engine
}

func newWebSite(t *testing.T) *webSite {
	t.Helper()
	servicestest.Need(t, "nginx")
	dir := t.TempDir()
	must(t, os.Chmod(dir, 0o755))
	must(t, os.Mkdir(filepath.Join(dir, "conf.d"), 0o755))
	conf := filepath.Join(dir, "nginx.conf")
	site := &webSite{dir: dir, machine: servicestest.NGINX(t, conf)}
	site.service = NGINX(site.machine, render.Paths{
		NGINXConf: conf, NGINXPid: filepath.Join(dir, "run/nginx.pid"),
		NGINXErrorLog: filepath.Join(dir, "log/error.log"), NGINXLog: filepath.Join(dir, "log/access.log"),
		AuthCache: filepath.Join(dir, "run/cache"),
	}).Service
	site.service.Steady = 100 * time.Millisecond
	site.engine = &apply.Engine{Reload: true, Log: slog.New(slog.DiscardHandler)}
	return site
}

func (s *webSite) conf() string { return filepath.Join(s.dir, "nginx.conf") }

// wanted is a configuration with additional lines in its http block.
func (s *webSite) wanted(lines string) render.Result {
	revision := fmt.Sprintf("%x", sha256.Sum256([]byte(lines)))
	content := fmt.Sprintf(`worker_processes 1;
user root;
pid run/nginx.pid;
error_log log/error.log;
events {}
http {
    access_log off;
    include conf.d/*.conf;
    server {
        listen 80 default_server;
        location = %s { return 200 %s; }
    }
    %s
}
`, render.RevisionPath, revision, lines)
	for _, relative := range []string{"run/nginx.pid", "log/error.log"} {
		content = strings.ReplaceAll(content, relative, filepath.Join(s.dir, relative))
	}
	return render.Result{Revision: revision, Files: []render.File{{Path: s.conf(), Content: []byte(content), Mode: 0o644}}}
}

func (s *webSite) apply(t *testing.T, result render.Result) apply.Report {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	return s.engine.Apply(ctx, s.service, result, nil)
}

// check wants the result in the file and in the running nginx.
func (s *webSite) check(t *testing.T, result render.Result) {
	t.Helper()
	if got := read(t, s.conf()); got != string(result.Files[0].Content) {
		t.Errorf("nginx.conf holds %s", got)
	}
	wantLoaded(t, s.service, result)
	entries, err := filepath.Glob(filepath.Join(s.dir, ".*"))
	must(t, err)
	if len(entries) != 0 {
		t.Errorf("left behind: %v", entries)
	}
}

func want(t *testing.T, report apply.Report, outcome checkin.Outcome, words ...string) {
	t.Helper()
	if report.Outcome != outcome {
		t.Errorf("got %s, want %s: %s", report.Outcome, outcome, report.Message)
	}
	for _, word := range words {
		if !strings.Contains(report.Message, word) {
			t.Errorf("the message does not say %q: %s", word, report.Message)
		}
	}
}

// wantLoaded wants the running process to have loaded the result, or to do so
// soon: after a rollback nobody has waited for it.
func wantLoaded(t *testing.T, service apply.Service, result render.Result) {
	t.Helper()
	if err := poll(t.Context(), 5*time.Second, 0, func(ctx context.Context) error {
		if !service.Loaded(ctx, result) {
			return errors.New(service.Name + " does not run what is wanted")
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

func TestNGINXAppliesAndReloads(t *testing.T) {
	s := newWebSite(t)
	first, second := s.wanted(""), s.wanted("# second")
	want(t, s.apply(t, first), checkin.OutcomeApplied)
	s.check(t, first)
	pid := s.machine.PID()

	want(t, s.apply(t, second), checkin.OutcomeApplied)
	s.check(t, second)
	if s.machine.PID() != pid || s.machine.Restarts != 1 {
		t.Error("nginx was restarted instead of reloaded")
	}
	want(t, s.apply(t, second), checkin.OutcomeUnchanged)
}

// nginx -t passes and the reload succeeds, but nginx keeps what it has.
func TestNGINXPortHeldByAnotherProcess(t *testing.T) {
	s := newWebSite(t)
	good := s.wanted("")
	want(t, s.apply(t, good), checkin.OutcomeApplied)
	holder, err := net.Listen("tcp4", "0.0.0.0:9443")
	must(t, err)
	defer holder.Close()

	bad := s.wanted("server { listen 9443; }")
	report := s.apply(t, bad)
	want(t, report, checkin.OutcomeRolledBack, "bind() to 0.0.0.0:9443 failed", "still could not bind()", "keeps another configuration")
	if report.Fault == nil || len(report.Fault.Places) != 1 || report.Fault.Places[0].File != s.conf() ||
		!slices.Equal(report.Fault.Places[0].Lines, []int{13}) || !strings.HasPrefix(report.Fault.Places[0].Words, "bind() to 0.0.0.0:9443 failed (98: ") {
		t.Errorf("blamed is %+v", report.Fault)
	}
	if strings.Contains(report.Message, "not live within") {
		t.Errorf("nginx has given up, and was waited for all the same: %s", report.Message)
	}
	s.check(t, good)

	must(t, holder.Close())
	want(t, s.apply(t, bad), checkin.OutcomeApplied)
	s.check(t, bad)
}

// The reload succeeds, the new configuration is served, and then nginx dies of
// it.
func TestNGINXThatDiesSoonAfterTheProofIsRolledBack(t *testing.T) {
	s := newWebSite(t)
	good, bad := s.wanted(""), s.wanted("# deadly")
	want(t, s.apply(t, good), checkin.OutcomeApplied)
	s.service.Steady = 20 * time.Second // ends much sooner
	killed, pid := make(chan error), s.machine.PID()
	go func() {
		err := poll(t.Context(), 10*time.Second, 2*nginxHandover, func(ctx context.Context) error {
			if !s.service.Loaded(ctx, bad) {
				return errors.New("the new configuration was never served")
			}
			return nil
		})
		killed <- errors.Join(err, syscall.Kill(pid, syscall.SIGTERM))
	}()
	report := s.apply(t, bad)
	must(t, <-killed)
	want(t, report, checkin.OutcomeRolledBack, "it came alive and did not last: ", "s later nginx.service is failed")
	s.check(t, good)
}

func TestNGINXThatWasKilledIsStarted(t *testing.T) {
	s := newWebSite(t)
	good := s.wanted("")
	want(t, s.apply(t, good), checkin.OutcomeApplied)
	s.machine.Stop()
	want(t, s.apply(t, good), checkin.OutcomeApplied)
	s.check(t, good)
}

func TestNGINXRefuses(t *testing.T) {
	s := newWebSite(t)
	good := s.wanted("")
	want(t, s.apply(t, good), checkin.OutcomeApplied)

	report := s.apply(t, s.wanted("nonsense on;"))
	want(t, report, checkin.OutcomeRejected, `unknown directive "nonsense" in `+s.conf()+":13")
	if strings.Contains(report.Message, ".opensource-agent.") || strings.Contains(report.Message, "not managed") {
		t.Error(report.Message)
	}
	s.check(t, good)
	if again := s.apply(t, s.wanted("nonsense on;")); again.Message != report.Message {
		t.Errorf("the same fault is told as\n%s\nand then as\n%s", report.Message, again.Message)
	}

	// What the unit sets on its command line may not stand in the file too.
	twice := s.wanted("")
	twice.Files[0].Content = append([]byte("daemon on;\n"), twice.Files[0].Content...)
	want(t, s.apply(t, twice), checkin.OutcomeRejected, `"daemon" directive is duplicate`)
}

func TestNGINXFaultInADropIn(t *testing.T) {
	s := newWebSite(t)
	dropIn := filepath.Join(s.dir, "conf.d", "local.conf")
	must(t, os.WriteFile(dropIn, []byte("garbage;\n"), 0o644))
	want(t, s.apply(t, s.wanted("")), checkin.OutcomeRejected, "the fault is in "+dropIn+", which is not managed")
	if read(t, s.conf()) != "" {
		t.Error("the live file was written")
	}
}

func TestNGINXWithoutSystemd(t *testing.T) {
	s := newWebSite(t)
	s.service = NGINX(noBus{}, render.Paths{
		NGINXPid: filepath.Join(s.dir, "run/nginx.pid"), NGINXErrorLog: filepath.Join(s.dir, "log/error.log"),
		NGINXLog: filepath.Join(s.dir, "log/access.log"), AuthCache: filepath.Join(s.dir, "run/cache"),
	}).Service
	want(t, s.apply(t, s.wanted("")), checkin.OutcomeRejected, "could not be reloaded", "no connection to systemd")
	if read(t, s.conf()) != "" {
		t.Error("the live file was written")
	}
	s.engine.Reload = false
	want(t, s.apply(t, s.wanted("")), checkin.OutcomeApplied)
}

// Another web server on port 80, which answers everything.
func TestNGINXDoesNotTakeAnotherServerForProof(t *testing.T) {
	s := newWebSite(t)
	other := s.wanted("")
	other.Files[0].Content = []byte(strings.ReplaceAll(string(other.Files[0].Content), "return 200", "return 404"))
	must(t, os.WriteFile(s.conf(), other.Files[0].Content, 0o644))
	must(t, os.MkdirAll(filepath.Join(s.dir, "log"), 0o755))
	must(t, os.MkdirAll(filepath.Join(s.dir, "run"), 0o755))
	must(t, s.machine.Restart(t.Context(), ""))
	if s.service.Loaded(t.Context(), other) {
		t.Error("a 404 was taken for proof")
	}
}

func TestNGINXProofWaitsLongerWhereTheTestIsSlow(t *testing.T) {
	window := NGINX(noBus{}, render.Paths{}).Window
	for test, want := range map[time.Duration]time.Duration{
		time.Second: 5 * time.Second, 3 * time.Second: 9 * time.Second,
	} {
		if got := window(test); got != want {
			t.Errorf("%v: got %v, want %v", test, got, want)
		}
	}
}
