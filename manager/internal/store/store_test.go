package store_test

import (
	"testing"
	"time"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/store"
	"opensource.internal/manager/internal/store/storetest"
)

func TestSQLite(t *testing.T) {
	storetest.Run(t, func(t testing.TB) *store.Store { return storetest.OpenAt(t, storetest.SQLite(t)) })
}

func TestPostgreSQL(t *testing.T) {
	storetest.Run(t, func(t testing.TB) *store.Store { return storetest.OpenAt(t, storetest.PostgreSQL(t)) })
}

func TestCloseWritesHeartbeats(t *testing.T) {
	database := storetest.Database(t)
	s := storetest.OpenAt(t, database)
	w := storetest.NewWorld(t, s, 1)
	seen := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	recorded, err := s.RecordCheckIn(t.Context(), store.CheckIn{SiteID: w.Site.ID, Hostname: "agent", At: seen})
	if err != nil {
		t.Fatal(err)
	}
	skew := int64(-1500)
	s.Beat(store.Heartbeat{
		AgentID: recorded.ID, Told: recorded.Told, At: seen.Add(time.Minute), PeerAddress: "192.0.2.9", ClockSkewMS: &skew,
		Report: &checkin.Request{Hostname: "agent", CurrentTime: 7},
	})
	s.Beat(store.Heartbeat{AgentID: 99, At: seen, Report: &checkin.Request{}}) // deleted meanwhile
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	agent, err := storetest.OpenAt(t, database).GetAgent(t.Context(), recorded.ID)
	if err != nil || !agent.LastSeenAt.Equal(seen.Add(time.Minute)) || agent.PeerAddress != "192.0.2.9" ||
		agent.ClockSkewMS == nil || *agent.ClockSkewMS != skew || agent.Report.CurrentTime != 7 || !agent.FirstSeenAt.Equal(seen) {
		t.Errorf("%+v, %v", agent, err)
	}
}
