package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"

	slogjournal "github.com/systemd/slog-journal"
)

// logger writes to the journal, with priorities and fields, where stderr is
// connected to it, and readable lines elsewhere.
func logger(level slog.Level, stderr io.Writer) *slog.Logger {
	if attachedToJournal(stderr) {
		handler, err := slogjournal.NewHandler(&slogjournal.Options{Level: level, ReplaceAttr: journalField, ReplaceGroup: journalName})
		if err == nil {
			return slog.New(&journalHandler{Handler: handler})
		}
	}
	return slog.New(&lineHandler{level: level, out: &lockedWriter{out: stderr}})
}

// attachedToJournal compares stderr with $JOURNAL_STREAM, "DEVICE:INODE"
// (systemd.exec(5)).
func attachedToJournal(stderr io.Writer) bool {
	file, ok := stderr.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	if err != nil {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && os.Getenv("JOURNAL_STREAM") == fmt.Sprintf("%d:%d", stat.Dev, stat.Ino)
}

// journalName turns a key into the form the journal takes: capital letters,
// digits and underscores (systemd.journal-fields(7)).
func journalName(key string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z':
			return r - 'a' + 'A'
		case 'A' <= r && r <= 'Z' || '0' <= r && r <= '9':
			return r
		}
		return '_'
	}, key)
}

// journalField keeps attributes off the fields that carry the line itself: one
// called "message" would take its place.
func journalField(_ []string, attr slog.Attr) slog.Attr {
	attr.Key = journalName(attr.Key)
	if attr.Key == "MESSAGE" || attr.Key == "PRIORITY" {
		attr.Key = "AGENT_" + attr.Key
	}
	return attr
}

// journalHandler puts the attributes into the message too: journalctl shows
// only that.
type journalHandler struct {
	slog.Handler
	attrs []slog.Attr
}

func (h *journalHandler) Handle(ctx context.Context, record slog.Record) error {
	told := record.Clone()
	told.Message = text(h.attrs, record)
	return h.Handler.Handle(ctx, told)
}

func (h *journalHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &journalHandler{Handler: h.Handler.WithAttrs(attrs), attrs: slices.Concat(h.attrs, attrs)}
}

// lineHandler writes records for a person at a terminal.
type lineHandler struct {
	level slog.Level
	attrs []slog.Attr
	out   io.Writer
}

func (h *lineHandler) Enabled(_ context.Context, level slog.Level) bool { return level >= h.level }

func (h *lineHandler) Handle(_ context.Context, record slog.Record) error {
	prefix := ""
	if record.Level != slog.LevelInfo {
		prefix = strings.ToLower(record.Level.String()) + ": "
	}
	_, err := io.WriteString(h.out, prefix+text(h.attrs, record)+"\n")
	return err
}

func (h *lineHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &lineHandler{level: h.level, attrs: slices.Concat(h.attrs, attrs), out: h.out}
}

// WithGroup implements slog.Handler; the agent uses no groups.
func (h *lineHandler) WithGroup(string) slog.Handler { return h }

// text is one line: the message, then the attributes. A value of several
// lines, such as a validator's words, follows indented.
func text(attrs []slog.Attr, record slog.Record) string {
	var line, below strings.Builder
	line.WriteString(record.Message)
	add := func(attr slog.Attr) bool {
		value := strings.TrimSpace(attr.Value.Resolve().String())
		switch {
		case value == "":
		case strings.Contains(value, "\n"):
			fmt.Fprintf(&below, "\n  %s:\n    %s", attr.Key, strings.ReplaceAll(value, "\n", "\n    "))
		default:
			fmt.Fprintf(&line, " %s=%s", attr.Key, value)
		}
		return true
	}
	for _, attr := range attrs {
		add(attr)
	}
	record.Attrs(add)
	return line.String() + below.String()
}

// lockedWriter keeps the lines of services that are applied side by side
// apart.
type lockedWriter struct {
	mutex sync.Mutex
	out   io.Writer
}

func (w *lockedWriter) Write(p []byte) (int, error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.out.Write(p)
}
