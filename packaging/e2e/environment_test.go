//go:build e2e

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The lines around what the script puts into /etc/environment.
const (
	blockBegin = "# BEGIN opensource-agent: copied from the container's environment at boot\n"
	blockEnd   = "# END opensource-agent\n"
)

// TestContainerEnvironment runs the script of the boot unit on a root of its
// own.
func TestContainerEnvironment(t *testing.T) {
	for _, c := range []struct {
		name        string
		pid1        []string // environment of PID 1
		before      string   // /etc/environment
		after       string
		secrets     string // /run/opensource-agent/environment
		leftSecrets string // the same, before
	}{
		{
			name: "nothing of ours", pid1: []string{"container=lxc", "PATH=/bin"},
			before: "LANG=C\n", after: "LANG=C\n",
		},
		{
			name: "settings and secret", pid1: []string{"SITE_ID=1", "MANAGER_URL=http://localhost:3000", "API_KEY=osk_1"},
			before: "LANG=C\n", after: "LANG=C\n" + blockBegin + "SITE_ID=1\nMANAGER_URL=http://localhost:3000\n" + blockEnd,
			secrets: "API_KEY=osk_1\n",
		},
		{
			name: "the block is replaced, in its place at the end", pid1: []string{"SITE_ID=2"},
			before: blockBegin + "SITE_ID=1\nLOG_LEVEL=debug\n" + blockEnd + "LANG=C\n",
			after:  "LANG=C\n" + blockBegin + "SITE_ID=2\n" + blockEnd,
		},
		{
			name: "names that left PID 1", pid1: []string{"PATH=/bin"},
			before: "LANG=C\n" + blockBegin + "SITE_ID=1\n" + blockEnd, after: "LANG=C\n", leftSecrets: "API_KEY=osk_1\n",
		},
		{
			name: "a block whose end is gone", pid1: []string{"SITE_ID=1"},
			before: blockBegin + "SITE_ID=1\nLANG=C\n",
			after:  "SITE_ID=1\nLANG=C\n" + blockBegin + "SITE_ID=1\n" + blockEnd,
		},
		{
			name: "no line end before the block", pid1: []string{"SITE_ID=1"},
			before: "LANG=C", after: "LANG=C\n" + blockBegin + "SITE_ID=1\n" + blockEnd,
		},
		{
			name:    "values that need quotes",
			pid1:    []string{"MANAGER_URL=http://m/a?b=c#d e", `API_KEY=it's "q" $x \y ` + "`z`"},
			after:   blockBegin + "MANAGER_URL='http://m/a?b=c#d e'\n" + blockEnd,
			secrets: `API_KEY="it's \"q\" \$x \\y ` + "\\`z\\`\"\n",
		},
		{
			name: "values that no file can hold", pid1: []string{"SITE_ID=1\nAPI_KEY=2", "LOG_LEVEL=a\rb", "MANAGER_URL="},
			before: "LANG=C\n", after: "LANG=C\n",
		},
		{
			name: "names that only look like ours", pid1: []string{"MY_SITE_ID=1", "SITE_IDS=1", "api_key=x", "SITE_ID"},
			before: "LANG=C\n", after: "LANG=C\n",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			put(t, root, "proc/1/environ", strings.Join(c.pid1, "\x00")+"\x00")
			put(t, root, "etc/environment", c.before)
			if c.leftSecrets != "" {
				put(t, root, "run/opensource-agent/environment", c.leftSecrets)
			}
			for _, run := range []string{"first", "second"} {
				script := exec.Command("../../contrib/container-environment/container-environment", root)
				if out, err := script.CombinedOutput(); err != nil {
					t.Fatalf("%s run: %v: %s", run, err, out)
				}
				if got := content(t, root, "etc/environment"); got != c.after {
					t.Errorf("after the %s run /etc/environment is\n%s\nwant\n%s", run, got, c.after)
				}
				if got := content(t, root, "run/opensource-agent/environment"); got != c.secrets {
					t.Errorf("after the %s run the secrets are %q, want %q", run, got, c.secrets)
				}
			}
			if left, _ := filepath.Glob(root + "/etc/.*"); len(left) > 0 {
				t.Errorf("left over: %v", left)
			}
		})
	}
}

func put(t *testing.T, root, path, content string) {
	t.Helper()
	file := filepath.Join(root, path)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func content(t *testing.T, root, path string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, path))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(content)
}
