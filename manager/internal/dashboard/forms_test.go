package dashboard_test

import (
	"fmt"
	"strings"
	"testing"

	"opensource.internal/manager/internal/auth"
	"opensource.internal/manager/servertest"
)

type typed map[string]string

// tried is a form that is filled wrongly first.
type tried struct {
	path         string
	bad, mended  typed
	field, fault string // where the fault stands, and a part of it
	button, done string // done is read once it was taken
}

// inBrowser fills the form wrongly, sees the fault at its field and all that was
// typed still there, and mends it.
func (f tried) inBrowser(t *testing.T, b *tab) {
	t.Helper()
	t.Log(f.path)
	b.open(t, f.path)
	for field, text := range f.bad {
		b.fill(t, field, text)
	}
	b.press(t, f.button)
	b.forgive() // the browser tells the status of the refused form
	b.until(t, `document.activeElement.classList.contains("faults")`)
	told := eval[string](t, b, fmt.Sprintf(`document.getElementById("field-%s-fault").textContent + document.getElementById("field-%[1]s").getAttribute("aria-invalid")`, f.field))
	if !strings.Contains(told, f.fault) || !strings.HasSuffix(told, "true") {
		t.Errorf("%s: %s", f.path, told)
	}
	for field, text := range f.mended {
		b.fill(t, field, text)
	}
	b.press(t, f.button)
	b.reads(t, f.done)
}

// TestEachFormOfTheSettingsInABrowser also tries those of a site itself.
func TestEachFormOfTheSettingsInABrowser(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	b := browse(t, s, signIn(t, s))
	s.Create(t, "/sites", object{"name": "lab"})
	s.Create(t, "/api-keys", object{"name": "backup", "role": "viewer"})
	s.Create(t, "/notification-targets", object{"name": "on call", "url": "generic+http://127.0.0.1:1/x"})
	if _, err := auth.CreateUser(t.Context(), s.Store, "eve", auth.RoleViewer, password); err != nil {
		t.Fatal(err)
	}
	const other = "correct horse battery"
	for _, form := range []tried{
		{"/sites/new", typed{"name": "lab"}, typed{"name": "other"}, "name", "already in use", "Create the site", "other"},
		{"/sites/1/edit", typed{"dhcpRange": "192.0.2.9"}, typed{"dhcpRange": "192.0.2.100,192.0.2.200"}, "dhcpRange", "192.0.2.9", "Save", "DHCP range: 192.0.2.100,192.0.2.200 (was: not set)"},
		{"/sites/1/enroll", typed{"hostname": "-"}, typed{"hostname": "edge"}, "hostname", "-", "Show the command", "opensource-agent"},
		{"/api-keys/new", typed{"name": "x", "role": "agent"}, typed{"siteId": "1"}, "siteId", "", "Create the key", "Copy it now"},
		{"/api-keys/2/edit", typed{"expiresAt": "soon"}, typed{"expiresAt": "90d"}, "expiresAt", "soon", "Save", "Expires"},
		{"/api-keys/2/rotate", typed{"overlap": "90d"}, typed{"overlap": "1h"}, "overlap", "30", "Make the new key", "Copy it now"},
		{"/users/new", typed{"name": "eve"}, typed{"name": "bob"}, "name", "already", "Create the user", "Copy it now"},
		{"/users/2/edit", typed{"name": "ada"}, typed{"name": "eva"}, "name", "already", "Save", "eva"},
		{"/notifications/targets/new", typed{"name": "x", "url": "nowhere"}, typed{"url": "generic+http://127.0.0.1:1/y"}, "url", "", "Create the target", "The target was created."},
		{"/notifications/targets/1/edit", typed{"name": strings.Repeat("x", 101)}, typed{"name": "night"}, "name", "1 to 100", "Save", "night"},
		{"/notifications/silences/new", typed{"siteId": "1", "until": "yesterday"}, typed{"until": "2h"}, "until", "yesterday", "Silence the site", "Nobody is told of the site until"},
		{"/account", typed{"currentPassword": password, "newPassword": other, "again": "other"}, typed{"currentPassword": password, "newPassword": other, "again": other}, "again", "not the same", "Change the password", "password"},
	} {
		form.inBrowser(t, b)
	}
}

// TestEachQuestionInABrowser: what ends or deletes something asks first, and does it
// once it is told to.
func TestEachQuestionInABrowser(t *testing.T) {
	s, cookie := inventory(t)
	checkInHealthy(t, s, 1, "edge")
	s.Create(t, "/api-keys", object{"name": "backup", "role": "viewer"})
	s.Create(t, "/notification-targets", object{"name": "on call", "url": "generic+http://127.0.0.1:1/x"})
	if _, err := auth.CreateUser(t.Context(), s.Store, "eve", auth.RoleViewer, password); err != nil {
		t.Fatal(err)
	}
	b := browse(t, s, cookie)
	for _, asked := range []struct{ path, button, done string }{
		{"/services/3/delete", "Delete", "was deleted"},
		{"/volumes/1/delete", "Delete", "was deleted"},
		{"/containers/1/delete", "Delete", "was deleted"},
		{"/nodes/1/delete", "Delete", "was deleted"},
		{"/domains/1/delete", "Delete", "was deleted"},
		{"/api-keys/2/revoke", "Revoke the key", "was revoked"},
		{"/users/2/password", "Make a new password", "There is a new password."},
		{"/users/2/sign-out", "Sign out everywhere", "was signed out everywhere"},
		{"/users/2/delete", "Delete", "was deleted"},
		{"/notifications/targets/1/delete", "Delete", "was deleted"},
		{"/agents/1/delete", "Delete", "was removed"},
		{"/sites/1/delete", "Delete", "was deleted"},
	} {
		t.Log(asked.path)
		b.open(t, asked.path)
		b.press(t, asked.button)
		b.reads(t, asked.done)
	}
}
