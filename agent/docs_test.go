package agent_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A name of a setting, as it stands in the code that reads it.
var setting = regexp.MustCompile(`"([A-Z]+_[A-Z_]+)"`)

// systemdsOwn are variables that systemd sets and nobody else.
var systemdsOwn = []string{"CREDENTIALS_DIRECTORY", "SYSTEMD_EXEC_PID"}

func TestReferenceNamesEverySetting(t *testing.T) {
	page, err := os.ReadFile("../docs/usage/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	reference, _, _ := strings.Cut(string(page), "## Manager")
	files, err := filepath.Glob("internal/config/*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range slices.DeleteFunc(files, func(file string) bool { return !isProgram(file) }) {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range setting.FindAllStringSubmatch(string(source), -1) {
			found++
			if name := match[1]; !slices.Contains(systemdsOwn, name) && !strings.Contains(reference, "`"+name+"`") {
				t.Errorf("docs/usage/configuration.md does not tell of the agent's setting %s", name)
			}
		}
	}
	if found == 0 {
		t.Error("no setting was found in internal/config")
	}
}
