package render

import (
	"crypto/tls"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// fakeAuth stands in for an oauth2-proxy. It knows the cookie "session=good",
// forbids "session=stranger", renews "session=old", and says 200 to
// "session=other", which is no "yes" to be remembered.
type fakeAuth struct {
	mutex sync.Mutex
	asked []request // of /oauth2/auth
	other []request // of the rest of /oauth2/
}

func serveAuth(t *testing.T) *fakeAuth {
	t.Helper()
	auth := &fakeAuth{}
	serve(t, authAddr+":4180", false, auth.handle)
	return auth
}

func (a *fakeAuth) handle(w http.ResponseWriter, r *http.Request) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	seen := request{Method: r.Method, Host: r.Host, URI: r.RequestURI, Header: r.Header}
	if r.URL.Path != "/oauth2/auth" {
		a.other = append(a.other, seen)
		echo(w, r)
		return
	}
	a.asked = append(a.asked, seen)
	// An auth server that wants its answers kept is not obeyed.
	w.Header().Set("Cache-Control", "public, max-age=3600")
	w.Header().Set("X-Accel-Expires", "3600")
	switch {
	case r.Header.Get("Cookie") == "session=good", r.Header.Get("Authorization") == "Bearer good":
		w.Header().Set("X-Auth-Request-User", "u1")
		w.Header().Set("X-Auth-Request-Preferred-Username", "ada")
		w.Header().Set("X-Auth-Request-Email", "ada@example.com")
		w.Header().Set("X-Auth-Request-Groups", "staff,ops")
		w.Header().Set("X-Auth-Request-Access-Token", "token1")
		w.WriteHeader(http.StatusAccepted)
	case r.Header.Get("Cookie") == "session=old":
		w.Header().Set("Set-Cookie", "session=good")
		w.WriteHeader(http.StatusAccepted)
	case r.Header.Get("Cookie") == "session=other":
		w.WriteHeader(http.StatusOK)
	case r.Header.Get("Cookie") == "session=stranger":
		w.WriteHeader(http.StatusForbidden)
	default:
		w.WriteHeader(http.StatusUnauthorized)
	}
}

// questions returns how often the auth server was asked since the last call.
func (a *fakeAuth) questions() []request {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	asked := a.asked
	a.asked = nil
	return asked
}

func (a *fakeAuth) lastOther() request {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return a.other[len(a.other)-1]
}

func cookie(value string) http.Header { return http.Header{"Cookie": {value}} }

func testSignIn(t *testing.T, auth *fakeAuth) {
	t.Run("nobody is sent to sign in", func(t *testing.T) { testSignInRedirect(t, auth) })
	t.Run("somebody passes with the auth server's words", func(t *testing.T) { testIdentity(t, auth) })
	t.Run("only yes is remembered", func(t *testing.T) { testAuthCache(t, auth) })
	t.Run("the whole subtree", func(t *testing.T) { testAuthSubtree(t, auth) })
	t.Run("forbidden", func(t *testing.T) {
		got := get(t, "https://secret.example.com/", cookie("session=stranger"))
		if got.status != 403 || !strings.Contains(got.body, "You may not open this page") {
			t.Errorf("%d %.100q", got.status, got.body)
		}
	})
	t.Run("renewed cookie", func(t *testing.T) {
		got := get(t, "https://secret.example.com/", cookie("session=old"))
		if got.status != 200 || got.header.Get("Set-Cookie") != "session=good" {
			t.Errorf("%d, Set-Cookie: %q", got.status, got.header.Get("Set-Cookie"))
		}
	})
	t.Run("upgrade", func(t *testing.T) {
		header := spoofed()
		header.Set("Upgrade", "websocket")
		header.Set("Connection", "Upgrade")
		if got := rawGet(t, "secret.example.com", header); got.status != 302 {
			t.Errorf("a WebSocket without sign-in: %d", got.status)
		}
		header.Set("Cookie", "session=good")
		seen := rawGet(t, "secret.example.com", header).seen(t)
		if seen.Header.Get("Upgrade") != "websocket" || seen.Header.Get("X-User") != "u1" {
			t.Errorf("a WebSocket after sign-in: %v", seen.Header)
		}
	})
}

func testSignInRedirect(t *testing.T, auth *fakeAuth) {
	got := get(t, "https://secret.example.com/a%20b?c=d&e=f", spoofed())
	location := got.header.Get("Location")
	if want := "https://secret.example.com/oauth2/sign_in?rd=https://secret.example.com/a%20b?c=d&e=f"; got.status != 302 || location != want {
		t.Fatalf("%d to %q, want 302 to %q", got.status, location, want)
	}
	// The browser follows, and nothing of the address got lost on the way.
	get(t, location, nil)
	seen := auth.lastOther()
	if want := "https://secret.example.com/a%20b?c=d&e=f"; seen.Header.Get("X-Auth-Request-Redirect") != want || seen.URI != "/oauth2/sign_in" {
		t.Errorf("the auth server saw %s with redirect %q, want %q", seen.URI, seen.Header.Get("X-Auth-Request-Redirect"), want)
	}
	// Somebody else's link, with its target escaped, passes as it is.
	get(t, "https://secret.example.com/oauth2/sign_in?rd=%2Fx%3Fy", spoofed())
	seen = auth.lastOther()
	if seen.URI != "/oauth2/sign_in?rd=%2Fx%3Fy" || seen.Header.Get("X-Auth-Request-Redirect") != "" {
		t.Errorf("the auth server saw %s with redirect %q", seen.URI, seen.Header.Get("X-Auth-Request-Redirect"))
	}
}

func testIdentity(t *testing.T, auth *fakeAuth) {
	auth.questions()
	header := spoofed()
	header.Set("Cookie", "session=good")
	seen := get(t, "https://secret.example.com/", header).seen(t)
	for i, want := range []string{"u1", "ada", "ada@example.com", "staff,ops", "token1"} {
		if got := strings.Join(seen.Header[identity[i]], "|"); got != want {
			t.Errorf("%s: %q, want %q", identity[i], got, want)
		}
	}
	wantForwarded(t, seen, "secret.example.com")

	// The question holds nothing of the client's that the answer is not
	// remembered by.
	asked := auth.questions()
	if len(asked) != 1 {
		t.Fatalf("asked %d times", len(asked))
	}
	question := asked[0]
	wantNoIdentity(t, question)
	if question.Host != "secret.example.com" || question.Header.Get("X-Forwarded-For") != outsideAddr {
		t.Errorf("the question: %+v", question)
	}
	for _, name := range []string{"X-Forwarded-Uri", "X-Auth-Request-Redirect", "Forwarded", "User-Agent"} {
		if got, sent := question.Header[name]; sent {
			t.Errorf("%s: %q reached the auth server", name, got)
		}
	}
}

func testAuthCache(t *testing.T, auth *fakeAuth) {
	bearer := http.Header{"Authorization": {"Bearer good"}}
	for _, test := range []struct {
		name   string
		host   string
		header http.Header
		status int
		asked  int
	}{
		{"yes again", "secret", cookie("session=good"), 200, 0},
		{"yes for another host", "secret2", cookie("session=good"), 200, 1},
		{"yes for another host again", "secret2", cookie("session=good"), 200, 0},
		{"more cookies", "secret2", cookie("session=good; theme=dark"), 302, 1},
		{"by authorization", "secret", bearer, 200, 1},
		{"by authorization again", "secret", bearer, 200, 0},
		{"no", "secret", cookie("session=bad"), 302, 1},
		{"no again", "secret", cookie("session=bad"), 302, 1},
		{"nobody", "secret", nil, 302, 1},
		{"nobody again", "secret", nil, 302, 1},
		{"forbidden", "secret2", cookie("session=stranger"), 403, 1},
		{"forbidden again", "secret2", cookie("session=stranger"), 403, 1},
		{"200", "secret2", cookie("session=other"), 200, 1},
		{"200 again", "secret2", cookie("session=other"), 200, 1},
	} {
		auth.questions()
		got := get(t, "https://"+test.host+".example.com/", test.header)
		if asked := len(auth.questions()); got.status != test.status || asked != test.asked {
			t.Errorf("%s: %d after %d questions, want %d after %d", test.name, got.status, asked, test.status, test.asked)
		}
	}
}

func testAuthSubtree(t *testing.T, auth *fakeAuth) {
	for _, uri := range []string{"/oauth2/start?rd=%2F", "/oauth2/callback?code=1&state=a%2Fb", "/oauth2/static/x.css", "/oauth2/sign_out"} {
		got := get(t, "https://secret.example.com"+uri, spoofed())
		seen := auth.lastOther()
		if got.status != 200 || seen.URI != uri {
			t.Errorf("%s: %d, the auth server saw %s", uri, got.status, seen.URI)
		}
		wantNoIdentity(t, seen)
		wantForwarded(t, seen, "secret.example.com")
	}
	// It belongs to the auth server only where there is one.
	if seen := get(t, "https://app.example.com/oauth2/x", nil).seen(t); seen.URI != "/oauth2/x" {
		t.Errorf("the container saw %s", seen.URI)
	}
}

func dialTLS(t *testing.T, host string) net.Conn {
	t.Helper()
	dialer := &net.Dialer{Timeout: 5 * time.Second}
	conn, err := tls.DialWithDialer(dialer, "tcp", outsideAddr+":443", &tls.Config{
		InsecureSkipVerify: true, ServerName: host, NextProtos: []string{"http/1.1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return conn
}
