package server

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"opensource.internal/manager/internal/auth"
	"opensource.internal/manager/internal/config"
	"opensource.internal/manager/internal/inventory"
)

// BenchmarkCheckIn is the path of a known agent that is up to date and says
// nothing new, from the parsed request to the 304, without the network.
func BenchmarkCheckIn(b *testing.B) {
	c := config.Config{Database: b.TempDir() + "/manager.db", Listen: "127.0.0.1:0"}
	s, err := Start(b.Context(), c, "test", slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		b.Fatal(err)
	}
	defer s.Stop()
	site, err := s.Store.CreateSite(b.Context(), inventory.Site{Name: "lab"})
	if err != nil {
		b.Fatal(err)
	}
	key, _, err := auth.CreateKey(b.Context(), s.Store, auth.NewKey{Name: "agent", Role: auth.RoleAgent, SiteID: site.ID})
	if err != nil {
		b.Fatal(err)
	}
	const body = `{"siteId":1,"hostname":"agent","currentTime":1771234560,"ipv4Address":"172.17.0.2",` +
		`"services":{"nginx":{"state":"active","lastApply":"success"},"dnsmasq":{"state":"active","lastApply":"success"}}}`
	etag := ""
	send := func() int {
		r := httptest.NewRequest(http.MethodPost, "/api/v1/agents", strings.NewReader(body))
		r.Header["Content-Type"] = []string{"application/json"}
		r.Header["Authorization"] = []string{"Bearer " + key}
		r.Header["If-None-Match"] = []string{etag}
		w := httptest.NewRecorder()
		s.http.Handler.ServeHTTP(w, r)
		etag = w.Header().Get("Etag")
		return w.Code
	}
	if got := send(); got != http.StatusOK {
		b.Fatalf("first check-in: %d", got)
	}
	b.ReportAllocs()
	for b.Loop() {
		if got := send(); got != http.StatusNotModified {
			b.Fatalf("status %d", got)
		}
	}
}
