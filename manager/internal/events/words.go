package events

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"opensource.internal/agent/checkin"
)

// some names the first few of many.
func some(names []string) string {
	const few = 5
	if len(names) <= few {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:few], ", "), len(names)-few)
}

// text is a message as a detail keeps it: tools say the most important last.
func text(message string) string { return checkin.CleanMessage(message, maxText) }

// quoted is the beginning of a message for a summary.
func quoted(message string) string {
	if message = firstLine(message); message == "" {
		return ""
	}
	return ": " + message
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(line)
}

// cut shortens a text to a number of bytes, between characters.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	const mark = "…"
	end := max(0, most-len(mark))
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	if end == 0 {
		return ""
	}
	return text[:end] + mark
}

func inUTC(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

// words is a duration as people say it.
func words(d time.Duration) string {
	switch d = max(0, d); {
	case d < 2*time.Minute:
		return fmt.Sprintf("%d seconds", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d minutes", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d hours", int(d.Hours()))
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}
