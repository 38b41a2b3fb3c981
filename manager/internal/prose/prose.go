// Package prose has what sentences and lists for people are made of.
package prose

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Counted says how many there are of a thing whose plural ends in s.
func Counted(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

// Some names the first few of many.
func Some(names []string) string {
	const few = 5
	if len(names) <= few {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:few], ", "), len(names)-few)
}

// Cut shortens a text to a number of bytes, between characters.
func Cut(text string, most int) string {
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

// Minute is a moment as people read it.
func Minute(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }
