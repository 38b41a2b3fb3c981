package server

import (
	"errors"
	"fmt"
	"net"
	"net/http"

	"opensource.internal/manager/internal/config"
	"opensource.internal/manager/internal/metrics"
	"opensource.internal/manager/internal/notify"
)

// measureAndNotify makes what measures and what notifies: each wants to know
// of the other.
func (s *Server) measureAndNotify(c config.Config, version string) {
	s.notifier = notify.New(notify.Options{
		Store: s.Store, Log: s.log, Window: c.NotifyWindow, Remind: c.NotifyRemind, Link: c.AgentsPage(),
		Sent: func(err error) { s.metrics.Notified(err) },
	})
	s.metrics = metrics.New(metrics.Options{
		Store: s.Store, Log: s.log, Version: version, Detail: c.MetricsDetail, Pending: s.notifier.Pending,
	})
}

// listenForMetrics opens the address on which /metrics is served without
// credentials, if there is one.
func (s *Server) listenForMetrics(address string) (err error) {
	if address == "" {
		return nil
	}
	if s.metricsListener, err = net.Listen("tcp", address); err != nil {
		return fmt.Errorf("listen for metrics: %w", err)
	}
	return nil
}

func (s *Server) serveMetrics() {
	if s.metricsListener == nil {
		return
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", s.metrics.Handler())
	s.metricsHTTP = limited(mux, s.log)
	s.running.Go(func() {
		if err := s.metricsHTTP.Serve(s.metricsListener); !errors.Is(err, http.ErrServerClosed) {
			s.log.Error("serve metrics", "err", err) // no reason to stop serving agents
		}
	})
	s.log.Info("serving metrics without credentials", "address", s.metricsListener.Addr().String())
}

// stopMetrics cuts off a scrape: the next one finds another manager.
func (s *Server) stopMetrics() {
	if s.metricsHTTP != nil {
		_ = s.metricsHTTP.Close() // nothing is lost
	}
}
