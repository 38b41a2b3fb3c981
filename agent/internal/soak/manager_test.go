package soak

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"opensource.internal/agent/checkin"
)

const managerAddress = "127.0.0.1:3000"

// manager is scripted: it answers with the snapshot it holds, or with what
// a sequence wants it to.
type manager struct {
	mutex     sync.Mutex
	data      []byte
	etag      string
	published map[string]checkin.Snapshot // by tag, of this sequence
	fault     string                      // the name of an answer in odd, or empty
	told      []checkin.Request           // the check-ins that were answered well
	before    func()                      // is called ahead of the next answer
}

// odd are the answers of a manager that is not well.
var odd = map[string]http.HandlerFunc{
	"away": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	"500": func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, `{"error":{"code":"internal_error","message":"no database"}}`, http.StatusInternalServerError)
	},
	"404":            says(http.StatusNotFound, "application/json", `{"error":{"code":"site_not_found","message":"no such site"}}`),
	"a page":         says(http.StatusOK, "text/html", "<html>Sign in"),
	"another object": says(http.StatusOK, "application/json", `{"error":"x"}`),
	"null":           says(http.StatusOK, "application/json", `{"data":null}`),
	"half": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, `{"data":{"site":`)
	},
	"no list":      says(http.StatusOK, "application/json", `{"data":{"site":{"id":1,"nodes":[]},"nginx":{"httpServices":[],"streamServices":null,"externalDomains":[]}}}`),
	"no site":      says(http.StatusOK, "application/json", `{"data":{"site":null,"nginx":{"httpServices":[],"streamServices":[],"externalDomains":[]}}}`),
	"another site": says(http.StatusOK, "application/json", `{"data":{"site":{"id":2,"nodes":[]},"nginx":{"httpServices":[],"streamServices":[],"externalDomains":[]}}}`),
}

func says(status int, kind, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.Header().Set("ETag", `"odd"`)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// publish makes the snapshot the one that is answered, and returns its tag.
func (m *manager) publish(s checkin.Snapshot) (string, error) {
	data, etag, err := checkin.Encode(s)
	if err != nil {
		return "", err
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.data, m.etag = data, etag
	m.published[etag] = s
	return etag, nil
}

func (m *manager) snapshot(etag string) (checkin.Snapshot, bool) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	s, known := m.published[etag]
	return s, known
}

// set changes how it answers.
func (m *manager) set(change func(*manager)) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	change(m)
}

// takeTold returns the check-ins that were answered since the last call.
func (m *manager) takeTold() []checkin.Request {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	told := m.told
	m.told = nil
	return told
}

// ServeHTTP implements http.Handler.
func (m *manager) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var request checkin.Request
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(body, &request)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if before := m.before; before != nil {
		m.before = nil
		before()
	}
	if m.fault != "" {
		odd[m.fault](w, r)
		return
	}
	m.told = append(m.told, request)
	w.Header().Set("ETag", m.etag)
	if slices.Contains(strings.Split(r.Header.Get("If-None-Match"), ", "), m.etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"data":%s}`, m.data)
}
