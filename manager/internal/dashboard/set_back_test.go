package dashboard_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"opensource.internal/manager/servertest"
)

// newDeletion is a site that publishes by itself, of which somebody has deleted a
// container with all that it had.
func newDeletion(t *testing.T) *manualSite {
	t.Helper()
	m := newManualSite(t)
	m.call(t, "PATCH", m.path, object{"publishing": "auto"})
	m.Create(t, fmt.Sprintf("/containers/%d/volumes", m.container), object{"name": "data", "mountPath": "/data", "mode": "rw"})
	m.Create(t, fmt.Sprintf("/containers/%d/services", m.container), object{"type": "transport", "internalPort": 22, "protocol": "tcp"})
	m.call(t, "GET", m.path+"/revisions", nil) // keeps revision 2
	m.call(t, "DELETE", fmt.Sprintf("/containers/%d?cascade=true", m.container), nil)
	return m
}

func TestSetBackInABrowser(t *testing.T) {
	m := newDeletion(t)
	was := m.call(t, "GET", m.path+"/revisions/2", nil)
	b := browse(t, m.Server, signIn(t, m.Server))
	b.open(t, m.path+"/revisions/2")
	looked(t, b, "revision-old")
	b.press(t, "Set the inventory back to this revision…")
	for _, want := range []string{
		"Set the inventory back to revision 2?", "4 records come back.", "Agents get the outcome with their next check-in, as a new revision.",
		"Container web", "HTTP service app.example.com of container web", "TCP/UDP service tcp 2000 to 22 of container web", "/mnt/volumes/site-1/unowned/web/data",
		"What that changes for agents", "Host names",
	} {
		b.reads(t, want)
	}
	looked(t, b, "set-back")
	b.press(t, "Set the inventory back")
	b.reads(t, "The inventory is set back to revision 2. Agents get it as revision 4: below you see it arrive.")
	b.reads(t, "“set back to revision 2”")
	looked(t, b, "set-back-done")
	now := m.call(t, "GET", m.path+"/revisions/4", nil)
	if servertest.Data[object](t, was)["etag"] != servertest.Data[object](t, now)["etag"] {
		t.Errorf("%s became %s", was.Body, now.Body)
	}
	b.open(t, fmt.Sprintf("/containers/%d", m.container))
	b.reads(t, "web")
	b.open(t, m.path+"/revisions/4/set-back")
	b.reads(t, "there is nothing to set back.")
	looked(t, b, "set-back-nothing")
}

// TestUndoAfterAForm leads from what was done to what takes it back.
func TestUndoAfterAForm(t *testing.T) {
	m := newDeletion(t)
	m.call(t, "GET", m.path+"/revisions", nil) // the deletion is revision 3
	b := browse(t, m.Server, signIn(t, m.Server))
	b.open(t, m.path+"/edit")
	b.fill(t, "gateway", "192.0.2.2")
	b.press(t, "Save")
	b.press(t, "undo it")
	b.reads(t, "Set the inventory back to revision 3?")
	b.reads(t, "1 record is changed.")
	b.reads(t, "Gateway")
	looked(t, b, "undo")
	b.press(t, "Set the inventory back")
	b.reads(t, "Agents get it as revision 5")
	if gateway := servertest.Data[object](t, m.call(t, "GET", m.path, nil))["gateway"]; gateway != "192.0.2.1" {
		t.Error(gateway)
	}
}

// TestUndoOfWhatWaits discards what was not published.
func TestUndoOfWhatWaits(t *testing.T) {
	m := newManualSite(t)
	m.addService(t, "wiki", 8082)
	cookie := signIn(t, m.Server)
	says(t, get(t, m.Server, m.path+"/pending", cookie), 200, "Discard these changes…")
	if undo := get(t, m.Server, m.path+"/undo", cookie); undo.Status != http.StatusSeeOther || undo.Header.Get("Location") != m.path+"/revisions/1/set-back" {
		t.Errorf("%d %s", undo.Status, undo.Header.Get("Location"))
	}
	page := get(t, m.Server, m.path+"/revisions/1/set-back", cookie)
	says(t, page, 200, "1 record is deleted.", "The site is published by hand: agents get the outcome when you publish it.", "For agents it changes nothing.")
	done := submit(t, m.Server, m.path+"/revisions/1/set-back", cookie, form(t, page))
	if done.Status != http.StatusSeeOther {
		t.Fatalf("%d %s", done.Status, done.Body)
	}
	says(t, get(t, m.Server, m.path+"/pending", cookie), 200, "Nothing waits")
}

// TestHowASiteIsPublishedIsNotUndone: no revision has it, so that nothing offers to
// take back what somebody else did before.
func TestHowASiteIsPublishedIsNotUndone(t *testing.T) {
	m := newManualSite(t)
	m.addService(t, "wiki", 8082)
	cookie := signIn(t, m.Server)
	publish := func(how string) servertest.Answer {
		values := form(t, get(t, m.Server, m.path+"/edit", cookie))
		values.Set("publishing", how)
		return then(t, m.Server, cookie, submit(t, m.Server, m.path+"/edit", cookie, values))
	}
	body := string(publish("auto").Body)
	wantOn(t, body, []string{"Every change at once", "With it, agents get the 1 change that waited."}, []string{"undo it"})
	wantOn(t, string(publish("manual").Body), []string{"Changes wait until they are published"}, []string{"undo it", "look at what waits"})
	m.call(t, "GET", m.path+"/revisions", nil)
	undo := get(t, m.Server, m.path+"/undo", cookie)
	says(t, get(t, m.Server, undo.Header.Get("Location"), cookie), 200, "there is nothing to set back.")
}

func TestSetBackOnlyWhatWasSeen(t *testing.T) {
	m := newDeletion(t)
	cookie, path := signIn(t, m.Server), m.path+"/revisions/2/set-back"
	seen := form(t, get(t, m.Server, path, cookie))
	m.call(t, "PATCH", m.path, object{"gateway": "192.0.2.9"})
	for _, values := range []url.Values{seen, {}} {
		says(t, submit(t, m.Server, path, cookie, values), 409, "Nothing was changed", "Somebody has changed the site since you looked", "192.0.2.9")
	}
	if left := servertest.Data[[]object](t, m.call(t, "GET", m.path+"/containers", nil)); len(left) != 0 {
		t.Errorf("it was done: %v", left)
	}
	// Another site takes the name: all that stands against it is named.
	m.call(t, "POST", m.path+"/pin", object{"reason": "looking"})
	says(t, get(t, m.Server, path, cookie), 200, "The site is pinned to revision 4: agents get the outcome when it is unpinned.")
	other := m.Create(t, "/sites", object{"name": "attic"})
	node := m.Create(t, fmt.Sprintf("/sites/%d/nodes", other), object{"name": "pve2"})
	container := m.Create(t, fmt.Sprintf("/sites/%d/containers", other), object{"nodeId": node, "hostname": "www", "ipv4Address": "198.51.100.7"})
	m.Create(t, fmt.Sprintf("/containers/%d/services", container), object{"type": "http", "internalPort": 1, "externalHostname": "app", "externalDomainId": m.domain})
	says(t, get(t, m.Server, path, cookie), 200, "The inventory cannot be set back to this revision", `service http app.example.com of container "web": externalHostname`, "Pin revision 2…")
	says(t, submit(t, m.Server, path, cookie, seen), 409, "The inventory cannot be set back to this revision")

	says(t, get(t, m.Server, m.path+"/revisions/99/set-back", cookie), 404)
	says(t, get(t, m.Server, "/sites/99/undo", cookie), 404)
	viewer := signInViewer(t, m.Server)
	for _, path := range []string{path, m.path + "/undo"} {
		says(t, get(t, m.Server, path, viewer), 403)
	}
	says(t, submit(t, m.Server, path, viewer, seen), 403, "Only an administrator may do this")
	wantOn(t, string(get(t, m.Server, m.path+"/revisions", viewer).Body), nil, []string{"/set-back", "/undo"})
}

// TestHostileTextOfASetBack neither becomes a part of the page nor makes it wider
// than the window.
func TestHostileTextOfASetBack(t *testing.T) {
	m := newManualSite(t)
	const evil = `<img src=x onerror="document.title='owned'">`
	long := strings.Repeat("a-very-long-label-that-nobody-would-choose.", 5) + "example"
	m.call(t, "PATCH", m.path, object{"name": "lab " + strings.Repeat("x", 50)})
	m.call(t, "PATCH", fmt.Sprintf("/containers/%d", m.container), object{"owner": strings.Repeat("z", 60)})
	domain := m.Create(t, "/external-domains", object{"name": long})
	m.Create(t, fmt.Sprintf("/containers/%d/services", m.container), object{"type": "http", "internalPort": 8081, "externalHostname": "x", "externalDomainId": domain})
	m.Create(t, fmt.Sprintf("/containers/%d/volumes", m.container), object{"name": strings.Repeat("v", 60), "mountPath": "/" + strings.Repeat("m", 200), "mode": "rw"})
	m.call(t, "POST", m.path+"/publish", object{"note": evil})
	m.call(t, "DELETE", fmt.Sprintf("/containers/%d?cascade=true", m.container), nil)
	m.Create(t, m.path+"/containers", object{"nodeId": 1, "hostname": strings.Repeat("h", 63)})
	b := browse(t, m.Server, signIn(t, m.Server))
	b.open(t, m.path+"/revisions/2/set-back")
	b.reads(t, "x."+long)
	b.reads(t, strings.Repeat("m", 200))
	looked(t, b, "hostile-set-back")
	b.open(t, m.path+"/revisions")
	b.reads(t, evil)
	if n := eval[int](t, b, `document.querySelectorAll("main img, main script").length`); n != 0 {
		t.Errorf("%d elements of others became part of the page", n)
	}
}
