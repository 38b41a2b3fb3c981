package dashboard

import "github.com/gin-gonic/gin"

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

// settings leads to the first of its tabs.
func (d *dashboard) settings(v *visit) error {
	return d.listKeys(v)
}
