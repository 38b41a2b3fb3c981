package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"opensource.internal/agent/checkin"
	"opensource.internal/agent/internal/pass"
	"opensource.internal/agent/internal/state"
	"opensource.internal/agent/render"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, []byte(content), 0o600))
}

// unpack returns what is in an archive, by name.
func unpack(t *testing.T, archive []byte) map[string]string {
	t.Helper()
	plain, err := gzip.NewReader(bytes.NewReader(archive))
	must(t, err)
	found := map[string]string{}
	for files := tar.NewReader(plain); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		must(t, err)
		if mode := header.FileInfo().Mode().Perm(); mode&0o077 != 0 {
			t.Errorf("%s has mode %04o", header.Name, mode)
		}
		content, err := io.ReadAll(files)
		must(t, err)
		found[header.Name] = string(content)
	}
}

func makes(files ...File) func(context.Context) ([]File, error) {
	return func(context.Context) ([]File, error) { return files, nil }
}

func TestPartsThatCannotBeHadStopNoOther(t *testing.T) {
	parts := []Part{
		{"a.txt", "the first", makes(File{"a.txt", []byte("the-secret is here")})},
		{"b/", "two, of which one is missing", func(context.Context) ([]File, error) {
			return []File{{Name: "b/"}, {"b/one", []byte("1")}}, errors.Join(errors.New("open b/two: the-secret"), errors.New("and b/three"))
		}},
		{"c.txt", "breaks", func(context.Context) ([]File, error) { panic("oh dear") }},
		{"d.txt", "is too large", makes(File{"d.txt", make([]byte, maxFile+1)})},
		{"e.txt", "the last", makes(File{"e.txt", []byte("e")})},
	}
	var out, progress bytes.Buffer
	must(t, Write(t.Context(), &out, "folder", parts, NewRedactor("the-secret"), &progress))
	found := unpack(t, out.Bytes())
	readme := found["folder/README.txt"]
	delete(found, "folder/README.txt")
	want := map[string]string{"folder/a.txt": "[removed] is here", "folder/b/": "", "folder/b/one": "1", "folder/e.txt": "e"}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, line := range []string{
		"\na.txt\n    the first\n", "\nb/\n    two, of which one is missing\n    MISSING: open b/two: [removed]\n    MISSING: and b/three\n",
		"\nc.txt\n    breaks\n    MISSING: collecting it broke: oh dear\n", fmt.Sprintf("MISSING: d.txt is too large: %d bytes", maxFile+1),
		"\ne.txt\n    the last\n",
	} {
		if !strings.Contains(readme, line) {
			t.Errorf("%q is not in:\n%s", line, readme)
		}
	}
	if want := "a.txt: 1 kB\nb/: 1 kB\n  missing: open b/two: [removed]\n  missing: and b/three\nc.txt: 0 kB\n  missing: collecting"; !strings.HasPrefix(progress.String(), want) {
		t.Errorf("progress:\n%s", progress.String())
	}
}

func TestAPartThatHangs(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := Part{Make: func(context.Context) ([]File, error) { <-release; return nil, nil }}.files(ctx)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestAnArchiveThatCannotBeWritten(t *testing.T) {
	err := Write(t.Context(), full{}, "folder", []Part{{"a", "", makes(File{"a", make([]byte, 1<<20)})}}, NewRedactor(), io.Discard)
	if !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %v", err)
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if err := Write(stopped, io.Discard, "folder", []Part{{"a", "", makes()}}, NewRedactor(), io.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped: %v", err)
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestTheWholeArchiveIsBounded(t *testing.T) {
	a := &archive{tar: tar.NewWriter(io.Discard), redact: NewRedactor(), written: maxArchive - 1}
	if refused, err := a.add(File{"x", []byte("12")}); refused == nil || err != nil {
		t.Errorf("got %v, %v", refused, err)
	}
}

func TestTailOfALog(t *testing.T) {
	var kept tail
	for i := range 5 {
		fmt.Fprintf(&kept, "%d%s", i, strings.Repeat("x", maxLog/2))
	}
	if len(kept.kept) != maxLog || !strings.HasSuffix(string(kept.kept), "4"+strings.Repeat("x", maxLog/2)) {
		t.Errorf("%d bytes are kept", len(kept.kept))
	}
}

func TestReadingWaitsForNoPipe(t *testing.T) {
	dir := t.TempDir()
	must(t, syscall.Mkfifo(dir+"/pipe", 0o600))
	write(t, dir+"/file", "content")
	files, err := read([]string{dir + "/pipe", dir + "/gone", dir + "/file"}, filepath.Base)
	if len(files) != 1 || files[0].Name != "file" || len(reasons(err)) != 2 {
		t.Errorf("got %v, %v", files, err)
	}
}

// secrets are all told apart, and none may be in an archive.
var secrets = map[string]string{
	"key":            "osk_0123456789abcdef_" + strings.Repeat("ab", 32),
	"another key":    "osk_fedcba9876543210_" + strings.Repeat("cd", 32),
	"known":          "an-older-key-of-another-form",
	"header":         "aGVhZGVyOnNlY3JldDE=",
	"cookie":         "cookie-content-2",
	"password":       "pass-word-3",
	"proxy":          "proxy-pass-4",
	"auth server":    "auth-pass-5",
	"private key":    "MHcCAQEEIprivate6",
	"query":          "code-in-address-7",
	"token":          "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiI4In0.c2lnbmF0dXJl",
	"in a template":  "dGVtcGxhdGU6c2VjcmV0OQ==",
	"in a state":     "state-pass-10",
	"in a drop-in":   "ZHJvcDppbjEx",
	"in settings":    "settings-key-12",
	"in a host name": "osk_0000000000000000_" + strings.Repeat("ef", 32),
}

// plantedHost is a host with secrets in every place.
func plantedHost(t *testing.T) Options {
	t.Helper()
	root := t.TempDir()
	data := fmt.Sprintf(`{"site":{"id":1,"name":%q,"internalDomain":"lab.internal","dhcpRange":"192.0.2.100,192.0.2.200","subnetMask":"255.255.255.0",
	  "gateway":"192.0.2.1","dnsForwarders":"9.9.9.9","nodes":[],"dnsRecords":[],"volumes":[]},
	  "nginx":{"httpServices":[
	    {"id":3,"internalPort":8080,"container":{"ipv4Address":"192.0.2.101"},"externalHostname":"app","backendProtocol":"http","authRequired":true,
	     "externalDomain":{"name":"example.com","authServer":"http://user:%s@192.0.2.9:4180"}},
	    {"id":4,"internalPort":8080,"container":{"ipv4Address":"192.0.2.101"},"externalHostname":"two","backendProtocol":"http","authRequired":true,
	     "externalDomain":{"name":"example.com","authServer":"http://192.0.2.9:4180"}}],
	   "streamServices":[],"externalDomains":[{"name":"example.com"}]}}`, secrets["in a host name"], secrets["auth server"])
	snapshot, err := checkin.ParseSnapshot([]byte(data))
	must(t, err)
	stateDir := root + "/var/lib/opensource-agent"
	write(t, stateDir+"/state.json", fmt.Sprintf(`{"services":{"nginx":{"message":"sent Authorization: Basic %s\nCookie: \"%s\""}},"password":%q}`,
		secrets["header"], secrets["cookie"], secrets["in a state"]))
	write(t, stateDir+"/held-back.json", `{"etag":"\"x\"","data":`+data+`}`)
	write(t, stateDir+"/broken.json", `{"message":"`+secrets["key"])
	write(t, stateDir+"/acme/challenge", "not to be looked into")
	paths := render.DefaultPaths()
	paths.NGINXConf, paths.DNSMasqConf, paths.DNSMasqDir = root+"/etc/nginx/nginx.conf", root+"/etc/dnsmasq.conf", root+"/var/lib/dnsmasq"
	paths.NGINXErrorLog = root + "/var/log/nginx/error.log"
	write(t, paths.NGINXConf, "# edited by hand\nproxy_set_header Authorization \"Basic "+secrets["header"]+"\";\n")
	write(t, root+"/etc/nginx/conf.d/own.conf", "proxy_set_header Authorization 'Basic "+secrets["in a drop-in"]+"';\n# password = "+secrets["password"]+
		"\n-----BEGIN EC PRIVATE KEY-----\n"+secrets["private key"]+"\n-----END EC PRIVATE KEY-----\n")
	write(t, root+"/etc/dnsmasq.conf", "# "+secrets["known"]+"\n")
	write(t, root+"/etc/dnsmasq.d/own", "# "+secrets["another key"]+"\n")
	write(t, paths.NGINXErrorLog, fmt.Sprintf("[error] request: \"GET /oauth2/callback?code=%s&state=x HTTP/1.1\"\n[debug] http header: \"Cookie: _oauth2_proxy=%s\"\nbearer %s\n",
		secrets["query"], secrets["cookie"], secrets["token"]))
	templates := root + "/etc/opensource-agent/templates"
	original, err := os.ReadFile("../../../templates/nginx/http-service.tmpl")
	must(t, err)
	write(t, templates+"/nginx/http-service.tmpl", strings.Replace(string(original), "server_name {{.Name}};",
		"server_name {{.Name}};\n        proxy_set_header Authorization \"Basic "+secrets["in a template"]+"\";", 1))

	says := func(words string) func(context.Context, io.Writer) error {
		return func(_ context.Context, out io.Writer) error {
			_, err := io.WriteString(out, words)
			return err
		}
	}
	return Options{
		Pass: pass.Options{StateDirectory: stateDir, Root: root, Version: "1.2.3"},
		Known: pass.Known{
			Accepted: state.Accepted{ETag: `"x"`, Data: []byte(data), Snapshot: snapshot},
			Facts:    render.Facts{NGINX: render.NGINXFacts{Version: render.Version{1, 26, 3}, Stream: true}, IPv6: true, Paths: paths},
		},
		Templates: templates,
		Check:     says("FAIL  proxy: http://user:" + secrets["proxy"] + "@proxy:3128/ refuses"),
		Status:    says("nginx: " + secrets["key"]),
		Settings:  says("API_KEY=" + secrets["in settings"]),
		Run: func(_ context.Context, _ time.Duration, out io.Writer, name string, args ...string) error {
			fmt.Fprintf(out, "%s %s\nlogged %s, password=%s, Set-Cookie: a=%s\n", name, args[0], secrets["another key"], secrets["password"], secrets["cookie"])
			return nil
		},
	}
}

func TestNoSecretIsInAnArchive(t *testing.T) {
	redact := NewRedactor(secrets["known"])
	var out, progress bytes.Buffer
	must(t, Write(t.Context(), &out, "folder", Parts(plantedHost(t), redact), redact, &progress))
	found := unpack(t, out.Bytes())
	for name, content := range found {
		for what, secret := range secrets {
			if strings.Contains(content, secret) || strings.Contains(name, secret) {
				t.Errorf("the %s is in %s:\n%s", what, name, content)
			}
		}
	}
	for what, secret := range secrets {
		if strings.Contains(progress.String(), secret) {
			t.Errorf("the %s is shown", what)
		}
	}
	for name, want := range map[string]string{
		"check.txt": "FAIL  proxy: http://[removed]@proxy:3128/ refuses", "status.txt": "nginx: [removed]", "versions.txt": "opensource-agent 1.2.3",
		"snapshot.json": `"name":"[removed]"`, "facts.json": "1,\n", "state/held-back.json": "[removed]@192.0.2.9:4180", "state/broken.json": "[removed]",
		"state/state.json": "Authorization: [removed]", "nginx-error.log": "code=[removed]&state=[removed]", "agent.log": "journalctl --identifier=opensource-agent",
		"nginx.log": "journalctl --unit=nginx.service", "dnsmasq.log": "password=[removed]", "system/proc/self/mountinfo": " / ",
		"templates/nginx/http-service.tmpl": "Authorization [removed]",
	} {
		if content, there := found["folder/"+name]; !there || !strings.Contains(content, want) {
			t.Errorf("%q is not in %s: %s", want, name, content)
		}
	}
	for name := range found {
		if strings.Contains(name, "acme") {
			t.Errorf("%s is in the archive", name)
		}
	}
	if readme := found["folder/README.txt"]; !strings.Contains(readme, "\nunits.txt\n") || !strings.Contains(readme, "MISSING: systemd is left alone") {
		t.Errorf("README.txt:\n%s", readme)
	}
}

func TestAJournalWithoutEntriesIsMissing(t *testing.T) {
	for said, missing := range map[string]bool{
		"No journal files were found.\n-- No entries --\n": true, "-- No entries --\n": true, "": true,
		"2026-11-30T17:00:00 edge nginx[1]: -- No entries --\n": false,
	} {
		s := source{Options: Options{Run: func(_ context.Context, _ time.Duration, out io.Writer, _ string, _ ...string) error {
			_, err := io.WriteString(out, said)
			return err
		}}}
		files, err := s.journal("nginx.log", "--unit=nginx.service")(t.Context())
		if (err != nil) != missing || (len(files) == 0) != missing {
			t.Errorf("%q: %v, %v", said, files, err)
		}
	}
}
