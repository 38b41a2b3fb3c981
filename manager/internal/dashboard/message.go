package dashboard

import (
	"regexp"
	"slices"
	"strings"

	"opensource.internal/manager/internal/prose"
)

// How much of a message is shown before the rest is folded away.
const (
	maxMessage      = 600 // bytes of one that is shown as it is
	maxMessageLines = 8
	maxMessageLine  = 300 // bytes of a line out of a longer one
)

// sayingWhy are the words by which a line of a program says what is wrong.
var sayingWhy = regexp.MustCompile(`(?i)\[(emerg|alert|crit|error)\]|fail|fault|error|refuse|denied|invalid|unknown|cannot|could not|not found|not permitted|no such|no space|read-only|already in use|\bbad\b|at line \d+|:\d+$|going back`)

// gist is what a message comes to, and whether that is the whole of it. Of a long
// one that is its first line and its last, and between them those that say what is
// wrong.
func gist(text string) (short string, whole bool) {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(lines) <= maxMessageLines && len(text) <= maxMessage {
		return text, true
	}
	var shown []string
	before := -1
	for _, i := range gistLines(lines) {
		if i > before+1 {
			shown = append(shown, "…")
		}
		shown = append(shown, prose.Cut(lines[i], maxMessageLine))
		before = i
	}
	short = strings.Join(shown, "\n")
	return short, short == text
}

// gistLines are the numbers of the lines to show, in order.
func gistLines(lines []string) []int {
	last := len(lines) - 1
	chosen := []int{0}
	add := func(wanted func(line string) bool) {
		for i := 1; i < last && len(chosen) < maxMessageLines-1; i++ {
			if !slices.Contains(chosen, i) && wanted(lines[i]) {
				chosen = append(chosen, i)
			}
		}
	}
	add(func(line string) bool { return sayingWhy.MatchString(line) && !strings.Contains(line, "[warn]") })
	if len(chosen) == 1 { // none does
		add(func(line string) bool { return strings.TrimSpace(line) != "" })
	}
	if last > 0 {
		chosen = append(chosen, last)
	}
	slices.Sort(chosen)
	return chosen
}
