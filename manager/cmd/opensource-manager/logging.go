package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"syscall"

	slogjournal "github.com/systemd/slog-journal"

	"opensource.internal/manager/internal/config"
)

// newLogger logs to the journal when stderr is connected to it, else as text
// on stderr, unless the settings name a format.
func newLogger(stderr io.Writer, env map[string]string, settings config.Config) *slog.Logger {
	level := settings.LogLevel
	if settings.LogFormat == config.LogJSON {
		return slog.New(slog.NewJSONHandler(stderr, &slog.HandlerOptions{Level: level}))
	}
	if file, ok := stderr.(*os.File); ok && settings.LogFormat != config.LogText && isJournal(file, env["JOURNAL_STREAM"]) {
		if journal, err := slogjournal.NewHandler(&slogjournal.Options{
			Level:        level,
			ReplaceAttr:  func(_ []string, a slog.Attr) slog.Attr { a.Key = journalKey(a.Key); return a },
			ReplaceGroup: journalKey,
		}); err == nil {
			return slog.New(journalHandler{Handler: journal})
		}
	}
	return slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: level}))
}

// isJournal compares a file with the device and inode systemd put into
// JOURNAL_STREAM (systemd.exec(5)): the variable is inherited by programs whose
// stderr goes elsewhere.
func isJournal(file *os.File, stream string) bool {
	var stat syscall.Stat_t
	if stream == "" || syscall.Fstat(int(file.Fd()), &stat) != nil {
		return false
	}
	return stream == fmt.Sprintf("%d:%d", stat.Dev, stat.Ino)
}

// journalKey makes a field name of the form the journal accepts.
func journalKey(key string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToUpper(key))
}

// journalHandler repeats a record's attributes in its message: journalctl
// shows nothing else unless asked to.
type journalHandler struct {
	slog.Handler
	attrs []slog.Attr
}

func (h journalHandler) Handle(ctx context.Context, record slog.Record) error {
	var message strings.Builder
	message.WriteString(record.Message)
	add := func(a slog.Attr) bool {
		fmt.Fprintf(&message, " %s=%v", a.Key, a.Value)
		return true
	}
	for _, a := range h.attrs {
		add(a)
	}
	record.Attrs(add)
	full := record.Clone()
	full.Message = message.String()
	return h.Handler.Handle(ctx, full)
}

func (h journalHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	all := append(append([]slog.Attr(nil), h.attrs...), attrs...)
	return journalHandler{Handler: h.Handler.WithAttrs(attrs), attrs: all}
}

func (h journalHandler) WithGroup(name string) slog.Handler {
	return journalHandler{Handler: h.Handler.WithGroup(name), attrs: h.attrs}
}
