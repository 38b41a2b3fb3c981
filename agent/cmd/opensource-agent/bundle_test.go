package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"opensource.internal/agent/internal/pass"
)

// siteRoot is a folder for --root with a site that was accepted, a template of
// an administrator, and a key.
func siteRoot(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for path, content := range map[string]string{
		"var/lib/opensource-agent/snapshot.json": strings.Replace(readFile(t, answerFile), "{", `{"etag":"\"x\"",`, 1),
		"etc/opensource-agent/agent.env":         "SITE_ID=1\nMANAGER_URL=http://localhost:3000\nMANAGER_HOSTNAME=m.example.com\nAPI_KEY=a-secret-key\n",
		"etc/opensource-agent/templates/nginx/domain.tmpl": strings.Replace(readFile(t, "../../../templates/nginx/domain.tmpl"),
			"return 404;", "proxy_set_header Authorization \"Basic c2VjcmV0OnNlY3JldA==\";\n            return 404;", 1),
	} {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		writeFile(t, path, content)
	}
	return root
}

// unpacked unpacks an archive and returns its folder.
func unpacked(t *testing.T, archive io.Reader) string {
	t.Helper()
	plain, err := gzip.NewReader(archive)
	if err != nil {
		t.Fatal(err)
	}
	dir, top := t.TempDir(), ""
	for files := tar.NewReader(plain); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return filepath.Join(dir, top)
		}
		if err != nil {
			t.Fatal(err)
		}
		top, _, _ = strings.Cut(header.Name, "/")
		path := filepath.Join(dir, header.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if header.Typeflag == tar.TypeDir {
			err = os.Mkdir(path, 0o755)
		} else {
			content, _ := io.ReadAll(files)
			err = os.WriteFile(path, content, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Whoever gets an archive can render what the host has rendered, to the byte,
// by the words in its README.
func TestBundleIsReplayed(t *testing.T) {
	root := siteRoot(t)
	var archive, stderr bytes.Buffer
	if code := runWith([]string{"bundle", "--root", root, "--out", "-"}, nil, &archive, &stderr); code != pass.Settled {
		t.Fatalf("exit status %d\n%s", code, stderr.String())
	}
	dir := unpacked(t, &archive)
	if readme := readFile(t, filepath.Join(dir, "README.txt")); !strings.Contains(readme, "--snapshot snapshot.json --facts facts.json") {
		t.Errorf("README.txt:\n%s", readme)
	}
	replay := filepath.Join(t.TempDir(), "replay")
	code, _, words := renders("", "--snapshot", filepath.Join(dir, "snapshot.json"), "--facts", filepath.Join(dir, "facts.json"),
		"--templates", filepath.Join(dir, "templates"), "--out", replay)
	if code != pass.Settled {
		t.Fatalf("render: exit status %d\n%s", code, words)
	}
	want := treeOf(t, filepath.Join(dir, "rendered"))
	if diff := cmp.Diff(want, treeOf(t, replay)); diff != "" {
		t.Errorf("replayed (-host +replay):\n%s", diff)
	}
	conf := want[filepath.Join(root, "etc/nginx/nginx.conf")[1:]]
	if !strings.Contains(conf, "server_name app.example.com") || !strings.Contains(conf, "server_name m.example.com") || !strings.Contains(conf, "Authorization [removed]") {
		t.Errorf("rendered are %q", conf)
	}
	for name, content := range treeOf(t, dir) {
		if strings.Contains(content, "a-secret-key") || strings.Contains(content, "c2VjcmV0OnNlY3JldA") {
			t.Errorf("a secret is in %s", name)
		}
	}
	for name, words := range map[string]string{
		"check.txt": "OK    rendering: nginx", "status.txt": "site 1", "settings.txt": "API_KEY is set, from " + root + "/etc/opensource-agent/agent.env",
		"versions.txt": "opensource-agent " + version,
	} {
		if got := readFile(t, filepath.Join(dir, name)); !strings.Contains(got, words) {
			t.Errorf("%q is not in %s:\n%s", words, name, got)
		}
	}
}

func TestBundleNeverOverwrites(t *testing.T) {
	root := siteRoot(t)
	t.Chdir(t.TempDir())
	bundles := func(args ...string) (pass.Code, string, string) {
		var stdout, stderr bytes.Buffer
		code := runWith(append([]string{"bundle", "--root", root}, args...), nil, &stdout, &stderr)
		return code, stdout.String(), stderr.String()
	}
	code, name, stderr := bundles()
	name = strings.TrimSpace(name)
	info, err := os.Stat(name)
	if code != pass.Settled || err != nil || info.Mode() != 0o600 || !strings.HasPrefix(name, "opensource-agent-") || !strings.HasSuffix(name, ".tar.gz") {
		t.Fatalf("exit status %d, %q, %v, %v\n%s", code, name, info, err, stderr)
	}
	if !strings.Contains(stderr, "snapshot.json: 2 kB\n") || !strings.Contains(stderr, "missing: systemd is left alone") {
		t.Errorf("progress:\n%s", stderr)
	}
	before := readFile(t, name)
	if code, _, stderr := bundles("--out", name); code != pass.Usage || !strings.Contains(stderr, "--out") || !strings.Contains(stderr, "exists") || readFile(t, name) != before {
		t.Errorf("over an archive: exit status %d\n%s", code, stderr)
	}
	if code, _, stderr := bundles("--out", "no/such/folder.tar.gz"); code != pass.Usage || !strings.Contains(stderr, "--out: ") || !strings.Contains(stderr, "no such file") {
		t.Errorf("into no folder: exit status %d\n%s", code, stderr)
	}
	if code, _, stderr := bundles("--out", root); code != pass.Usage || !strings.Contains(stderr, "--out: "+root+" is a folder") {
		t.Errorf("over a folder: exit status %d\n%s", code, stderr)
	}
	if left := treeOf(t, root); left["var/lib/opensource-agent/state.json"] != "" {
		t.Error("the state directory was written to")
	}
}

func TestAnArchiveThatCannotBeWrittenIsRemoved(t *testing.T) {
	name := filepath.Join(t.TempDir(), "x.tar.gz")
	file, err := newFile(name)
	if err != nil {
		t.Fatal(err)
	}
	err = fill(file, func(out io.Writer) error {
		_, _ = io.WriteString(out, "half")
		return errors.New("no space left")
	})
	if _, missing := os.Stat(name); err == nil || !os.IsNotExist(missing) {
		t.Errorf("%v, %v", err, missing)
	}
}

func TestTemplatesOfRender(t *testing.T) {
	for _, bad := range []string{filepath.Join(t.TempDir(), "gone"), answerFile} {
		code, _, stderr := renders("", "--snapshot", answerFile, "--facts", someHost(t), "--templates", bad, "--out", filepath.Join(t.TempDir(), "out"))
		if code != pass.Usage || !strings.Contains(stderr, "--templates") {
			t.Errorf("%s: exit status %d, %s", bad, code, stderr)
		}
	}
}
