package pass

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"opensource.internal/agent/checkin"
)

func TestEditedFileIsRestoredAndTold(t *testing.T) {
	for _, away := range []bool{false, true} {
		t.Run(fmt.Sprintf("manager away %v", away), func(t *testing.T) {
			s := newSite(t)
			s.publish(lab())
			s.pass(Settled)
			s.take()
			want := s.read("etc/nginx/nginx.conf")
			s.write("etc/nginx/nginx.conf", want+"# edited by hand\n")
			if away {
				s.respond(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
				s.pass(ManagerAway)
				s.take()
				s.publish(lab())
				s.pass(Settled)
			} else {
				s.pass(Settled)
			}
			if s.read("etc/nginx/nginx.conf") != want {
				t.Error("the file was not restored")
			}
			requests, _ := s.take()
			found := false
			for _, r := range requests {
				for _, drift := range r.Services["nginx"].Drift {
					found = found || strings.HasSuffix(drift.Path, "/etc/nginx/nginx.conf") && strings.Contains(drift.Diff, "+# edited by hand") && len(drift.Diff) <= checkin.MaxDiff
				}
			}
			if !found {
				t.Errorf("the edit was not told: %+v", requests)
			}
			s.pass(Settled)
			requests, _ = s.take()
			if drift := last(t, requests).Services["nginx"].Drift; drift != nil {
				t.Errorf("told again: %+v", drift)
			}
		})
	}
}

// Somebody's work must not vanish without a word because a new snapshot came
// before it was found, as after a hold. What the snapshot changes is no edit.
func TestAnEditIsToldAlsoIfTheSnapshotHasChanged(t *testing.T) {
	for _, held := range []bool{false, true} {
		t.Run(fmt.Sprintf("held %v", held), func(t *testing.T) {
			s := newSite(t)
			s.publish(lab())
			s.pass(Settled)
			if held {
				s.hold("nginx")
			}
			s.write("etc/nginx/nginx.conf", s.read("etc/nginx/nginx.conf")+"# edited by hand\n")
			s.publish(changed())
			if held {
				s.pass(Settled)
				s.release("nginx")
			}
			s.take()
			s.pass(Settled)
			requests, _ := s.take()
			drift := last(t, requests).Services["nginx"].Drift
			if len(drift) != 1 || !strings.Contains(drift[0].Diff, "\n+# edited by hand") || strings.Contains(drift[0].Diff, "later.example.com") {
				t.Errorf("told is %+v", drift)
			}
			if drift := last(t, requests).Services["dnsmasq"].Drift; drift != nil {
				t.Errorf("of dnsmasq, whose files nobody has edited, it is told %+v", drift)
			}
		})
	}
}

// Where it cannot be said any more what was in force, the edit is told beside
// what is wanted now.
func TestAnEditOfWhatCannotBeRenderedAgain(t *testing.T) {
	s := newSite(t)
	s.publish(lab())
	s.pass(Settled)
	s.write("etc/nginx/nginx.conf", "edited\n")
	s.write("var/lib/opensource-agent/running-nginx.json", "damaged")
	s.publish(changed())
	s.take()
	s.pass(Settled)
	requests, _ := s.take()
	if drift := last(t, requests).Services["nginx"].Drift; len(drift) != 1 || !strings.Contains(drift[0].Diff, "\n-") {
		t.Errorf("told is %+v", drift)
	}
}

// Whatever was done to a file, what is told of it is short, readable, and says
// which line was in whose version.
func TestTheDiffOfAnEdit(t *testing.T) {
	const conf = "etc/nginx/nginx.conf"
	for name, test := range map[string]struct {
		edit func(s *site, managed string)
		says []string
	}{
		"one line": {func(s *site, managed string) {
			s.write(conf, strings.Replace(managed, "server_tokens off;", "server_tokens on;", 1))
		}, []string{"--- managed\n+++ found\n@@ ", "\n-    server_tokens off;\n+    server_tokens on;\n"}},
		"removed": {func(s *site, managed string) {
			if err := os.Remove(filepath.Join(s.root, conf)); err != nil {
				s.t.Fatal(err)
			}
		}, []string{"--- managed\n+++ found\n@@ -1,", "\n[cut]"}},
		"emptied": {func(s *site, managed string) { s.write(conf, "") }, []string{"\n[cut]"}},
		"binary": {func(s *site, managed string) {
			s.write(conf, "\xff\xfe\x00\n"+managed)
		}, []string{"+\uFFFD\x00\n"}},
		"huge": {func(s *site, managed string) {
			s.write(conf, strings.Repeat("# more and more\n", 100_000)+managed)
		}, []string{"+# more and more\n", "\n[cut]"}},
		// Read to the end, it would take all memory or all time of the pass.
		"larger than the memory": {func(s *site, _ string) {
			if err := os.Truncate(filepath.Join(s.root, conf), 1<<37); err != nil {
				s.t.Fatal(err)
			}
		}, []string{"\n[cut]"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.publish(lab())
			s.pass(Settled)
			managed := s.read(conf)
			test.edit(s, managed)
			s.take()
			s.pass(Settled)
			if s.read(conf) != managed {
				t.Error("the file was not restored")
			}
			requests, _ := s.take()
			drift := last(t, requests).Services["nginx"].Drift
			if len(drift) != 1 || drift[0].Path != filepath.Join(s.root, conf) {
				t.Fatalf("told is %+v", drift)
			}
			diff := drift[0].Diff
			if len(diff) > checkin.MaxDiff || !utf8.ValidString(diff) {
				t.Errorf("%d bytes, valid UTF-8: %v", len(diff), utf8.ValidString(diff))
			}
			for _, want := range test.says {
				if !strings.Contains(diff, want) {
					t.Errorf("it does not say %q:\n%s", want, diff)
				}
			}
		})
	}
}

// A second tool that writes the same file must not make the report grow until
// no manager takes it.
func TestDriftThatIsNotToldYetDoesNotPileUp(t *testing.T) {
	s := newSite(t)
	s.publish(lab())
	s.pass(Settled)
	s.respond(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	for i := range 3 {
		for _, path := range []string{"etc/nginx/nginx.conf", "etc/dnsmasq.conf"} {
			s.write(path, s.read(path)+fmt.Sprintf("# other tool %d\n", i))
		}
		s.pass(ManagerAway)
	}
	s.take()
	s.publish(lab())
	s.pass(Settled)
	requests, _ := s.take()
	for name, service := range requests[0].Services {
		if len(service.Drift) != 1 || !strings.Contains(service.Drift[0].Diff, "# other tool 2") {
			t.Errorf("%s: %d edits are told, want the latest: %+v", name, len(service.Drift), service.Drift)
		}
	}
}

// A run that was killed while it undid an edit has left the file as it should
// be; what the process has loaded is another matter.
func TestARunKilledWhileItRepairedIsMadeGood(t *testing.T) {
	s := newSite(t)
	s.publish(lab())
	s.pass(Settled)
	kept := "etc/nginx/.nginx.conf.opensource-agent.old"
	s.write(kept, "edited by hand")
	s.take()
	s.pass(Settled)
	requests, _ := s.take()
	if r := last(t, requests).Services["nginx"]; r.Outcome != checkin.OutcomeApplied || len(requests) != 2 {
		t.Errorf("after %d check-ins nginx: %+v", len(requests), r)
	}
	if _, err := os.Stat(filepath.Join(s.root, kept)); !os.IsNotExist(err) {
		t.Errorf("the version before is kept still: %v", err)
	}
}

func TestAPipeInAFilesPlaceDoesNotKeepThePass(t *testing.T) {
	s := newSite(t)
	conf := filepath.Join(s.root, "etc/nginx/nginx.conf")
	put := func() {
		if err := os.MkdirAll(filepath.Dir(conf), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(conf); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(conf, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	check := func() {
		s.pass(Rejected)
		requests, _ := s.take()
		services := last(t, requests).Services
		if r := services["nginx"]; r.Outcome != checkin.OutcomeRejected || !strings.Contains(r.Message, "not a regular file") {
			t.Errorf("nginx: %+v", r)
		}
		if r := services["dnsmasq"]; r.LastApply != checkin.ApplySuccess {
			t.Errorf("dnsmasq: %+v", r)
		}
	}
	s.publish(lab())
	put()
	check()
	if err := os.Remove(conf); err != nil {
		t.Fatal(err)
	}
	s.byHand = true // does not wait for the next try
	s.pass(Settled)
	put()
	check()
}

// What was not tried because the pass was told to end has not failed.
func TestAPassThatIsStoppedReportsNoFault(t *testing.T) {
	s := newSite(t)
	s.publish(lab())
	s.pass(Settled)
	ctx, stop := context.WithCancel(t.Context())
	s.respond(func(w http.ResponseWriter, _ *http.Request) {
		stop()
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	s.write("etc/dnsmasq.conf", "# edited by hand\n")
	if code := Run(ctx, s.options()); code != ManagerAway {
		t.Errorf("exit code %d", code)
	}
	s.take()
	s.publish(lab())
	s.pass(Settled)
	requests, _ := s.take()
	if r := requests[0].Services["dnsmasq"]; r.LastApply != checkin.ApplySuccess {
		t.Errorf("dnsmasq: %+v", r)
	}
	if strings.Contains(s.read("etc/dnsmasq.conf"), "by hand") {
		t.Error("the next pass did not repair the file")
	}
}
