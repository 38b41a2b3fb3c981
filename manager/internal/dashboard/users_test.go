package dashboard_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"opensource.internal/manager/internal/auth"
	"opensource.internal/manager/internal/config"
	"opensource.internal/manager/internal/store"
	"opensource.internal/manager/servertest"
)

var aPassword = regexp.MustCompile(`id="secret">([A-Z2-7]{26})<`)

// passwordOn is the password that a page shows.
func passwordOn(t *testing.T, page servertest.Answer) string {
	t.Helper()
	found := aPassword.FindSubmatch(page.Body)
	if page.Status != 201 || found == nil || page.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("%d %v %s", page.Status, page.Header, page.Body)
	}
	return string(found[1])
}

// trySignIn is the answer to a name and a password.
func trySignIn(t *testing.T, s *servertest.Server, name, password string) servertest.Answer {
	t.Helper()
	return s.Do(t, "POST", "/sign-in", url.Values{"name": {name}, "password": {password}}.Encode(),
		http.Header{"Content-Type": {"application/x-www-form-urlencoded"}})
}

func TestUsersAreManagedInTheBrowser(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	cookie := signIn(t, s)
	shows(t, get(t, s, "/users", cookie), 200, `href="/users/1">ada`, "you", "The last administrator who can sign in", `href="/users/new"`)
	for fault, typed := range map[string]url.Values{
		"a name has 1 to 100 characters": {"name": {""}, "role": {"viewer"}},
		"is not a role of a person":      {"name": {"bob"}, "role": {"agent"}},
	} {
		shows(t, submit(t, s, "/users/new", cookie, typed), 422, "Nothing was saved", fault)
	}
	made := submit(t, s, "/users/new", cookie, url.Values{"name": {"Bob"}, "role": {"viewer"}})
	first := passwordOn(t, made)
	shows(t, made, 201, "The user was created.", "The password of bob", `href="/users/2"`)
	shows(t, submit(t, s, "/users/new", cookie, url.Values{"name": {"ADA"}, "role": {"admin"}}), 409, `there is already a user "ada"`, `id="field-name-fault"`)
	bob := sessionOf(t, trySignIn(t, s, "bob", first))
	shows(t, get(t, s, "/sites", bob), 200)

	edit := form(t, get(t, s, "/users/2/edit", cookie))
	edit.Set("role", "admin")
	shows(t, then(t, s, cookie, submit(t, s, "/users/2/edit", cookie, edit)), 200, "The user was saved. Role: Administrator", "reads and changes everything")
	shows(t, submit(t, s, "/users/2/edit", cookie, url.Values{"version": {edit.Get("version")}, "name": {"bob"}, "role": {"viewer"}}), 409, "Changed by somebody else meanwhile")

	reset := submit(t, s, "/users/2/password", cookie, nil)
	second := passwordOn(t, reset)
	if answer := trySignIn(t, s, "bob", first); answer.Status != 401 {
		t.Errorf("the old password: %d", answer.Status)
	}
	if gone := get(t, s, "/sites", bob); gone.Status != 303 {
		t.Errorf("a session outlived a new password: %d", gone.Status)
	}
	bob = sessionOf(t, trySignIn(t, s, "bob", second))
	shows(t, get(t, s, "/users/2/sign-out", cookie), 200, "is signed out in every browser")
	shows(t, then(t, s, cookie, submit(t, s, "/users/2/sign-out", cookie, nil)), 200, `"bob" was signed out everywhere.`)
	if gone := get(t, s, "/sites", bob); gone.Status != 303 {
		t.Errorf("a session was not ended: %d", gone.Status)
	}
	edit = form(t, get(t, s, "/users/2/edit", cookie))
	edit.Set("role", "admin")
	edit.Set("disabled", "on")
	shows(t, then(t, s, cookie, submit(t, s, "/users/2/edit", cookie, edit)), 200, "disabled")
	if answer := trySignIn(t, s, "bob", second); answer.Status != 401 {
		t.Errorf("a disabled user signs in: %d", answer.Status)
	}
	asked := get(t, s, "/users/2/delete", cookie)
	shows(t, asked, 200, `Delete the user "bob"?`, "stays in the audit log")
	shows(t, then(t, s, cookie, submit(t, s, "/users/2/delete", cookie, form(t, asked))), 200, `The user "bob" was deleted.`)
}

func TestUsersAndNotificationsUnderAPrefix(t *testing.T) {
	s := servertest.Start(t, servertest.Options{Configure: func(c *config.Config) {
		c.PublicURL = &url.URL{Scheme: "http", Host: "example.com", Path: "/manager"}
	}})
	cookie := signIn(t, s)
	wantOn(t, string(get(t, s, "/users", cookie).Body), []string{`href="/manager/users/1"`, `href="/manager/account"`}, nil)
	s.Create(t, "/sites", object{"name": "lab"})
	sent := submit(t, s, "/notifications/silences/new", cookie, url.Values{"siteId": {"1"}, "until": {"2h"}})
	if sent.Header.Get("Location") != "/manager/notifications" {
		t.Errorf("a silence leads to %q", sent.Header.Get("Location"))
	}
	wantOn(t, string(get(t, s, "/notifications", cookie).Body), []string{`action="/manager/notifications/silences/1/end"`}, nil)
}

// TestTheLastAdministratorStays: and the pages say why.
func TestTheLastAdministratorStays(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	cookie := signIn(t, s)
	edit := form(t, get(t, s, "/users/1/edit", cookie))
	edit.Set("role", "viewer")
	shows(t, submit(t, s, "/users/1/edit", cookie, edit), 409, "Nothing was saved", `"ada" is the last administrator who can sign in; make another one first`)
	edit.Set("role", "admin")
	edit.Set("disabled", "on")
	shows(t, submit(t, s, "/users/1/edit", cookie, edit), 409, "is the last administrator")
	shows(t, submit(t, s, "/users/1/delete", cookie, form(t, get(t, s, "/users/1/delete", cookie))), 409, "is the last administrator")
	shows(t, get(t, s, "/users/1", cookie), 200, "can sign in")
}

func TestUsersOfAProvider(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	cookie := signIn(t, s)
	row := store.User{Name: "Ada Lovelace", Role: "viewer", Issuer: "https://accounts.example.com", Subject: "248289761001"}
	if err := s.Store.CreateUser(t.Context(), &row); err != nil {
		t.Fatal(err)
	}
	page := get(t, s, "/users/2", cookie)
	shows(t, page, 200, "https://accounts.example.com", "248289761001", "come from the sign-in provider")
	wantOn(t, string(page.Body), nil, []string{"/users/2/password"})
	shows(t, submit(t, s, "/users/2/password", cookie, nil), 409, "has no password here")
	edit := get(t, s, "/users/2/edit", cookie)
	wantOn(t, string(edit.Body), nil, []string{`name="role"`, `name="name"`})
	typed := form(t, edit)
	typed.Set("disabled", "on")
	shows(t, then(t, s, cookie, submit(t, s, "/users/2/edit", cookie, typed)), 200, "Ada Lovelace", "disabled")
}

func TestViewersSeeUsersAndChangeTheirOwnPassword(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	admin := signIn(t, s)
	viewer := signInViewer(t, s)
	for _, path := range []string{"/users", "/users/1"} {
		page := get(t, s, path, viewer)
		shows(t, page, 200, "ada")
		wantOn(t, string(page.Body), nil, []string{"/new", "/edit", "/delete", "/password", "/users/1/sign-out", "argon2"})
	}
	for _, path := range []string{"/users/new", "/users/1/edit", "/users/1/password", "/users/1/sign-out", "/users/1/delete"} {
		shows(t, get(t, s, path, viewer), 403, "Only an administrator may do this")
		shows(t, submit(t, s, path, viewer, url.Values{"name": {"mine"}, "role": {"admin"}}), 403)
	}
	for _, path := range []string{"/users/9", "/users/x", "/users/9/edit", "/users/9/password", "/users/9/sign-out", "/users/9/delete"} {
		shows(t, get(t, s, path, admin), 404)
	}
	other := sessionOf(t, trySignIn(t, s, "eve", password))
	shows(t, get(t, s, "/account", viewer), 200, "Viewer: reads everything but secrets", `autocomplete="current-password"`)
	next := "another long password"
	for _, test := range []struct {
		status         int
		fault          string
		present, again string
	}{
		{422, "this is not the present password", "wrong", next},
		{422, "this is not the same as the one above", password, "another"},
	} {
		refused := submit(t, s, "/account", viewer, url.Values{"currentPassword": {test.present}, "newPassword": {next}, "again": {test.again}})
		shows(t, refused, test.status, "Nothing was saved", test.fault)
		wantOn(t, string(refused.Body), nil, []string{next, password})
	}
	shows(t, submit(t, s, "/account", viewer, url.Values{"currentPassword": {password}, "newPassword": {"short"}, "again": {"short"}}), 422, "at least 10 characters", `id="field-newPassword-fault"`)
	changed := submit(t, s, "/account", viewer, url.Values{"currentPassword": {password}, "newPassword": {next}, "again": {next}})
	if changed.Status != 303 || changed.Header.Get("Location") != "/account" {
		t.Fatalf("%d %s", changed.Status, changed.Body)
	}
	shows(t, get(t, s, "/account", sessionOf(t, changed)), 200, "eve")
	for _, old := range []string{viewer, other} {
		if gone := get(t, s, "/account", old); gone.Status != 303 {
			t.Errorf("a session outlived a new password: %d", gone.Status)
		}
	}
}

func TestGuessingTheOwnPasswordIsSlowed(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	cookie := signIn(t, s)
	for range 10 {
		shows(t, submit(t, s, "/account", cookie, url.Values{"currentPassword": {"wrong"}, "newPassword": {"another long password"}, "again": {"another long password"}}), 422)
	}
	slowed := submit(t, s, "/account", cookie, url.Values{"currentPassword": {"wrong"}, "newPassword": {"another long password"}, "again": {"another long password"}})
	shows(t, slowed, 429, "too many attempts")
	if slowed.Header.Get("Retry-After") == "" {
		t.Error("nothing says how long to wait")
	}
}

func TestUsersInABrowser(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	for _, name := range []string{`<img src=x onerror="document.title='owned'">`, strings.Repeat("long", 25), "عبد الله"} {
		if _, err := auth.CreateUser(t.Context(), s.Store, name, auth.RoleViewer, password); err != nil {
			t.Fatal(err)
		}
	}
	b := browse(t, s, signIn(t, s))
	b.open(t, "/users")
	looked(t, b, "users")
	b.press(t, "New user")
	b.press(t, "Create the user")
	b.forgive() // the browser tells the status of the refused form
	b.until(t, `document.activeElement.classList.contains("faults")`)
	looked(t, b, "user-faults")
	b.fill(t, "name", "bob")
	b.press(t, "Create the user")
	b.reads(t, "Copy it now")
	looked(t, b, "user-once")
	b.press(t, "I have copied it")
	looked(t, b, "user")
	b.press(t, "Edit")
	looked(t, b, "user-edit")
	b.press(t, "Cancel")
	b.press(t, "New password…")
	looked(t, b, "user-password")
	b.press(t, "Make a new password")
	b.reads(t, "There is a new password.")
	b.press(t, "I have copied it")
	b.press(t, "Delete…")
	looked(t, b, "user-delete")
	if title := eval[string](t, b, "document.title"); title == "owned" {
		t.Error("markup was run")
	}
}

// TestTheOwnPasswordByKeyboard: from any page, without a mouse.
func TestTheOwnPasswordByKeyboard(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	b := browse(t, s, signIn(t, s))
	b.open(t, "/sites")
	eval[bool](t, b, `(document.querySelector('.who a').focus(), true)`)
	b.do(t, chromedp.KeyEvent(kb.Enter))
	b.until(t, `location.pathname === "/account" && document.readyState === "complete"`)
	looked(t, b, "account")
	eval[bool](t, b, `(document.getElementById("field-currentPassword").focus(), true)`)
	next := "another long password"
	b.do(t, chromedp.KeyEvent(password+kb.Tab+next+kb.Tab+"other"+kb.Enter))
	b.until(t, `document.activeElement?.classList.contains("faults")`)
	b.forgive() // the browser tells the status of the refused form
	looked(t, b, "account-faults")
	if kept := eval[string](t, b, `[...document.querySelectorAll("input[type=password]")].map((e) => e.value).join("")`); kept != "" {
		t.Error("a password came back from the manager")
	}
	eval[bool](t, b, `(document.getElementById("field-currentPassword").focus(), true)`)
	b.do(t, chromedp.KeyEvent(password+kb.Tab+next+kb.Tab+next+kb.Enter))
	b.reads(t, "Your password was changed.")
}
