package api

import (
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2/adapters/humagin"
	"github.com/gin-gonic/gin"
)

// routes is the table of contents of the API.
func (a *API) routes(engine *gin.Engine, checkIn http.Handler) {
	engine.POST(basePath+"/agents", gin.WrapH(checkIn))

	config := humaConfig(a.version, a.prefix)
	shown := records{map[string]readTag{}, map[reflect.Type]bool{}}
	open := group{humagin.NewWithGroup(engine, engine.Group(basePath), config), a.store, shown, nil}
	get(open, "/health", "Whether the manager is alive and ready", a.health)
	get(open, "/health/live", "Whether the manager is alive, whatever its database does", a.alive)
	get(open, "/health/ready", "Whether the manager can do its work, and if not, what it lacks", a.readiness)
	post(open, "/session", "Sign in", a.signIn, mayFail("unauthorized", "too_many_requests"))

	post(open, "/enroll", "Turn a token into the key of a host", a.enroll,
		mayFail("unauthorized", "enrollment_expired", "enrollment_revoked", "enrollment_used", "wrong_host", "too_many_requests"))

	someone := group{humagin.NewWithGroup(engine, engine.Group(basePath, a.someone), config), a.store, shown, []string{"unauthorized", "too_many_requests"}}
	get(someone, "/session", "Who is asking", a.whoAmI)
	remove(someone, "/session", "Sign out", a.signOut)
	done(someone, "/session/password", "Change your own password; your other sessions end", a.changePassword, mayFail("forbidden"))

	// Reading needs a viewer, everything else an administrator.
	members := engine.Group(basePath, a.member)
	api := group{humagin.NewWithGroup(engine, members, config), a.store, shown, []string{"unauthorized", "too_many_requests", "forbidden"}}

	get(api, "/sites", "List sites", a.listSites)
	post(api, "/sites", "Create a site", a.createSite)
	get(api, "/sites/{id}", "Show a site", a.getSite)
	patch(api, "/sites/{id}", "Change a site", a.updateSite)
	remove(api, "/sites/{id}", "Delete a site", a.deleteSite)
	get(api, "/sites/{id}/snapshot", "Show what the site's agent gets", a.getSnapshot)
	get(api, "/sites/{id}/manifest", "Write the site down as a file", a.getManifest)
	put(api, "/sites/{id}/manifest", "Make the site what a file says, or find out what would change", a.putManifest, wholeSite)
	act(api, "/sites/{id}/confirm-removals", "Let agents apply the present content, however much it removes", a.confirmRemovals)

	get(api, "/sites/{id}/revisions", "List the revisions of a site", a.listRevisions)
	get(api, "/sites/{id}/revisions/{number}", "Show a revision with its data", a.getRevision)
	get(api, "/sites/{id}/revisions/{number}/diff", "Compare a revision with an earlier or a later one", a.diffRevision)
	act(api, "/sites/{id}/revisions/{number}/restore", "Set the inventory back to a revision, or find out what would change", a.restoreRevision, matchesItself, patiently)
	get(api, "/sites/{id}/pending", "Show what the inventory has and agents do not get", a.getPending)
	get(api, "/sites/{id}/preview", "Render the files of nginx and dnsmasq for the site's host", a.previewSite)
	act(api, "/sites/{id}/publish", "Publish what the inventory has now", a.publishSite, matchesItself)
	act(api, "/sites/{id}/pin", "Give agents a revision until the site is unpinned", a.pinSite)
	remove(api, "/sites/{id}/pin", "Give agents the latest revision again", a.unpinSite)

	get(api, "/sites/{id}/nodes", "List the nodes of a site", a.listNodes)
	post(api, "/sites/{id}/nodes", "Create a node", a.createNode)
	get(api, "/nodes/{id}", "Show a node", a.getNode)
	patch(api, "/nodes/{id}", "Change a node", a.updateNode)
	remove(api, "/nodes/{id}", "Delete a node", a.deleteNode)

	get(api, "/sites/{id}/containers", "List the containers of a site", a.listContainers)
	post(api, "/sites/{id}/containers", "Create a container", a.createContainer)
	get(api, "/containers/{id}", "Show a container", a.getContainer)
	patch(api, "/containers/{id}", "Change a container", a.updateContainer)
	remove(api, "/containers/{id}", "Delete a container", a.deleteContainer)

	get(api, "/containers/{id}/services", "List the services of a container", a.listServices)
	post(api, "/containers/{id}/services", "Create a service", a.createService)
	get(api, "/services/{id}", "Show a service", a.getService)
	patch(api, "/services/{id}", "Change a service", a.updateService)
	remove(api, "/services/{id}", "Delete a service", a.deleteService)

	get(api, "/containers/{id}/volumes", "List the volumes of a container", a.listVolumes)
	post(api, "/containers/{id}/volumes", "Create a volume", a.createVolume)
	get(api, "/volumes/{id}", "Show a volume", a.getVolume)
	patch(api, "/volumes/{id}", "Change a volume", a.updateVolume)
	remove(api, "/volumes/{id}", "Delete a volume's record; its directory stays", a.deleteVolume)

	get(api, "/external-domains", "List external domains", a.listExternalDomains)
	post(api, "/external-domains", "Create an external domain", a.createExternalDomain)
	get(api, "/external-domains/{id}", "Show an external domain", a.getExternalDomain)
	patch(api, "/external-domains/{id}", "Change an external domain", a.updateExternalDomain)
	remove(api, "/external-domains/{id}", "Delete an external domain", a.deleteExternalDomain)

	get(api, "/agents", "List agents", a.listAgents)
	get(api, "/agents/{id}", "Show an agent", a.getAgent)
	remove(api, "/agents/{id}", "Forget an agent; one that checks in appears anew", a.deleteAgent)
	get(api, "/agents/{id}/events", "List what happened to an agent, the newest first", a.listAgentEvents)
	get(api, "/events", "List what happened to the agents, the newest first", a.listEvents)

	members.GET("/live", a.live)

	get(api, "/api-keys", "List API keys", a.listAPIKeys)
	post(api, "/api-keys", "Create an API key; it is shown only now", a.createAPIKey)
	get(api, "/api-keys/{id}", "Show an API key", a.getAPIKey)
	patch(api, "/api-keys/{id}", "Rename an API key, or change when it expires", a.updateAPIKey)
	remove(api, "/api-keys/{id}", "Revoke an API key for good", a.revokeAPIKey)
	post(api, "/api-keys/{id}/rotate", "Replace an API key by a new one, shown only now; the old one works on for a while", a.rotateAPIKey)

	get(api, "/sites/{id}/enrollments", "List the tokens by which hosts become agents of a site", a.listEnrollments)
	post(api, "/sites/{id}/enrollments", "Make a token by which a host becomes an agent of a site; it is shown only now", a.createEnrollment)
	get(api, "/enrollments/{id}", "Show a token of enrollment", a.getEnrollment)
	remove(api, "/enrollments/{id}", "Revoke a token of enrollment that was not used", a.revokeEnrollment, mayFail("conflict"))

	get(api, "/users", "List users", a.listUsers)
	post(api, "/users", "Create a user", a.createUser)
	get(api, "/users/{id}", "Show a user", a.getUser)
	patch(api, "/users/{id}", "Change a user", a.updateUser)
	remove(api, "/users/{id}", "Delete a user", a.deleteUser, mayFail("conflict"))
	remove(api, "/users/{id}/sessions", "Sign a user out everywhere", a.endSessions)

	get(api, "/notification-targets", "List who is told what is wrong with agents", a.listNotificationTargets)
	post(api, "/notification-targets", "Create a notification target", a.createNotificationTarget)
	get(api, "/notification-targets/{id}", "Show a notification target", a.getNotificationTarget)
	patch(api, "/notification-targets/{id}", "Change a notification target", a.updateNotificationTarget)
	remove(api, "/notification-targets/{id}", "Delete a notification target", a.deleteNotificationTarget)
	act(api, "/notification-targets/{id}/test", "Send a test message now", a.testNotificationTarget)

	get(api, "/notification-silences", "List the sites of which nobody is told", a.listNotificationSilences)
	post(api, "/notification-silences", "Tell nobody of a site until a time; a silence that it has is replaced", a.createNotificationSilence)
	get(api, "/notification-silences/{id}", "Show a silence", a.getNotificationSilence)
	remove(api, "/notification-silences/{id}", "End a silence", a.deleteNotificationSilence)

	// Addresses of people are nothing for viewers.
	admins := group{humagin.NewWithGroup(engine, engine.Group(basePath, a.admin), config), a.store, shown, []string{"unauthorized", "too_many_requests", "forbidden"}}
	get(admins, "/audit", "List who did what, the newest first", a.listAudit)

	description := open.api.OpenAPI()
	describeOpen(description)
	describeCheckIn(description)
	describeManifest(description)
	describeLive(description)
	completeDescription(description)
	members.GET("/openapi.json", openAPI(open.api, a.log))
	a.page(engine.Group(basePath, a.reader), description)
}

// get, post, act, patch and remove register a handler under a method. What acts
// creates no record. An option adds what cannot be told from the types:
// docs/development/api.md.
func get[I, O any](g group, path, summary string, h handler[I, O], with ...option) {
	register(g, http.MethodGet, path, summary, http.StatusOK, h, with)
}

func post[I, O any](g group, path, summary string, h handler[I, O], with ...option) {
	register(g, http.MethodPost, path, summary, http.StatusCreated, h, with)
}

func act[I, O any](g group, path, summary string, h handler[I, O], with ...option) {
	register(g, http.MethodPost, path, summary, http.StatusOK, h, with)
}

// done registers what acts and has nothing to answer.
func done[I, O any](g group, path, summary string, h handler[I, O], with ...option) {
	register(g, http.MethodPost, path, summary, http.StatusNoContent, h, with)
}

func put[I, O any](g group, path, summary string, h handler[I, O], with ...option) {
	register(g, http.MethodPut, path, summary, http.StatusOK, h, with)
}

func patch[I, O any](g group, path, summary string, h handler[I, O], with ...option) {
	register(g, http.MethodPatch, path, summary, http.StatusOK, h, with)
}

func remove[I, O any](g group, path, summary string, h handler[I, O], with ...option) {
	register(g, http.MethodDelete, path, summary, http.StatusNoContent, h, with)
}
