package server

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"opensource.internal/manager/internal/auth"
	"opensource.internal/manager/internal/dashboard"
	"opensource.internal/manager/internal/metrics"
	"opensource.internal/manager/internal/store"
)

// Lines about check-ins that are more than a heartbeat: so many at once, then
// one in an interval. A thousand agents whose keys were revoked must not be all
// there is in the log.
const (
	checkInBurst    = 20
	checkInInterval = time.Second
)

// requestLog writes a line about a request that was answered. Neither the path
// nor the query is part of it, only the pattern that the path matched: the
// former may hold what was pasted by mistake.
type requestLog struct {
	log      *slog.Logger
	checkIns *rate.Limiter
	left     atomic.Int64 // lines about check-ins that were left out
}

func newRequestLog(log *slog.Logger) *requestLog {
	return &requestLog{log: log, checkIns: rate.NewLimiter(rate.Every(checkInInterval), checkInBurst)}
}

func (l *requestLog) write(request auth.Request, answer metrics.Answer, e *exchange) {
	refresh := request.HTTP != nil && request.HTTP.Header.Get(dashboard.RefreshHeader) != ""
	level := levelOf(answer, e.noted.Actor, refresh)
	ctx := context.Background() // that of the request may have ended
	if !l.log.Enabled(ctx, level) {
		return
	}
	line := []slog.Attr{
		slog.String("request", request.ID),
		slog.String("method", answer.Method), slog.String("route", answer.Route), slog.Int("status", answer.Status),
		slog.Duration("took", answer.Took), slog.Int64("bytes", e.bytes), slog.String("client", request.Client.String()),
	}
	if who := e.noted.Actor; who.Kind != "" {
		line = append(line, slog.String("actor", string(who.Kind)+" "+who.Name))
	}
	if answer.CheckIn && level > slog.LevelDebug {
		if !l.checkIns.Allow() {
			l.left.Add(1)
			return
		}
		if left := l.left.Swap(0); left > 0 {
			line = append(line, slog.Int64("leftOut", left))
		}
	}
	l.log.LogAttrs(ctx, level, "answered", line...)
}

// levelOf decides who wants to know of a request. What people do, what is
// changed and what is refused is for everybody; what programs fetch again and
// again only for those who look for a fault.
func levelOf(answer metrics.Answer, who store.Actor, refresh bool) slog.Level {
	reads := answer.Method == http.MethodGet || answer.Method == http.MethodHead
	switch {
	case answer.Status == abandoned, answer.CheckIn && answer.Status == http.StatusNotModified:
		return slog.LevelDebug
	case strings.HasPrefix(answer.Route, "/api/v1/health"):
		return slog.LevelDebug // it says itself why the manager is not ready
	case answer.Status >= http.StatusBadRequest, !reads:
		return slog.LevelInfo
	case refresh, fetched[answer.Route], who.Kind != store.ActorUser:
		return slog.LevelDebug
	}
	return slog.LevelInfo
}

// fetched is what a page fetches by itself.
var fetched = map[string]bool{"/assets/*file": true, "/api/v1/live": true}
