package dashboard

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"opensource.internal/manager/internal/health"
	"opensource.internal/manager/internal/store"
)

// settingsRoutes are the pages below the settings.
func (d *dashboard) settingsRoutes(engine *gin.Engine) {
	engine.GET(settingsPath, d.reader(d.settings))
	engine.GET("/audit", d.writer(d.auditLog))
	engine.GET("/events", d.reader(d.listEvents))
	engine.GET("/api-keys", d.reader(d.listKeys))
	d.form(engine, "/api-keys/new", d.newKey)
	engine.GET("/api-keys/:id", d.reader(d.key))
	d.form(engine, "/api-keys/:id/edit", d.editKey)
	d.form(engine, "/api-keys/:id/rotate", d.rotateKey)
	d.form(engine, "/api-keys/:id/revoke", d.revokeKey)
	engine.GET("/users", d.reader(d.listUsers))
	d.form(engine, "/users/new", d.newUser)
	engine.GET("/users/:id", d.reader(d.user))
	d.form(engine, "/users/:id/edit", d.editUser)
	d.form(engine, "/users/:id/password", d.resetPassword)
	d.form(engine, "/users/:id/sign-out", d.signUserOut)
	d.form(engine, "/users/:id/delete", d.deleteUser)
	engine.GET("/account", d.reader(d.account))
	engine.POST("/account", d.reader(d.account))
	engine.GET("/notifications", d.reader(d.notifications))
	d.form(engine, "/notifications/targets/new", d.newTarget)
	engine.GET("/notifications/targets/:id", d.reader(d.target))
	d.form(engine, "/notifications/targets/:id/edit", d.editTarget)
	d.form(engine, "/notifications/targets/:id/delete", d.deleteTarget)
	engine.POST("/notifications/targets/:id/test", d.writer(d.testTarget))
	d.form(engine, "/notifications/silences/new", d.newSilence)
	engine.POST("/notifications/silences/:id/end", d.writer(d.endSilence))
}

// Setting is one of the manager's, fit to be shown, and where it is set.
type Setting struct{ Name, Value, From string }

// About is how the manager was set up.
type About struct {
	Database string // without a password
	Folder   string // of its file; empty if it is PostgreSQL
	Proxies  []string
	Settings []Setting
	Tasks    *store.Lease
}

// settingsView is how the manager is, and for administrators how it was set up.
type settingsView struct {
	Version  string
	Findings []findingRow
	Settings []Setting
	CanWrite bool
}

type findingRow struct {
	health.Finding
	ID, Class string
}

// settingsEvery is how often it is looked again.
const settingsEvery = 30 * time.Second

func (d *dashboard) settings(v *visit) error {
	view := settingsView{Version: d.version, CanWrite: v.canWrite()}
	findings := append(d.checkDatabase(v), d.checkTasks(v))
	findings = append(findings, d.checkWay(v)...)
	findings = append(findings, health.Clock())
	agents, _, err := d.store.ListAgents(v.Request.Context(), store.AgentFilter{}, store.ListOptions{Limit: store.All})
	if err != nil {
		return err
	}
	for i, f := range append(findings, health.Clocks(agents, v.Now)...) {
		view.Findings = append(view.Findings, findingRow{f, fmt.Sprintf("finding-%d", i), findingClasses[f.State]})
	}
	if v.canWrite() {
		view.Settings = d.about.Settings
	}
	p := v.page("Health and settings", settingsPath)
	p.Topics, p.Every = []string{"sites"}, settingsEvery
	return v.show(http.StatusOK, p, settingsPage(p, view))
}

var findingClasses = map[string]string{health.Fine: good, health.Warn: warn, health.Fail: bad}

// checkDatabase tells what the manager needs of its database. Why it does not get
// that is in the log.
func (d *dashboard) checkDatabase(v *visit) []health.Finding {
	ctx := v.Request.Context()
	found := []health.Finding{{Check: "database", State: health.Fine, Message: d.about.Database + " can be read and written"}}
	if err := d.store.Writable(ctx); err != nil {
		d.log.WarnContext(ctx, "not ready", "check", "write", "err", err)
		found[0] = health.Finding{Check: "database", State: health.Fail, Message: d.about.Database + " cannot be written: every change is refused", Fix: "journalctl -u opensource-manager says why"}
	}
	schema := health.Finding{Check: "schema", State: health.Fine, Message: "that of this program"}
	var other *store.SchemaError
	switch err := d.store.SchemaFits(ctx); {
	case errors.As(err, &other):
		schema.State, schema.Message, schema.Fix = health.Fail, other.Error(), "install the version that has it, or restart the manager"
	case err != nil:
		schema.State, schema.Message = health.Fail, "cannot be read"
	default:
		if number, err := d.store.SchemaVersion(ctx); err == nil {
			schema.Message = fmt.Sprintf("%d, that of this program", number)
		}
	}
	found = append(found, schema)
	if d.about.Folder != "" {
		found = append(found, health.Disk(d.about.Folder))
	}
	return found
}

// lateTasks is after how long without a renewal nobody does the tasks.
const lateTasks = 2 * time.Minute

// checkTasks tells who does what has to be done now and then.
func (d *dashboard) checkTasks(v *visit) health.Finding {
	found := health.Finding{Check: "periodic tasks", State: health.Fine, Message: "done by this manager"}
	at, held, err := d.about.Tasks.Renewed(v.Request.Context())
	switch {
	case err != nil:
		d.log.WarnContext(v.Request.Context(), "look who does the tasks", "err", err)
		found.State, found.Message = health.Fail, "the database cannot be asked who does them"
	case d.about.Tasks.Mine():
	case held && v.Now.Sub(at) < lateTasks:
		found.Message = "done by another manager of this database"
	default:
		found.State, found.Message = health.Warn, "done by nobody at the moment: silent agents are not noted, and nobody is notified"
		found.Fix = "journalctl -u opensource-manager says why, if it does not end within a minute"
	}
	return found
}

// checkWay tells whether the way between browsers and the manager is right.
func (d *dashboard) checkWay(v *visit) []health.Finding {
	if d.publicURL == nil {
		return []health.Finding{{Check: "public URL", State: health.Warn, Message: "PUBLIC_URL is not set", Fix: "set it to what browsers use, so that cookies are for TLS only and a wrong proxy is noticed"}}
	}
	found := []health.Finding{{Check: "public URL", State: health.Fine, Message: d.publicURL.String() + " is what you came by"}}
	if mismatch := d.auth.PublicURLMismatch(v.Request, d.publicURL); mismatch != "" {
		found[0] = health.Finding{Check: "public URL", State: health.Fail, Message: mismatch, Fix: "the proxy must send X-Forwarded-Proto and X-Forwarded-Host, and TRUSTED_PROXIES must hold the address it comes from"}
	}
	switch {
	case len(d.about.Proxies) > 0:
		found = append(found, health.Finding{Check: "proxies", State: health.Fine, Message: "trusted: " + strings.Join(d.about.Proxies, ", ")})
	case d.publicURL.Scheme == "https":
		found = append(found, health.Finding{Check: "proxies", State: health.Warn, Message: "no proxy is trusted: everybody seems to come from the proxy's address", Fix: "set TRUSTED_PROXIES to the address of the proxy, such as 127.0.0.1/32"})
	}
	return found
}
