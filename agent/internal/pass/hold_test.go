package pass

import (
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"opensource.internal/agent/checkin"
	"opensource.internal/agent/internal/state"
)

func (s *site) holds() Holds {
	return Holds{StateDirectory: s.options().StateDirectory, Log: s.options().Log}
}

func (s *site) hold(service string) {
	s.t.Helper()
	if _, err := s.holds().Hold(s.t.Context(), service, time.Hour, "moving house", "alice"); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) release(service string) {
	s.t.Helper()
	released, err := s.holds().Release(s.t.Context(), service)
	if err != nil || len(released) != 1 {
		s.t.Fatalf("released %v, %v", released, err)
	}
}

// logged runs a pass and returns its code and its log.
func (s *site) logged() (Code, string) {
	var log strings.Builder
	options := s.options()
	options.Log = slog.New(slog.NewTextHandler(&log, nil))
	return Run(s.t.Context(), options), log.String()
}

// changed is the lab with another name in nginx and in dnsmasq.
func changed() checkin.Snapshot {
	snapshot := lab()
	snapshot.NGINX.HTTPServices[0].ExternalHostname = "later"
	snapshot.Site.Nodes[0].Containers[0].Hostname, snapshot.Site.DNSRecords[0].Target = "later", "later"
	return snapshot
}

func TestAHeldServiceIsLeftAlone(t *testing.T) {
	s := newSite(t)
	s.publish(lab())
	s.pass(Settled)
	running := s.etag
	s.take()

	s.hold("nginx")
	s.write("etc/nginx/nginx.conf", "edited")
	s.publish(changed())
	for range 2 {
		s.pass(Settled)
		if got := s.read("etc/nginx/nginx.conf"); got != "edited" {
			t.Fatalf("nginx.conf was written:\n%s", got)
		}
	}
	if !strings.Contains(s.read("var/lib/dnsmasq/hosts"), "later.lab.internal") {
		t.Error("the other service was held too")
	}
	requests, statuses := s.take()
	if len(statuses) != 3 {
		t.Errorf("answers = %v, want a new snapshot, its report and a third pass", statuses)
	}
	told := last(t, requests)
	r := told.Services["nginx"]
	if r.Outcome != checkin.OutcomeHeld || r.LastApply != checkin.ApplySuccess || r.RunningETag != running || r.ReceivedETag != s.etag {
		t.Errorf("nginx: %+v", r)
	}
	if r.Hold == nil || r.Hold.By != "alice" || r.Hold.Reason != "moving house" || time.Until(r.Hold.Until) < 50*time.Minute || !strings.Contains(r.Message, "by alice: moving house") {
		t.Errorf("hold: %+v, %s", r.Hold, r.Message)
	}
	if r := told.Services["dnsmasq"]; r.Outcome != checkin.OutcomeApplied && r.Outcome != checkin.OutcomeUnchanged || r.Hold != nil || r.RunningETag != s.etag {
		t.Errorf("dnsmasq: %+v", r)
	}
	if told.Running == nil || told.Running.ETag != running {
		t.Errorf("running = %+v although nginx runs the one before", told.Running)
	}

	s.release("nginx")
	code, log := s.logged()
	if code != Settled || !strings.Contains(log, "not held any more") {
		t.Errorf("exit code %d:\n%s", code, log)
	}
	if !strings.Contains(s.read("etc/nginx/nginx.conf"), "later.example.com") {
		t.Error("what was due is not applied")
	}
	requests, _ = s.take()
	if told := last(t, requests); told.Services["nginx"].Hold != nil || told.Running.ETag != s.etag {
		t.Errorf("after the release: %+v, running %+v", told.Services["nginx"], told.Running)
	}
}

// A hold that nothing was missed by must end as well, and with no write.
func TestAHoldOfAnUnchangedSiteCostsNothing(t *testing.T) {
	s := newSite(t)
	s.publish(lab())
	s.pass(Settled)
	s.hold("dnsmasq")
	s.pass(Settled)
	s.take()
	before := s.files()
	s.pass(Settled)
	if after := s.files(); len(before) != len(after) || before["var/lib/opensource-agent/state.json"] != after["var/lib/opensource-agent/state.json"] {
		t.Error("a pass of a held service writes")
	}
	if _, statuses := s.take(); len(statuses) != 1 {
		t.Errorf("answers = %v", statuses)
	}
	for _, s.byHand = range []bool{true, false} { // a person is told each time why nothing is done
		if _, log := s.logged(); strings.Contains(log, "msg=held ") != s.byHand {
			t.Errorf("by hand is %v:\n%s", s.byHand, log)
		}
	}
	s.take()
	s.release("dnsmasq")
	s.pass(Settled)
	requests, _ := s.take()
	if r := last(t, requests).Services["dnsmasq"]; r.Outcome != checkin.OutcomeUnchanged || r.Message != "" {
		t.Errorf("dnsmasq: %+v", r)
	}
}

// A failure of a held service is nobody's surprise; after the hold nothing
// waits for the pause of an earlier failure.
func TestWhatHasFailedBeforeAHoldIsTriedAfterIt(t *testing.T) {
	s := newSite(t)
	s.publish(lab())
	s.pass(Settled)
	const override = "etc/opensource-agent/templates/nginx/listen.tmpl"
	s.write(override, "no_such_directive;")
	s.pass(Rejected)
	s.hold("nginx")
	s.pass(Settled)
	s.release("nginx")
	if code, attempts := s.attempts(false); code != Rejected || attempts != 1 {
		t.Errorf("exit code %d after %d attempts", code, attempts)
	}
}

func TestHoldsEndByThemselves(t *testing.T) {
	now := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	hold := state.Hold{From: now, Hold: checkin.Hold{Until: now.Add(time.Hour)}}
	for _, test := range []struct {
		name string
		now  time.Time
		want string
	}{
		{"at its beginning", now, ""},
		{"before its end", now.Add(time.Hour - time.Second), ""},
		{"at its end", now.Add(time.Hour), "time is over"},
		{"clock set ahead", now.AddDate(4, 0, 0), "time is over"},
		{"clock corrected", now.Add(-time.Minute), ""},
		{"clock set back", now.AddDate(-4, 0, 0), "set back"},
		{"clock set back by an hour", now.Add(-time.Hour), "set back"},
	} {
		if got := ended(hold, test.now); (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
	if ended(state.Hold{}, now) == "" {
		t.Error("a hold without times lasts for ever")
	}
}

// remember changes what the agent knows, as if an earlier pass had left it.
func (s *site) remember(change func(*state.State)) {
	s.t.Helper()
	dir, err := state.Open(s.options().StateDirectory)
	if err != nil {
		s.t.Fatal(err)
	}
	known, _, _ := dir.Load()
	change(&known)
	if err := dir.SaveState(known); err != nil {
		s.t.Fatal(err)
	}
}

func TestAPassEndsAHoldWhoseTimeIsOver(t *testing.T) {
	for name, shift := range map[string]time.Duration{"over": -2 * time.Hour, "set by a clock that was ahead": 1000 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.publish(lab())
			s.pass(Settled)
			s.hold("nginx")
			s.publish(changed())
			s.pass(Settled)
			s.remember(func(known *state.State) {
				hold := known.Holds["nginx"]
				hold.From, hold.Until = hold.From.Add(shift), hold.Until.Add(shift)
				known.Holds["nginx"] = hold
			})
			code, log := s.logged()
			if code != Settled || !strings.Contains(log, "hold ended") {
				t.Errorf("exit code %d:\n%s", code, log)
			}
			if !strings.Contains(s.read("etc/nginx/nginx.conf"), "later.example.com") {
				t.Error("what was due is not applied")
			}
			s.take()
			s.pass(Settled)
			if requests, _ := s.take(); last(t, requests).Services["nginx"].Hold != nil {
				t.Error("the hold is told after its end")
			}
		})
	}
}

// A hold that got lost with a part of the state must not be taken for a
// configuration that is in force.
func TestALostHoldEnds(t *testing.T) {
	s := newSite(t)
	s.publish(lab())
	s.pass(Settled)
	s.hold("nginx")
	s.publish(changed())
	s.pass(Settled)
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(s.read("var/lib/opensource-agent/state.json")), &fields); err != nil {
		t.Fatal(err)
	}
	fields["holds"] = json.RawMessage(`"all"`)
	content, _ := json.Marshal(fields)
	s.write("var/lib/opensource-agent/state.json", string(content))
	s.pass(Settled)
	if !strings.Contains(s.read("etc/nginx/nginx.conf"), "later.example.com") {
		t.Error("what was due is not applied")
	}
}

// What a killed pass has left half done is left alone too, and said; it is made
// good after the hold.
func TestAHoldKeepsWhatAKilledPassHasLeft(t *testing.T) {
	s := newSite(t)
	s.publish(lab())
	s.pass(Settled)
	before := s.read("etc/nginx/nginx.conf")
	s.cutShort("nginx", "etc/nginx/nginx.conf", "# never proven\n")
	s.hold("nginx")
	s.take()
	code, log := s.logged()
	if code != Settled || !strings.Contains(log, "cut short") || s.read("etc/nginx/nginx.conf") != "# never proven\n" {
		t.Errorf("exit code %d:\n%s", code, log)
	}
	requests, _ := s.take()
	if r := last(t, requests).Services["nginx"]; !strings.Contains(r.Message, "cut short") {
		t.Errorf("nginx: %+v", r)
	}
	s.release("nginx")
	s.undoes(Settled)
	if s.read("etc/nginx/nginx.conf") != before {
		t.Error("what was never proven stays")
	}
}

func TestVolumesAndReportsGoOnUnderAHold(t *testing.T) {
	s := newSite(t)
	s.publish(lab())
	s.pass(Settled)
	s.hold("nginx")
	s.hold("dnsmasq")
	snapshot := lab()
	snapshot.Site.Volumes = []checkin.Volume{{ID: 42, HostPath: "relative", Mode: "rw"}}
	s.publish(snapshot)
	s.take()
	s.pass(Rejected)
	requests, _ := s.take()
	if r := last(t, requests); len(r.Volumes) != 1 || r.Services["nginx"].Outcome != checkin.OutcomeHeld {
		t.Errorf("told: %+v", r)
	}
	s.respond(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	s.pass(Rejected)
}

// Before the first snapshot a service can be held too: nothing is applied to it
// until the hold ends.
func TestAHoldBeforeTheFirstPass(t *testing.T) {
	s := newSite(t)
	s.hold("nginx")
	s.publish(lab())
	s.pass(Settled)
	if _, found := s.files()["etc/nginx/nginx.conf"]; found {
		t.Error("a held service was configured")
	}
	requests, _ := s.take()
	if told := last(t, requests); told.Running != nil || told.Services["nginx"].LastApply != checkin.ApplyUnknown {
		t.Errorf("told: %+v", told)
	}
	s.release("nginx")
	s.pass(Settled)
	s.read("etc/nginx/nginx.conf")
}

func TestHoldingTwiceReplaces(t *testing.T) {
	s := &site{fakeManager: newManager(t), root: t.TempDir()}
	s.hold("nginx")
	if _, err := s.holds().Hold(t.Context(), "nginx", 2*time.Hour, " other\x1b\n\tnginx is held ", "bob"); err != nil {
		t.Fatal(err)
	}
	lines, err := s.holds().List()
	if err != nil || len(lines) != 1 || !strings.HasPrefix(lines[0], "nginx is held until ") || !strings.HasSuffix(lines[0], ` by bob: other\x1b nginx is held`) {
		t.Errorf("%q, %v", lines, err)
	}
	s.hold("dnsmasq")
	if released, err := s.holds().Release(t.Context(), ""); err != nil || len(released) != 2 {
		t.Errorf("%v, %v", released, err)
	}
	if lines, err := s.holds().List(); err != nil || len(lines) != 0 {
		t.Errorf("%q, %v", lines, err)
	}
}

func TestAHoldWaitsForAPassOnlyForAWhile(t *testing.T) {
	s := &site{fakeManager: newManager(t), root: t.TempDir()}
	dir, err := state.Open(filepath.Join(s.root, "var/lib/opensource-agent"))
	if err != nil {
		t.Fatal(err)
	}
	unlock, err := dir.Lock(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	_, err = s.holds().Hold(t.Context(), "nginx", time.Hour, "", "")
	var locked *state.LockedError
	if !errors.As(err, &locked) || CodeOf(err) != AnotherPassOn {
		t.Errorf("%v", err)
	}
	if lines, err := s.holds().List(); err != nil || len(lines) != 0 {
		t.Errorf("listing: %q, %v", lines, err)
	}
}

// What cannot be read must not pass for nothing that is held; and to look makes
// no folder.
func TestListingHoldsThatCannotBeRead(t *testing.T) {
	s := &site{fakeManager: newManager(t), root: t.TempDir()}
	dir := filepath.Join(s.root, "var/lib/opensource-agent")
	if lines, err := s.holds().List(); err != nil || len(lines) != 0 {
		t.Errorf("%q, %v", lines, err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the state directory was made: %v", err)
	}
	s.hold("nginx")
	if err := os.Chmod(dir, 0); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.Chmod(dir, 0o700) }()
	var listing sync.WaitGroup
	listing.Go(func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with this function
		_ = unix.Setfsuid(65534)
		if lines, err := s.holds().List(); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%q, %v", lines, err)
		}
	})
	listing.Wait()
}

func TestWhatMayBeHeld(t *testing.T) {
	for _, test := range []struct {
		service  string
		duration time.Duration
		want     string
	}{
		{"nginx", time.Hour, ""},
		{"dnsmasq", longestHold, ""},
		{"apache", time.Hour, "nginx or dnsmasq"},
		{"nginx", 0, "--for"},
		{"nginx", -time.Hour, "--for"},
		{"nginx", longestHold + time.Second, "30 days"},
	} {
		err := CheckHold(test.service, test.duration)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s for %s: %v", test.service, test.duration, err)
		}
	}
}
