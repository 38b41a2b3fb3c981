package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"opensource.internal/manager/internal/auth"
	"opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/show"
	"opensource.internal/manager/internal/store"
	"opensource.internal/manager/internal/store/storetest"
)

// shell runs command lines on one state directory.
type shell struct {
	t     *testing.T
	env   map[string]string
	files []string // with the settings of the service
}

type result struct {
	code           int
	stdout, stderr string
}

func newShell(t *testing.T) *shell {
	s := newFileShell(t)
	if storetest.OnPostgreSQL() {
		s.env["DATABASE_URL"] = storetest.Database(t).URL
	}
	return s
}

// newFileShell is for what there is only with a database in a file.
func newFileShell(t *testing.T) *shell {
	return &shell{t: t, env: map[string]string{"STATE_DIRECTORY": t.TempDir()}}
}

func (s *shell) run(stdin string, args ...string) result {
	s.t.Helper()
	var stdout, stderr bytes.Buffer
	code := execute(s.t.Context(), args, s.env, s.files, strings.NewReader(stdin), &stdout, &stderr)
	return result{code, stdout.String(), stderr.String()}
}

// must runs a command that has to succeed and returns what it printed.
func (s *shell) must(stdin string, args ...string) string {
	s.t.Helper()
	r := s.run(stdin, args...)
	if r.code != exitOK {
		s.t.Fatalf("%v: exit %d: %s", args, r.code, r.stderr)
	}
	return r.stdout
}

// database is the one that the command lines work on.
func (s *shell) database() store.Database {
	return store.Database{Path: filepath.Join(s.env["STATE_DIRECTORY"], "manager.db"), URL: s.env["DATABASE_URL"]}
}

func (s *shell) store() *store.Store {
	s.t.Helper()
	opened, err := store.Open(s.t.Context(), s.database(), store.Options{Migrate: true})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { opened.Close() })
	return opened
}

func decode[T any](t *testing.T, text string) T {
	t.Helper()
	var value T
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("not JSON: %q: %v", text, err)
	}
	return value
}

func TestVersionAndHelp(t *testing.T) {
	s := newShell(t)
	if got := s.must("", "version"); got != version+"\n" {
		t.Errorf("%q", got)
	}
	if got := decode[map[string]string](t, s.must("", "version", "--json")); got["version"] != version {
		t.Errorf("%v", got)
	}
	help := s.must("", "--help")
	for _, word := range []string{"serve", "migrate", "apikey", "user", "PUBLIC_URL", "127.0.0.1:3000"} {
		if !strings.Contains(help, word) {
			t.Errorf("%s is not in the help", word)
		}
	}
	var stdout, stderr bytes.Buffer
	if code := run([]string{"version"}, environment([]string{"A=b", "C=d=e", "junk"}), strings.NewReader(""), &stdout, &stderr); code != exitOK {
		t.Errorf("run: %d %s", code, stderr.String())
	}
}

func TestMistakesExitTwo(t *testing.T) {
	s := newShell(t)
	for _, args := range [][]string{
		{},
		{"nonsense"},
		{"serve", "--nonsense"},
		{"apikey"},
		{"apikey", "create"},
		{"apikey", "create", "--role", "root"},
		{"apikey", "create", "--role", "agent"},
		{"apikey", "create", "--role", "agent", "--site", "one"},
		{"apikey", "create", "--role", "agent", "--site", "7"},
		{"apikey", "create", "--role", "admin", "--site", "1"},
		{"apikey", "revoke"},
		{"apikey", "revoke", "abc"},
		{"user", "create"},
		{"user", "create", "x", "a password in argv"},
		{"user", "create", "x", "--password", "long enough to do"},
		{"user", "create", "x", "--role", "agent", "--generate"},
		{"user", "create", " ", "--generate"},
	} {
		if r := s.run("", args...); r.code != exitUsage || r.stderr == "" || r.stdout != "" {
			t.Errorf("%v: exit %d, stdout %q, stderr %q", args, r.code, r.stdout, r.stderr)
		}
	}
}

func TestNumbersAreToldInPlainWords(t *testing.T) {
	s := newShell(t)
	for want, args := range map[string][]string{
		`<id>: "x" is not a whole number`:                      {"apikey", "rotate", "x"},
		`<id>: "1.5" is not a whole number`:                    {"apikey", "revoke", "1.5"},
		`<number>: "first" is not a whole number`:              {"revisions", "show", "lab", "first"},
		`<number>: "0x1" is not a whole number`:                {"revisions", "diff", "lab", "0x1"},
		`--from: "99999999999999999999" is not a whole number`: {"revisions", "diff", "lab", "2", "--from", "99999999999999999999"},
		`[<revision>]: "latest" is not a whole number`:         {"pin", "lab", "latest", "--reason", "x"},
		`--limit: "all" is not a whole number`:                 {"audit", "--limit", "all"},
	} {
		r := s.run("", args...)
		if r.code != exitUsage || !strings.Contains(r.stderr, want) {
			t.Errorf("%v: %d %s", args, r.code, r.stderr)
		}
	}
}

func TestAllMistakesOfTheSettingsAtOnce(t *testing.T) {
	s := newShell(t)
	s.env["TRUSTED_PROXIES"], s.env["LISTEN"] = "192.0.2.0/24,oops", "nowhere"
	r := s.run("", "serve", "--log-level", "loud")
	if r.code != exitUsage {
		t.Errorf("exit %d", r.code)
	}
	for _, name := range []string{"TRUSTED_PROXIES: ", "LISTEN: ", "LOG_LEVEL: "} {
		if !strings.Contains(r.stderr, "opensource-manager: "+name) {
			t.Errorf("%s is not named in %s", name, r.stderr)
		}
	}
}

func TestMigrateTwice(t *testing.T) {
	s := newShell(t)
	for range 2 {
		got := decode[migrated](t, s.must("", "migrate", "--json"))
		if got.SchemaVersion < 1 || got.Database != s.database().String() {
			t.Errorf("%+v", got)
		}
	}
	if got := s.must("", "migrate"); !strings.Contains(got, "schema") {
		t.Errorf("%q", got)
	}
	s.env = nil
	if r := s.run("", "migrate", "--database", "/proc/nowhere/manager.db"); r.code != exitFault || r.stderr == "" {
		t.Errorf("impossible path: %+v", r)
	}
}

func TestPeople(t *testing.T) {
	s := newShell(t)
	s.must("correct horse battery", "user", "create", "ada")
	s.must("correct horse battery", "user", "create", "eve", "--role", "viewer")
	if r := s.run("", "user", "disable", "Ada"); r.code != exitFault || !strings.Contains(r.stderr, "last administrator") {
		t.Errorf("%+v", r)
	}
	if got := s.must("", "user", "role", "eve", "admin"); got != "eve is admin now\n" {
		t.Errorf("%q", got)
	}
	if got := decode[show.User](t, s.must("", "user", "disable", "ada", "--json")); got.DisabledAt == nil || got.Name != "ada" {
		t.Errorf("%+v", got)
	}
	if got := s.must("", "user", "list"); !strings.Contains(got, "disabled 20") || !strings.Contains(got, "eve") {
		t.Error(got)
	}
	s.must("", "user", "enable", "ada")
	if got := s.must("", "user", "delete", "eve"); got != "deleted eve\n" {
		t.Errorf("%q", got)
	}
	if list := decode[[]show.User](t, s.must("", "user", "list", "--json")); len(list) != 1 || list[0].DisabledAt != nil || list[0].Role != "admin" {
		t.Errorf("%+v", list)
	}
	if r := s.run("", "user", "delete", "eve"); r.code != exitFault || !strings.Contains(r.stderr, `no user "eve"`) {
		t.Errorf("%+v", r)
	}
	if r := s.run("", "user", "role", "ada", "agent"); r.code != exitUsage {
		t.Errorf("%+v", r)
	}
}

func TestEnrollments(t *testing.T) {
	s := newShell(t)
	if _, err := s.store().CreateSite(t.Context(), inventory.Site{Name: "lab"}); err != nil {
		t.Fatal(err)
	}
	if r := s.run("", "enroll", "1"); r.code != exitUsage || !strings.Contains(r.stderr, "PUBLIC_URL") {
		t.Errorf("%+v", r)
	}
	for _, site := range []string{"1", "LAB"} {
		want := regexp.MustCompile(`^sudo apt install \./opensource-agent_\*\.deb && sudo opensource-agent enroll --manager 'https://m\.example' --token ose_[0-9a-f]{16}_[0-9a-f]{64}\n$`)
		if got := s.must("", "enroll", site, "--public-url", "https://m.example"); !want.MatchString(got) {
			t.Errorf("%q", got)
		}
	}
	got := decode[show.NewEnrollment](t, s.must("", "enroll", "1", "--public-url", "https://m.example", "--hostname", "Gateway", "--expires", "2d", "--json"))
	if left := time.Until(got.ExpiresAt); *got.Hostname != "gateway" || got.Token == "" || left < 47*time.Hour || left > 48*time.Hour {
		t.Errorf("%+v", got)
	}
	for _, bad := range [][]string{{"1", "--expires", "x"}, {"1", "--expires", "30d"}, {"1", "--hostname", "a b"}, {}} {
		if r := s.run("", append([]string{"enroll", "--public-url", "https://m.example"}, bad...)...); r.code != exitUsage {
			t.Errorf("%v: %+v", bad, r)
		}
	}
	if r := s.run("", "enroll", "nope", "--public-url", "https://m.example"); r.code != exitFault || !strings.Contains(r.stderr, `no site "nope"`) {
		t.Errorf("%+v", r)
	}
}

func TestKeysWithAnEnd(t *testing.T) {
	s := newShell(t)
	made := decode[show.NewAPIKey](t, s.must("", "apikey", "create", "--role", "viewer", "--expires", "90d", "--json"))
	if made.ExpiresAt == nil || time.Until(*made.ExpiresAt) < 89*24*time.Hour {
		t.Errorf("%+v", made)
	}
	next := decode[show.NewAPIKey](t, s.must("", "apikey", "rotate", fmt.Sprint(made.ID), "--overlap", "1h", "--json"))
	if next.Key == made.Key || next.ID == made.ID || next.ExpiresAt == nil {
		t.Errorf("%+v", next)
	}
	if got := s.must("", "apikey", "list"); strings.Count(got, "valid until 20") != 2 {
		t.Error(got)
	}
	for _, bad := range [][]string{{"create", "--role", "viewer", "--expires", "x"}, {"create", "--role", "viewer", "--expires", "0s"}, {"rotate", "1", "--overlap", "31d"}, {"rotate", "x"}} {
		if r := s.run("", append([]string{"apikey"}, bad...)...); r.code != exitUsage {
			t.Errorf("%v: %+v", bad, r)
		}
	}
	if r := s.run("", "apikey", "rotate", "99"); r.code != exitFault || !strings.Contains(r.stderr, "no API key 99") {
		t.Errorf("%+v", r)
	}
}

func TestAPIKeys(t *testing.T) {
	s := newShell(t)
	site, err := s.store().CreateSite(t.Context(), inventory.Site{Name: "lab"})
	if err != nil {
		t.Fatal(err)
	}
	alone := s.must("", "apikey", "create", "--role", "admin", "--name", "deploy")
	if !regexp.MustCompile(`^osk_[0-9a-f]{16}_[0-9a-f]{64}\n$`).MatchString(alone) {
		t.Errorf("stdout %q is not the key alone", alone)
	}
	made := decode[show.NewAPIKey](t, s.must("", "apikey", "create", "--role", "agent", "--site", fmt.Sprint(site.ID), "--json"))
	if made.Key == "" || made.Role != "agent" || made.SiteID == nil || *made.SiteID != site.ID || made.Name != "agent of site 1" {
		t.Errorf("%+v", made)
	}

	list := s.must("", "apikey", "list")
	for _, want := range []string{"deploy", "agent of site 1", "valid", "never"} {
		if !strings.Contains(list, want) {
			t.Errorf("%s is not in\n%s", want, list)
		}
	}
	listed := s.must("", "apikey", "list", "--json")
	if got := decode[[]show.APIKey](t, listed); len(got) != 2 {
		t.Errorf("%v", got)
	}
	for _, key := range []string{strings.TrimSpace(alone), made.Key} {
		if strings.Contains(list+listed, key) {
			t.Error("a list shows a key")
		}
	}

	if got := s.must("", "apikey", "revoke", fmt.Sprint(made.ID)); !strings.Contains(got, "revoked") {
		t.Errorf("%q", got)
	}
	if got := decode[show.NewAPIKey](t, s.must("", "apikey", "revoke", fmt.Sprint(made.ID), "--json")); got.RevokedAt == nil {
		t.Errorf("%+v", got)
	}
	if got := s.must("", "apikey", "list"); !strings.Contains(got, "revoked 20") {
		t.Errorf("%s", got)
	}
	if r := s.run("", "apikey", "revoke", "99"); r.code != exitFault || !strings.Contains(r.stderr, "there is no API key 99") {
		t.Errorf("%+v", r)
	}
}

// TestSetupCodeWithAProvider: no page would ask for the code.
func TestSetupCodeWithAProvider(t *testing.T) {
	s := newShell(t)
	if code := s.must("", "setup-code"); len(strings.TrimSpace(code)) < 20 {
		t.Errorf("%q", code)
	}
	for name, value := range map[string]string{
		"PUBLIC_URL": "https://manager.example.com", "OIDC_ISSUER": "https://accounts.example.com", "OIDC_NAME": "Example Accounts",
		"OIDC_CLIENT_ID": "manager", "OIDC_ADMINS": "ada@example.com",
	} {
		s.env[name] = value
	}
	r := s.run("", "setup-code")
	if r.code != exitFault || r.stdout != "" || !strings.Contains(r.stderr, "no page asks for a code, since people sign in with Example Accounts") || !strings.Contains(r.stderr, "user create") {
		t.Errorf("%+v", r)
	}
}

func TestUsers(t *testing.T) {
	s := newShell(t)
	if got := s.must("correct horse battery\n", "user", "create", "Ada"); got != "created user ada (admin)\n" {
		t.Errorf("%q", got)
	}
	generated := s.must("", "user", "create", "eve", "--role", "viewer", "--generate")
	if len(strings.Fields(generated)) != 1 || len(generated) < 20 {
		t.Errorf("%q", generated)
	}
	if got := decode[userWithPassword](t, s.must("", "user", "create", "bob", "--generate", "--json")); got.Password == "" || got.Role != "admin" || got.ID == 0 {
		t.Errorf("%+v", got)
	}
	if got := decode[userWithPassword](t, s.must("correct horse battery", "user", "create", "joe", "--json")); got.Password != "" {
		t.Errorf("a password that was typed is printed: %+v", got)
	}
	if r := s.run("correct horse battery\n", "user", "create", "ADA"); r.code != exitFault || !strings.Contains(r.stderr, "already") {
		t.Errorf("same name: %+v", r)
	}
	for _, bad := range []string{"", "\n", "short\n"} {
		if r := s.run(bad, "user", "create", "tom"); r.code != exitUsage || r.stderr == "" {
			t.Errorf("password %q: %+v", bad, r)
		}
	}

	before, err := s.store().UserByName(t.Context(), "ada")
	if err != nil {
		t.Fatal(err)
	}
	if got := s.must("a whole new password\n", "user", "passwd", "Ada"); !strings.Contains(got, "ada") {
		t.Errorf("%q", got)
	}
	if after, _ := s.store().UserByName(t.Context(), "ada"); after.PasswordHash == before.PasswordHash {
		t.Error("the password is the old one")
	}
	if got := decode[userWithPassword](t, s.must("", "user", "passwd", "ada", "--generate", "--json")); got.Password == "" || got.Name != "ada" {
		t.Errorf("%+v", got)
	}
	if r := s.run("a whole new password\n", "user", "passwd", "nobody"); r.code != exitFault || !strings.Contains(r.stderr, `no user "nobody"`) {
		t.Errorf("%+v", r)
	}
}

// freePort is a port that was free a moment ago: serve takes no port 0.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func TestServe(t *testing.T) {
	s := newShell(t)
	address := freePort(t)
	key := strings.TrimSpace(s.must("", "apikey", "create", "--role", "admin"))
	notified := listenForReady(t, s)

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var stdout, stderr bytes.Buffer
	ended := make(chan int, 1)
	go func() {
		ended <- execute(ctx, []string{"serve", "--listen", address}, s.env, nil, strings.NewReader(""), &stdout, &stderr)
	}()
	select {
	case <-notified:
	case code := <-ended:
		t.Fatalf("serve ended with %d: %s", code, stderr.String())
	case <-time.After(10 * time.Second):
		t.Fatal("systemd never heard that the manager is ready")
	}

	ask := func() int {
		request, _ := http.NewRequestWithContext(t.Context(), "GET", "http://"+address+"/api/v1/sites", nil)
		request.Header.Set("X-Api-Key", key)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		return response.StatusCode
	}
	if got := ask(); got != 200 {
		t.Errorf("GET /sites: %d", got)
	}
	s.must("", "apikey", "revoke", "1")
	if got := ask(); got != 401 {
		t.Errorf("after apikey revoke on the command line: %d", got)
	}

	began := time.Now()
	stop()
	if code := <-ended; code != exitOK || time.Since(began) > time.Second {
		t.Errorf("exit %d after %s: %s", code, time.Since(began), stderr.String())
	}
	if stdout.Len() > 0 {
		t.Errorf("serve wrote to stdout: %s", stdout.String())
	}
	if strings.Contains(stderr.String(), key) {
		t.Error("a key is in the log")
	}
}

// listenForReady stands in for systemd (sd_notify(3)).
func listenForReady(t *testing.T, _ *shell) <-chan struct{} {
	t.Helper()
	folder, err := os.MkdirTemp("", "notify") // t.TempDir is too long for a socket's name
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(folder, "s"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { socket.Close() })
	t.Setenv("NOTIFY_SOCKET", filepath.Join(folder, "s"))
	ready := make(chan struct{})
	go func() {
		buffer := make([]byte, 256)
		for {
			n, err := socket.Read(buffer)
			if err != nil {
				return
			}
			if strings.Contains(string(buffer[:n]), "READY=1") {
				close(ready)
				return
			}
		}
	}()
	return ready
}

func TestNewerSchemaIsRefused(t *testing.T) {
	s := newShell(t)
	s.must("", "migrate")
	makeNewer(t, s.database())
	for _, args := range [][]string{{"serve", "--listen", freePort(t)}, {"migrate"}, {"apikey", "list"}} {
		if r := s.run("", args...); r.code != exitFault || !strings.Contains(r.stderr, "newer version") {
			t.Errorf("%v: %+v", args, r)
		}
	}
}

func TestKeysWorkForWhatTheyWereMade(t *testing.T) {
	s := newShell(t)
	key := strings.TrimSpace(s.must("", "apikey", "create", "--role", "viewer"))
	a := auth.New(auth.Options{Store: s.store()})
	r, _ := http.NewRequest("GET", "/", nil)
	r.Header.Set("Authorization", "Bearer "+key)
	if who, err := a.Authenticate(r); err != nil || who.Role != auth.RoleViewer {
		t.Errorf("%+v, %v", who, err)
	}
}

func TestLookingMakesNoDatabase(t *testing.T) {
	s := newFileShell(t)
	for _, args := range [][]string{{"sites"}, {"agents"}, {"apikey", "list"}, {"user", "list"}, {"events"}, {"export", "--all"}, {"notify", "targets"}} {
		if r := s.run("", args...); r.code != exitFault || !strings.Contains(r.stderr, "run opensource-manager migrate") {
			t.Errorf("%v: %+v", args, r)
		}
	}
	if found, err := os.ReadDir(s.env["STATE_DIRECTORY"]); err != nil || len(found) > 0 {
		t.Errorf("%v, %v", found, err)
	}
	s.must("", "migrate")
	s.must("", "sites")
}

// A number may be the id of one site and the name of another.
func TestNoSiteIsTakenForAnother(t *testing.T) {
	s := newShell(t)
	opened := s.store()
	for _, name := range []string{"lab", "1"} {
		if _, err := opened.CreateSite(t.Context(), inventory.Site{Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"revisions", "list", "1"}, {"unpin", "1"}, {"enroll", "1", "--public-url", "https://m.example.com"}} {
		if r := s.run("", args...); r.code != exitFault || !strings.Contains(r.stderr, "say id:2 or id:1") {
			t.Errorf("%v: %+v", args, r)
		}
	}
	for site, want := range map[string]string{"id:1": "lab", "lab": "lab", "2": "1", "id:2": "1"} {
		if r := s.run("", "unpin", site); !strings.Contains(r.stdout, `Site "`+want+`" is not pinned`) {
			t.Errorf("%s: %+v", site, r)
		}
	}
	if r := s.run("", "unpin", "id:3"); !strings.Contains(r.stderr, `there is no site "id:3"`) {
		t.Errorf("%+v", r)
	}
}
