//go:build e2e

// Package standin is a manager that answers what a test tells it to, and the
// package of the earlier generation as far as an upgrade sees it.
package standin

import (
	"encoding/json"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"opensource.internal/agent/checkin"
)

// Manager answers check-ins with one snapshot and remembers them.
type Manager struct {
	URL string

	mu       sync.Mutex
	data     []byte
	etag     string
	checkIns []CheckIn
}

// CheckIn is one check-in that arrived.
type CheckIn struct {
	At      time.Time
	Key     string // the bearer token
	Tag     string // If-None-Match
	Request checkin.Request
}

// NewManager starts a manager on an address of the tests' own. It stops with
// the test.
func NewManager(t testing.TB, address string, snapshot checkin.Snapshot) *Manager {
	t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		t.Fatalf("start stand-in manager: %v", err)
	}
	m := &Manager{URL: "http://" + listener.Addr().String()}
	m.Publish(t, snapshot)
	server := &http.Server{Handler: http.HandlerFunc(m.answer), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return m
}

// Publish replaces the snapshot.
func (m *Manager) Publish(t testing.TB, snapshot checkin.Snapshot) {
	t.Helper()
	data, etag, err := checkin.Encode(snapshot)
	if err != nil {
		t.Fatalf("publish: %v", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.data, m.etag = data, etag
}

// CheckIns returns every check-in since the given time.
func (m *Manager) CheckIns(since time.Time) []CheckIn {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, c := range m.checkIns {
		if c.At.After(since) {
			return append([]CheckIn(nil), m.checkIns[i:]...)
		}
	}
	return nil
}

func (m *Manager) answer(w http.ResponseWriter, r *http.Request) {
	var request checkin.Request
	if r.URL.Path != checkin.Path || json.NewDecoder(r.Body).Decode(&request) != nil {
		http.Error(w, "not a check-in", http.StatusBadRequest)
		return
	}
	key := r.Header.Get("Authorization")
	if len(key) > len("Bearer ") {
		key = key[len("Bearer "):]
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	tag := r.Header.Get("If-None-Match")
	m.checkIns = append(m.checkIns, CheckIn{time.Now(), key, tag, request})
	w.Header().Set("ETag", m.etag)
	if checkin.MatchETag(tag, m.etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte(`{"data":` + string(m.data) + `}`))
}
