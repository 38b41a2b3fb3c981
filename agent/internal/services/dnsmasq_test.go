package services

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"opensource.internal/agent/checkin"
	"opensource.internal/agent/internal/apply"
	"opensource.internal/agent/internal/services/servicestest"
	"opensource.internal/agent/render"
)

// nameSite is a folder with the files of a real dnsmasq.
type nameSite struct {
	dir     string
	machine *servicestest.Machine
	dnsmasq dnsmasq
	engine  *apply.Engine
}

func newNameSite(t *testing.T) *nameSite {
	t.Helper()
	servicestest.Need(t, "dnsmasq")
	s := &nameSite{dir: t.TempDir()}
	s.machine = servicestest.DNSMasq(t, s.conf())
	s.dnsmasq = dnsmasq{
		units: s.machine, server: "127.0.0.1:53", journal: s.machine.Journal,
		defaults: filepath.Join(s.dir, "default"),
	}
	s.engine = &apply.Engine{Reload: true, Log: slog.New(slog.DiscardHandler)}
	return s
}

func (s *nameSite) conf() string  { return filepath.Join(s.dir, "dnsmasq.conf") }
func (s *nameSite) hosts() string { return filepath.Join(s.dir, "hosts") }

// wanted has the given lines in the main file and in the hosts file.
func (s *nameSite) wanted(main, hosts string) render.Result {
	revision := fmt.Sprintf("%x", sha256.Sum256([]byte(main+"\x00"+hosts)))
	return render.Result{Revision: revision, Files: []render.File{
		{Path: s.hosts(), Content: fmt.Appendf(nil, "127.0.0.1 %s\n%s\n", render.DNSMasqSentinel(revision), hosts), Mode: 0o644},
		{Path: s.conf(), Content: fmt.Appendf(nil, "listen-address=127.0.0.1\nbind-interfaces\nno-resolv\nno-hosts\naddn-hosts=%s\n%s\n", s.hosts(), main), Mode: 0o644},
	}}
}

func (s *nameSite) apply(t *testing.T, result render.Result) apply.Report {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	service := s.dnsmasq.service()
	service.Steady = 100 * time.Millisecond
	return s.engine.Apply(ctx, service, result, nil)
}

// check wants the result in the files and in the running dnsmasq.
func (s *nameSite) check(t *testing.T, result render.Result) {
	t.Helper()
	for _, file := range result.Files {
		if got := read(t, file.Path); got != string(file.Content) {
			t.Errorf("%s holds %s", file.Path, got)
		}
	}
	wantLoaded(t, s.dnsmasq.service(), result)
}

// counts are the restarts and signals so far.
func (s *nameSite) counts() [2]int { return [2]int{s.machine.Restarts, s.machine.HUPs} }

func (s *nameSite) lookUp(name string) string {
	resolver := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, "127.0.0.1:53")
	}}
	addresses, err := resolver.LookupHost(context.Background(), name+".")
	if err != nil {
		return err.Error()
	}
	return addresses[0]
}

func TestDNSMasqRestartsOnlyForItsMainFile(t *testing.T) {
	s := newNameSite(t)
	first := s.wanted("", "")
	want(t, s.apply(t, first), checkin.OutcomeApplied)
	s.check(t, first)
	pid := s.machine.PID()

	side := s.wanted("", "192.0.2.7 web.lab.internal")
	want(t, s.apply(t, side), checkin.OutcomeApplied)
	s.check(t, side)
	if got := s.lookUp("web.lab.internal"); got != "192.0.2.7" {
		t.Errorf("web.lab.internal is %s", got)
	}
	if diff := cmp.Diff([2]int{1, 1}, s.counts()); diff != "" || s.machine.PID() != pid {
		t.Errorf("a changed side file: %s", diff)
	}

	both := s.wanted("local=/lab.internal/", "192.0.2.8 web.lab.internal")
	want(t, s.apply(t, both), checkin.OutcomeApplied)
	s.check(t, both)
	if diff := cmp.Diff([2]int{2, 1}, s.counts()); diff != "" || s.machine.PID() == pid {
		t.Errorf("both changed: %s", diff)
	}
	want(t, s.apply(t, both), checkin.OutcomeUnchanged)
}

// Somebody has edited the main file, restarted, and edited it back: the file
// is right, and the process is not.
func TestDNSMasqThatStartedBeforeItsFileIsRestarted(t *testing.T) {
	s := newNameSite(t)
	good := s.wanted("", "")
	want(t, s.apply(t, good), checkin.OutcomeApplied)
	must(t, os.WriteFile(s.conf(), good.Files[1].Content, 0o644))
	want(t, s.apply(t, good), checkin.OutcomeApplied)
	s.check(t, good)

	// A clock that was set back makes the file seem newer; that proves nothing.
	future := time.Now().Add(time.Hour)
	must(t, os.Chtimes(s.conf(), future, future))
	want(t, s.apply(t, good), checkin.OutcomeUnchanged)
	if diff := cmp.Diff([2]int{2, 0}, s.counts()); diff != "" {
		t.Error(diff)
	}
}

func TestDNSMasqThatWasKilledIsStarted(t *testing.T) {
	s := newNameSite(t)
	good := s.wanted("", "")
	want(t, s.apply(t, good), checkin.OutcomeApplied)
	s.machine.Stop()
	want(t, s.apply(t, s.wanted("", "192.0.2.7 web")), checkin.OutcomeApplied)
	if diff := cmp.Diff([2]int{2, 0}, s.counts()); diff != "" {
		t.Error(diff)
	}
}

func TestDNSMasqRefusesItsMainFile(t *testing.T) {
	s := newNameSite(t)
	good := s.wanted("", "")
	want(t, s.apply(t, good), checkin.OutcomeApplied)
	want(t, s.apply(t, s.wanted("nonsense", "")), checkin.OutcomeRejected, "bad option at line 6 of "+s.conf())
	s.check(t, good)
	if diff := cmp.Diff([2]int{1, 0}, s.counts()); diff != "" {
		t.Error(diff)
	}
}

// The test of dnsmasq does not read side files: its log tells.
func TestDNSMasqFindsFaultInASideFile(t *testing.T) {
	s := newNameSite(t)
	good := s.wanted("", "")
	want(t, s.apply(t, good), checkin.OutcomeApplied)
	report := s.apply(t, s.wanted("", "192.0.2.777 web"))
	want(t, report, checkin.OutcomeRolledBack, "dnsmasq found faults in its files", "bad address at "+s.hosts()+" line 2")
	if report.Fault == nil {
		t.Fatal("no fault is told")
	}
	if diff := cmp.Diff([]apply.Place{{File: s.hosts(), Lines: []int{2}, Words: "bad address"}}, report.Fault.Places); diff != "" {
		t.Error(diff)
	}
	s.check(t, good)
}

// What dnsmasq logs of queries names the file of the answer, also that of the
// proof itself.
func TestDNSMasqThatLogsItsQueries(t *testing.T) {
	for _, option := range []string{"log-queries", "log-queries=extra"} {
		t.Run(option, func(t *testing.T) {
			s := newNameSite(t)
			want(t, s.apply(t, s.wanted(option, "")), checkin.OutcomeApplied)
			side := s.wanted(option, "192.0.2.7 web.lab.internal")
			want(t, s.apply(t, side), checkin.OutcomeApplied)
			s.check(t, side)
			want(t, s.apply(t, s.wanted(option, "192.0.2.777 web")), checkin.OutcomeRolledBack, "bad address at "+s.hosts()+" line 2")
		})
	}
}

// The test passes and the start fails.
func TestDNSMasqThatDoesNotStartIsRolledBack(t *testing.T) {
	s := newNameSite(t)
	good := s.wanted("", "")
	want(t, s.apply(t, good), checkin.OutcomeApplied)
	want(t, s.apply(t, s.wanted("interface=missing0\nlisten-address=198.51.100.1", "")), checkin.OutcomeRolledBack,
		"job failed (exit-code)", "198.51.100.1")
	s.check(t, good)
	if got := s.lookUp(render.DNSMasqSentinel(good.Revision)); got != "127.0.0.1" {
		t.Errorf("no DNS after the rollback: %s", got)
	}
}

func TestDNSMasqFaultInADropIn(t *testing.T) {
	s := newNameSite(t)
	folder := filepath.Join(s.dir, "dnsmasq.d")
	must(t, os.Mkdir(folder, 0o755))
	dropIn := filepath.Join(folder, "local.conf")
	must(t, os.WriteFile(dropIn, []byte("garbage\n"), 0o644))
	must(t, os.WriteFile(filepath.Join(folder, "old.dpkg-old"), []byte("garbage\n"), 0o644))
	must(t, os.WriteFile(s.dnsmasq.defaults, []byte("CONFIG_DIR="+folder+",.dpkg-dist,.dpkg-old,.dpkg-new\n"), 0o644))
	want(t, s.apply(t, s.wanted("", "")), checkin.OutcomeRejected, "the fault is in "+dropIn+", which is not managed")

	must(t, os.Remove(dropIn))
	want(t, s.apply(t, s.wanted("", "")), checkin.OutcomeApplied)
}

func TestDNSMasqWithoutSystemd(t *testing.T) {
	s := newNameSite(t)
	s.dnsmasq.units = noBus{}
	want(t, s.apply(t, s.wanted("", "")), checkin.OutcomeRejected, "no connection to systemd")
	if read(t, s.conf()) != "" || read(t, s.hosts()) != "" {
		t.Error("live files were written")
	}
}

func TestFaultsIn(t *testing.T) {
	files := []string{"/var/lib/dnsmasq/hosts", "/var/lib/dnsmasq/dhcp-hosts"}
	got := faultsIn(files, []string{
		"read /var/lib/dnsmasq/hosts - 3 names",
		"read /var/lib/dnsmasq/dhcp-hosts",
		"bad address at /var/lib/dnsmasq/hosts line 3",
		"duplicate dhcp-host IP address 192.0.2.1 at line 2 of /var/lib/dnsmasq/dhcp-hosts",
		"bad address at /etc/hosts.local line 1",
		"/var/lib/dnsmasq/hosts web.lab.internal is 192.0.2.7",
		"7 127.0.0.1/45710 /var/lib/dnsmasq/hosts web.lab.internal is 192.0.2.7",
		"failed to load names from /var/lib/dnsmasq/hosts: Transport endpoint is not connected",
		"using nameserver 192.0.2.53#53",
	})
	if !slices.Equal(got, []string{
		"bad address at /var/lib/dnsmasq/hosts line 3",
		"duplicate dhcp-host IP address 192.0.2.1 at line 2 of /var/lib/dnsmasq/dhcp-hosts",
		"failed to load names from /var/lib/dnsmasq/hosts: Transport endpoint is not connected",
	}) {
		t.Errorf("got %q", got)
	}
}
