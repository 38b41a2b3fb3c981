package render

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestErrorPages: each page is complete in itself, since it is shown when
// things do not work, and under the host names of others.
func TestErrorPages(t *testing.T) {
	external := regexp.MustCompile(`(?i)<script|<img|<link|src=|href=|@import|url\(|https?://`)
	for _, name := range []string{"403", "404", "502", "504", "auth-unavailable"} {
		text, err := os.ReadFile(filepath.Join("../../packaging/agent/pages", name+".html"))
		if err != nil {
			t.Fatal(err)
		}
		if found := external.Find(text); found != nil {
			t.Errorf("%s asks for something else: %q", name, found)
		}
		for _, want := range []string{`<html lang="en">`, `charset="utf-8"`, `name="viewport"`, "<title>", "<main>", "<h1>", "prefers-color-scheme: dark"} {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s has no %s", name, want)
			}
		}
	}
}
