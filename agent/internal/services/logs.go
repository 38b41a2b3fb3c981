package services

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"
)

const (
	journalTimeout = 2 * time.Second
	maxLogLines    = 40
	// maxLog bounds what is read of a log file, in bytes: on a busy site it tells
	// more of requests than of anything else.
	maxLog = 16 << 20
)

// logMark is a place in a log file.
type logMark struct {
	path string
	end  fs.FileInfo // nil if there was no file
}

// markLog marks the present end of the file.
func markLog(path string) logMark {
	info, err := os.Stat(path)
	if err != nil {
		return logMark{path, nil}
	}
	return logMark{path, info}
}

// newLines returns the lines written since, of those that wanted selects, at
// most maxLogLines, and repeated ones once. A log that cannot be read has
// none: it is only there to explain another error.
func (m logMark) newLines(wanted func(string) bool) []string {
	file, err := os.Open(m.path)
	if err != nil {
		return nil
	}
	defer file.Close()
	now, err := file.Stat()
	if err != nil {
		return nil
	}
	var offset int64 // the beginning, if the log was rotated since
	if m.end != nil && os.SameFile(m.end, now) && m.end.Size() <= now.Size() {
		offset = m.end.Size()
	}
	content := bufio.NewScanner(io.NewSectionReader(file, offset, maxLog))
	var lines []string
	seen := map[string]bool{}
	for content.Scan() {
		line := strings.TrimSpace(content.Text())
		_, what, _ := strings.Cut(line, "] ") // without the time
		if wanted(line) && !seen[what] && len(lines) < maxLogLines {
			seen[what] = true
			lines = append(lines, line)
		}
	}
	return lines
}

// The priorities of what is looked for in the journal, as journalctl(1) names
// them.
const (
	allLines = "debug"
	warnings = "warning" // and all that is worse
)

// journal returns what a unit has logged since a time with a priority, or a
// higher one: journalSince.
type journal func(ctx context.Context, unit, priority string, since time.Time) []string

// journalSince returns the last lines that the unit has logged since then, at
// most maxLogLines. Without a journal there is nothing.
func journalSince(ctx context.Context, unit, priority string, since time.Time) []string {
	// What was sent to the journal before is to be found in it.
	_ = command(ctx, journalTimeout, "journalctl", "--sync")
	text, err := Output(ctx, journalTimeout, "journalctl", "--unit="+unit, "--priority="+priority, "--output=cat", "--no-pager", "--quiet",
		fmt.Sprintf("--since=@%d.%06d", since.Unix(), since.Nanosecond()/1000), fmt.Sprintf("--lines=%d", maxLogLines))
	if err != nil || text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// withLines appends log lines to an error, if there is one.
func withLines(err error, lines []string) error {
	if err == nil || len(lines) == 0 {
		return err
	}
	return fmt.Errorf("%w\n%s", err, strings.Join(lines, "\n"))
}
