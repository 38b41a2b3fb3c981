package events

import (
	"fmt"
	"strings"
	"time"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/prose"
)

// text is a message as a detail keeps it: tools say the most important last.
func text(message string) string { return checkin.CleanMessage(message, maxText) }

// quoted is the beginning of a message for a summary.
func quoted(message string) string {
	if message = firstLine(message); message == "" {
		return ""
	}
	return ": " + message
}

// firstLine is the first that is neither a warning, of which nginx has some before
// what it fails of, nor the rest of one that was cut.
func firstLine(text string) string {
	text = strings.TrimSpace(text)
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.Contains(line, "[warn]") && !strings.HasPrefix(line, "[cut] ") {
			return line
		}
	}
	line, _, _ := strings.Cut(text, "\n")
	return strings.TrimSpace(line)
}

// words is a duration as people say it.
func words(d time.Duration) string {
	switch d = max(0, d); {
	case d < 2*time.Minute:
		return prose.Counted(int(d.Seconds()), "second")
	case d < 2*time.Hour:
		return fmt.Sprintf("%d minutes", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d hours", int(d.Hours()))
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}
