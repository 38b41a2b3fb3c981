package preflight

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestSettings(t *testing.T) {
	other := "2, from /etc/environment"
	found := settings(t.Context(), &Options{
		Settings: []Setting{{"MANAGER_URL", "https://m", "/etc/x.env", nil}, {"SITE_ID", "1", "the environment", &other}},
		Mistakes: []error{errors.New(`LOG_LEVEL: "loud" is not one of debug, info, warn, error`)},
	})
	wantLines(t, found,
		"OK    : MANAGER_URL is https://m, from /etc/x.env",
		"WARN  : SITE_ID is 1 here, from the environment; the timer's passes have 2, from /etc/environment. To do: write it into",
		`FAIL  : LOG_LEVEL: "loud" is not … To do: correct it in /etc/opensource-agent/agent.env`,
	)
}

func TestUser(t *testing.T) {
	wantLines(t, user(t.Context(), &Options{}), "OK    : root")
	wantLines(t, user(t.Context(), &Options{UserID: 1000}), "WARN  : … sudo opensource-agent check")
}

func TestKeyFiles(t *testing.T) {
	dir := t.TempDir()
	file := func(name string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	closed, open := file("a", 0o640), file("b", 0o644)
	wantLines(t, keyFiles(t.Context(), &Options{KeyFiles: []string{open, closed, open, filepath.Join(dir, "gone")}}),
		"OK    : "+closed+" has mode 0640",
		"WARN  : every user of this host may read the key in "+open+" (mode 0644). To do: chmod 640 "+open,
		"WARN  : … gone: no such file",
	)
	wantLines(t, list(openKeyFile("/etc/environment", 0o644)), "WARN  : … To do: move API_KEY to /etc/opensource-agent/agent.env")
}
