package server

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"opensource.internal/manager/internal/auth"
	"opensource.internal/manager/internal/config"
	"opensource.internal/manager/internal/live"
	"opensource.internal/manager/internal/metrics"
	"opensource.internal/manager/internal/snapshot"
	"opensource.internal/manager/internal/store"
	"opensource.internal/manager/internal/store/storetest"
)

// readToEnd tells when a handler has read all of a body.
type readToEnd struct {
	io.Reader
	done chan struct{}
}

func (r *readToEnd) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err == io.EOF && r.done != nil {
		close(r.done)
		r.done = nil
	}
	return n, err
}

// TestAbandonedRequestsDoNothing: the client goes away while its request waits
// for a database that somebody else has locked. When the lock is released,
// nobody works for that client any more.
func TestAbandonedRequestsDoNothing(t *testing.T) {
	database := storetest.Database(t)
	s := storetest.OpenAt(t, database)
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	snapshots := snapshot.NewCache(s)
	handler := newHandler(config.Config{LoopbackSite: 1}, "test", parts{
		store: s, auth: auth.New(auth.Options{Store: s, Log: logger}), snapshots: snapshots, live: live.New(s, snapshots, logger), metrics: metrics.New(metrics.Options{}), log: logger,
	})
	key, _, err := auth.CreateKey(t.Context(), s, auth.NewKey{Name: "k", Role: auth.RoleAdmin})
	if err != nil {
		t.Fatal(err)
	}
	storetest.NewWorld(t, s, 1)
	db := storetest.Raw(t, database)
	records := func() (all []string) {
		t.Helper()
		rows, err := db.Query(`SELECT 'site ' || name FROM sites UNION ALL SELECT 'agent ' || hostname FROM agents
			UNION ALL SELECT 'node ' || name FROM nodes UNION ALL SELECT 'revision ' || number FROM revisions`)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		for rows.Next() {
			var record string
			if err := rows.Scan(&record); err != nil {
				t.Fatal(err)
			}
			all = append(all, record)
		}
		return all
	}
	before := records()
	for _, request := range [][3]string{
		{"POST", "/api/v1/sites", `{"name":"other"}`},
		{"PATCH", "/api/v1/sites/1", `{"name":"renamed"}`},
		{"POST", "/api/v1/sites/1/nodes", `{"name":"pve9"}`},
		{"POST", "/api/v1/agents", `{"siteId":1,"hostname":"gateway"}`},
	} {
		unlock := storetest.LockWrites(t, database)
		ctx, leave := context.WithCancel(t.Context())
		read, answered := make(chan struct{}), make(chan struct{})
		r := httptest.NewRequest(request[0], request[1], &readToEnd{strings.NewReader(request[2]), read}).WithContext(ctx)
		r.Header = http.Header{"Content-Type": {"application/json"}, "X-Api-Key": {key}}
		go func() {
			handler.ServeHTTP(httptest.NewRecorder(), r)
			close(answered)
		}()
		<-read
		leave()
		unlock()
		<-answered
		if diff := cmp.Diff(before, records()); diff != "" {
			t.Errorf("%s %s was done:\n%s", request[0], request[1], diff)
		}
	}
	if log.Len() > 0 {
		t.Errorf("that nobody waited is no fault: %s", log.String())
	}
	if _, err := s.RecordCheckIn(t.Context(), store.CheckIn{SiteID: 1, Hostname: "gateway"}); err != nil {
		t.Errorf("the database is not free: %v", err)
	}
}
