// Package server puts the manager together and runs it: the store, the API,
// the pages, and one HTTP server that stops without losing anything.
package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"opensource.internal/manager/internal/auth"
	"opensource.internal/manager/internal/config"
	"opensource.internal/manager/internal/live"
	"opensource.internal/manager/internal/metrics"
	"opensource.internal/manager/internal/notify"
	"opensource.internal/manager/internal/snapshot"
	"opensource.internal/manager/internal/store"
	"opensource.internal/manager/internal/tasks"
)

// stopTimeout is how long requests that are being answered may take when the
// manager stops.
const stopTimeout = 600 * time.Millisecond

// Server is a running manager.
type Server struct {
	// Store is the open database.
	Store *store.Store

	log            *slog.Logger
	listener       net.Listener
	http           *http.Server
	stopBackground context.CancelFunc
	running        sync.WaitGroup
	failed         chan error

	notifier        *notify.Notifier
	metrics         *metrics.Metrics
	metricsListener net.Listener // nil if there is no such address
	metricsHTTP     *http.Server
}

// Run serves until the context ends, and tells systemd when it is ready.
func Run(ctx context.Context, c config.Config, version string, log *slog.Logger) error {
	s, err := Start(ctx, c, version, log)
	if err != nil {
		return err
	}
	_, _ = daemon.SdNotify(false, daemon.SdNotifyReady) // not under systemd: nothing to tell
	select {
	case <-ctx.Done():
	case err = <-s.failed:
	}
	_, _ = daemon.SdNotify(false, daemon.SdNotifyStopping)
	return errors.Join(err, s.Stop())
}

// Start opens the database, migrates it if needed, and serves in the
// background until Stop.
func Start(ctx context.Context, c config.Config, version string, log *slog.Logger) (*Server, error) {
	s := &Server{log: log, failed: make(chan error, 1)}
	var err error
	if s.listener, err = net.Listen("tcp", c.Listen); err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	if err := s.listenForMetrics(c.MetricsListen); err != nil {
		return nil, errors.Join(err, s.listener.Close())
	}
	if s.Store, err = openStore(ctx, c, s.port(), log); err != nil {
		return nil, errors.Join(err, s.closeListeners())
	}
	s.measureAndNotify(c, version)
	s.serve(c, version)
	s.serveMetrics()
	s.warnIfOpen()
	s.invite(ctx, c)
	log.Info("serving", "address", s.listener.Addr().String(), "database", DatabaseOf(c), "version", version)
	return s, nil
}

// invite tells who reads the log how to make the first account. With a sign-in
// provider it is the provider that says who comes first.
func (s *Server) invite(ctx context.Context, c config.Config) {
	if singleSignOn(c) != nil {
		return
	}
	code, err := auth.NewSetupCode(ctx, s.Store)
	switch {
	case errors.Is(err, store.ErrSetUp):
	case err != nil:
		s.log.Error("no account can be made in a browser", "err", err)
	default:
		address := s.URL()
		if c.PublicURL != nil {
			address = c.PublicURL.String()
		}
		s.log.Info("no account yet: make the first one in a browser, with this code", "address", address+"/setup", "code", code)
	}
}

// DatabaseOf is the database that the settings name.
func DatabaseOf(c config.Config) store.Database {
	return store.Database{Path: c.Database, URL: string(c.DatabaseURL)}
}

func openStore(ctx context.Context, c config.Config, ownPort int, log *slog.Logger) (*store.Store, error) {
	opened, err := store.Open(ctx, DatabaseOf(c), store.Options{Migrate: true, ReservedPorts: []int{ownPort}, Log: log})
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	return opened, nil
}

func (s *Server) serve(c config.Config, version string) {
	a := auth.New(auth.Options{
		Store: s.Store, Log: s.log, TrustedProxies: c.TrustedProxies, LoopbackSite: c.LoopbackSite,
		Secure: c.Secure(), Prefix: c.Prefix(), OIDC: singleSignOn(c),
	})
	var background context.Context
	background, s.stopBackground = context.WithCancel(context.Background())
	s.running.Go(func() { a.Run(background) })
	lease := s.Store.NewLease(tasks.LeaseName, tasks.LeaseTerm)
	s.running.Go(func() { s.newTasks(c, lease).Run(background) })

	p := parts{store: s.Store, auth: a, snapshots: snapshot.NewCache(s.Store), metrics: s.metrics, notifier: s.notifier, lease: lease, log: s.log}
	p.snapshots.OnBuild = s.metrics.Built
	p.live = live.New(s.Store, p.snapshots, s.log)
	s.running.Go(func() { p.live.Run(background) })

	s.http = limited(newHandler(c, version, p), s.log)
	s.http.RegisterOnShutdown(p.live.Close) // streams would not end by themselves
	s.running.Go(func() {
		if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
			s.failed <- fmt.Errorf("serve: %w", err)
		}
	})
}

// limited serves with limits that no client can stretch: whoever is slow, silent
// or does not read loses the connection, and holds up nobody else until then.
func limited(handler http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      60 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    32 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// Stop finishes what is being answered, stores what is still in memory, and
// closes everything, in well under a second.
func (s *Server) Stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	if err := s.http.Shutdown(ctx); err != nil {
		s.log.Warn("requests were cut off", "err", err)
		_ = s.http.Close() // what it reports was just logged
	}
	s.stopMetrics()
	s.stopBackground()
	s.running.Wait()
	if err := s.Store.Close(); err != nil {
		return fmt.Errorf("close store: %w", err)
	}
	s.log.Info("stopped")
	return nil
}

func (s *Server) closeListeners() error {
	err := s.listener.Close()
	if s.metricsListener != nil {
		err = errors.Join(err, s.metricsListener.Close())
	}
	return err
}

// URL is where the server listens.
func (s *Server) URL() string { return "http://" + s.listener.Addr().String() }

func (s *Server) port() int { return s.listener.Addr().(*net.TCPAddr).Port }

// warnIfOpen reminds of TLS: passwords and keys go over this connection.
func (s *Server) warnIfOpen() {
	addr, err := netip.ParseAddrPort(s.listener.Addr().String())
	if err == nil && !addr.Addr().Unmap().IsLoopback() {
		s.log.Warn("listening for plain HTTP on an address that others can reach: keys and passwords are readable on the way; let a proxy with TLS stand in front", "address", addr)
	}
}
