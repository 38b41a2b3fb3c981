package server

import (
	"log/slog"
	"net/http"
	"net/url"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/gin-gonic/gin"

	"opensource.internal/manager/internal/api"
	"opensource.internal/manager/internal/auth"
	"opensource.internal/manager/internal/config"
	"opensource.internal/manager/internal/dashboard"
	"opensource.internal/manager/internal/live"
	"opensource.internal/manager/internal/metrics"
	"opensource.internal/manager/internal/notify"
	"opensource.internal/manager/internal/snapshot"
	"opensource.internal/manager/internal/store"
)

// parts are what the handlers work with.
type parts struct {
	store     *store.Store
	auth      *auth.Auth
	snapshots *snapshot.Cache
	live      *live.Hub
	metrics   *metrics.Metrics
	notifier  *notify.Notifier
	lease     *store.Lease // of the tasks
	log       *slog.Logger
}

// newHandler is everything between the connection and the handlers, from the
// outside in.
func newHandler(c config.Config, version string, p parts) http.Handler {
	router, pages := newRouter(c, version, p)
	handler := withSessions(p.auth, pages, router)
	handler = sameOrigin(c.PublicURL, pages, handler)
	handler = described(p.auth, p.metrics, p.log, headAsGet(handler))
	return withoutPrefix(c.Prefix(), handler) // what is within knows paths by their own names
}

// newRouter holds the routes of the API and of the pages.
func newRouter(c config.Config, version string, p parts) (http.Handler, dashboard.Pages) {
	var pages dashboard.Pages
	engine := newEngine(func(w http.ResponseWriter, r *http.Request) {
		if wantsPage(r) {
			pages.Refuse(w, r, nil)
			return
		}
		api.Panicked(w, r)
	})
	engine.GET("/metrics", forReaders(p.auth, p.metrics.Handler()))
	checkIn := api.NewCheckIn(api.CheckInOptions{Store: p.store, Snapshots: p.snapshots, Authorize: p.auth.AuthorizeCheckIn, Log: p.log})
	api.Register(engine, api.Options{
		Store: p.store, Auth: p.auth, Snapshots: p.snapshots, CheckIn: checkIn, Live: p.live, Notifier: p.notifier, Log: p.log, PublicURL: c.PublicURL, Version: version,
	})
	pages = dashboard.Register(engine, dashboard.Options{Store: p.store, Auth: p.auth, Snapshots: p.snapshots, Notifier: p.notifier, Log: p.log, PublicURL: c.PublicURL, Version: version, About: aboutOf(c, p.lease)})
	engine.NoRoute(func(c *gin.Context) {
		if wantsPage(c.Request) {
			pages.NotFound(c.Writer, c.Request)
			return
		}
		api.NoRoute(c.Writer, c.Request)
	})
	return engine, pages
}

// aboutOf is what the pages tell of how the manager was set up.
func aboutOf(c config.Config, lease *store.Lease) dashboard.About {
	about := dashboard.About{Database: DatabaseOf(c).String(), Tasks: lease}
	if c.DatabaseURL == "" {
		about.Folder = filepath.Dir(c.Database)
	}
	for _, proxy := range c.TrustedProxies {
		about.Proxies = append(about.Proxies, proxy.String())
	}
	for _, s := range c.Explained {
		about.Settings = append(about.Settings, dashboard.Setting(s))
	}
	return about
}

// newEngine is the router before it has routes. What panics is answered by
// panicked.
func newEngine(panicked http.HandlerFunc) *gin.Engine {
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	_ = engine.SetTrustedProxies(nil) // cannot fail without proxies; ours are in auth
	engine.ForwardedByClientIP = false
	engine.RedirectTrailingSlash = false
	engine.HandleMethodNotAllowed = true
	engine.Use(noteRoute, gin.CustomRecoveryWithWriter(nil, recoverWith(panicked)))
	engine.NoMethod(func(c *gin.Context) { api.NoMethod(c.Writer, c.Request) })
	return engine
}

// wantsPage reports whether a browser asks for a page: programs get the errors of
// the API.
func wantsPage(r *http.Request) bool {
	return !isAPI(r.URL) && strings.Contains(r.Header.Get("Accept"), "text/html")
}

func isAPI(u *url.URL) bool { return u.Path == "/api" || strings.HasPrefix(u.Path, "/api/") }

// noteRoute notes which route a request has taken: its path is the client's to
// choose, and is neither counted nor logged.
func noteRoute(c *gin.Context) {
	if noted := auth.RequestOf(c.Request.Context()).Noted; noted != nil {
		noted.Route = c.FullPath()
	}
}

// forReaders lets those through who may read.
func forReaders(a *auth.Auth, next http.Handler) gin.HandlerFunc {
	return func(c *gin.Context) {
		who, err := a.Authenticate(c.Request)
		if err == nil && !who.Role.CanRead() {
			err = auth.ErrForbidden
		}
		if err != nil {
			api.Refuse(c.Writer, c.Request, err)
			return
		}
		_ = auth.AsActor(c.Request.Context(), who) // for the log
		next.ServeHTTP(c.Writer, c.Request)
	}
}

func isCheckIn(r *http.Request) bool {
	return r.Method == http.MethodPost && r.URL.Path == "/api/v1/agents"
}

// recoverWith answers a request whose handler has panicked. Half an answer must not
// look like a whole one: it ends with its connection.
func recoverWith(answer http.HandlerFunc) gin.RecoveryFunc {
	return func(c *gin.Context, cause any) {
		auth.RequestOf(c.Request.Context()).Logger().Error("handler panicked", "cause", cause, "stack", string(debug.Stack()))
		if c.Writer.Written() {
			panic(http.ErrAbortHandler)
		}
		answer(c.Writer, c.Request)
		c.Abort()
	}
}

// withSessions loads the session of whoever may have one. Check-ins never do:
// they stay out, so that none can create or use a session. Whether the manager
// lives must not depend on the database, in which sessions are.
func withSessions(a *auth.Auth, pages dashboard.Pages, next http.Handler) http.Handler {
	a.OnSessionError(func(w http.ResponseWriter, r *http.Request, err error) {
		if wantsPage(r) {
			pages.Refuse(w, r, err)
			return
		}
		api.Refuse(w, r, err)
	})
	people := a.Sessions(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isCheckIn(r) || r.URL.Path == "/api/v1/health/live" {
			next.ServeHTTP(w, r)
			return
		}
		people.ServeHTTP(w, r)
	})
}

// sameOrigin refuses what a page of another origin makes a browser send.
func sameOrigin(public *url.URL, pages dashboard.Pages, next http.Handler) http.Handler {
	protection := http.NewCrossOriginProtection()
	if public != nil {
		_ = protection.AddTrustedOrigin(public.Scheme + "://" + public.Host) // checked by config
	}
	protection.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if wantsPage(r) {
			pages.CrossOrigin(w, r)
			return
		}
		api.CrossOrigin(w, r)
	}))
	return protection.Handler(next)
}

// headAsGet answers HEAD as GET wherever there is a GET (RFC 9110 section
// 9.3.2), for those who watch a manager with it. The server leaves the body out.
// A stream of events would never end.
func headAsGet(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead && !strings.HasSuffix(r.URL.Path, "/api/v1/live") {
			r = r.WithContext(r.Context())
			r.Method = http.MethodGet
		}
		next.ServeHTTP(w, r)
	})
}

// withoutPrefix takes the path of PUBLIC_URL off, for proxies that pass it on.
func withoutPrefix(prefix string, next http.Handler) http.Handler {
	if prefix == "" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == prefix || strings.HasPrefix(r.URL.Path, prefix+"/") {
			stripped := *r.URL
			stripped.Path = "/" + strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, prefix), "/")
			stripped.RawPath = ""
			r = r.WithContext(r.Context())
			r.URL = &stripped
		}
		next.ServeHTTP(w, r)
	})
}
