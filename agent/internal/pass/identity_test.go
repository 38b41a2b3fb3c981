package pass

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"opensource.internal/agent/checkin"
	"opensource.internal/agent/internal/state"
)

const (
	oneMachine   = "0123456789abcdef0123456789abcdef\n"
	otherMachine = "fedcba9876543210fedcba9876543210\n"
	volumeGone   = "relative" // a host path that fails, and so has something to tell
)

// settledOn is a host of that machine id that has told everything.
func settledOn(t *testing.T, machineID string) *site {
	s := newSite(t)
	s.guard = 50
	s.write("etc/machine-id", machineID)
	snapshot := crowd(6, 4, 1)
	snapshot.Site.Volumes = []checkin.Volume{{ID: 42, HostPath: volumeGone, Mode: "rw"}}
	s.publish(snapshot)
	s.pass(Rejected)
	s.take()
	return s
}

// knows returns what the agent has in its state directory.
func (s *site) knows() (known state.State) {
	s.t.Helper()
	s.remember(func(now *state.State) { known = *now })
	return known
}

func TestACloneBeginsAnew(t *testing.T) {
	s := settledOn(t, oneMachine)
	s.hold("dnsmasq")
	before := s.files()
	s.write("etc/machine-id", otherMachine)
	less := crowd(0, 0, 1)
	less.Site.Volumes = []checkin.Volume{{ID: 42, HostPath: volumeGone, Mode: "rw"}}

	code, log := s.logged()
	if code != Rejected || strings.Count(log, "seems to be a clone") != 1 {
		t.Errorf("exit code %d:\n%s", code, log)
	}
	requests, statuses := s.take()
	if diff := cmp.Diff([]int{200, 304}, statuses); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
	if first := requests[0]; first.Running != nil || first.Volumes != nil || first.Services["nginx"].LastApply != checkin.ApplyUnknown || first.Services["dnsmasq"].Hold != nil {
		t.Errorf("the first check-in tells of the other machine: %+v", first)
	}
	if told := last(t, requests); len(told.Volumes) != 1 || told.Services["nginx"].Outcome != checkin.OutcomeUnchanged {
		t.Errorf("told: %+v", told)
	}
	after := s.files()
	for _, path := range []string{"etc/nginx/nginx.conf", "etc/dnsmasq.conf", "var/lib/dnsmasq/hosts"} {
		if before[path] != after[path] {
			t.Errorf("%s was written although nothing differs", path)
		}
	}

	// From then on it is a host like any other: guarded, and quiet.
	s.publish(less)
	code, log = s.logged()
	if code != Rejected || strings.Contains(log, "clone") || !strings.Contains(log, "held back") {
		t.Errorf("exit code %d:\n%s", code, log)
	}
}

// A preview on a clone goes by no more than the pass would.
func TestAPreviewOnAClone(t *testing.T) {
	s := settledOn(t, oneMachine)
	s.write("etc/machine-id", otherMachine)
	s.publish(crowd(0, 0, 1))
	if foreseen := s.foresee(WouldChange); foreseen.Guard != nil || !foreseen.Fresh {
		t.Errorf("%+v", foreseen)
	}
	s.pass(Settled)
}

// What was learnt of the other machine's directories does not count here: they
// are checked as those of a stranger.
func TestACloneForgetsWhatTheOtherMachineHasMade(t *testing.T) {
	s := settledOn(t, oneMachine)
	s.remember(func(known *state.State) { known.Fingerprint, known.Running = "x", &checkin.Running{ETag: `"x"`} })
	s.respond(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	s.write("etc/machine-id", otherMachine)
	conf := s.read("etc/nginx/nginx.conf")
	s.pass(ManagerAway)
	known := s.knows()
	if known.Fingerprint != "" || known.Running != nil || len(known.Services) > 0 || len(known.Volumes.Records)+len(known.Volumes.Results) > 0 || !known.RealSite {
		t.Errorf("remembered: %+v", known)
	}
	for path := range s.files() {
		if strings.Contains(path, "opensource-agent/running-") || strings.HasSuffix(path, "opensource-agent/snapshot.json") {
			t.Errorf("%s is still there", path)
		}
	}
	if s.read("etc/nginx/nginx.conf") != conf {
		t.Error("the site is gone")
	}
	// Its disk serves a real site: no answer without one clears it.
	s.publish(checkin.Bootstrap())
	s.pass(ManagerAway)
	if s.read("etc/nginx/nginx.conf") != conf {
		t.Error("the site is gone")
	}
}

func TestNothingIsConcludedFromAMissingMachineID(t *testing.T) {
	for name, id := range map[string]string{"empty": "", "uninitialized": "uninitialized\n", "the same": oneMachine} {
		t.Run(name, func(t *testing.T) {
			s := settledOn(t, oneMachine)
			recorded := s.knows().MachineID
			s.write("etc/machine-id", id)
			s.pass(Rejected)
			if _, statuses := s.take(); len(statuses) != 1 || statuses[0] != 304 {
				t.Errorf("answers = %v", statuses)
			}
			if now := s.knows().MachineID; recorded == "" || now != recorded || strings.Contains(now, oneMachine[:32]) {
				t.Errorf("recorded %q, then %q", recorded, now)
			}
			s.write("etc/machine-id", otherMachine)
			s.pass(Rejected)
			if _, statuses := s.take(); statuses[0] != 200 {
				t.Errorf("answers = %v: the clone sent a tag", statuses)
			}
		})
	}
}

// A state of a version that did not know of machines is that of this one.
func TestTheFirstMachineIDIsRecorded(t *testing.T) {
	s := settledOn(t, "")
	s.write("etc/machine-id", oneMachine)
	s.pass(Rejected)
	if _, statuses := s.take(); len(statuses) != 1 || statuses[0] != 304 || s.knows().MachineID == "" {
		t.Errorf("answers = %v, machine %q", statuses, s.knows().MachineID)
	}
}

func TestARenamedHostTellsEverythingUnderItsNewName(t *testing.T) {
	s := settledOn(t, oneMachine)
	s.write("etc/nginx/nginx.conf", "edited")
	s.respond(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	s.pass(Rejected)
	s.take()
	s.hostname = "renamed"
	s.respond(nil)
	code, log := s.logged()
	if code != Rejected || !strings.Contains(log, "new name") || !strings.Contains(log, "old=agent") {
		t.Errorf("exit code %d:\n%s", code, log)
	}
	requests, statuses := s.take()
	if told := requests[0]; len(statuses) != 1 || told.Hostname != "renamed" || len(told.Volumes) != 1 || len(told.Services["nginx"].Drift) != 1 {
		t.Errorf("answers = %v; told: %+v", statuses, told)
	}
	if _, log := s.logged(); strings.Contains(log, "new name") {
		t.Errorf("logged twice:\n%s", log)
	}
	if requests, _ := s.take(); requests[0].Volumes != nil {
		t.Error("what was told is told again")
	}
}

// Pauses after a failure go by the clock: wherever it jumps, they end.
func TestAClockThatJumpsKeepsNoFailureWaiting(t *testing.T) {
	for name, jump := range map[string]time.Duration{"back by a year": 365 * 24 * time.Hour, "ahead by a year": -365 * 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.write("etc/opensource-agent/templates/nginx/listen.tmpl", "no_such_directive;")
			s.publish(lab())
			s.pass(Rejected)
			// Seen from now on, the failure was as far away as the clock jumped.
			s.remember(func(known *state.State) {
				known.Services["nginx"].Retry.After = known.Services["nginx"].Retry.After.Add(jump)
			})
			if code, attempts := s.attempts(false); code != Rejected || attempts != 1 {
				t.Errorf("exit code %d after %d attempts", code, attempts)
			}
			if code, attempts := s.attempts(false); code != Rejected || attempts != 0 {
				t.Errorf("exit code %d after %d attempts: no pause", code, attempts)
			}
		})
	}
}

func TestAWrongClockIsToldOnceAPass(t *testing.T) {
	for name, test := range map[string]struct {
		theirs time.Duration // how far the manager's clock is ahead
		want   string
	}{
		"right":      {0, ""},
		"nearly":     {maxSkew - 10*time.Second, ""},
		"far behind": {time.Hour, "behind the manager's"},
		"far ahead":  {-time.Hour, "ahead of the manager's"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.publish(lab())
			data, etag := s.data, s.etag
			s.respond(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Date", time.Now().Add(test.theirs).UTC().Format(http.TimeFormat))
				answerSnapshot(w, r, data, etag)
			})
			code, log := s.logged()
			if code != Settled {
				t.Errorf("exit code %d", code)
			}
			if count := strings.Count(log, "this host's clock is"); (count == 1) != (test.want != "") || !strings.Contains(log, test.want) {
				t.Errorf("told %d times, want %q in\n%s", count, test.want, log)
			}
			if _, statuses := s.take(); len(statuses) != 2 {
				t.Errorf("answers = %v, want two rounds", statuses)
			}
		})
	}
}
