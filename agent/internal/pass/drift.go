package pass

import (
	"os"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"opensource.internal/agent/checkin"
	"opensource.internal/agent/render"
)

// contents reads the live versions of files. One that cannot be read is left
// out: the engine meets the same fault, and reports it. So is a pipe in a
// file's place, which would never end.
func contents(files []render.File) map[string]string {
	live := make(map[string]string, len(files))
	for _, file := range files {
		if info, err := os.Stat(file.Path); err != nil || !info.Mode().IsRegular() {
			continue
		}
		if content, err := os.ReadFile(file.Path); err == nil {
			live[file.Path] = string(content)
		}
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

// latest adds what was found now to what is not told yet, one entry a file: with
// the manager away, one that is edited again and again must not pile up.
func latest(untold, found []checkin.Drift) []checkin.Drift {
	untold = slices.DeleteFunc(slices.Clone(untold), func(old checkin.Drift) bool {
		return slices.ContainsFunc(found, func(now checkin.Drift) bool { return now.Path == old.Path })
	})
	return append(untold, found...)
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
