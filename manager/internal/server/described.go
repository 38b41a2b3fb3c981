package server

import (
	"crypto/rand"
	"log/slog"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"opensource.internal/manager/internal/auth"
)

// securityHeaders forbids everything the pages do not need. The referrer policy
// is not no-referrer: that would make browsers send forms with a null Origin.
func securityHeaders(header http.Header) {
	header.Set("Content-Security-Policy", "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "same-origin")
}

// described gives every request an id, by which the log and the client can
// speak of it, and every answer for people the security headers.
func described(a *auth.Auth, log *slog.Logger, next http.Handler) http.Handler {
	run := rand.Text()[:8]
	var number atomic.Uint64
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := run + "-" + strconv.FormatUint(number.Add(1), 36)
		w.Header().Set("X-Request-Id", id)
		if !isCheckIn(r) {
			securityHeaders(w.Header())
		}
		request := auth.Request{ID: id, Client: a.Client(r), HTTP: r, Log: log}
		r = r.WithContext(auth.WithRequest(r.Context(), request))
		if !log.Enabled(r.Context(), slog.LevelDebug) {
			next.ServeHTTP(w, r)
			return
		}
		began := time.Now()
		next.ServeHTTP(w, r)
		request.Logger().Debug("answered", "method", r.Method, "path", r.URL.Path, "client", request.Client, "took", time.Since(began))
	})
}
