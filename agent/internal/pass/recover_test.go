package pass

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The new snapshot is held back and the one before is lost: what runs is
// looked after all the same.
func TestWhatRunsIsLookedAfterWithoutItsSnapshot(t *testing.T) {
	for name, lose := range map[string]func(*site){
		"removed": func(s *site) { s.lose("snapshot.json") },
		"damaged": func(s *site) { s.write("var/lib/opensource-agent/snapshot.json", "{") },
		"with all that was known besides": func(s *site) {
			s.lose("snapshot.json")
			s.lose("state.json")
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := guardedSite(t, crowd(6, 4, 1))
			running, conf := s.etag, s.read("etc/nginx/nginx.conf")
			s.publish(crowd(2, 2, 1))
			s.pass(Rejected)

			lose(s)
			s.write("etc/nginx/nginx.conf", "edited")
			code, log := s.logged()
			if code != Rejected || !strings.Contains(log, "the accepted snapshot was lost") {
				t.Errorf("exit code %d:\n%s", code, log)
			}
			if s.read("etc/nginx/nginx.conf") != conf {
				t.Error("the edit is still there")
			}
			requests, _ := s.take()
			if told := last(t, requests); told.Guard == nil || told.Services["nginx"].RunningETag != running || told.Services["nginx"].ReceivedETag != s.etag {
				t.Errorf("told: %+v", told)
			}
		})
	}
}

// What was left out is not in what runs: the manager is asked for all of it.
func TestALostSnapshotIsAskedForAgain(t *testing.T) {
	s := newSite(t)
	snapshot := lab()
	bad := snapshot.NGINX.HTTPServices[0]
	bad.ID, bad.ExternalHostname = 9, "not a host name"
	snapshot.NGINX.HTTPServices = append(snapshot.NGINX.HTTPServices, bad)
	s.publish(snapshot)
	s.pass(Rejected)
	s.take()

	s.lose("snapshot.json")
	s.pass(Rejected)
	requests, statuses := s.take()
	if statuses[0] != 200 || len(last(t, requests).Services["nginx"].Quarantined) != 1 || last(t, requests).Running != nil {
		t.Errorf("answers %v, told %+v", statuses, last(t, requests))
	}
}

func TestServicesThatRunDifferentSnapshotsAreLeftAsTheyAre(t *testing.T) {
	s := guardedSite(t, crowd(6, 4, 1))
	bad := crowd(6, 4, 1)
	bad.Site.DHCPRange = "nonsense"
	s.publish(bad)
	s.pass(Rejected)
	s.publish(crowd(2, 2, 1))
	s.pass(Rejected)

	s.lose("snapshot.json")
	before := s.read("etc/nginx/nginx.conf")
	s.pass(Rejected)
	if s.read("etc/nginx/nginx.conf") != before {
		t.Error("nginx.conf was written")
	}
}

// lose removes a file of the state directory.
func (s *site) lose(name string) {
	s.t.Helper()
	if err := os.Remove(filepath.Join(s.root, "var/lib/opensource-agent", name)); err != nil {
		s.t.Fatal(err)
	}
}
