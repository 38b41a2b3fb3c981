package server

import (
	"crypto/rand"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"opensource.internal/manager/internal/auth"
	"opensource.internal/manager/internal/metrics"
)

// securityHeaders forbids everything the pages do not need. The referrer policy
// is not no-referrer: that would make browsers send forms with a null Origin.
func securityHeaders(header http.Header) {
	header.Set("Content-Security-Policy", "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "same-origin")
}

// described gives every request an id, by which the log and the client can
// speak of it, and every answer for people the security headers. What was
// answered is counted and logged.
func described(a *auth.Auth, m *metrics.Metrics, log *slog.Logger, next http.Handler) http.Handler {
	run := rand.Text()[:8]
	var number atomic.Uint64
	lines := newRequestLog(log)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		id := a.RequestID(r)
		if id == "" {
			id = run + "-" + strconv.FormatUint(number.Add(1), 36)
		}
		w.Header()["X-Request-Id"] = []string{id}
		checkIn := isCheckIn(r)
		if !checkIn {
			securityHeaders(w.Header())
		}
		e := &exchange{ResponseWriter: w}
		request := auth.Request{ID: id, Client: a.Client(r), HTTP: r, Log: log, Noted: &e.noted}
		r = r.WithContext(auth.WithRequest(r.Context(), request))
		finished := false
		defer func() {
			if !finished { // an answer that a panic breaks off, whatever it began with
				e.status = http.StatusInternalServerError
			}
			answer := metrics.Answer{
				Method: r.Method, Route: e.noted.Route, Status: e.code(r), Took: time.Since(began),
				CheckIn: checkIn, Stream: e.isStream(),
			}
			m.Answered(answer)
			lines.write(request, answer, e)
		}()
		next.ServeHTTP(e, r)
		finished = true
	})
}

// exchange notes what is answered to a request.
type exchange struct {
	http.ResponseWriter
	status int
	bytes  int64
	noted  auth.Noted
}

// WriteHeader implements http.ResponseWriter.
func (e *exchange) WriteHeader(status int) {
	if e.status == 0 && status >= http.StatusOK {
		e.status = status
	}
	e.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (e *exchange) Write(p []byte) (int, error) {
	n, err := e.ResponseWriter.Write(p)
	e.bytes += int64(n)
	return n, err
}

// Flush implements http.Flusher, which gin asks for by type.
func (e *exchange) Flush() { _ = http.NewResponseController(e.ResponseWriter).Flush() }

// Unwrap serves http.ResponseController.
func (e *exchange) Unwrap() http.ResponseWriter { return e.ResponseWriter }

// abandoned stands for a fault that nobody waited for: it is mostly the fault
// that nobody waited. The number is that of nginx's log.
const abandoned = 499

// code is the status of the answer; what says nothing else is a success.
func (e *exchange) code(r *http.Request) int {
	switch {
	case e.status == 0:
		return http.StatusOK
	case e.status >= http.StatusInternalServerError && r.Context().Err() != nil:
		return abandoned
	}
	return e.status
}

func (e *exchange) isStream() bool {
	kind := e.Header()["Content-Type"]
	return len(kind) == 1 && strings.HasPrefix(kind[0], "text/event-stream")
}
