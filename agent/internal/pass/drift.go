package pass

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"opensource.internal/agent/checkin"
	"opensource.internal/agent/internal/apply"
	"opensource.internal/agent/render"
)

// contents reads the live versions of files. One that cannot be read is left
// out: the engine meets the same fault, and reports it. So is a pipe in a
// file's place, which would never end.
func contents(files []render.File) map[string]string {
	live := make(map[string]string, len(files))
	for _, file := range files {
		if content, err := firstOfLive(file.Path, int64(len(file.Content))+maxMore); err == nil {
			live[file.Path] = content
		}
	}
	return live
}

// maxMore is how much larger than the managed one the live version of a file may
// be, in bytes, to be compared as a whole: whatever somebody has put there, a pass
// has no time and no memory for more.
const maxMore = 2 << 20

// firstOfLive reads a regular file up to a limit, and says so if there is more.
func firstOfLive(path string, limit int64) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is not a regular file but %s", path, info.Mode())
	}
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, limit))
	if more := info.Size() - limit; more > 0 {
		content = fmt.Appendf(content, "\n[%d bytes more]\n", more)
	}
	return string(content), err
}

// drift describes what somebody else had changed in managed files: against what
// was in force, or else against what is wanted.
func drift(report apply.Report, before map[string]string, wanted []render.File) []checkin.Drift {
	var found []checkin.Drift
	for _, file := range wanted {
		if !slices.Contains(report.Drifted, file.Path) {
			continue
		}
		managed, known := report.Managed[file.Path]
		if !known {
			managed = file.Content
		}
		diff := udiff.Unified("managed", "found", string(managed), before[file.Path])
		found = append(found, checkin.Drift{Path: file.Path, Diff: beginning(diff, checkin.MaxDiff)})
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
