package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"opensource.internal/manager/internal/config"
	"opensource.internal/manager/internal/store"
	"opensource.internal/manager/internal/store/storetest"
)

func makeNewer(t *testing.T, database store.Database) {
	t.Helper()
	if _, err := storetest.Raw(t, database).Exec("INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, TRUE)"); err != nil {
		t.Fatal(err)
	}
}

func TestTextOnStderrUnlessItIsTheJournal(t *testing.T) {
	var stderr bytes.Buffer
	log := newLogger(&stderr, map[string]string{"JOURNAL_STREAM": "8:15"}, config.Config{})
	log.Debug("quiet")
	log.Info("loud", "key", "value")
	if got := stderr.String(); strings.Contains(got, "quiet") || !strings.Contains(got, "msg=loud key=value") {
		t.Errorf("%q", got)
	}
}

func TestJSONWhenAskedFor(t *testing.T) {
	var stderr bytes.Buffer
	newLogger(&stderr, nil, config.Config{LogFormat: config.LogJSON}).Info("loud", "key", "value")
	line := decode[map[string]any](t, stderr.String())
	if line["msg"] != "loud" || line["key"] != "value" || line["level"] != "INFO" {
		t.Errorf("%v", line)
	}
}

func TestJournalIsRecognisedByDeviceAndInode(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var stat syscall.Stat_t
	if err := syscall.Fstat(int(file.Fd()), &stat); err != nil {
		t.Fatal(err)
	}
	if !isJournal(file, fmt.Sprintf("%d:%d", stat.Dev, stat.Ino)) {
		t.Error("the journal is not recognised")
	}
	for _, other := range []string{"", "junk", fmt.Sprintf("%d:%d", stat.Dev, stat.Ino+1)} {
		if isJournal(file, other) {
			t.Errorf("JOURNAL_STREAM=%q was taken for this file", other)
		}
	}
}

// recorded keeps the records that reach the journal.
type recorded struct {
	slog.Handler
	messages *[]string
}

func (r recorded) Handle(_ context.Context, record slog.Record) error {
	*r.messages = append(*r.messages, record.Message)
	return nil
}
func (r recorded) WithAttrs([]slog.Attr) slog.Handler { return r }
func (r recorded) WithGroup(string) slog.Handler      { return r }

func TestJournalMessageTellsEverything(t *testing.T) {
	var messages []string
	base := slog.NewTextHandler(&bytes.Buffer{}, nil)
	log := slog.New(journalHandler{Handler: recorded{base, &messages}})
	log.With("request", "r-1").Error("request failed", "err", fmt.Errorf("the cause"))
	if len(messages) != 1 || messages[0] != "request failed request=r-1 err=the cause" {
		t.Errorf("%q", messages)
	}
	if got := journalKey("last-use at"); got != "LAST_USE_AT" {
		t.Errorf("journalKey: %q", got)
	}
}
