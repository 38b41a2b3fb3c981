package dashboard

import (
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/a-h/templ"
	"github.com/gin-gonic/gin"

	"opensource.internal/manager/internal/auth"
	"opensource.internal/manager/internal/snapshot"
	"opensource.internal/manager/internal/store"
)

// Options are what Register needs.
type Options struct {
	Store     *store.Store
	Auth      *auth.Auth
	Snapshots *snapshot.Cache
	Log       *slog.Logger
	PublicURL *url.URL // nil if not set
}

type dashboard struct {
	store     *store.Store
	auth      *auth.Auth
	snapshots *snapshot.Cache
	log       *slog.Logger
	publicURL *url.URL
	prefix    string
	assets    assets
}

// Register adds the pages to a router and returns the one for pages that do
// not exist.
func Register(engine *gin.Engine, o Options) (notFound gin.HandlerFunc) {
	d := &dashboard{store: o.Store, auth: o.Auth, snapshots: o.Snapshots, log: o.Log, publicURL: o.PublicURL, assets: loadAssets()}
	if o.PublicURL != nil {
		d.prefix = o.PublicURL.Path
	}
	engine.GET("/", d.home)
	engine.GET("/sign-in", d.signInForm)
	engine.POST("/sign-in", d.signIn)
	engine.GET("/sign-in/oidc", d.leave)
	engine.GET(CallbackPath, d.comeBack)
	engine.POST("/sign-out", d.signOut)
	engine.GET("/agents", d.agents)
	engine.GET("/agents/list", d.agentList)
	engine.GET("/agents/:id/removals", d.removals)
	engine.POST("/agents/:id/removals", d.confirm)
	engine.GET("/assets/*file", gin.WrapH(http.StripPrefix("/assets/", d.assets)))
	return d.notFound
}

// page is what the frame of every page needs to know.
type page struct {
	Title   string
	User    string
	Refresh bool
	prefix  string
	assets  assets
}

func (d *dashboard) page(title string) page {
	return page{Title: title, prefix: d.prefix, assets: d.assets}
}

// link is the address of a page below the prefix.
func (p page) link(path string) templ.SafeURL { return templ.SafeURL(p.prefix + path) }

// asset is the address of a file that may be cached for good.
func (p page) asset(name string) templ.SafeURL {
	return templ.SafeURL(p.prefix + "/assets/" + name + "?v=" + p.assets.version)
}

func (d *dashboard) home(c *gin.Context) { d.goTo(c, "/agents") }

func (d *dashboard) agents(c *gin.Context) {
	who, err := d.auth.Person(c.Request.Context())
	if errors.Is(err, auth.ErrUnauthorized) {
		d.goTo(c, "/sign-in")
		return
	}
	if err != nil {
		d.fault(c, "find out who is signed in", err)
		return
	}
	list, err := d.readAgents(c.Request.Context(), who, time.Now())
	if err != nil {
		d.fault(c, "list agents", err)
		return
	}
	list.ManagerURL = d.managerURL(c.Request)
	p := d.page("Agents")
	p.User, p.Refresh = who.Name, true
	d.show(c, http.StatusOK, agentsPage(p, list))
}

// agentList is the part of the page that the script fetches again.
func (d *dashboard) agentList(c *gin.Context) {
	who, err := d.auth.Person(c.Request.Context())
	if errors.Is(err, auth.ErrUnauthorized) {
		c.String(http.StatusUnauthorized, "signed out")
		return
	}
	if err != nil {
		d.fault(c, "find out who is signed in", err)
		return
	}
	list, err := d.readAgents(c.Request.Context(), who, time.Now())
	if err != nil {
		d.fault(c, "list agents", err)
		return
	}
	list.ManagerURL = d.managerURL(c.Request)
	d.show(c, http.StatusOK, agentsFragment(list))
}

// managerURL is what an agent on another host would use.
func (d *dashboard) managerURL(r *http.Request) string {
	if d.publicURL != nil {
		return d.publicURL.String()
	}
	return "http://" + r.Host
}

func (d *dashboard) goTo(c *gin.Context, path string) {
	c.Header("Cache-Control", "no-store")
	c.Redirect(http.StatusSeeOther, d.prefix+path)
}

func (d *dashboard) show(c *gin.Context, status int, content templ.Component) {
	c.Header("Content-Type", "text/html; charset=utf-8")
	c.Header("Cache-Control", "no-store")
	c.Status(status)
	if err := content.Render(c.Request.Context(), c.Writer); err != nil && c.Request.Context().Err() == nil {
		d.log.Warn("write page", "path", c.Request.URL.Path, "err", err)
	}
}

// fault logs what went wrong and shows a page that does not tell. That a
// browser did not wait for the answer is no fault.
func (d *dashboard) fault(c *gin.Context, act string, err error) {
	if c.Request.Context().Err() != nil {
		return
	}
	d.log.Error(act, "path", c.Request.URL.Path, "err", err)
	if store.Unavailable(err) {
		d.show(c, http.StatusServiceUnavailable, errorPage(d.page("Not available"), "The manager's database cannot be used at the moment. Its log says why."))
		return
	}
	d.show(c, http.StatusInternalServerError, errorPage(d.page("Something went wrong"), "The manager could not do this. Its log says why."))
}

func (d *dashboard) notFound(c *gin.Context) {
	d.show(c, http.StatusNotFound, errorPage(d.page("Not found"), "There is no such page."))
}
