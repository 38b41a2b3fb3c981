package main

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"opensource.internal/agent/checkin"
	"opensource.internal/agent/internal/pass"
)

// dryRuns are runs on one host, below a root of its own, whose manager answers
// with a snapshot or, if that is nil, not at all.
type dryRuns struct {
	t        *testing.T
	root     string
	snapshot []byte
	manager  *httptest.Server
}

func newDryRuns(t *testing.T) *dryRuns {
	t.Helper()
	for _, tool := range []string{"nginx", "dnsmasq"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("NOT TESTED: needs %s: %v", tool, err)
		}
	}
	if os.Getuid() != 0 {
		t.Skip("NOT TESTED: needs root, since nginx -t binds ports below 1024")
	}
	d := &dryRuns{t: t, root: t.TempDir()}
	d.manager = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if d.snapshot == nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"data":%s}`, d.snapshot)
	}))
	t.Cleanup(d.manager.Close)
	return d
}

func (d *dryRuns) publish(snapshot checkin.Snapshot) {
	d.t.Helper()
	data, _, err := checkin.Encode(snapshot)
	if err != nil {
		d.t.Fatal(err)
	}
	d.snapshot = data
}

func (d *dryRuns) run(want pass.Code, args ...string) string {
	d.t.Helper()
	temporary := d.t.TempDir()
	d.t.Setenv("TMPDIR", temporary)
	var stdout, stderr bytes.Buffer
	args = append(args, "--root", d.root, "--site-id", "1", "--manager-url", d.manager.URL)
	if code := runWith(args, nil, &stdout, &stderr); code != want {
		d.t.Errorf("%q ended with %d, want %d:\n%s%s", args, code, want, stdout.String(), stderr.String())
	}
	if left := treeOf(d.t, temporary); len(left) > 0 {
		d.t.Errorf("left behind: %q", left)
	}
	return stdout.String()
}

func (d *dryRuns) says(out string, parts ...string) {
	d.t.Helper()
	for _, part := range parts {
		if !strings.Contains(out, part) {
			d.t.Errorf("it does not say %q:\n%s", part, out)
		}
	}
}

func TestDryRun(t *testing.T) {
	d := newDryRuns(t)
	site, err := readSnapshot(answerFile, nil)
	if err != nil {
		t.Fatal(err)
	}
	site.Site.Volumes = []checkin.Volume{} // there is no disk for them
	d.publish(site)

	out := d.run(pass.WouldChange, "run", "--dry-run")
	d.says(out, "which the manager has just sent\n", "\nnginx: 1 file would be changed, nothing reloaded; its own test accepts the candidate\n--- /dev/null\n+++ "+
		d.root+"/etc/nginx/nginx.conf\twanted\n", "\ndnsmasq: 5 files would be changed")
	d.run(pass.Settled)
	d.says(d.run(pass.Settled, "--dry-run"), "\nnginx: nothing would be changed\n\ndnsmasq: nothing would be changed\n")

	site.NGINX.HTTPServices[0].InternalPort = 80800
	d.publish(site)
	d.says(d.run(pass.Rejected, "--dry-run"), "\nnginx: nothing would be changed\nits previous version stays: http app.example.com (id 3): ")
	site.NGINX.HTTPServices[0].ID = 99
	d.publish(site)
	d.says(d.run(pass.Rejected, "--dry-run"), "\nleft out: http app.example.com (id 99): ")

	d.snapshot = nil
	d.says(d.run(pass.ManagerAway, "--dry-run"), "no answer of the manager to go by: ", "\ncompared with snapshot")
}

func TestDryRunWithoutASnapshot(t *testing.T) {
	d := newDryRuns(t)
	d.says(d.run(pass.ManagerAway, "--dry-run"), "no snapshot was ever accepted: nothing would be done\n")
	if left := treeOf(t, d.root); len(left) > 0 {
		t.Errorf("made: %q", left)
	}
}

func TestDryRunSaysWhatTheHostIsComparedWith(t *testing.T) {
	accepted := time.Date(2026, 12, 1, 12, 0, 0, 0, time.Local)
	since := accepted.Format("2006-01-02 15:04:05 MST")
	for want, f := range map[string]pass.Foreseen{
		"compared with snapshot abc, which the manager has just sent\n":                                 {ETag: `"abc"`, Fresh: true},
		"compared with snapshot abc, accepted " + since + "; the manager has nothing newer\n":           {ETag: `"abc"`, AcceptedAt: accepted},
		"compared with snapshot abc, accepted " + since + "; what the manager has is held back\n":       {ETag: `"abc"`, AcceptedAt: accepted, Guard: &checkin.Guard{}},
		"compared with snapshot abc, which was held back and would be accepted now\n":                   {ETag: `"abc"`, Released: true},
		"no answer of the manager to go by: gone\ncompared with snapshot abc, accepted " + since + "\n": {ETag: `"abc"`, AcceptedAt: accepted, Manager: errors.New("gone")},
		"no snapshot was ever accepted: nothing would be done\n":                                        {},
	} {
		if got := comparedWith(f); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
