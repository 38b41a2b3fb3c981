package main

import (
	"encoding/pem"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"opensource.internal/manager/internal/health"
	"opensource.internal/manager/internal/store"
	"opensource.internal/manager/internal/store/storetest"
)

// findings are what doctor finds, as "state message → fix", by check.
func (s *shell) findings(args ...string) (map[string]string, int) {
	s.t.Helper()
	r := s.run("", append([]string{"doctor", "--json"}, args...)...)
	found := map[string]string{}
	for _, f := range decode[diagnosis](s.t, r.stdout).Findings {
		found[f.Check] += f.State + " " + f.Message + " → " + f.Fix + "\n"
	}
	return found, r.code
}

func wantFindings(t *testing.T, found, want map[string]string) {
	t.Helper()
	for check, text := range want {
		if !strings.Contains(found[check], text) {
			t.Errorf("%s: %q, want %q", check, found[check], text)
		}
	}
}

func TestDoctor(t *testing.T) {
	s := newFileShell(t)
	s.must("", "migrate")
	address := freePort(t)
	server := s.program("serve", "--listen", address)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	stop := func() { _ = server.Process.Signal(syscall.SIGTERM); _ = server.Wait() }
	defer stop()
	(&load{t: t, url: "http://" + address + "/api/v1"}).awaitReady(server)

	found, code := s.findings("--listen", address)
	wantFindings(t, found, map[string]string{
		"settings": "ok", "schema": "ok", "database file": "whole, journal wal", "owner": "ok", "listen": "ok", "public URL": "warn PUBLIC_URL is not set",
	})
	if disk := found["disk"]; code != exitOK && !strings.HasPrefix(disk, fail) {
		t.Errorf("exit %d: %v", code, found)
	}
	if text := s.run("", "doctor", "--listen", address).stdout; !strings.Contains(text, "STATE_DIRECTORY  "+s.env["STATE_DIRECTORY"]) || !strings.Contains(text, "→ set it to what browsers use") {
		t.Errorf("%s", text)
	}

	found, _ = s.findings("--listen", address, "--public-url", "http://"+address)
	wantFindings(t, found, map[string]string{"public URL": "leads to a manager"})
	byName := "http://localhost" + address[strings.LastIndex(address, ":"):]
	found, _ = s.findings("--listen", address, "--public-url", byName+"/prefix")
	wantFindings(t, found, map[string]string{"public URL": "fail"})
	stop()
	found, code = s.findings("--listen", address, "--public-url", "http://"+address)
	wantFindings(t, found, map[string]string{"listen": "fail nobody answers", "public URL": "fail"})
	if code != exitFault {
		t.Errorf("exit %d", code)
	}
}

func TestDoctorFindsOthersInThePlaceOfTheManager(t *testing.T) {
	s := newFileShell(t)
	s.must("", "migrate")
	other := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<h1>It works!</h1>")) })
	plain, secure := httptest.NewServer(other), httptest.NewTLSServer(other)
	defer plain.Close()
	defer secure.Close()
	found, code := s.findings("--listen", strings.TrimPrefix(plain.URL, "http://"), "--public-url", secure.URL)
	wantFindings(t, found, map[string]string{"listen": "fail " + strings.TrimPrefix(plain.URL, "http://") + " is taken", "public URL": "MANAGER_CA_FILE"})
	if code != exitFault {
		t.Errorf("exit %d", code)
	}
}

// The manager's own certificate lies in the folder of certificates that are
// trusted, as its proxy wants it. Browsers do not trust it for that.
func TestDoctorTrustsNoCertificateForItsPlace(t *testing.T) {
	s := newFileShell(t)
	s.must("", "migrate")
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	defer secure.Close()
	s.env["SSL_CERT_DIR"] = t.TempDir()
	own := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})
	if err := os.WriteFile(filepath.Join(s.env["SSL_CERT_DIR"], "manager.crt"), own, 0o644); err != nil {
		t.Fatal(err)
	}
	out, _ := s.program("doctor", "--public-url", secure.URL).Output() // as a process: Go reads the folder once
	if !strings.Contains(string(out), "agents and browsers refuse this certificate") {
		t.Errorf("%s", out)
	}
}

func TestDoctorLooksAtTheDatabase(t *testing.T) {
	s := newFileShell(t)
	path := filepath.Join(s.env["STATE_DIRECTORY"], "manager.db")
	if found, code := s.findings(); code != exitFault || !strings.Contains(found["database"], "does not exist") {
		t.Errorf("no database: exit %d, %v", code, found)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("doctor has made a database")
	}
	s.must("", "migrate")
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 {
		if err := os.Chown(path, 12345, 12345); err != nil {
			t.Fatal(err)
		}
		found, _ := s.findings()
		wantFindings(t, found, map[string]string{"owner": "fail " + path + " belongs to uid 12345"})
		if err := os.Chown(path, 0, 0); err != nil {
			t.Fatal(err)
		}
	}
	found, _ := s.findings()
	wantFindings(t, found, map[string]string{"owner": "chmod 0640"})
	makeNewer(t, store.Database{Path: path})
	found, _ = s.findings()
	wantFindings(t, found, map[string]string{"schema": "newer version"})
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := 8192; i < len(content)-4096; i += 4096 {
		copy(content[i:], "nothing of this can be read any more")
	}
	if err := os.WriteFile(path, content, 0o640); err != nil {
		t.Fatal(err)
	}
	found, _ = s.findings()
	if all := found["database"] + found["database file"]; !strings.Contains(all, "fail") || !strings.Contains(all, "restore") {
		t.Errorf("a damaged file: %v", found)
	}
}

func TestDoctorTellsEveryMistake(t *testing.T) {
	s := newFileShell(t)
	s.env["LISTEN"], s.env["PUBLIC_URL"] = "nowhere", "foo"
	found, code := s.findings()
	if code != exitFault || !strings.Contains(found["settings"], "LISTEN: ") || !strings.Contains(found["settings"], "PUBLIC_URL: ") {
		t.Errorf("exit %d: %v", code, found)
	}
}

func TestClocksOfAgents(t *testing.T) {
	now := time.Now()
	agent := func(skew time.Duration) store.Agent {
		ms := skew.Milliseconds()
		return store.Agent{ClockSkewMS: &ms, LastSeenAt: now}
	}
	for name, test := range map[string]struct {
		agents []store.Agent
		state  string
	}{
		"none":          {nil, ""},
		"no time told":  {[]store.Agent{{LastSeenAt: now}}, ""},
		"one is wrong":  {[]store.Agent{agent(time.Hour), agent(0), agent(time.Second)}, fine},
		"most are off":  {[]store.Agent{agent(-time.Minute), agent(-time.Minute), agent(0)}, warn},
		"all are ahead": {[]store.Agent{agent(time.Minute), agent(time.Minute)}, warn},
	} {
		got := ""
		for _, f := range health.Clocks(test.agents, now) {
			got = f.State
		}
		if got != test.state {
			t.Errorf("%s: %q, want %q", name, got, test.state)
		}
	}
}

// contentOf is every file of a folder, with its content.
func contentOf(t *testing.T, folder string) map[string]string {
	t.Helper()
	files, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, file := range files {
		content, err := os.ReadFile(filepath.Join(folder, file.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all[file.Name()] = string(content)
	}
	return all
}

// Whatever the doctor looks at stays as it is.
func TestDoctorChangesNothing(t *testing.T) {
	for name, test := range map[string]struct {
		make func(*shell, string)
		want map[string]string
	}{
		"a good one": {func(s *shell, _ string) { s.must("", "migrate") }, map[string]string{"database file": "ok", "schema": "ok"}},
		"another's": {func(s *shell, path string) {
			if _, err := storetest.Raw(s.t, store.Database{Path: path}).Exec("CREATE TABLE notes (text)"); err != nil {
				s.t.Fatal(err)
			}
		}, map[string]string{"database": "not one of this manager"}},
		"a text": {func(s *shell, path string) {
			if err := os.WriteFile(path, []byte(strings.Repeat("hello ", 1000)), 0o640); err != nil {
				s.t.Fatal(err)
			}
		}, map[string]string{"database": "not a database"}},
		"locked": {func(s *shell, path string) {
			s.must("", "migrate")
			db := storetest.Raw(s.t, store.Database{Path: path})
			db.SetMaxOpenConns(1)
			if _, err := db.Exec("PRAGMA locking_mode = EXCLUSIVE; BEGIN IMMEDIATE; DELETE FROM sites; COMMIT"); err != nil {
				s.t.Fatal(err)
			}
		}, map[string]string{"database": "another program has locked it"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFileShell(t)
			s.t = t
			test.make(s, filepath.Join(s.env["STATE_DIRECTORY"], "manager.db"))
			before := contentOf(t, s.env["STATE_DIRECTORY"])
			found, _ := s.findings()
			wantFindings(t, found, test.want)
			if diff := cmp.Diff(slices.Sorted(maps.Keys(before)), slices.Sorted(maps.Keys(contentOf(t, s.env["STATE_DIRECTORY"])))); diff != "" {
				t.Errorf("files (-before +after):\n%s", diff)
			}
			if after := contentOf(t, s.env["STATE_DIRECTORY"]); after["manager.db"] != before["manager.db"] {
				t.Error("the file is another one")
			}
		})
	}
}
