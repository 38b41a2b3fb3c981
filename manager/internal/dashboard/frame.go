package dashboard

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"
	"github.com/gin-gonic/gin"

	"opensource.internal/manager/internal/auth"
	"opensource.internal/manager/internal/store"
)

// maxForm is the largest form that is read, in bytes.
const maxForm = 64 << 10

// page is what the frame around a page's content needs to know. A handler sets
// Title and what else is true of its page; the rest is set by visit.page.
type page struct {
	Title   string
	Section string  // the entry of the navigation, such as "/sites"
	Trail   []crumb // the pages above this one
	// Topics are what the page shows, as live.js knows them: "sites", "site:3",
	// "agents", "agent:7", "events" or "all". Without any it is not live.
	Topics []string
	// Every fetches the page also when nothing was told to have changed: for times
	// of check-ins, and what no event speaks of. Needs Topics.
	Every time.Duration
	// Chart loads the library for charts.
	Chart bool

	User   string
	Admin  bool // whether the visitor may change things
	Flash  flash
	Now    time.Time
	prefix string
	assets assets
}

// crumb is a page above another one.
type crumb struct{ Title, Path string }

// section is an entry of the navigation.
type section struct{ Path, Title, Icon string }

// sections are the navigation. A page that is made adds its line here.
var sections = []section{
	{"/agents", "Agents", "network"},
	{"/sites", "Sites", "house"},
	{"/domains", "Domains", "globe"},
	{"/events", "Events", "history"},
	{settingsPath, "Settings", "settings"},
}

// settingsPath is the entry of the navigation that has tabs.
const settingsPath = "/settings"

// tab is a page below the settings. Some are for administrators only.
type tab struct {
	section
	Admins bool
}

// tabs are the pages below the settings. A page that is made adds its line here.
var tabs = []tab{
	{section{settingsPath, "Health and settings", "settings"}, false},
	{section{"/api-keys", "API keys", "key-round"}, false},
	{section{"/users", "Users", "users"}, false},
	{section{"/notifications", "Notifications", "bell"}, false},
	{section{"/audit", "Audit log", "bookmark"}, true},
}

// link is the address of a page below the prefix.
func (p page) link(path string) templ.SafeURL { return templ.SafeURL(p.prefix + path) }

// asset is the address of a file that may be cached for good.
func (p page) asset(name string) templ.SafeURL {
	return templ.SafeURL(p.prefix + "/assets/" + p.assets.version + "/" + name)
}

func (p page) topics() string { return strings.Join(p.Topics, " ") }

// current marks the navigation's entry for who cannot see it.
func (p page) current(s section) string {
	switch {
	case p.Section == s.Path:
		return "page"
	case s.Path == settingsPath && p.tabbed():
		return "true"
	}
	return "false"
}

// tabbed reports whether the page is one of those below the settings.
func (p page) tabbed() bool {
	return slices.ContainsFunc(tabs, func(t tab) bool { return t.Path == p.Section })
}

// tabs are those that the visitor may open.
func (p page) tabs() []tab {
	return slices.DeleteFunc(slices.Clone(tabs), func(t tab) bool { return t.Admins && !p.Admin })
}

// visit is a request for a page by somebody who is signed in. Changes made with
// its Context are theirs.
type visit struct {
	*gin.Context
	d   *dashboard
	Who auth.Principal
	Now time.Time
}

// handler answers a visit. An error becomes a page: store.ErrNotFound "not
// found", auth.ErrForbidden "not allowed", everything else a fault that is
// logged and not told.
type handler func(*visit) error

// reader is a page for everybody who is signed in.
func (d *dashboard) reader(handle handler) gin.HandlerFunc {
	return d.visited(auth.Role.CanRead, handle)
}

// writer is a page for those who may change things.
func (d *dashboard) writer(handle handler) gin.HandlerFunc {
	return d.visited(auth.Role.CanWrite, handle)
}

func (d *dashboard) visited(may func(auth.Role) bool, handle handler) gin.HandlerFunc {
	return func(c *gin.Context) {
		who, err := d.auth.Person(c.Request.Context())
		if errors.Is(err, auth.ErrUnauthorized) {
			d.askToSignIn(c)
			return
		}
		v := &visit{Context: c, d: d, Who: who, Now: time.Now().UTC()}
		if err == nil && !may(who.Role) {
			err = auth.ErrForbidden
		}
		if err == nil {
			c.Request = c.Request.WithContext(auth.AsActor(c.Request.Context(), who))
			err = handle(v)
		}
		if err != nil {
			v.fail(err)
		}
	}
}

// page is the frame of a page for the visitor.
func (v *visit) page(title, section string, trail ...crumb) page {
	p := v.d.page(title)
	p.Section, p.Trail, p.User, p.Now = section, trail, v.Who.Name, v.Now
	p.Admin = v.canWrite()
	return p
}

// canWrite reports whether the visitor may change things: others get no buttons.
func (v *visit) canWrite() bool { return v.Who.Role.CanWrite() }

// id is the number that the address names a record by, or store.ErrNotFound.
func (v *visit) id() (int64, error) {
	id, err := strconv.ParseInt(v.Param("id"), 10, 64)
	if err != nil || id <= 0 {
		return 0, store.ErrNotFound
	}
	return id, nil
}

// show answers with a page: whole, or only what the frame is around if the page
// itself asks for it again.
func (v *visit) show(status int, p page, content templ.Component) error {
	if isRefresh(v.Context) {
		v.d.show(v.Context, status, refreshed(p, content))
		return nil
	}
	p.Flash = v.takeFlash()
	v.d.show(v.Context, status, framed(p, content))
	return nil
}

// goTo sends the browser to another page after a form, which says there what was
// done.
func (v *visit) goTo(path, done string) error {
	v.setFlash(flash{Text: done})
	v.d.goTo(v.Context, path)
	return nil
}

// fail shows why there is no page.
func (v *visit) fail(err error) {
	status, title, text := v.d.explain(v.Request, err)
	switch {
	case status == 0:
		return // nobody waits
	case errors.Is(err, auth.ErrForbidden) && v.Who.Role.CanRead() && !v.canWrite():
		text += " You are signed in as " + v.Who.Name + ", who may look at everything, and change nothing."
	}
	_ = v.show(status, v.page(title, ""), errorPage(v.page(title, ""), text)) // shows, cannot fail
}

// explain says what an error means to people. What is no more than a fault of
// the manager is logged, and not told.
func (d *dashboard) explain(r *http.Request, err error) (status int, title, text string) {
	var inUse *store.InUseError
	var conflict *store.ConflictError
	var invalid *store.InvalidError
	var unread *unreadError
	switch {
	case r.Context().Err() != nil:
		return 0, "", "" // that a browser did not wait is no fault
	case errors.Is(err, store.ErrNotFound):
		return http.StatusNotFound, "Not found", "There is no such page. What it was about may have been deleted meanwhile."
	case errors.Is(err, auth.ErrForbidden):
		return http.StatusForbidden, "Not allowed", "Only an administrator may do this."
	case errors.As(err, &invalid):
		return http.StatusBadRequest, "Not understood", "The address asks for something that there is not: " + invalid.Error() + "."
	case errors.As(err, &unread):
		return unread.Status, "Not read", unread.Error()
	case errors.As(err, &inUse):
		return http.StatusConflict, "In use", inUse.Error() + "."
	case errors.As(err, &conflict):
		return http.StatusConflict, "Not possible as things stand", conflict.Error() + "."
	}
	auth.RequestOf(r.Context()).Logger().Error("answer page", "err", err)
	if store.Unavailable(err) {
		return http.StatusServiceUnavailable, "Not available", "The manager's database cannot be used at the moment, so nothing was changed. Agents go on with what they have. The log says why: journalctl -u opensource-manager"
	}
	return http.StatusInternalServerError, somethingWrong, itsLog
}

const (
	somethingWrong = "Something went wrong"
	itsLog         = "The manager could not do this. Its log says why: journalctl -u opensource-manager"
)

// RefreshHeader is sent by an open page that asks for its content again.
const RefreshHeader = "X-Refresh"

// isRefresh reports whether an open page asks for its content again.
func isRefresh(c *gin.Context) bool { return c.GetHeader(RefreshHeader) != "" }

// askToSignIn sends somebody to the sign-in page, and back from there. A script
// is told instead.
func (d *dashboard) askToSignIn(c *gin.Context) {
	if isRefresh(c) {
		c.Header("Cache-Control", "no-store")
		c.String(http.StatusUnauthorized, "signed out")
		return
	}
	back := ""
	if d.pages[c.FullPath()] && c.Request.URL.RequestURI() != "/agents" { // a form goes to where it is
		back = "?" + url.Values{"next": {c.Request.URL.RequestURI()}}.Encode()
	}
	d.goTo(c, "/sign-in"+back)
}

// next is where somebody goes after signing in: a page of ours.
func next(wanted string) string {
	address, err := url.Parse(wanted)
	if err != nil || address.IsAbs() || address.Host != "" || !strings.HasPrefix(wanted, "/") || strings.HasPrefix(wanted, "//") || strings.ContainsAny(wanted, "\\\r\n\t") {
		return "/agents"
	}
	return wanted
}

// flash is what a page says was done on the page before.
type flash struct {
	Text string
	Site int64 `json:",omitempty"` // whose revisions show it
	// Waits says that the agents of the site do not get it yet.
	Waits bool `json:",omitempty"`
}

// flashCookie holds what the next page says was done, for as long as it takes to
// get there.
const (
	flashCookie = "opensource_manager_done"
	flashLasts  = 30 * time.Second
)

func (v *visit) setFlash(f flash) {
	if f.Text == "" {
		return
	}
	content, _ := json.Marshal(f) // can be
	http.SetCookie(v.Writer, v.d.cookie(flashCookie, base64.RawURLEncoding.EncodeToString(content), v.d.prefix, flashLasts))
}

func (v *visit) takeFlash() (f flash) {
	cookie, err := v.Request.Cookie(flashCookie)
	if err != nil {
		return flash{}
	}
	http.SetCookie(v.Writer, v.d.cookie(flashCookie, "", v.d.prefix, -time.Second))
	content, _ := base64.RawURLEncoding.DecodeString(cookie.Value)
	_ = json.Unmarshal(content, &f) // what is not ours says nothing
	return f
}

// cookie is one of ours, for the pages below a path.
func (d *dashboard) cookie(name, value, path string, lasts time.Duration) *http.Cookie {
	return &http.Cookie{
		Name: name, Value: value, MaxAge: int(lasts / time.Second), Path: cmp.Or(path, "/"), HttpOnly: true, SameSite: http.SameSiteLaxMode,
		Secure: d.publicURL != nil && d.publicURL.Scheme == "https",
	}
}

// show writes a whole answer, or a fault if it cannot be made.
func (d *dashboard) show(c *gin.Context, status int, content templ.Component) {
	d.answer(c.Writer, c.Request, status, content)
}

func (d *dashboard) answer(w http.ResponseWriter, r *http.Request, status int, content templ.Component) {
	if len(d.assets.missing) > 0 {
		http.Error(w, fmt.Sprintf("This manager was built without the files of its pages (%s).\nRun `make assets`, and build it again.", strings.Join(d.assets.missing, ", ")), http.StatusServiceUnavailable)
		return
	}
	var body bytes.Buffer
	if err := content.Render(r.Context(), &body); err != nil {
		if r.Context().Err() == nil {
			auth.RequestOf(r.Context()).Logger().Error("make page", "err", err)
			http.Error(w, "The manager could not make this page. Its log says why.", http.StatusInternalServerError)
		}
		return
	}
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Cache-Control", "no-store")
	header.Set("Vary", "Accept-Encoding")
	answer := body.Bytes()
	if takesGzip(r) {
		header.Set("Content-Encoding", "gzip")
		answer = zip(answer, gzip.BestSpeed)
	}
	w.WriteHeader(status)
	if _, err := w.Write(answer); err != nil && r.Context().Err() == nil {
		auth.RequestOf(r.Context()).Logger().Warn("write page", "err", err)
	}
}
