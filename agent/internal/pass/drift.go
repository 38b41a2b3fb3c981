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
