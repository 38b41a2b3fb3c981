package pass

import (
	"fmt"
	"io"
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

// drift describes what somebody else had changed in managed files.
func (s *search) drift(edited []string, wanted []render.File, facts render.Facts) []checkin.Drift {
	var found []checkin.Drift
	managed := s.managed(edited, wanted, facts)
	for _, path := range edited {
		diff := udiff.Unified("managed", "found", managed[path], s.before[path])
		found = append(found, checkin.Drift{Path: path, Diff: beginning(diff, checkin.MaxDiff)})
	}
	return found
}

// managed returns what was in force of files that were edited, by path: what is
// wanted, or else what the snapshot before means. Where it is neither, what is
// wanted has to do.
func (s *search) managed(edited []string, wanted []render.File, facts render.Facts) map[string]string {
	contents, lost := map[string]string{}, false
	for _, file := range wanted {
		contents[file.Path] = string(file.Content)
		lost = lost || slices.Contains(edited, file.Path) && digest(file.Content) != s.previous.Digests[file.Path]
	}
	if !lost {
		return contents
	}
	before, err := s.service.Render(s.pass.running(s.service.Name), facts, s.pass.templates)
	if err != nil {
		return contents
	}
	for _, file := range before.Files {
		if digest(file.Content) == s.previous.Digests[file.Path] {
			contents[file.Path] = string(file.Content)
		}
	}
	return contents
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
