package pass

import (
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"opensource.internal/agent/checkin"
	"opensource.internal/agent/internal/state"
)

// traces is all there is below the root, with content, times and inodes.
func (s *site) traces() map[string]string {
	s.t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(s.root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		stat := info.Sys().(*syscall.Stat_t)
		found[path] = fmt.Sprintf("%v %d %d %d", info.Mode(), stat.Ino, stat.Mtim.Nano(), stat.Ctim.Nano())
		if info.Mode().IsRegular() {
			content, err := os.ReadFile(path)
			found[path] += " " + string(content)
			return err
		}
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return found
}

// foresee does a dry run and wants nothing to be touched by it.
func (s *site) foresee(want Code) Foreseen {
	s.t.Helper()
	before, folder := s.traces(), s.t.TempDir()
	foreseen, code, err := Foresee(s.t.Context(), s.options(), folder)
	if code != want || err != nil {
		s.t.Errorf("exit code %d, want %d; %v; %+v", code, want, err, foreseen)
	}
	if diff := cmp.Diff(before, s.traces()); diff != "" {
		s.t.Errorf("the host was touched (-before +after):\n%s", diff)
	}
	return foreseen
}

func (f Foreseen) of(t *testing.T, name string) ForeseenService {
	t.Helper()
	for _, service := range f.Services {
		if service.Name == name {
			return service
		}
	}
	t.Fatalf("nothing is said about %s: %+v", name, f)
	return ForeseenService{}
}

func TestForeseeOnAFreshHost(t *testing.T) {
	s := newSite(t)
	s.publish(lab())
	f := s.foresee(WouldChange)
	if f.ETag != s.etag || !f.Fresh || len(f.of(t, "nginx").Changes) != 1 || len(f.of(t, "dnsmasq").Changes) != 5 {
		t.Errorf("got %+v", f)
	}
	change := f.of(t, "nginx").Changes[0]
	if change.Path != s.root+"/etc/nginx/nginx.conf" || !strings.HasPrefix(change.Diff, "--- /dev/null\n+++ "+change.Path+"\twanted\n@@") {
		t.Errorf("got %.200s", change.Diff)
	}
	if requests, _ := s.take(); len(requests) != 1 || requests[0].Running != nil {
		t.Errorf("check-ins: %+v", requests)
	}
	// It saves nothing, so the pass itself does all of it.
	s.pass(Settled)
	if f := s.foresee(Settled); f.Fresh || len(f.of(t, "nginx").Changes) > 0 || f.AcceptedAt.IsZero() {
		t.Errorf("got %+v", f)
	}
}

// What a dry run says is what the pass then does.
func TestForeseeIsWhatAPassDoes(t *testing.T) {
	s := newSite(t)
	s.publish(lab())
	s.pass(Settled)
	s.publish(changed())
	s.write("etc/dnsmasq.conf", "edited\n")
	before := map[string]string{}
	f := s.foresee(WouldChange)
	for _, service := range f.Services {
		for _, change := range service.Changes {
			path := strings.TrimPrefix(change.Path, s.root)
			before[path] = s.read(path)
		}
	}
	s.pass(Settled)
	changedFiles := 0
	for path, content := range before {
		if s.read(path) != content {
			changedFiles++
		}
	}
	if _, found := before["/etc/dnsmasq.conf"]; !found || changedFiles != len(before) || changedFiles < 3 {
		t.Errorf("%d of %d files were changed: %v", changedFiles, len(before), before)
	}
	if diff := f.of(t, "dnsmasq").Changes; !strings.Contains(fmt.Sprint(diff), "\n-edited\n") {
		t.Errorf("got %+v", diff)
	}
}

func TestForeseeWhatIsRefusedOrLeftOut(t *testing.T) {
	s := newSite(t)
	s.publish(lab())
	s.pass(Settled)
	bad := changed()
	bad.NGINX.HTTPServices[0].InternalPort = 0
	s.publish(bad)
	f := s.foresee(Rejected)
	if nginx := f.of(t, "nginx"); len(nginx.LeftOut) != 1 || !nginx.LeftOut[0].KeptPrevious || len(nginx.Changes) != 0 || nginx.Refused != "" {
		t.Errorf("got %+v", nginx)
	}
	bad.NGINX.HTTPServices[0].ID = 99
	s.publish(bad)
	f = s.foresee(Rejected)
	if nginx := f.of(t, "nginx"); len(nginx.LeftOut) != 1 || nginx.LeftOut[0].KeptPrevious || len(nginx.Changes) != 1 || nginx.Refused != "" {
		t.Errorf("got %+v", nginx)
	}
	s.write("etc/opensource-agent/templates/nginx/listen.tmpl", "no_such_directive;")
	f = s.foresee(Rejected)
	if nginx := f.of(t, "nginx"); !nginx.Tested || !strings.Contains(nginx.Refused, "no_such_directive") || !strings.Contains(nginx.Refused, s.root+"/etc/nginx/nginx.conf") {
		t.Errorf("got %+v", nginx)
	}
	if dnsmasq := f.of(t, "dnsmasq"); dnsmasq.Refused != "" || len(dnsmasq.Changes) == 0 {
		t.Errorf("got %+v", dnsmasq)
	}
}

// The search for refused records goes the way of a pass, too.
func TestForeseeWhatWouldBeQuarantined(t *testing.T) {
	s := newSite(t)
	snapshot := lab()
	bad := snapshot.NGINX.HTTPServices[0]
	for i := range 8 {
		bad.ID, bad.ExternalHostname = int64(100+i), fmt.Sprintf("h%d", i)
		snapshot.NGINX.HTTPServices = append(snapshot.NGINX.HTTPServices, bad)
	}
	s.publish(snapshot)
	s.pass(Settled)
	original, err := os.ReadFile("../../../templates/nginx/http-service.tmpl")
	if err != nil {
		t.Fatal(err)
	}
	s.write("etc/opensource-agent/templates/nginx/http-service.tmpl",
		strings.Replace(string(original), "server_name", `{{if eq .Name "h3.example.com"}}no_such_directive;{{end}}server_name`, 1))
	snapshot.NGINX.HTTPServices[1].InternalPort = 9090
	s.publish(snapshot)

	nginx := s.foresee(Rejected).of(t, "nginx")
	if len(nginx.LeftOut) != 1 || nginx.LeftOut[0].ID != 103 || !strings.Contains(nginx.LeftOut[0].Reason, "no_such_directive") ||
		strings.Contains(nginx.LeftOut[0].Reason, "/beside/") || nginx.Refused != "" || len(nginx.Changes) != 1 {
		t.Errorf("got %+v", nginx)
	}
	s.pass(Rejected)
	told := s.knows().Services["nginx"].Quarantined
	if diff := cmp.Diff(nginx.LeftOut, told); diff != "" {
		t.Errorf("(-foreseen +done):\n%s", diff)
	}
}

func TestForeseeWithoutAnAnswer(t *testing.T) {
	s := newSite(t)
	s.publish(lab())
	s.respond(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	if f := s.foresee(ManagerAway); f.Manager == nil || f.ETag != "" || len(f.Services) > 0 {
		t.Errorf("got %+v", f)
	}
	s.publish(lab())
	s.pass(Settled)
	s.write("etc/nginx/nginx.conf", "edited\n")
	s.respond(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	if f := s.foresee(ManagerAway); f.Manager == nil || f.ETag != s.etag || len(f.of(t, "nginx").Changes) != 1 {
		t.Errorf("got %+v", f)
	}
}

func TestForeseeAHoldAndTheGuard(t *testing.T) {
	s := guardedSite(t, crowd(6, 4, 1))
	s.hold("dnsmasq")
	s.write("etc/dnsmasq.conf", "edited\n")
	s.publish(crowd(0, 0, 1))
	f := s.foresee(Rejected)
	if f.Guard == nil || f.Guard.Removed != 10 || f.Fresh || len(f.of(t, "nginx").Changes) > 0 {
		t.Errorf("got %+v", f)
	}
	if dnsmasq := f.of(t, "dnsmasq"); dnsmasq.Hold == nil || len(dnsmasq.Changes) > 0 {
		t.Errorf("got %+v", dnsmasq)
	}
	s.pass(Rejected)
	s.confirm = true
	if f := s.foresee(WouldChange); f.Guard != nil || !f.Released || f.Fresh || !f.AcceptedAt.IsZero() || len(f.of(t, "nginx").Changes) != 1 {
		t.Errorf("got %+v", f)
	}
	s.pass(Settled)
	s.confirm = false
	if f := s.foresee(Settled); f.Released || f.AcceptedAt.IsZero() {
		t.Errorf("got %+v", f)
	}
}

func TestForeseeVolumes(t *testing.T) {
	s := newSite(t)
	snapshot := lab()
	snapshot.Site.Volumes = []checkin.Volume{{ID: 42, HostPath: "/srv/data", Mode: "rw"}}
	s.publish(snapshot)
	f := s.foresee(Rejected)
	if len(f.Volumes) != 1 || f.Volumes[0].Err == nil || !strings.Contains(f.Volumes[0].Err.Error(), "/srv/data") {
		t.Errorf("got %+v", f.Volumes)
	}
}

// Results that no answer has confirmed are still due after a dry run.
func TestForeseeTellsNothingForGood(t *testing.T) {
	s := newSite(t)
	snapshot := lab()
	snapshot.Site.Volumes = []checkin.Volume{{ID: 42, HostPath: "/srv/data", Mode: "rw"}}
	s.publish(snapshot)
	s.respond(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("If-None-Match") != "" {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		answerSnapshot(w, r, s.data, s.etag)
	})
	s.pass(Rejected)
	s.publish(snapshot)
	s.take()
	s.foresee(Rejected)
	s.pass(Rejected)
	requests, _ := s.take()
	for i, request := range requests[:2] {
		if len(request.Volumes) != 1 {
			t.Errorf("check-in %d does not tell of the volume: %+v", i, request)
		}
	}
}

func TestForeseeWaitsForAPass(t *testing.T) {
	s := newSite(t)
	s.publish(lab())
	s.pass(Settled)
	dir, err := state.Open(s.options().StateDirectory)
	if err != nil {
		t.Fatal(err)
	}
	unlock, err := dir.Lock(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	start := time.Now()
	_, code, err := Foresee(t.Context(), s.options(), t.TempDir())
	if code != AnotherPassOn || err == nil || time.Since(start) < lockWait {
		t.Errorf("exit code %d after %v: %v", code, time.Since(start), err)
	}
}
