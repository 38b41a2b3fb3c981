package api

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/url"

	"github.com/gin-gonic/gin"

	"opensource.internal/manager/internal/auth"
	"opensource.internal/manager/internal/live"
	"opensource.internal/manager/internal/notify"
	"opensource.internal/manager/internal/snapshot"
	"opensource.internal/manager/internal/store"
)

const basePath = "/api/v1"

// Options are what New needs.
type Options struct {
	Store     *store.Store
	Auth      *auth.Auth
	Snapshots *snapshot.Cache
	// CheckIn answers POST /api/v1/agents, credentials included.
	CheckIn   http.Handler
	Notifier  *notify.Notifier
	Live      *live.Hub
	Log       *slog.Logger
	PublicURL *url.URL // nil if not set
	Version   string
}

// API holds what the handlers work with.
type API struct {
	store     *store.Store
	auth      *auth.Auth
	snapshots *snapshot.Cache
	notifier  *notify.Notifier
	hub       *live.Hub
	log       *slog.Logger
	publicURL *url.URL
	prefix    string
	version   string
}

// Register adds the API to a router.
func Register(engine *gin.Engine, o Options) {
	a := &API{
		store: o.Store, auth: o.Auth, snapshots: o.Snapshots, notifier: o.Notifier, hub: o.Live, log: o.Log,
		publicURL: o.PublicURL, version: o.Version,
	}
	if o.PublicURL != nil {
		a.prefix = o.PublicURL.Path
	}
	a.routes(engine, o.CheckIn)
}

// location is the path of a record that has just been created.
func (a *API) location(collection string, id int64) string {
	return fmt.Sprintf("%s%s/%s/%d", a.prefix, basePath, collection, id)
}
