package pass

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"opensource.internal/agent/checkin"
)

// cutShort leaves a file of a service as a pass does that is killed after it
// has replaced it.
func (s *site) cutShort(service, path, content string) {
	s.t.Helper()
	before := s.read(path)
	full := filepath.Join(s.root, path)
	dir, base := filepath.Split(full)
	record, err := json.Marshal(map[string]any{
		"service": service, "begun": "2026-12-01T07:00:00Z", "revision": "killed",
		"files": []map[string]string{{
			"path": full, "old": fmt.Sprintf("%x", sha256.Sum256([]byte(before))), "new": fmt.Sprintf("%x", sha256.Sum256([]byte(content))),
		}},
	})
	if err == nil {
		err = os.Rename(full, filepath.Join(dir, "."+base+".opensource-agent.old"))
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.write(path, content)
	s.write("var/lib/opensource-agent/commit-"+service+".json", string(record))
}

// undoes runs a pass and wants it to say that it has undone what the earlier
// one had begun, and nothing to be left of that.
func (s *site) undoes(want Code) {
	s.t.Helper()
	var log strings.Builder
	options := s.options()
	options.Log = slog.New(slog.NewTextHandler(&log, nil))
	if code := Run(s.t.Context(), options); code != want {
		s.t.Errorf("exit code %d, want %d", code, want)
	}
	for _, line := range []string{"an earlier pass was cut short", "what the earlier pass had begun is undone"} {
		if strings.Count(log.String(), line) != 1 {
			s.t.Errorf("the log does not say once %q:\n%s", line, &log)
		}
	}
	s.wantNoLeftovers()
}

func TestAPassThatWasKilledIsUndoneWhereNothingIsManagedAnyMore(t *testing.T) {
	s := newSite(t)
	s.publish(lab())
	s.pass(Settled)
	before := s.read("etc/dnsmasq.conf")
	s.cutShort("dnsmasq", "etc/dnsmasq.conf", "# never proven\n")
	changed := lab()
	changed.Site.Gateway = ""
	s.publish(changed)
	s.take()
	s.undoes(Settled)
	if s.read("etc/dnsmasq.conf") != before {
		t.Error("what was never proven stays")
	}
	requests, _ := s.take()
	if r := last(t, requests).Services["dnsmasq"]; r.Outcome != checkin.OutcomeSkipped || !strings.Contains(r.Message, "gateway") {
		t.Errorf("dnsmasq: %+v", r)
	}
}

func TestAPassThatWasKilledIsUndoneWhereNothingCanBeRendered(t *testing.T) {
	s := newSite(t)
	s.publish(lab())
	s.pass(Settled)
	before := s.read("etc/dnsmasq.conf")
	s.cutShort("dnsmasq", "etc/dnsmasq.conf", "# never proven\n")
	s.write("etc/opensource-agent/templates/dnsmasq/hosts.tmpl", "{{.NoSuchField}}")
	s.take()
	s.undoes(Rejected)
	if s.read("etc/dnsmasq.conf") != before {
		t.Error("what was never proven stays")
	}
	requests, _ := s.take()
	if r := last(t, requests).Services["dnsmasq"]; r.Outcome != checkin.OutcomeRolledBack || !strings.Contains(r.Message, "NoSuchField") || r.LastApply != checkin.ApplyFailure {
		t.Errorf("dnsmasq: %+v", r)
	}
}

// Nothing is to be seen of it but its record, and the snapshot is again that
// of the last settled pass.
func TestAPassThatWasKilledBeforeItsFirstFile(t *testing.T) {
	s := newSite(t)
	s.publish(lab())
	s.pass(Settled)
	conf := s.read("etc/nginx/nginx.conf")
	s.cutShort("nginx", "etc/nginx/nginx.conf", "# never proven\n")
	if err := os.Remove(filepath.Join(s.root, "etc/nginx/.nginx.conf.opensource-agent.old")); err != nil {
		t.Fatal(err)
	}
	s.write("etc/nginx/nginx.conf", conf)
	s.undoes(Settled)
	before := s.files()
	s.pass(Settled)
	if after := s.files(); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Error("the pass after it was not quiet")
	}
}

// A disk for the state that is full must not lead to a commit that nobody
// could make good.
func TestWithoutRoomForTheRecordNothingIsReplaced(t *testing.T) {
	s := newSite(t)
	s.publish(lab())
	s.pass(Settled)
	conf := s.read("etc/nginx/nginx.conf")
	s.take()
	// A folder with something in it, in the place of the record, as a stand-in.
	s.write("var/lib/opensource-agent/commit-nginx.json/in-the-way", "")
	changed := lab()
	changed.NGINX.HTTPServices[0].ExternalHostname = "later"
	changed.Site.Nodes[0].Containers[0].Hostname, changed.Site.DNSRecords[0].Target = "later", "later"
	s.publish(changed)
	s.pass(Rejected)
	requests, _ := s.take()
	services := last(t, requests).Services
	if r := services["nginx"]; r.Outcome != checkin.OutcomeRejected ||
		!strings.Contains(r.Message, "what is about to be replaced could not be written down") || !strings.Contains(r.Message, "commit-nginx.json") {
		t.Errorf("nginx: %+v", r)
	}
	if s.read("etc/nginx/nginx.conf") != conf {
		t.Error("nginx.conf was replaced")
	}
	if r := services["dnsmasq"]; r.LastApply != checkin.ApplySuccess || !strings.Contains(s.read("var/lib/dnsmasq/hosts"), "later") {
		t.Errorf("dnsmasq: %+v", r)
	}
	if err := os.RemoveAll(filepath.Join(s.root, "var/lib/opensource-agent/commit-nginx.json")); err != nil {
		t.Fatal(err)
	}
	s.byHand = true
	s.pass(Settled)
}
