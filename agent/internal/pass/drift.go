package pass

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"opensource.internal/agent/checkin"
	"opensource.internal/agent/render"
)

// contents reads the live versions of files; one that cannot be read is
// empty.
func contents(files []render.File) map[string]string {
	live := make(map[string]string, len(files))
	for _, file := range files {
		content, err := os.ReadFile(file.Path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			continue // the engine meets the same fault, and reports it
		}
		live[file.Path] = string(content)
	}
	return live
}

// drift describes what somebody else had changed in managed files.
func drift(drifted []string, before map[string]string, wanted []render.File) []checkin.Drift {
	var found []checkin.Drift
	for _, file := range wanted {
		if slices.Contains(drifted, file.Path) {
			diff := udiff.Unified("managed", "found", string(file.Content), before[file.Path])
			found = append(found, checkin.Drift{Path: file.Path, Diff: beginning(diff, checkin.MaxDiff)})
		}
	}
	return found
}

// beginning cuts text to at most max bytes of valid UTF-8 and says so.
func beginning(text string, max int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= max {
		return text
	}
	const cut = "\n[cut]"
	return strings.ToValidUTF8(text[:max-len(cut)], "") + cut
}
