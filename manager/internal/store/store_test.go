package store_test

import (
	"path/filepath"
	"testing"
	"time"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/store"
	"opensource.internal/manager/internal/store/storetest"
)

func TestSQLite(t *testing.T) {
	storetest.Run(t, func(t testing.TB) *store.Store { return storetest.Open(t) })
}

func TestCloseWritesHeartbeats(t *testing.T) {
	path := filepath.Join(t.TempDir(), "manager.db")
	s := storetest.OpenAt(t, path)
	w := storetest.NewWorld(t, s, 1)
	seen := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	id, err := s.RecordCheckIn(t.Context(), store.CheckIn{SiteID: w.Site.ID, Hostname: "agent", At: seen})
	if err != nil {
		t.Fatal(err)
	}
	s.Beat(store.Heartbeat{AgentID: id, At: seen.Add(time.Minute), Report: &checkin.Request{}})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	agent, err := storetest.OpenAt(t, path).GetAgent(t.Context(), id)
	if err != nil || !agent.LastSeenAt.Equal(seen.Add(time.Minute)) {
		t.Errorf("last seen %v, %v", agent.LastSeenAt, err)
	}
}
