package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"opensource.internal/manager/internal/inventory"
)

func TestCommandsReadTheSettingsOfTheService(t *testing.T) {
	s := newShell(t)
	if _, err := s.store().CreateSite(t.Context(), inventory.Site{Name: "lab"}); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "manager.env")
	content := "# settings\nSTATE_DIRECTORY=\"" + s.env["STATE_DIRECTORY"] + "\"\nDATABASE_URL=" + s.env["DATABASE_URL"] + "\nLOG_LEVEL=loud\n"
	if err := os.WriteFile(file, []byte(content), 0o640); err != nil {
		t.Fatal(err)
	}
	s.env, s.files = map[string]string{"LOG_LEVEL": "warn"}, []string{file, "/nowhere/at/all"}
	if got := s.must("", "sites"); !strings.Contains(got, "lab") {
		t.Errorf("%s", got)
	}
	delete(s.env, "LOG_LEVEL")
	if r := s.run("", "sites"); r.code != exitUsage || !strings.Contains(r.stderr, `LOG_LEVEL: "loud"`) || !strings.Contains(r.stderr, file) {
		t.Errorf("%+v", r)
	}
	if got := s.must("", "version"); got != version+"\n" {
		t.Errorf("version wants right settings: %q", got)
	}
}
