package dashboard

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/a-h/templ"
	"github.com/gin-gonic/gin"

	"opensource.internal/manager/internal/auth"
	"opensource.internal/manager/internal/notify"
	"opensource.internal/manager/internal/snapshot"
	"opensource.internal/manager/internal/store"
)

// Options are what Register needs.
type Options struct {
	Store     *store.Store
	Auth      *auth.Auth
	Snapshots *snapshot.Cache
	Notifier  *notify.Notifier
	Log       *slog.Logger
	PublicURL *url.URL // nil if not set
	Version   string   // the manager's own
	About     About
}

type dashboard struct {
	store     *store.Store
	auth      *auth.Auth
	snapshots *snapshot.Cache
	notifier  *notify.Notifier
	log       *slog.Logger
	publicURL *url.URL
	version   string
	about     About
	prefix    string
	assets    assets
	pages     map[string]bool // the routes that can be opened, not only be sent to
}

// Register adds the pages to a router and returns those that no route leads to.
func Register(engine *gin.Engine, o Options) Pages {
	d := &dashboard{store: o.Store, auth: o.Auth, snapshots: o.Snapshots, notifier: o.Notifier, log: o.Log, publicURL: o.PublicURL, version: o.Version, about: o.About, assets: loadAssets(), pages: map[string]bool{}}
	if o.PublicURL != nil {
		d.prefix = o.PublicURL.Path
	}
	engine.GET("/", d.home)
	engine.GET("/sign-in", d.signInForm)
	engine.POST("/sign-in", d.signIn)
	engine.GET("/sign-in/oidc", d.leave)
	engine.GET(CallbackPath, d.comeBack)
	engine.POST("/sign-out", d.signOut)
	engine.GET("/setup", d.setupForm)
	engine.POST("/setup", d.setUp)
	engine.GET("/agents", d.reader(d.agents))
	engine.GET("/agents/:id", d.reader(d.agent))
	engine.GET("/agents/:id/events", d.reader(d.agentEvents))
	engine.GET("/agents/:id/delete", d.writer(d.askForgetAgent))
	engine.POST("/agents/:id/delete", d.writer(d.forgetAgent))
	engine.GET("/agents/:id/removals", d.writer(d.removals))
	engine.POST("/agents/:id/removals", d.writer(d.confirm))
	engine.GET("/sites", d.reader(d.listSites))
	d.form(engine, "/sites/new", d.newSite)
	engine.GET("/sites/:id", d.reader(d.site))
	d.form(engine, "/sites/:id/edit", d.editSite)
	d.form(engine, "/sites/:id/delete", d.deleteSite)
	engine.GET("/sites/:id/nodes", d.reader(d.listNodes))
	d.form(engine, "/sites/:id/nodes/new", d.newNode)
	engine.GET("/nodes/:id", d.reader(d.node))
	d.form(engine, "/nodes/:id/edit", d.editNode)
	d.form(engine, "/nodes/:id/delete", d.deleteNode)
	engine.GET("/sites/:id/containers", d.reader(d.listContainers))
	d.form(engine, "/sites/:id/containers/new", d.newContainer)
	engine.GET("/containers/:id", d.reader(d.container))
	d.form(engine, "/containers/:id/edit", d.editContainer)
	d.form(engine, "/containers/:id/delete", d.deleteContainer)
	engine.GET("/sites/:id/services", d.reader(d.listServices))
	engine.GET("/sites/:id/volumes", d.reader(d.listVolumes))
	d.form(engine, "/containers/:id/services/new", d.newService)
	engine.GET("/services/:id", d.reader(d.service))
	d.form(engine, "/services/:id/edit", d.editService)
	d.form(engine, "/services/:id/delete", d.deleteService)
	d.form(engine, "/containers/:id/volumes/new", d.newVolume)
	engine.GET("/volumes/:id", d.reader(d.volume))
	d.form(engine, "/volumes/:id/edit", d.editVolume)
	d.form(engine, "/volumes/:id/delete", d.deleteVolume)
	engine.GET("/domains", d.reader(d.listDomains))
	d.form(engine, "/domains/new", d.newDomain)
	engine.GET("/domains/:id", d.reader(d.domain))
	d.form(engine, "/domains/:id/edit", d.editDomain)
	d.form(engine, "/domains/:id/delete", d.deleteDomain)
	engine.GET("/sites/:id/enroll", d.writer(d.enrollments))
	engine.POST("/sites/:id/enroll", d.writer(d.enrollments))
	engine.GET("/enrollments/:id", d.writer(d.enrollment))
	engine.POST("/enrollments/:id/revoke", d.writer(d.revokeEnrollment))
	engine.GET("/sites/:id/revisions", d.reader(d.revisions))
	engine.GET("/sites/:id/revisions/:number", d.reader(d.revision))
	engine.GET("/sites/:id/revisions/:number/set-back", d.writer(d.askSetBack))
	engine.POST("/sites/:id/revisions/:number/set-back", d.writer(d.setBack))
	engine.GET("/sites/:id/undo", d.writer(d.undo))
	engine.GET("/sites/:id/diff", d.reader(d.diff))
	engine.GET("/sites/:id/pending", d.reader(d.pending))
	engine.POST("/sites/:id/pending", d.writer(d.publish))
	engine.GET("/sites/:id/pin", d.writer(d.askPin))
	engine.POST("/sites/:id/pin", d.writer(d.pin))
	engine.GET("/sites/:id/unpin", d.writer(d.askUnpin))
	engine.POST("/sites/:id/unpin", d.writer(d.unpin))
	d.settingsRoutes(engine)
	engine.GET("/assets/*file", gin.WrapH(http.StripPrefix("/assets/", d.assets)))
	for _, route := range engine.Routes() {
		d.pages[route.Path] = d.pages[route.Path] || route.Method == http.MethodGet
	}
	return Pages{d}
}

// Pages tell people why they get no page, where no route was taken.
type Pages struct{ d *dashboard }

// NotFound is for addresses without a page.
func (p Pages) NotFound(w http.ResponseWriter, r *http.Request) {
	frame := p.d.page("Not found")
	if who, err := p.d.auth.Person(r.Context()); err == nil {
		frame.User, frame.Admin = who.Name, who.Role.CanWrite()
	}
	p.d.answer(w, r, http.StatusNotFound, framed(frame, errorPage(frame, "There is no such page.")))
}

// CrossOrigin is for a form that seems to come from elsewhere.
func (p Pages) CrossOrigin(w http.ResponseWriter, r *http.Request) {
	p.d.answer(w, r, http.StatusForbidden, p.d.errorPage("Not allowed",
		"This was sent by a page of another address, so nothing was done. If it was a page of this manager, PUBLIC_URL is not the address in your browser: an administrator has to mend that on its host."))
}

// Refuse is for what could not be done; nil stands for what is logged already.
func (p Pages) Refuse(w http.ResponseWriter, r *http.Request, err error) {
	if err == nil {
		p.d.answer(w, r, http.StatusInternalServerError, p.d.errorPage(somethingWrong, itsLog))
		return
	}
	if status, title, text := p.d.explain(r, err); status != 0 {
		p.d.answer(w, r, status, p.d.errorPage(title, text))
	}
}

// form is a page with a form for administrators, which goes to where it is.
func (d *dashboard) form(engine *gin.Engine, path string, handle handler) {
	engine.GET(path, d.writer(handle))
	engine.POST(path, d.writer(handle))
}

func (d *dashboard) page(title string) page {
	return page{Title: title, prefix: d.prefix, assets: d.assets, Now: time.Now().UTC()}
}

func (d *dashboard) home(c *gin.Context) { d.goTo(c, "/agents") }

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

// fault shows what went wrong to who is not signed in.
func (d *dashboard) fault(c *gin.Context, act string, err error) {
	Pages{d}.Refuse(c.Writer, c.Request, fmt.Errorf("%s: %w", act, err))
}

func (d *dashboard) errorPage(title, text string) templ.Component {
	p := d.page(title)
	return framed(p, errorPage(p, text))
}
