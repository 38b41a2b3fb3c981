package store

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestEverythingToFilterByIsListed reads the source: what is audited may be asked
// for.
func TestEverythingToFilterByIsListed(t *testing.T) {
	var actions []Action
	for _, name := range inSource(t, `Action\w+\s+Action = "(\w+)"`) {
		actions = append(actions, Action(name))
	}
	listed := slices.Sorted(slices.Values(Actions()))
	if diff := cmp.Diff(slices.Sorted(slices.Values(actions)), listed); diff != "" {
		t.Errorf("actions (-source +listed):\n%s", diff)
	}
	resources := slices.Compact(slices.Sorted(slices.Values(inSource(t, `Subject\{Resource: "(\w+)"`))))
	if diff := cmp.Diff(resources, slices.Sorted(slices.Values(Resources()))); diff != "" {
		t.Errorf("kinds of records (-source +listed):\n%s", diff)
	}
}

func inSource(t *testing.T, pattern string) []string {
	t.Helper()
	var found []string
	for _, folder := range []string{".", "../auth"} {
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if filepath.Base(file) == "audit_internal_test.go" {
				continue
			}
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, match := range regexp.MustCompile(pattern).FindAllSubmatch(source, -1) {
				found = append(found, string(match[1]))
			}
		}
	}
	return found
}

// TestEveryRecordIsRecalled: those of the other two kinds are not stored.
func TestEveryRecordIsRecalled(t *testing.T) {
	for _, resource := range Resources() {
		if recallers[resource] == nil && resource != "session" && resource != "database" {
			t.Errorf("a %s cannot be recalled", resource)
		}
	}
}
