package config

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestExplain(t *testing.T) {
	root := t.TempDir()
	for name, content := range map[string]string{
		"/etc/environment": "SITE_ID=1\nhttps_proxy=http://user:secret@proxy:3128\nAPI_KEY=old-key\nLOG_LEVEL=debug\n",
		File:               "SITE_ID=2\nAPI_KEY=the-key\nMANAGER_URL=https://one\nAPI_KEY_FILE=/etc/key\n",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	elsewhere := func(text string) *string { return &text }
	settings, keyFiles := Explain(Flags{Root: root, LogLevel: "warn"},
		[]string{"MANAGER_URL=https://two", "SITE_ID=2", "API_KEY=my-key", "AGENT_HOSTNAME=edge", "CREDENTIALS_DIRECTORY=/run/x"})
	want := []Setting{
		{"LOG_LEVEL", "warn", "the command line", elsewhere("debug, from " + root + "/etc/environment")},
		{"SITE_ID", "2", root + File, nil},
		{"MANAGER_URL", "https://two", "the environment", elsewhere("https://one, from " + root + File)},
		{"API_KEY", "set", "the environment", elsewhere("another one, from " + root + File)},
		{"AGENT_HOSTNAME", "edge", "the environment", elsewhere("none")},
		{"https_proxy", "http://…@proxy:3128", root + "/etc/environment", nil},
	}
	byName := func(all []Setting) map[string]Setting {
		named := map[string]Setting{}
		for _, s := range all {
			named[s.Name] = s
		}
		return named
	}
	if diff := cmp.Diff(byName(want), byName(settings)); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{root + File, root + "/etc/environment", "/etc/key"}, keyFiles); diff != "" {
		t.Errorf("files with a key (-want +got):\n%s", diff)
	}
}

func TestExplainWhatSystemdGave(t *testing.T) {
	settings, _ := Explain(Flags{}, bySystemd("SITE_ID=1", "MANAGER_URL=manager"))
	for _, s := range settings {
		if s.Elsewhere != nil {
			t.Errorf("%s is said to be another for the timer: %q", s.Name, *s.Elsewhere)
		}
	}
	if len(settings) != 2 {
		t.Errorf("got %+v", settings)
	}
}

func TestSecrets(t *testing.T) {
	root := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("/etc/environment", "API_KEY=old-key\nhttps_proxy=http://user:p%40ss@proxy:3128\nHTTP_PROXY=me:word@proxy\n")
	write(File, "API_KEY='the key'\nAPI_KEY_FILE="+write("/key", "filed-key\n")+"\n")
	write("/credentials/api-key", "system-key\n")
	found := Secrets(Flags{Root: root, ManagerURL: "https://admin:admin@m"}, []string{"API_KEY=shell-key", "CREDENTIALS_DIRECTORY=" + root + "/credentials"})
	for _, want := range []string{"old-key", "the key", "filed-key", "system-key", "shell-key", "user:p%40ss", "p@ss", "word", "admin"} {
		if !slices.Contains(found, want) {
			t.Errorf("%q is not in %q", want, found)
		}
	}
	if slices.Contains(found, "") {
		t.Error("nothing is a secret")
	}
	if got := shown("HTTP_PROXY", "me:word@proxy"); got != "…@proxy" {
		t.Errorf("an address without a scheme is shown as %q", got)
	}
}
