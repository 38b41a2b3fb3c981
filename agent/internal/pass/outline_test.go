package pass

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// spoilSnapshot makes the accepted snapshot one that cannot be read, and says
// so to nobody: a pass that reads it would find out.
func (s *site) spoilSnapshot() {
	s.t.Helper()
	const spoilt = `{"etag":"\"x\"","data":spoilt}` + "\n"
	content := strings.Replace(spoilt, `"\"x\""`, string(encoded(s.t, s.etag)), 1)
	s.write("var/lib/opensource-agent/snapshot.json", content)
	var known map[string]json.RawMessage
	if err := json.Unmarshal([]byte(s.read("var/lib/opensource-agent/state.json")), &known); err != nil {
		s.t.Fatal(err)
	}
	var outline map[string]any
	if err := json.Unmarshal(known["outline"], &outline); err != nil {
		s.t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(content))
	outline["file"] = hex.EncodeToString(sum[:])
	known["outline"] = encoded(s.t, outline)
	s.write("var/lib/opensource-agent/state.json", string(encoded(s.t, known))+"\n")
}

func encoded(t testing.TB, value any) []byte {
	t.Helper()
	content, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func TestAnUnchangedPassDoesNotReadTheSnapshot(t *testing.T) {
	s := newSite(t)
	s.publish(lab())
	s.pass(Settled)
	s.pass(Settled)
	s.spoilSnapshot()
	s.pass(Settled) // and its fields are in order again
	s.take()
	before := s.files()
	s.pass(Settled)
	if diff := cmp.Diff(before, s.files()); diff != "" {
		t.Errorf("files were written (-before +after):\n%s", diff)
	}
	requests, statuses := s.take()
	if diff := cmp.Diff([]int{304}, statuses); diff != "" || last(t, requests).Running.ETag != s.etag {
		t.Errorf("answers (-want +got):\n%s\ntold %+v", diff, last(t, requests))
	}

	// With something to do it is needed, and missed.
	s.write("etc/nginx/nginx.conf", "edited")
	if code, log := s.logged(); code != Unexpected || !strings.Contains(log, "read snapshot.json again") {
		t.Errorf("exit code %d:\n%s", code, log)
	}
	s.take()
	s.pass(Settled)
	if _, statuses := s.take(); statuses[0] != 200 {
		t.Errorf("answers %v", statuses)
	}
	if strings.Contains(s.read("etc/nginx/nginx.conf"), "edited") {
		t.Error("the edit is still there")
	}
}
