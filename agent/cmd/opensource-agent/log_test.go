package main

import (
	"log/slog"
	"testing"
)

func TestJournalFieldNames(t *testing.T) {
	for key, want := range map[string]string{
		"etag":       "ETAG",
		"volume-id":  "VOLUME_ID",
		"message":    "AGENT_MESSAGE",
		"priority":   "AGENT_PRIORITY",
		"message_id": "MESSAGE_ID",
	} {
		if got := journalField(nil, slog.String(key, "value")).Key; got != want {
			t.Errorf("attribute %q becomes field %s, want %s", key, got, want)
		}
	}
}
