package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"opensource.internal/agent/internal/pass"
	"opensource.internal/agent/internal/status"
)

func TestStatusOfAHostWithoutAPass(t *testing.T) {
	root := t.TempDir()
	var stdout, stderr bytes.Buffer
	code := runWith([]string{"status", "--root", root}, nil, &stdout, &stderr)
	if code != pass.Rejected || stderr.Len() > 0 || !strings.HasPrefix(stdout.String(), "no site: no snapshot") || !strings.Contains(stdout.String(), "\nnginx: ") {
		t.Errorf("exit status %d\n%s%s", code, stdout.String(), stderr.String())
	}
	if left := treeOf(t, root); len(left) > 0 {
		t.Errorf("made: %q", left)
	}
}

func TestStatusEndsAsAPassWould(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "var/lib/opensource-agent")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "state.json"), `{"volumes":{"results":{"42":{"applied":false,"message":"<denied>"}}}}`)
	var stdout, stderr bytes.Buffer
	code := runWith([]string{"status", "--json", "--root", root}, nil, &stdout, &stderr)
	var got status.Status
	if err := json.Unmarshal(stdout.Bytes(), &got); err != nil {
		t.Fatalf("%v in %s%s", err, stdout.String(), stderr.String())
	}
	if code != pass.Rejected || got.ExitCode != code || !strings.Contains(stdout.String(), "<denied>") {
		t.Errorf("exit status %d\n%s", code, stdout.String())
	}
}
