package store_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"opensource.internal/manager/internal/store"
)

// However a database is written down, its password is not.
func TestPasswordsAreNotWrittenDown(t *testing.T) {
	database := store.Database{Path: "/x", URL: "postgres://ada:hunter2@db.example.com/manager"}
	var text, json bytes.Buffer
	for _, handler := range []slog.Handler{slog.NewTextHandler(&text, nil), slog.NewJSONHandler(&json, nil)} {
		slog.New(handler).Info("x", "database", database, "pointer", &database, "within", struct{ D store.Database }{database})
	}
	for _, written := range []string{text.String(), json.String(), fmt.Sprintf("%v %+v %#v %s", database, database, database, database)} {
		if strings.Contains(written, "hunter2") || !strings.Contains(written, "db.example.com") {
			t.Error(written)
		}
	}
}
