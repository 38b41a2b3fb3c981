package main

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"opensource.internal/agent/internal/pass"
	"opensource.internal/agent/render"
)

// answerFile holds a site as an answer of the manager.
const answerFile = "../../checkin/testdata/answer.json"

// renders runs the command and returns its exit status and what it wrote.
func renders(stdin string, args ...string) (pass.Code, string, string) {
	var stdout, stderr bytes.Buffer
	code := run(append([]string{"render"}, args...), environment{stdin: strings.NewReader(stdin), stdout: &stdout, stderr: &stderr})
	return code, stdout.String(), stderr.String()
}

// hostFacts writes the facts of a host and returns the name of the file.
func hostFacts(t *testing.T, facts render.Facts) string {
	t.Helper()
	content, err := json.Marshal(facts)
	if err != nil {
		t.Fatal(err)
	}
	return writeFile(t, filepath.Join(t.TempDir(), "facts.json"), string(content))
}

func someHost(t *testing.T) string {
	return hostFacts(t, render.Facts{NGINX: render.NGINXFacts{Version: render.Version{1, 26, 3}, Stream: true}, IPv6: true})
}

func writeFile(t *testing.T, path, content string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// treeOf returns all that is below a folder, files with their content.
func treeOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		found[name] = entry.Type().String()
		if entry.Type().IsRegular() {
			found[name] = readFile(t, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestRenderTakesASnapshotInEveryForm(t *testing.T) {
	answer := readFile(t, answerFile)
	var file struct{ Data json.RawMessage }
	if err := json.Unmarshal([]byte(answer), &file); err != nil {
		t.Fatal(err)
	}
	facts := someHost(t)
	var want map[string]string
	for name, content := range map[string]string{
		"bare":            string(file.Data),
		"answer":          answer,
		"state directory": `{"etag":"\"x\"","data":` + string(file.Data) + "}\n",
	} {
		for _, by := range []string{"file", "-"} {
			out, given := filepath.Join(t.TempDir(), "out"), "-"
			if by == "file" {
				given = writeFile(t, filepath.Join(t.TempDir(), "snapshot"), content)
			}
			code, stdout, stderr := renders(content, "--snapshot", given, "--facts", facts, "--out", out)
			if code != pass.Settled || stderr != "" {
				t.Fatalf("%s from %s: exit status %d, %s", name, by, code, stderr)
			}
			got := treeOf(t, out)
			if want == nil {
				want = got
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s from %s (-others +this):\n%s", name, by, diff)
			}
			if !strings.Contains(stdout, filepath.Join(out, "etc/nginx/nginx.conf")+"\n") {
				t.Errorf("%s from %s: %s", name, by, stdout)
			}
		}
	}
	if !strings.Contains(want["etc/nginx/nginx.conf"], "server_name app.example.com") || !strings.Contains(want["var/lib/dnsmasq/hosts"], "web.lab.internal") {
		t.Errorf("rendered: %q", want)
	}
}

func TestRenderListsWhatIsLeftOut(t *testing.T) {
	bad := strings.Replace(readFile(t, answerFile), `"internalPort": 8080`, `"internalPort": 80800`, 1)
	out := t.TempDir()
	code, stdout, _ := renders(bad, "--snapshot", "-", "--facts", someHost(t), "--out", out)
	if code != pass.Rejected || !strings.Contains(stdout, "\nleft out: http app.example.com (id 3): ") || !strings.Contains(stdout, "80800") {
		t.Errorf("exit status %d\n%s", code, stdout)
	}
	if treeOf(t, out)["etc/nginx/nginx.conf"] == "" {
		t.Error("the rest was not rendered")
	}
}

func TestRenderRefuses(t *testing.T) {
	answer, facts := readFile(t, answerFile), someHost(t)
	used := t.TempDir()
	writeFile(t, filepath.Join(used, "keep"), "mine")
	bootstrap := `{"site":null,"nginx":{"httpServices":[],"streamServices":[],"externalDomains":[]}}`
	for _, test := range []struct {
		name, stdin string
		args        []string
		want        pass.Code
		says        string
	}{
		{"no snapshot", answer, []string{"--facts", facts}, pass.Usage, "--snapshot"},
		{"missing snapshot", answer, []string{"--snapshot", "/nonexistent"}, pass.Usage, "/nonexistent"},
		{"junk", "<html>", []string{"--snapshot", "-", "--facts", facts}, pass.Usage, "not a JSON object"},
		{"null", "null", []string{"--snapshot", "-", "--facts", facts}, pass.Usage, "--snapshot"},
		{"no data", `{"data":null}`, []string{"--snapshot", "-", "--facts", facts}, pass.Usage, "--snapshot"},
		{"half", `{"data":{"site":null}}`, []string{"--snapshot", "-", "--facts", facts}, pass.Usage, "must be a list"},
		{"missing facts", answer, []string{"--snapshot", "-", "--facts", "/nonexistent"}, pass.Usage, "--facts: open /nonexistent"},
		{"odd facts", answer, []string{"--snapshot", "-", "--facts", writeFile(t, filepath.Join(t.TempDir(), "f"), `{"ngnix":{}}`)}, pass.Usage, `"ngnix"`},
		{"used folder", answer, []string{"--snapshot", "-", "--facts", facts, "--out", used}, pass.Usage, "--force"},
		{"no parent", answer, []string{"--snapshot", "-", "--facts", facts, "--out", "/nonexistent/x"}, pass.Usage, "/nonexistent/x"},
		{"a file", answer, []string{"--snapshot", "-", "--facts", facts, "--out", answerFile}, pass.Usage, "--out: " + answerFile + " is not a folder"},
		{"setting", bootstrap, []string{"--snapshot", "-", "--manager-url", "manager"}, pass.Usage, "MANAGER_URL"},
		{"nginx unknown", bootstrap, []string{"--snapshot", "-", "--facts", hostFacts(t, render.Facts{})}, pass.Rejected, "nginx cannot be rendered"},
	} {
		t.Run(test.name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out")
			args := append([]string{"--root", t.TempDir(), "--out", out}, test.args...)
			code, stdout, stderr := renders(test.stdin, args...)
			if code != test.want || !strings.Contains(stderr, test.says) || stdout != "" {
				t.Errorf("exit status %d, stdout %q, stderr %s", code, stdout, stderr)
			}
			if _, err := os.Lstat(out); err == nil {
				t.Error("the folder was made")
			}
			if diff := cmp.Diff(map[string]string{"keep": "mine"}, treeOf(t, used)); diff != "" {
				t.Errorf("the used folder (-before +after):\n%s", diff)
			}
		})
	}
}

func TestRenderByForceReplacesOnlyItsOwn(t *testing.T) {
	out, facts, answer := t.TempDir(), someHost(t), readFile(t, answerFile)
	writeFile(t, filepath.Join(out, "keep"), "mine")
	if err := os.MkdirAll(filepath.Join(out, "etc/nginx"), 0o755); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(out, "etc/nginx/nginx.conf"), "old")
	code, _, stderr := renders(answer, "--snapshot", "-", "--facts", facts, "--out", out, "--force")
	got := treeOf(t, out)
	if code != pass.Settled || got["keep"] != "mine" || !strings.Contains(got["etc/nginx/nginx.conf"], "server_name") {
		t.Errorf("exit status %d, %s, %q", code, stderr, got)
	}
}

// With links and folders in the way, nothing is written in DIR or elsewhere.
func TestRenderStaysInItsFolder(t *testing.T) {
	facts, answer := someHost(t), readFile(t, answerFile)
	for name, obstruct := range map[string]func(out, elsewhere string) error{
		"link to a folder": func(out, elsewhere string) error { return os.Symlink(elsewhere, filepath.Join(out, "etc")) },
		"folder in the place of the last file": func(out, _ string) error {
			return os.MkdirAll(filepath.Join(out, "etc/dnsmasq.conf"), 0o755)
		},
		"file in the place of a folder": func(out, _ string) error { return os.WriteFile(filepath.Join(out, "var"), nil, 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			out, elsewhere := t.TempDir(), t.TempDir()
			if err := obstruct(out, elsewhere); err != nil {
				t.Fatal(err)
			}
			before := treeOf(t, out)
			code, stdout, stderr := renders(answer, "--snapshot", "-", "--facts", facts, "--out", out, "--force")
			if code != pass.Usage || stdout != "" || !strings.Contains(stderr, "nothing is written") {
				t.Errorf("exit status %d, %q, %s", code, stdout, stderr)
			}
			if diff := cmp.Diff(before, treeOf(t, out)); diff != "" {
				t.Errorf("the folder (-before +after):\n%s", diff)
			}
			if left := treeOf(t, elsewhere); len(left) > 0 {
				t.Errorf("written outside: %q", left)
			}
		})
	}
}
