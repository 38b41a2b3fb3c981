package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
)

// table prints rows in columns that are as wide as they need to be.
type table struct{ columns *tabwriter.Writer }

func newTable(out io.Writer, header ...any) table {
	t := table{tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)}
	t.row(header...)
	return t
}

// row adds a row. An empty cell is shown as "-".
func (t table) row(cells ...any) {
	texts := make([]string, len(cells))
	for i, cell := range cells {
		if texts[i] = printable(fmt.Sprint(cell)); texts[i] == "" {
			texts[i] = "-"
		}
	}
	fmt.Fprintln(t.columns, strings.Join(texts, "\t")) // Flush reports what goes wrong
}

func (t table) flush() error { return t.columns.Flush() }

// printable is a text on one line that cannot command a terminal: much of what
// is shown has come from a host far away.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// since tells a moment of the past in words and exactly.
func since(at, now time.Time) string {
	return fmt.Sprintf("%s ago (%s)", roughly(now.Sub(at)), at.UTC().Format(time.RFC3339))
}

// roughly is a duration in its largest unit.
func roughly(d time.Duration) string {
	d = max(0, d)
	for _, unit := range []struct {
		length time.Duration
		name   string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "min"}} {
		if d >= 2*unit.length {
			return fmt.Sprintf("%d %s", d/unit.length, unit.name)
		}
	}
	return fmt.Sprintf("%d s", d/time.Second)
}
