package server_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"opensource.internal/manager/internal/auth"
	"opensource.internal/manager/internal/config"
	"opensource.internal/manager/internal/store"
	"opensource.internal/manager/servertest"
)

const password = "correct horse battery"

// start starts a manager with one administrator, ada.
func start(t *testing.T, configure func(*config.Config)) *servertest.Server {
	t.Helper()
	s := servertest.Start(t, servertest.Options{Configure: configure})
	if _, err := auth.CreateUser(t.Context(), s.Store, "ada", auth.RoleAdmin, password); err != nil {
		t.Fatal(err)
	}
	return s
}

func withCookie(cookie *http.Cookie, more ...string) http.Header {
	header := http.Header{}
	if cookie != nil {
		header.Set("Cookie", cookie.Name+"="+cookie.Value)
	}
	for i := 0; i < len(more); i += 2 {
		header.Set(more[i], more[i+1])
	}
	return header
}

// sessionOf is the session cookie an answer sets, or nil.
func sessionOf(answer servertest.Answer) *http.Cookie {
	for _, c := range (&http.Response{Header: answer.Header}).Cookies() {
		if strings.Contains(c.Name, "session") {
			return c
		}
	}
	return nil
}

func signIn(t *testing.T, s *servertest.Server, name, password string, header http.Header) servertest.Answer {
	t.Helper()
	header = header.Clone()
	if header == nil {
		header = http.Header{}
	}
	header.Set("Content-Type", "application/x-www-form-urlencoded")
	return s.Do(t, "POST", "/sign-in", url.Values{"name": {name}, "password": {password}}.Encode(), header)
}

// signedIn signs ada in and returns her cookie.
func signedIn(t *testing.T, s *servertest.Server, planted *http.Cookie) *http.Cookie {
	t.Helper()
	answer := signIn(t, s, " Ada ", password, withCookie(planted))
	cookie := sessionOf(answer)
	if answer.Status != http.StatusSeeOther || answer.Header.Get("Location") != "/agents" || cookie == nil {
		t.Fatalf("sign in: %d %v %s", answer.Status, answer.Header, answer.Body)
	}
	return cookie
}

// whoAmI is the status of asking the API with a cookie.
func whoAmI(t *testing.T, s *servertest.Server, cookie *http.Cookie) int {
	t.Helper()
	return s.Do(t, "GET", "/api/v1/session", nil, withCookie(cookie)).Status
}

func TestSignInAndOut(t *testing.T) {
	s := start(t, nil)
	if page := s.Do(t, "GET", "/sign-in", nil, nil); page.Status != 200 || sessionOf(page) != nil {
		t.Errorf("sign-in page: %d, cookie %v", page.Status, sessionOf(page))
	}
	for _, path := range []string{"/agents", "/"} {
		if answer := s.Do(t, "GET", path, nil, nil); answer.Status != http.StatusSeeOther {
			t.Errorf("GET %s: %d", path, answer.Status)
		}
	}
	if answer := s.Do(t, "GET", "/agents", nil, http.Header{"X-Refresh": {"1"}}); answer.Status != 401 {
		t.Errorf("fragment without session: %d", answer.Status)
	}

	cookie := signedIn(t, s, nil)
	if !cookie.HttpOnly || cookie.SameSite != http.SameSiteLaxMode || cookie.Secure || cookie.Path != "/" {
		t.Errorf("cookie %+v", cookie)
	}
	if page := s.Do(t, "GET", "/agents", nil, withCookie(cookie)); page.Status != 200 || !strings.Contains(string(page.Body), "ada") {
		t.Errorf("agents page: %d", page.Status)
	}
	if answer := s.Do(t, "GET", "/sign-in", nil, withCookie(cookie)); answer.Status != http.StatusSeeOther {
		t.Errorf("sign-in page for who is signed in: %d", answer.Status)
	}

	out := s.Do(t, "POST", "/sign-out", nil, withCookie(cookie))
	if out.Status != http.StatusSeeOther || sessionOf(out) == nil || sessionOf(out).MaxAge >= 0 {
		t.Errorf("sign out: %d %v", out.Status, out.Header)
	}
	if got := whoAmI(t, s, cookie); got != 401 {
		t.Errorf("replay after signing out: %d", got)
	}
	if answer := s.Do(t, "GET", "/agents", nil, withCookie(cookie)); answer.Status != http.StatusSeeOther {
		t.Errorf("page after signing out: %d", answer.Status)
	}
}

func TestSessionIsRenewedAtSignIn(t *testing.T) {
	s := start(t, nil)
	planted := &http.Cookie{Name: "opensource_manager_session", Value: "planted-by-somebody-else"}
	first := signedIn(t, s, planted)
	if first.Value == planted.Value {
		t.Fatal("a planted session id was taken over")
	}
	second := signedIn(t, s, first)
	if second.Value == first.Value {
		t.Error("signing in again kept the id")
	}
	if got := whoAmI(t, s, first); got != 401 {
		t.Errorf("the id from before signing in again: %d", got)
	}
	if got := whoAmI(t, s, second); got != 200 {
		t.Errorf("the new id: %d", got)
	}
}

func TestNewPasswordEndsAllSessions(t *testing.T) {
	s := start(t, nil)
	one, two := signedIn(t, s, nil), signedIn(t, s, nil)
	commandLine, err := store.Open(t.Context(), s.Database, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer commandLine.Close()
	if err := auth.SetPassword(t.Context(), commandLine, "Ada", "another long password"); err != nil {
		t.Fatal(err)
	}
	if a, b := whoAmI(t, s, one), whoAmI(t, s, two); a != 401 || b != 401 {
		t.Errorf("sessions after the password was changed: %d, %d", a, b)
	}
	if answer := signIn(t, s, "ada", password, nil); answer.Status != 401 {
		t.Errorf("the old password: %d", answer.Status)
	}
}

func TestDeletedUserIsSignedOut(t *testing.T) {
	s := start(t, nil)
	if _, err := auth.CreateUser(t.Context(), s.Store, "eve", auth.RoleViewer, password); err != nil {
		t.Fatal(err)
	}
	cookie := sessionOf(signIn(t, s, "eve", password, nil))
	if got := s.Do(t, "POST", "/api/v1/sites", object{"name": "x"}, withCookie(cookie)); got.Status != 403 {
		t.Errorf("a viewer wrote: %d", got.Status)
	}
	eve, err := s.Store.UserByName(t.Context(), "eve")
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Call(t, "DELETE", fmt.Sprintf("/users/%d", eve.ID), nil); got.Status != 204 {
		t.Fatalf("delete user: %d %s", got.Status, got.Body)
	}
	if got := whoAmI(t, s, cookie); got != 401 {
		t.Errorf("session of a deleted user: %d", got)
	}
}

func TestSessionOverTheAPI(t *testing.T) {
	s := start(t, nil)
	bad := s.Do(t, "POST", "/api/v1/session", object{"name": "ada", "password": "wrong"}, nil)
	unknown := s.Do(t, "POST", "/api/v1/session", object{"name": "nobody", "password": "wrong"}, nil)
	if bad.Status != 401 || string(bad.Body) != string(unknown.Body) || sessionOf(bad) != nil {
		t.Errorf("%d %s, unknown user: %s", bad.Status, bad.Body, unknown.Body)
	}
	in := s.Do(t, "POST", "/api/v1/session", object{"name": "ada", "password": password}, nil)
	cookie := sessionOf(in)
	if in.Status/100 != 2 || cookie == nil {
		t.Fatalf("%d %s", in.Status, in.Body)
	}
	if got := s.Do(t, "POST", "/api/v1/sites", object{"name": "x"}, withCookie(cookie)); got.Status != 201 {
		t.Errorf("write with a session: %d %s", got.Status, got.Body)
	}
	if got := s.Do(t, "DELETE", "/api/v1/session", nil, withCookie(cookie)); got.Status != 204 {
		t.Errorf("sign out: %d %s", got.Status, got.Body)
	}
	if got := whoAmI(t, s, cookie); got != 401 {
		t.Errorf("after signing out: %d", got)
	}
}

func TestBadKeyBesideGoodSession(t *testing.T) {
	s := start(t, nil)
	cookie := signedIn(t, s, nil)
	if got := s.Do(t, "GET", "/api/v1/sites", nil, withCookie(cookie, "X-Api-Key", "wrong")); got.Status != 401 {
		t.Errorf("status %d", got.Status)
	}
}

func TestOtherOriginsAreRefused(t *testing.T) {
	s := start(t, func(c *config.Config) { c.PublicURL = mustParse("https://manager.example.com/x") })
	in := signIn(t, s, "ada", password, http.Header{"Origin": {"https://manager.example.com"}})
	cookie := sessionOf(in)
	if cookie == nil {
		t.Fatalf("the manager's own origin was refused: %d %s", in.Status, in.Body)
	}
	for _, header := range []http.Header{
		withCookie(cookie, "Origin", "https://evil.example"), withCookie(cookie, "Origin", "null"),
		withCookie(cookie, "Sec-Fetch-Site", "cross-site"), withCookie(cookie, "Sec-Fetch-Site", "same-site"),
	} {
		answer := s.Do(t, "POST", "/api/v1/sites", object{"name": "x"}, header)
		if fault := servertest.Error(t, answer); answer.Status != 403 || fault.Code != "cross_origin" {
			t.Errorf("%v: %d %s", header, answer.Status, answer.Body)
		}
	}
	if got := s.Do(t, "POST", "/api/v1/sites", object{"name": "x"}, withCookie(cookie, "Sec-Fetch-Site", "same-origin")); got.Status != 201 {
		t.Errorf("same origin: %d %s", got.Status, got.Body)
	}
}

func TestBehindTLSUnderAPrefix(t *testing.T) {
	s := start(t, func(c *config.Config) { c.PublicURL = mustParse("https://example.com/manager") })
	for _, prefix := range []string{"", "/manager"} { // proxies that strip it, and those that do not
		answer := s.Do(t, "POST", prefix+"/sign-in", url.Values{"name": {"ada"}, "password": {password}}.Encode(),
			http.Header{"Content-Type": {"application/x-www-form-urlencoded"}})
		cookie := sessionOf(answer)
		if cookie == nil || !cookie.Secure || cookie.Path != "/manager/" || !strings.HasPrefix(cookie.Name, "__Secure-") {
			t.Fatalf("%q: cookie %v", prefix, cookie)
		}
		if got := answer.Header.Get("Location"); got != "/manager/agents" {
			t.Errorf("%q: Location %q", prefix, got)
		}
		page := string(s.Do(t, "GET", prefix+"/agents", nil, withCookie(cookie)).Body)
		for _, want := range []string{`/style.css"`, `href="/manager/assets/`, `action="/manager/sign-out"`, `data-stream="/manager/api/v1/live"`} {
			if !strings.Contains(page, want) {
				t.Errorf("%q: %s is not in the page", prefix, want)
			}
		}
		if got := s.Do(t, "GET", prefix+"/api/v1/health", nil, nil); got.Status != 200 {
			t.Errorf("%q: health %d", prefix, got.Status)
		}
		created := s.Do(t, "POST", prefix+"/api/v1/sites", object{"name": "site" + strings.Trim(prefix, "/")}, http.Header{"X-Api-Key": {s.AdminKey}})
		if got := created.Header.Get("Location"); !strings.HasPrefix(got, "/manager/api/v1/sites/") {
			t.Errorf("%q: Location %q", prefix, got)
		}
		told := s.Do(t, "POST", prefix+"/api/v1/agents", report(1), http.Header{"X-Api-Key": {s.AdminKey}})
		if told.Status != 200 || told.Header.Get("Content-Security-Policy") != "" {
			t.Errorf("%q: a check-in is answered as a page is: %d %v", prefix, told.Status, told.Header)
		}
	}
	text := string(s.Do(t, "GET", "/manager/metrics", nil, http.Header{"X-Api-Key": {s.AdminKey}}).Body)
	if want := `opensource_manager_checkins_total{answer="200"} 2`; !strings.Contains(text, want) {
		t.Errorf("%s is not in the metrics", want)
	}
	if got := s.Do(t, "GET", "/managers", nil, nil); got.Status != 404 {
		t.Errorf("/managers: %d", got.Status)
	}
}

func TestWrongPublicURLIsShown(t *testing.T) {
	s := start(t, func(c *config.Config) {
		c.PublicURL = mustParse("https://manager.example.com")
		c.TrustedProxies = proxies("127.0.0.0/8")
	})
	for _, test := range []struct {
		header http.Header
		wrong  bool
	}{
		{nil, true},
		{http.Header{"X-Forwarded-Proto": {"https"}, "X-Forwarded-Host": {"manager.example.com"}}, false},
		{http.Header{"X-Forwarded-Proto": {"http"}, "X-Forwarded-Host": {"manager.example.com"}}, true},
		{http.Header{"X-Forwarded-Proto": {"https"}, "X-Forwarded-Host": {"other.example.com"}}, true},
	} {
		page := s.Do(t, "GET", "/sign-in", nil, test.header)
		if got := strings.Contains(string(page.Body), "PUBLIC_URL is https://manager.example.com"); got != test.wrong {
			t.Errorf("%v: warning on the sign-in page: %v", test.header, got)
		}
		health := servertest.Data[map[string]any](t, s.Do(t, "GET", "/api/v1/health", nil, test.header))
		if got := health["publicUrlMismatch"] != nil; got != test.wrong {
			t.Errorf("%v: warning in health: %v", test.header, health)
		}
	}
}

func TestTooManySignIns(t *testing.T) {
	s := start(t, nil)
	refusedAt := 0
	for n := range 40 {
		header := http.Header{ // none of them makes another client of it
			"X-Forwarded-For": {fmt.Sprintf("203.0.113.%d", n)}, "X-Real-Ip": {fmt.Sprintf("203.0.113.%d", n)},
			"Forwarded": {fmt.Sprintf("for=203.0.113.%d", n)},
		}
		answer := s.Do(t, "POST", "/api/v1/session", object{"name": "ada", "password": "wrong"}, header)
		if answer.Status == http.StatusTooManyRequests {
			refusedAt = n
			fault := servertest.Error(t, answer)
			if wait, err := strconv.Atoi(answer.Header.Get("Retry-After")); err != nil || wait < 1 || fault.Code != "too_many_requests" {
				t.Errorf("Retry-After %q, %s", answer.Header.Get("Retry-After"), answer.Body)
			}
			break
		}
		if answer.Status != 401 {
			t.Fatalf("attempt %d: %d %s", n, answer.Status, answer.Body)
		}
	}
	if refusedAt == 0 {
		t.Fatal("guessing is never slowed")
	}
	page := signIn(t, s, "ada", "wrong", nil)
	for n := 0; n < 10 && page.Status == 401; n++ { // on a slow machine a failure is forgotten meanwhile
		page = signIn(t, s, "ada", "wrong", nil)
	}
	if page.Status != 429 || page.Header.Get("Retry-After") == "" || !strings.Contains(string(page.Body), "Too many attempts") {
		t.Errorf("sign-in page: %d", page.Status)
	}
	if page := signIn(t, s, "ada", password, nil); page.Status != http.StatusSeeOther {
		t.Errorf("the right password behind the same address: %d", page.Status)
	}
}

func TestTooManyBadKeys(t *testing.T) {
	s := start(t, nil)
	refused := 0
	for n := range 150 {
		header := http.Header{"X-Api-Key": {"wrong"}, "X-Forwarded-For": {fmt.Sprintf("203.0.113.%d", n)}}
		for _, path := range []string{"/api/v1/sites", "/api/v1/agents"} {
			answer := s.Do(t, map[string]string{"/api/v1/sites": "GET", "/api/v1/agents": "POST"}[path], path, nil, header)
			if answer.Status == http.StatusTooManyRequests {
				refused++
				if fault := servertest.Error(t, answer); fault.Code != "too_many_requests" || answer.Header.Get("Retry-After") == "" {
					t.Errorf("%s: %v %s", path, answer.Header, answer.Body)
				}
			} else if answer.Status != 401 {
				t.Fatalf("%s: %d", path, answer.Status)
			}
		}
	}
	if refused == 0 {
		t.Error("bad keys without end")
	}
	if got := s.Call(t, "GET", "/sites", nil); got.Status != 200 {
		t.Errorf("a good key behind the same address: %d", got.Status)
	}
	if got := signIn(t, s, "ada", password, nil); got.Status != http.StatusSeeOther {
		t.Errorf("a good password behind the same address: %d", got.Status)
	}
}

func TestOwnPassword(t *testing.T) {
	s := start(t, nil)
	mine, other := signedIn(t, s, nil), signedIn(t, s, nil)
	change := func(cookie *http.Cookie, present, next string) servertest.Answer {
		return s.Do(t, "POST", "/api/v1/session/password", object{"currentPassword": present, "newPassword": next}, withCookie(cookie))
	}
	for _, bad := range [][3]string{
		{"wrong", "another long password", "currentPassword"}, {password, "short", "newPassword"},
	} {
		answer := change(mine, bad[0], bad[1])
		if fault := servertest.Error(t, answer); answer.Status != 422 || fault.Fields[bad[2]] == "" {
			t.Errorf("%v: %d %s", bad, answer.Status, answer.Body)
		}
	}
	if a, b := whoAmI(t, s, mine), whoAmI(t, s, other); a != 200 || b != 200 {
		t.Fatalf("a refused change ended sessions: %d, %d", a, b)
	}
	if got := s.Call(t, "POST", "/session/password", object{"currentPassword": password, "newPassword": "another long password"}); got.Status != 403 {
		t.Errorf("with a key: %d", got.Status)
	}
	done := change(mine, password, "another long password")
	renewed := sessionOf(done)
	if done.Status != 204 || renewed == nil || renewed.Value == mine.Value {
		t.Fatalf("%d %s, cookie %v", done.Status, done.Body, renewed)
	}
	if a, b, c := whoAmI(t, s, mine), whoAmI(t, s, other), whoAmI(t, s, renewed); a != 401 || b != 401 || c != 200 {
		t.Errorf("the old id: %d, the other session: %d, the new id: %d", a, b, c)
	}
	if a, b := signIn(t, s, "ada", password, nil).Status, signIn(t, s, "ada", "another long password", nil).Status; a != 401 || b != 303 {
		t.Errorf("the old password: %d, the new one: %d", a, b)
	}
}

// TestAdministrationOfPeople: what an administrator changes about somebody holds
// from that person's next request on.
func TestAdministrationOfPeople(t *testing.T) {
	s := start(t, nil)
	eve := s.Create(t, "/users", object{"name": "eve", "role": "admin", "password": password})
	path := fmt.Sprintf("/users/%d", eve)
	in := func(password string) *http.Cookie { return sessionOf(signIn(t, s, "eve", password, nil)) }
	patch := func(body object) {
		t.Helper()
		if got := s.Call(t, "PATCH", path, body); got.Status != 200 {
			t.Fatalf("%v: %d %s", body, got.Status, got.Body)
		}
	}
	write := func(cookie *http.Cookie) servertest.Answer {
		return s.Do(t, "POST", "/api/v1/sites", object{"name": fmt.Sprint("site", time.Now().UnixNano())}, withCookie(cookie))
	}

	cookie := in(password)
	patch(object{"role": "viewer"})
	demoted := write(cookie)
	renewed := sessionOf(demoted)
	if demoted.Status != 403 || renewed == nil || renewed.Value == cookie.Value {
		t.Errorf("demoted: %d, cookie %v", demoted.Status, renewed)
	}
	if old, renewed := whoAmI(t, s, cookie), whoAmI(t, s, renewed); old != 401 || renewed != 200 {
		t.Errorf("the id from before the new role: %d, the new one: %d", old, renewed)
	}

	cookie = in(password)
	patch(object{"disabled": true})
	if got := whoAmI(t, s, cookie); got != 401 {
		t.Errorf("disabled: %d", got)
	}
	if got := signIn(t, s, "eve", password, nil); got.Status != 401 {
		t.Errorf("a disabled person signs in: %d", got.Status)
	}
	patch(object{"disabled": false})
	if got := whoAmI(t, s, cookie); got != 401 {
		t.Errorf("a session came back: %d", got)
	}

	cookie = in(password)
	patch(object{"password": "another long password"})
	if got := whoAmI(t, s, cookie); got != 401 {
		t.Errorf("session after a new password: %d", got)
	}
	cookie = in("another long password")
	patch(object{"name": " Eva "})
	if who := servertest.Data[object](t, s.Do(t, "GET", "/api/v1/session", nil, withCookie(cookie))); who["name"] != "eva" {
		t.Errorf("renamed: %v", who)
	}
	if got := s.Call(t, "DELETE", path+"/sessions", nil); got.Status != 204 || whoAmI(t, s, cookie) != 401 {
		t.Errorf("signed out everywhere: %d", got.Status)
	}

	ada, err := s.Store.UserByName(t.Context(), "ada")
	if err != nil {
		t.Fatal(err)
	}
	own := fmt.Sprintf("/api/v1/users/%d", ada.ID)
	if got := s.Do(t, "PATCH", own, object{"password": "another long password"}, withCookie(signedIn(t, s, nil))); got.Status != 422 {
		t.Errorf("one's own password without the present one: %d %s", got.Status, got.Body)
	}
	for _, body := range []object{{"role": "viewer"}, {"disabled": true}} {
		answer := s.Do(t, "PATCH", own, body, withCookie(signedIn(t, s, nil)))
		if fault := servertest.Error(t, answer); answer.Status != 409 || !strings.Contains(fault.Message, "last administrator") {
			t.Errorf("%v of the last administrator: %d %s", body, answer.Status, answer.Body)
		}
	}
	for field, bad := range map[string]object{
		"name": {"name": ""}, "role": {"role": "agent"}, "password": {"password": "short"}, "disabled": {"disabled": "yes"},
	} {
		answer := s.Call(t, "PATCH", path, bad)
		if fault := servertest.Error(t, answer); answer.Status != 422 || fault.Fields[field] == "" {
			t.Errorf("%v: %d %s", bad, answer.Status, answer.Body)
		}
	}
	if got := s.Call(t, "PATCH", path, object{"name": "ada"}); got.Status != 409 {
		t.Errorf("a name that is taken: %d %s", got.Status, got.Body)
	}
}

func TestNothingSecretIsLogged(t *testing.T) {
	s := start(t, nil)
	cookie := signedIn(t, s, nil)
	signIn(t, s, "ada", "a wrong secret", nil)
	s.Do(t, "GET", "/api/v1/sites", nil, http.Header{"Authorization": {"Bearer " + s.AdminKey}})
	s.Do(t, "GET", "/api/v1/sites?key="+s.AdminKey, nil, nil)
	for _, secret := range []string{s.AdminKey, password, "a wrong secret", cookie.Value} {
		if strings.Contains(s.Log.String(), secret) {
			t.Errorf("%q is in the log", secret)
		}
	}
}
