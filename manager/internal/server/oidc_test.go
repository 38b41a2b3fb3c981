package server_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/oauth2-proxy/mockoidc"

	"opensource.internal/manager/internal/config"
	"opensource.internal/manager/internal/store"
	"opensource.internal/manager/servertest"
)

// signOn is a manager with a sign-in provider.
type signOn struct {
	*servertest.Server
	provider *mockoidc.MockOIDC
}

// startProvider starts a provider on an address, with the client of another one
// if there is one.
func startProvider(t *testing.T, address string, like *mockoidc.MockOIDC) *mockoidc.MockOIDC {
	t.Helper()
	provider, err := mockoidc.NewServer(nil)
	if err != nil {
		t.Fatal(err)
	}
	if like != nil {
		provider.ClientID, provider.ClientSecret = like.ClientID, like.ClientSecret
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	if err := provider.Start(listener, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = provider.Shutdown() })
	return provider
}

func newSignOn(t *testing.T, configure func(*config.OIDC)) *signOn {
	t.Helper()
	provider := startProvider(t, "127.0.0.1:0", nil)
	return &signOn{startWith(t, provider, provider.Issuer(), configure), provider}
}

func startWith(t *testing.T, provider *mockoidc.MockOIDC, issuer string, configure func(*config.OIDC)) *servertest.Server {
	t.Helper()
	o := &config.OIDC{
		Issuer: issuer, ClientID: provider.ClientID, ClientSecret: config.Secret(provider.ClientSecret), Name: "Example Accounts",
		Scopes: []string{"openid", "profile", "email", "groups"}, RoleClaim: "groups",
		AdminGroups: []string{"net-admins"}, ViewerGroups: []string{"staff"},
	}
	if configure != nil {
		configure(o)
	}
	return start(t, func(c *config.Config) {
		c.PublicURL, c.OIDC = mustParse("http://manager.example.com/m"), o
	})
}

// browser keeps cookies as a browser does.
type browser struct {
	s       *servertest.Server
	cookies map[string]string
}

func (b *browser) get(t *testing.T, path string) servertest.Answer {
	t.Helper()
	var sent []string
	for name, value := range b.cookies {
		sent = append(sent, name+"="+value)
	}
	answer := b.s.Do(t, "GET", path, nil, http.Header{"Cookie": {strings.Join(sent, "; ")}})
	for _, cookie := range (&http.Response{Header: answer.Header}).Cookies() {
		b.cookies[cookie.Name] = cookie.Value
	}
	return answer
}

func (b *browser) whoAmI(t *testing.T) (status int, name, role string) {
	t.Helper()
	answer := b.get(t, "/api/v1/session")
	if answer.Status != 200 {
		return answer.Status, "", ""
	}
	who := servertest.Data[struct{ Name, Role string }](t, answer)
	return 200, who.Name, who.Role
}

// leave goes to the provider and returns the address that it sends the browser
// back to, below the manager.
func (b *browser) leave(t *testing.T) (back *url.URL) {
	t.Helper()
	return b.leaveBy(t, "/sign-in/oidc")
}

func (b *browser) leaveBy(t *testing.T, path string) (back *url.URL) {
	t.Helper()
	away := b.get(t, path)
	if away.Status != http.StatusSeeOther {
		t.Fatalf("leave: %d %s", away.Status, away.Body)
	}
	address := mustParse(away.Header.Get("Location"))
	if query := address.Query(); query.Get("code_challenge_method") != "S256" || len(query.Get("code_challenge")) < 43 || len(query.Get("state")) < 43 || len(query.Get("nonce")) < 43 {
		t.Errorf("%s", address)
	}
	return b.ask(t, address)
}

// ask is the browser at the provider.
func (b *browser) ask(t *testing.T, address *url.URL) (back *url.URL) {
	t.Helper()
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address.String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	back, err = response.Location()
	if err != nil || !strings.HasPrefix(back.String(), "http://manager.example.com/m/sign-in/oidc/callback?") {
		t.Fatalf("the provider answers %s, to %v", response.Status, back)
	}
	return back
}

func (s *signOn) signIn(t *testing.T, user *mockoidc.MockUser) (*browser, servertest.Answer) {
	t.Helper()
	b := &browser{s.Server, map[string]string{}}
	if user != nil {
		s.provider.QueueUser(user)
	}
	back := b.leave(t)
	return b, b.get(t, back.RequestURI())
}

func person(subject, name string, groups ...string) *mockoidc.MockUser {
	return &mockoidc.MockUser{Subject: subject, PreferredUsername: name, Email: name + "@example.com", EmailVerified: true, Groups: groups}
}

func TestSingleSignOn(t *testing.T) {
	s := newSignOn(t, nil)
	if page := s.Do(t, "GET", "/sign-in", nil, nil); !strings.Contains(string(page.Body), `href="/m/sign-in/oidc"`) || !strings.Contains(string(page.Body), "Example Accounts") {
		t.Errorf("%s", page.Body)
	}
	planted := "planted-by-somebody-else"
	b := &browser{s.Server, map[string]string{"opensource_manager_session": planted}}
	s.provider.QueueUser(person("1", "grace", "net-admins"))
	answer := b.get(t, b.leave(t).RequestURI())
	if answer.Status != http.StatusSeeOther || answer.Header.Get("Location") != "/m/agents" || b.cookies["opensource_manager_session"] == planted {
		t.Fatalf("%d %v", answer.Status, answer.Header)
	}
	if status, name, role := b.whoAmI(t); status != 200 || name != "grace" || role != "admin" {
		t.Errorf("%d %s %s", status, name, role)
	}
	old := b.cookies["opensource_manager_session"]
	again := &browser{s.Server, map[string]string{"opensource_manager_session": old}}
	s.provider.QueueUser(person("1", "grace", "net-admins"))
	again.get(t, again.leave(t).RequestURI())
	if got := whoAmI(t, s.Server, &http.Cookie{Name: "opensource_manager_session", Value: old}); got != 401 {
		t.Errorf("the id from before signing in again: %d", got)
	}
	cookie := &http.Cookie{Name: "opensource_manager_session", Value: again.cookies["opensource_manager_session"]}
	if out := s.Do(t, "POST", "/sign-out", nil, withCookie(cookie)); out.Status != 303 || whoAmI(t, s.Server, cookie) != 401 {
		t.Errorf("sign out: %d", out.Status)
	}
	users, _, err := s.Store.ListUsers(t.Context(), store.ListOptions{Sort: "-id"})
	if err != nil || len(users) != 2 || users[0].Subject != "1" || users[0].Issuer != s.provider.Issuer() || users[0].PasswordHash != "" {
		t.Errorf("%+v, %v", users, err)
	}
	for _, secret := range []string{s.provider.ClientSecret, cookie.Value} {
		if strings.Contains(s.Log.String(), secret) {
			t.Error("a secret is in the log")
		}
	}
}

// TestIdentityIsIssuerAndSubject: names and addresses make nobody somebody else,
// and whoever has no role gets no account.
func TestIdentityIsIssuerAndSubject(t *testing.T) {
	s := newSignOn(t, func(o *config.OIDC) { o.Admins = []string{"chief@example.com", "subject-9"} })
	b, _ := s.signIn(t, person("1", "ada", "staff"))
	if _, name, role := b.whoAmI(t); name != "ada (Example Accounts)" || role != "viewer" {
		t.Errorf("the name of a local administrator: %s, %s", name, role)
	}
	if got := signIn(t, s.Server, "ada (example accounts)", "", nil); got.Status != 401 {
		t.Errorf("without a password: %d", got.Status)
	}
	b, _ = s.signIn(t, person("1", "renamed", "net-admins"))
	if _, name, role := b.whoAmI(t); name != "renamed" || role != "admin" {
		t.Errorf("renamed and promoted: %s, %s", name, role)
	}
	if b, _ = s.signIn(t, person("2", "chief")); true {
		if _, _, role := b.whoAmI(t); role != "admin" {
			t.Errorf("by verified address: %s", role)
		}
	}
	if b, _ = s.signIn(t, person("subject-9", "nine")); true {
		if _, _, role := b.whoAmI(t); role != "admin" {
			t.Errorf("by subject: %s", role)
		}
	}
	before, _, err := s.Store.ListUsers(t.Context(), store.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	impostor := person("3", "chief")
	impostor.EmailVerified = false
	hostile := person("4", "<script>alert(1)</script>", "STAFF")
	for name, user := range map[string]*mockoidc.MockUser{"unverified address": impostor, "no group": hostile} {
		b, answer := s.signIn(t, user)
		if status, _, _ := b.whoAmI(t); answer.Status != 403 || status != 401 || !strings.Contains(string(answer.Body), "no role here") || strings.Contains(string(answer.Body), "<script>alert") {
			t.Errorf("%s: %d, session %d: %s", name, answer.Status, status, answer.Body)
		}
	}
	if after, _, err := s.Store.ListUsers(t.Context(), store.ListOptions{}); err != nil || len(after) != len(before) {
		t.Errorf("%d users were %d before, %v", len(after), len(before), err)
	}
}

func TestRoleIsThatOfTheLastSignIn(t *testing.T) {
	s := newSignOn(t, nil)
	first, _ := s.signIn(t, person("1", "grace", "net-admins"))
	s.signIn(t, person("1", "grace", "staff"))
	if status, _, role := first.whoAmI(t); status != 200 || role != "viewer" {
		t.Errorf("the session before the demotion: %d %s", status, role)
	}
	s.signIn(t, person("1", "grace"))
	if status, _, _ := first.whoAmI(t); status != 401 {
		t.Errorf("the session of somebody without a role: %d", status)
	}
	b, _ := s.signIn(t, person("1", "grace", "staff"))
	if status, _, role := b.whoAmI(t); status != 200 || role != "viewer" {
		t.Errorf("%d %s", status, role)
	}
	user, err := s.Store.UserByIdentity(t.Context(), s.provider.Issuer(), "1")
	if err != nil {
		t.Fatal(err)
	}
	path := fmt.Sprintf("/users/%d", user.ID)
	for field, body := range map[string]object{"role": {"role": "admin"}, "password": {"password": "correct horse battery"}, "name": {"name": "other"}} {
		answer := s.Call(t, "PATCH", path, body)
		if fault := servertest.Error(t, answer); answer.Status != 422 || fault.Fields[field] == "" {
			t.Errorf("%s: %d %s", field, answer.Status, answer.Body)
		}
	}
	if got := s.Call(t, "PATCH", path, object{"disabled": true}); got.Status != 200 {
		t.Fatalf("%d %s", got.Status, got.Body)
	}
	if status, _, _ := b.whoAmI(t); status != 401 {
		t.Errorf("session of somebody who is disabled: %d", status)
	}
	if b, answer := s.signIn(t, person("1", "grace", "net-admins")); answer.Status != 403 || !strings.Contains(string(answer.Body), "disabled") {
		status, _, _ := b.whoAmI(t)
		t.Errorf("a disabled person signs in: %d, session %d", answer.Status, status)
	}
}

// TestForgedReturns: an answer of the provider is good in the browser that asked,
// once, and only whole.
func TestForgedReturns(t *testing.T) {
	s := newSignOn(t, nil)
	fresh := func() *browser { return &browser{s.Server, map[string]string{}} }
	change := func(back *url.URL, name, value string) string {
		changed, query := *back, back.Query()
		query.Set(name, value)
		changed.RawQuery = query.Encode()
		return changed.RequestURI()
	}
	refused := func(name string, b *browser, path string) {
		t.Helper()
		answer := b.get(t, path)
		if status, _, _ := b.whoAmI(t); answer.Status != 403 || status != 401 || !strings.Contains(string(answer.Body), `id="problem"`) {
			t.Errorf("%s: %d, session %d", name, answer.Status, status)
		}
	}
	queue := func() { s.provider.QueueUser(person("1", "grace", "net-admins")) }

	queue()
	b := fresh()
	back := b.leave(t)
	refused("another browser", fresh(), back.RequestURI())
	refused("wrong state", b, change(back, "state", "x"))
	refused("a cookie is good once", b, back.RequestURI())

	for name, value := range map[string]string{"code": "wrong", "error": "access_denied"} {
		queue()
		b := fresh()
		refused(name, b, change(b.leave(t), name, value))
	}
	refused("nothing", fresh(), "/sign-in/oidc/callback")

	queue()
	b = fresh()
	back = b.leave(t)
	name := "opensource_manager_sign_in"
	parts := strings.Split(b.cookies[name], ".")
	for what, index := range map[string]int{"another nonce": 1, "another PKCE verifier": 2} {
		queue()
		b := fresh()
		back := b.leave(t)
		forged := strings.Split(b.cookies[name], ".")
		forged[index] = parts[index]
		b.cookies[name] = strings.Join(forged, ".")
		refused(what, b, back.RequestURI())
	}
	b.cookies[name] = strings.Join(append(parts[:4:4], "%"), ".")
	refused("a page that is none", b, back.RequestURI())
	forged := append([]string{}, parts...)
	forged[3] = fmt.Sprint(time.Now().Add(-11 * time.Minute).Unix())
	b.cookies[name] = strings.Join(forged, ".")
	refused("too late", b, back.RequestURI())
	b.cookies[name] = "junk"
	refused("junk", b, back.RequestURI())
}

// TestSingleSignOnLeadsWhereOneWanted and nowhere else.
func TestSingleSignOnLeadsWhereOneWanted(t *testing.T) {
	s := newSignOn(t, nil)
	sent := s.Do(t, "GET", "/sites/7/services?q=a&sort=-type", nil, http.Header{"Accept": {"text/html"}})
	page := s.Do(t, "GET", strings.TrimPrefix(sent.Header.Get("Location"), "/m"), nil, nil)
	link := regexp.MustCompile(`href="/m(/sign-in/oidc[^"]*)"`).FindSubmatch(page.Body)
	if link == nil {
		t.Fatalf("%d %s", page.Status, page.Body)
	}
	grace := person("1", "grace", "net-admins")
	for from, want := range map[string]string{
		html.UnescapeString(string(link[1])):                            "/m/sites/7/services?q=a&sort=-type",
		"/sign-in/oidc":                                                 "/m/agents",
		"/sign-in/oidc?next=%2Faudit%3Fq%3D%2F%2Fx":                     "/m/audit?q=//x",
		"/sign-in/oidc?next=//evil.example":                             "/m/agents",
		"/sign-in/oidc?next=/%5Cevil.example":                           "/m/agents",
		"/sign-in/oidc?next=%2F%2Fevil.example%2Fagents":                "/m/agents",
		"/sign-in/oidc?next=https://evil.example":                       "/m/agents",
		"/sign-in/oidc?next=javascript:alert(1)":                        "/m/agents",
		"/sign-in/oidc?next=evil.example":                               "/m/agents",
		"/sign-in/oidc?next=/%09/evil.example":                          "/m/agents",
		"/sign-in/oidc?next=/%0A%0DSet-Cookie:x":                        "/m/agents",
		"/sign-in/oidc?next=/" + strings.Repeat("x", 4000):              "/m/agents",
		"/sign-in/oidc?next=/.//evil.example":                           "/m/evil.example", // a page that there is not
		"/sign-in/oidc?next=" + url.QueryEscape("/%2F%2Fevil.example"):  "/m/%2F%2Fevil.example",
		"/sign-in/oidc?next=" + url.QueryEscape("/%5C%5Cevil.example/"): "/m/%5C%5Cevil.example/",
	} {
		b := &browser{s.Server, map[string]string{}}
		s.provider.QueueUser(grace)
		answer := b.get(t, b.leaveBy(t, from).RequestURI())
		if answer.Status != http.StatusSeeOther || answer.Header.Get("Location") != want {
			t.Errorf("%.80s: %d %s, want %s", from, answer.Status, answer.Header.Get("Location"), want)
		}
	}

	// What the browser keeps is not trusted either.
	b := &browser{s.Server, map[string]string{}}
	s.provider.QueueUser(grace)
	back := b.leave(t)
	parts := strings.Split(b.cookies["opensource_manager_sign_in"], ".")
	parts[4] = base64.RawURLEncoding.EncodeToString([]byte("//evil.example"))
	b.cookies["opensource_manager_sign_in"] = strings.Join(parts, ".")
	if answer := b.get(t, back.RequestURI()); answer.Header.Get("Location") != "/m/agents" {
		t.Errorf("a forged cookie leads to %s", answer.Header.Get("Location"))
	}

	// Who is refused may try again, and still gets there.
	s.provider.QueueUser(person("2", "eve"))
	answer := b.get(t, b.leaveBy(t, "/sign-in/oidc?next=/audit").RequestURI())
	if answer.Status != 403 || !strings.Contains(string(answer.Body), "/sign-in/oidc?next=%2Faudit") || !strings.Contains(string(answer.Body), `name="next" value="/audit"`) {
		t.Errorf("%d %s", answer.Status, answer.Body)
	}
}

func TestIDTokensThatDoNot(t *testing.T) {
	s := newSignOn(t, nil)
	s.provider.FastForward(-2 * time.Hour) // tokens live ten minutes
	if _, answer := s.signIn(t, person("1", "grace", "net-admins")); answer.Status != 403 {
		t.Errorf("an expired id token: %d", answer.Status)
	}
	s.provider.FastForward(2 * time.Hour)
	if _, answer := s.signIn(t, person("1", "grace", "net-admins")); answer.Status != 303 {
		t.Fatalf("a good one: %d %s", answer.Status, answer.Body)
	}

	rotated, err := mockoidc.RandomKeypair(2048)
	if err != nil {
		t.Fatal(err)
	}
	s.provider.Keypair = rotated
	if _, answer := s.signIn(t, person("1", "grace", "net-admins")); answer.Status != 303 {
		t.Errorf("after the provider has changed its keys: %d %s", answer.Status, answer.Body)
	}

	other := startProvider(t, "127.0.0.1:0", s.provider)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := httptest.NewRecorder()
		other.Server.Handler.ServeHTTP(answer, r)
		body := answer.Body.Bytes()
		if r.URL.Path == mockoidc.DiscoveryEndpoint {
			var discovery map[string]any
			_ = json.Unmarshal(body, &discovery)
			discovery["issuer"] = "http://" + r.Host + "/oidc"
			for _, endpoint := range []string{"authorization_endpoint", "token_endpoint", "jwks_uri", "userinfo_endpoint"} {
				discovery[endpoint] = strings.Replace(discovery[endpoint].(string), other.Addr(), "http://"+r.Host, 1)
			}
			body, _ = json.Marshal(discovery)
		}
		for name, values := range answer.Header() {
			if name != "Content-Length" {
				w.Header()[name] = values
			}
		}
		w.WriteHeader(answer.Code)
		_, _ = w.Write(body)
	}))
	defer proxy.Close()
	wrongIssuer := &signOn{startWith(t, other, proxy.URL+"/oidc", nil), other}
	if _, answer := wrongIssuer.signIn(t, person("1", "grace", "net-admins")); answer.Status != 403 || !strings.Contains(wrongIssuer.Log.String(), "issued by") {
		t.Errorf("an id token of another issuer: %d %s", answer.Status, wrongIssuer.Log)
	}
}

// TestProviderIsAway: the manager starts without its provider, says so, and goes
// on when it is back.
func TestProviderIsAway(t *testing.T) {
	first := startProvider(t, "127.0.0.1:0", nil)
	address, issuer := first.Server.Addr, first.Issuer()
	if err := first.Shutdown(); err != nil {
		t.Fatal(err)
	}
	s := startWith(t, first, issuer, nil)
	page := s.Do(t, "GET", "/sign-in", nil, nil)
	if page.Status != 200 || !strings.Contains(string(page.Body), "Example Accounts cannot be reached") {
		t.Errorf("%d %s", page.Status, page.Body)
	}
	if away := s.Do(t, "GET", "/sign-in/oidc", nil, nil); away.Status != 503 {
		t.Errorf("leave: %d", away.Status)
	}
	if in := signIn(t, s, "ada", password, nil); in.Status != 303 {
		t.Errorf("a password meanwhile: %d", in.Status)
	}
	back := startProvider(t, address, first)
	for deadline := time.Now().Add(20 * time.Second); ; {
		b := &browser{s, map[string]string{}}
		if away := b.get(t, "/sign-in/oidc"); away.Status == http.StatusSeeOther {
			back.QueueUser(person("1", "grace", "staff"))
			if answer := b.get(t, b.ask(t, mustParse(away.Header.Get("Location"))).RequestURI()); answer.Status != 303 {
				t.Errorf("it is back: %d %s", answer.Status, answer.Body)
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the manager does not notice that the provider is back")
		}
	}
}

func TestNoProvider(t *testing.T) {
	s := start(t, nil)
	for _, path := range []string{"/sign-in/oidc", "/sign-in/oidc/callback?code=x&state=y"} {
		if got := s.Do(t, "GET", path, nil, nil); got.Status != 503 {
			t.Errorf("%s: %d", path, got.Status)
		}
	}
	if page := s.Do(t, "GET", "/sign-in", nil, nil); strings.Contains(string(page.Body), "oidc") {
		t.Error("a button for nothing")
	}
}

// A provider that takes connections and says nothing keeps nobody from signing
// in with a password.
func TestProviderIsSilent(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan net.Conn, 100)
	go func() {
		for {
			connection, err := silent.Accept()
			if err != nil {
				return
			}
			asked <- connection
		}
	}()
	t.Cleanup(func() {
		silent.Close()
		for len(asked) > 0 {
			(<-asked).Close()
		}
	})
	s := startWith(t, startProvider(t, "127.0.0.1:0", nil), "http://"+silent.Addr().String(), nil)
	for range 3 {
		page := s.Do(t, "GET", "/sign-in", nil, nil)
		if page.Status != 200 || !strings.Contains(string(page.Body), "Example Accounts cannot be reached") {
			t.Errorf("%d %s", page.Status, page.Body)
		}
	}
	// All three pages were there before the one question they asked has ended.
	if len(asked) != 1 {
		t.Errorf("the provider was asked %d times", len(asked))
	}
}
