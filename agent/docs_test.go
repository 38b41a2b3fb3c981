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
	reference, _, _ := strings.Cut(read(t, "../docs/usage/configuration.md"), "## Manager")
	for _, name := range settings(t) {
		if !strings.Contains(reference, "`"+name+"`") {
			t.Errorf("docs/usage/configuration.md does not tell of the agent's setting %s", name)
		}
	}
}

// notOfContainers are settings that are not given by a container's environment:
// the first names a place in the container, the others are of every program.
var notOfContainers = regexp.MustCompile("(?i)^(STATE_DIRECTORY|[a-z]+_proxy)$")

func TestContainersMayGiveEverySetting(t *testing.T) {
	script := read(t, "../contrib/container-environment/container-environment")
	page := read(t, "../docs/usage/agent.md")
	for _, name := range settings(t) {
		if notOfContainers.MatchString(name) {
			continue
		}
		if !regexp.MustCompile(`(?m)^(settings|secrets)=".*\b` + name + `\b`).MatchString(script) {
			t.Errorf("container-environment does not copy the agent's setting %s", name)
		}
		if !strings.Contains(page, "`"+name+"`") {
			t.Errorf("docs/usage/agent.md does not say that %s is copied", name)
		}
	}
}

// settings are the names of all settings of the agent.
func settings(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("internal/config/*.go")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range slices.DeleteFunc(files, func(file string) bool { return !isProgram(file) }) {
		for _, match := range setting.FindAllStringSubmatch(read(t, file), -1) {
			if name := match[1]; !slices.Contains(systemdsOwn, name) && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	if len(names) == 0 {
		t.Error("no setting was found in internal/config")
	}
	return names
}

func read(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
