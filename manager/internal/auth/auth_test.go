package auth

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/store"
)

// openStore opens a database; opened again by path it is another process's.
func openStore(t testing.TB, path string) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), path, store.Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func newTestAuth(t testing.TB, s *store.Store, now func() time.Time) *Auth {
	t.Helper()
	return New(Options{Store: s, Log: slog.New(slog.NewTextHandler(io.Discard, nil)), LoopbackSite: 1, Now: now})
}

func withSite(t testing.TB, s *store.Store) int64 {
	t.Helper()
	site, err := s.CreateSite(t.Context(), inventory.Site{Name: rndName()})
	if err != nil {
		t.Fatal(err)
	}
	return site.ID
}

func rndName() string { return "site-" + strings.ToLower(GeneratePassword()) }

func makeKey(t testing.TB, s *store.Store, wanted NewKey) (string, store.APIKey) {
	t.Helper()
	wanted.Name = "test"
	key, row, err := CreateKey(t.Context(), s, wanted)
	if err != nil {
		t.Fatal(err)
	}
	return key, row
}

func request(peer string, header ...string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/api/v1/agents", nil)
	r.RemoteAddr = peer
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	return r
}

// authorize looks at the database first, as the check-in does.
func (a *Auth) authorize(r *http.Request, siteID int64) error {
	return a.AuthorizeCheckIn(r, siteID, a.keys.versions(r.Context()))
}

const outside = "203.0.113.9:5000"

func TestWhatCountsAsAKey(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "manager.db"))
	a := newTestAuth(t, s, time.Now)
	key, row := makeKey(t, s, NewKey{Role: RoleViewer})
	other, _ := makeKey(t, s, NewKey{Role: RoleAdmin})
	last := "0"
	if strings.HasSuffix(key, "0") {
		last = "1"
	}
	refused := map[string]*http.Request{
		"none":                   request(outside),
		"wrong last character":   request(outside, "X-Api-Key", key[:len(key)-1]+last),
		"unknown prefix":         request(outside, "X-Api-Key", "osk_0000000000000000_"+key[21:]),
		"prefix of another":      request(outside, "X-Api-Key", other[:21]+key[21:]),
		"only the prefix":        request(outside, "X-Api-Key", row.Prefix),
		"empty":                  request(outside, "Authorization", "Bearer "),
		"empty x-api-key":        request(outside, "X-Api-Key", ""),
		"10 kB":                  request(outside, "X-Api-Key", strings.Repeat("k", 10<<10)),
		"key and more":           request(outside, "X-Api-Key", key+"a"),
		"upper case":             request(outside, "X-Api-Key", strings.ToUpper(key)),
		"basic":                  request(outside, "Authorization", "Basic "+key),
		"no scheme":              request(outside, "Authorization", key),
		"two Authorization":      request(outside, "Authorization", "Bearer "+key, "Authorization", "Bearer "+key),
		"Authorization and more": request(outside, "Authorization", "Bearer "+key, "X-Api-Key", key),
		"two x-api-key":          request(outside, "X-Api-Key", key, "X-Api-Key", key),
	}
	inQuery := request(outside)
	inQuery.URL.RawQuery = "api_key=" + key + "&x-api-key=" + key + "&access_token=" + key
	refused["in the query"] = inQuery
	for name, r := range refused {
		if who, err := a.Authenticate(r); err != ErrUnauthorized {
			t.Errorf("%s: %+v, %v", name, who, err)
		}
	}
	for name, r := range map[string]*http.Request{
		"bearer": request(outside, "Authorization", "bearer "+key), "Bearer": request(outside, "Authorization", "Bearer "+key),
		"BEARER": request(outside, "Authorization", "BEARER  "+key), "x-api-key": request(outside, "x-api-key", key),
	} {
		who, err := a.Authenticate(r)
		if err != nil || who.Role != RoleViewer || who.KeyID != row.ID {
			t.Errorf("%s: %+v, %v", name, who, err)
		}
	}
}

func TestOnlyTheDigestIsStored(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "manager.db"))
	key, row := makeKey(t, s, NewKey{Role: RoleAdmin})
	stored, err := s.GetAPIKey(t.Context(), row.ID)
	if err != nil || len(stored.Hash) != 32 {
		t.Fatalf("%+v, %v", stored, err)
	}
	secret := key[len(keyMark)+prefixLength+1:]
	if len(secret)*4 < 256 || strings.Contains(string(stored.Hash)+stored.Prefix+stored.Name, secret) {
		t.Errorf("key %s, stored %+v", key, stored)
	}
}

func TestKeyRevokedByAnotherProcessFailsAtTheNextRequest(t *testing.T) {
	path := filepath.Join(t.TempDir(), "manager.db")
	serving, commandLine := openStore(t, path), openStore(t, path)
	a := newTestAuth(t, serving, time.Now)
	key, row := makeKey(t, commandLine, NewKey{Role: RoleAdmin})
	if _, err := a.Authenticate(request(outside, "X-Api-Key", key)); err != nil {
		t.Fatalf("a key made by another process: %v", err)
	}
	if _, err := commandLine.RevokeAPIKey(t.Context(), row.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Authenticate(request(outside, "X-Api-Key", key)); err != ErrUnauthorized {
		t.Errorf("a revoked key: %v", err)
	}
}

func TestExpiredKey(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "manager.db"))
	now := time.Now()
	a := newTestAuth(t, s, func() time.Time { return now })
	key, prefix, sum := newKey()
	expires := now.Add(time.Hour)
	if err := s.CreateAPIKey(t.Context(), &store.APIKey{Name: "k", Role: "admin", Prefix: prefix, Hash: sum[:], CreatedAt: now, ExpiresAt: &expires}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Authenticate(request(outside, "X-Api-Key", key)); err != nil {
		t.Errorf("before: %v", err)
	}
	now = now.Add(2 * time.Hour)
	if _, err := a.Authenticate(request(outside, "X-Api-Key", key)); err != ErrUnauthorized {
		t.Errorf("after: %v", err)
	}
}

func TestLastUseIsStoredWithTheNextFlush(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "manager.db"))
	a := newTestAuth(t, s, time.Now)
	key, row := makeKey(t, s, NewKey{Role: RoleAdmin})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { a.Run(ctx); close(done) }()
	if _, err := a.Authenticate(request(outside, "X-Api-Key", key)); err != nil {
		t.Fatal(err)
	}
	if stored, _ := s.GetAPIKey(t.Context(), row.ID); stored.LastUsedAt != nil {
		t.Error("a request wrote")
	}
	stop()
	<-done
	stored, err := s.GetAPIKey(t.Context(), row.ID)
	if err != nil || stored.LastUsedAt == nil || time.Since(*stored.LastUsedAt) > time.Minute {
		t.Errorf("%+v, %v", stored, err)
	}
}

func TestWhoMayCheckIn(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "manager.db"))
	a := newTestAuth(t, s, time.Now)
	first, second := withSite(t, s), withSite(t, s)
	agent, _ := makeKey(t, s, NewKey{Role: RoleAgent, SiteID: second})
	admin, _ := makeKey(t, s, NewKey{Role: RoleAdmin})
	viewer, _ := makeKey(t, s, NewKey{Role: RoleViewer})
	for _, test := range []struct {
		name string
		r    *http.Request
		site int64
		want error
	}{
		{"agent, own site", request(outside, "X-Api-Key", agent), second, nil},
		{"agent, another site", request(outside, "X-Api-Key", agent), first, ErrForbidden},
		{"agent, no site", request(outside, "X-Api-Key", agent), 99, ErrForbidden},
		{"admin, any site", request(outside, "X-Api-Key", admin), second, nil},
		{"viewer", request(outside, "X-Api-Key", viewer), first, ErrForbidden},
		{"nothing", request(outside), first, ErrUnauthorized},
		{"bad key over loopback", request("127.0.0.1:1", "X-Api-Key", "wrong"), first, ErrUnauthorized},
		{"loopback", request("127.0.0.1:1"), first, nil},
		{"loopback IPv6", request("[::1]:1"), first, nil},
		{"loopback, mapped", request("[::ffff:127.0.0.1]:1"), first, nil},
		{"loopback, another site", request("127.0.0.1:1"), second, ErrUnauthorized},
		{"forged header from outside", request(outside, "X-Forwarded-For", "127.0.0.1"), first, ErrUnauthorized},
		{"forged X-Real-IP from outside", request(outside, "X-Real-IP", "::1"), first, ErrUnauthorized},
		{"through a proxy on this host", request("127.0.0.1:1", "X-Forwarded-For", "203.0.113.9"), first, ErrUnauthorized},
		{"claiming to be loopback through a proxy", request("127.0.0.1:1", "X-Forwarded-For", "127.0.0.1"), first, ErrUnauthorized},
		{"empty header", request("127.0.0.1:1", "X-Forwarded-For", ""), first, ErrUnauthorized},
		{"Forwarded", request("127.0.0.1:1", "Forwarded", "for=127.0.0.1"), first, ErrUnauthorized},
		{"X-Forwarded-Proto", request("127.0.0.1:1", "X-Forwarded-Proto", "https"), first, ErrUnauthorized},
		{"X-Forwarded-Anything", request("127.0.0.1:1", "x-forwarded-anything", "1"), first, ErrUnauthorized},
		{"X_Forwarded_For", request("127.0.0.1:1", "X_Forwarded_For", "127.0.0.1"), first, ErrUnauthorized},
		{"X-Real-IP", request("127.0.0.1:1", "X-Real-IP", "127.0.0.1"), first, ErrUnauthorized},
		{"Via", request("127.0.0.1:1", "Via", "1.1 proxy"), first, ErrUnauthorized},
	} {
		if err := a.authorize(test.r, test.site); err != test.want {
			t.Errorf("%s: %v, want %v", test.name, err, test.want)
		}
	}
}

func TestTrustInLoopbackEndsWithTheFirstAgentKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "manager.db")
	s, commandLine := openStore(t, path), openStore(t, path)
	a := newTestAuth(t, s, time.Now)
	site := withSite(t, s)
	loopback := request("127.0.0.1:1")
	if err := a.authorize(loopback, site); err != nil {
		t.Fatalf("fresh manager: %v", err)
	}
	makeKey(t, s, NewKey{Role: RoleAdmin})
	if err := a.authorize(loopback, site); err != nil {
		t.Errorf("an admin key ended it: %v", err)
	}
	_, row := makeKey(t, commandLine, NewKey{Role: RoleAgent, SiteID: site})
	if err := a.authorize(loopback, site); err != ErrUnauthorized {
		t.Errorf("after the first agent key: %v", err)
	}
	if _, err := commandLine.RevokeAPIKey(t.Context(), row.ID); err != nil {
		t.Fatal(err)
	}
	if err := a.authorize(loopback, site); err != ErrUnauthorized {
		t.Errorf("revoking the key brought it back: %v", err)
	}
}

func TestTrustInLoopbackIsSwitchedOff(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "manager.db"))
	a := New(Options{Store: s, LoopbackSite: 0})
	for _, site := range []int64{0, 1} {
		if err := a.authorize(request("127.0.0.1:1"), site); err != ErrUnauthorized {
			t.Errorf("site %d: %v", site, err)
		}
	}
}

func TestClientAddress(t *testing.T) {
	proxies := Proxies{netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("2001:db8::/32")}
	for _, test := range []struct {
		name    string
		trusted Proxies
		peer    string
		headers []string
		want    string
	}{
		{"no proxy is trusted", nil, "198.51.100.1:1", []string{"X-Forwarded-For", "127.0.0.1", "X-Real-IP", "::1"}, "198.51.100.1"},
		{"peer is no proxy", proxies, outside, []string{"X-Forwarded-For", "127.0.0.1"}, "203.0.113.9"},
		{"through a proxy", proxies, "198.51.100.1:1", []string{"X-Forwarded-For", "203.0.113.7"}, "203.0.113.7"},
		{"the client forged hops", proxies, "198.51.100.1:1", []string{"X-Forwarded-For", "127.0.0.1, 203.0.113.7"}, "203.0.113.7"},
		{"two proxies", proxies, "198.51.100.1:1", []string{"X-Forwarded-For", "127.0.0.1, 203.0.113.7, 198.51.100.2"}, "203.0.113.7"},
		{"two headers", proxies, "198.51.100.1:1", []string{"X-Forwarded-For", "127.0.0.1", "X-Forwarded-For", "203.0.113.7"}, "203.0.113.7"},
		{"junk", proxies, "198.51.100.1:1", []string{"X-Forwarded-For", "203.0.113.7, unknown"}, "198.51.100.1"},
		{"only proxies", proxies, "198.51.100.1:1", []string{"X-Forwarded-For", "198.51.100.9"}, "198.51.100.9"},
		{"no header", proxies, "198.51.100.1:1", nil, "198.51.100.1"},
		{"X-Real-IP is never believed", proxies, "198.51.100.1:1", []string{"X-Real-IP", "203.0.113.7"}, "198.51.100.1"},
		{"IPv6", proxies, "[2001:db8::1]:1", []string{"X-Forwarded-For", "2001:db9::7"}, "2001:db9::7"},
	} {
		if got := test.trusted.Client(request(test.peer, test.headers...)); got != netip.MustParseAddr(test.want) {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}

func TestLimiterCountsPerAddress(t *testing.T) {
	now := time.Now()
	l := newLimiter(func() time.Time { return now })
	address := netip.MustParseAddr("203.0.113.9")
	for n := range signInBurst {
		if wait, ok := l.allow(address); !ok {
			t.Fatalf("attempt %d has to wait %s", n, wait)
		}
	}
	wait, ok := l.allow(address)
	if ok || wait <= 0 || wait > signInInterval {
		t.Errorf("wait %s, %v", wait, ok)
	}
	if _, ok := l.allow(netip.MustParseAddr("203.0.113.10")); !ok {
		t.Error("another address has to wait, too")
	}
	now = now.Add(signInInterval)
	if _, ok := l.allow(address); !ok {
		t.Error("it never ends")
	}
	first, second := netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::2")
	for range signInBurst {
		l.allow(first)
	}
	if _, ok := l.allow(second); ok {
		t.Error("an IPv6 client has 2^64 addresses to try from")
	}
}

func TestLimiterMemoryIsBounded(t *testing.T) {
	now := time.Now()
	l := newLimiter(func() time.Time { return now })
	address := netip.MustParseAddr("10.0.0.0")
	for range maxAddresses + 100 {
		address = address.Next()
		l.allow(address)
	}
	if len(l.buckets) > maxAddresses {
		t.Errorf("%d addresses are remembered", len(l.buckets))
	}
}

func TestPasswords(t *testing.T) {
	hash, err := HashPassword("correct horse battery")
	if err != nil || !strings.HasPrefix(hash, "$argon2id$") {
		t.Fatalf("%q, %v", hash, err)
	}
	p := newPasswords()
	for _, test := range []struct {
		password, hash string
		want           bool
	}{
		{"correct horse battery", hash, true},
		{"correct horse batterY", hash, false},
		{"", hash, false},
		{strings.Repeat("x", maxPasswordBytes+1), hash, false},
		{"correct horse battery", "", false},
		{"", "", false},
	} {
		if got, err := p.check(t.Context(), test.password, test.hash); err != nil || got != test.want {
			t.Errorf("check(%.20q, %.20q) = %v, %v", test.password, test.hash, got, err)
		}
	}
	for _, refused := range []string{"", "short", "nine char", strings.Repeat("x", maxPasswordBytes+1)} {
		if _, err := HashPassword(refused); err == nil {
			t.Errorf("%.20q was accepted", refused)
		}
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	full := passwords{slots: make(chan struct{})}
	if _, err := full.check(cancelled, "x", hash); err == nil {
		t.Error("a check waits for ever")
	}
	if a, b := GeneratePassword(), GeneratePassword(); a == b || len(a) < 20 {
		t.Errorf("generated %q, %q", a, b)
	}
}

func TestKeysHoldWhileTheDatabaseIsAway(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "manager.db"))
	site := withSite(t, s)
	key, _ := makeKey(t, s, NewKey{Role: RoleAgent, SiteID: site})
	r := request(outside, "X-Api-Key", key)
	fresh, running := newTestAuth(t, s, time.Now), newTestAuth(t, s, time.Now)
	if err := running.authorize(r, site); err != nil {
		t.Fatal(err)
	}
	if err := running.AuthorizeCheckIn(r, site, nil); err != nil {
		t.Errorf("a known key: %v", err)
	}
	if err := running.AuthorizeCheckIn(request(outside, "X-Api-Key", "wrong"), site, nil); err != ErrUnauthorized {
		t.Errorf("a wrong key: %v", err)
	}
	if err := fresh.AuthorizeCheckIn(r, site, nil); err != ErrUnavailable {
		t.Errorf("before anything was read: %v", err)
	}
}

func BenchmarkKeyCheck(b *testing.B) {
	s := openStore(b, filepath.Join(b.TempDir(), "manager.db"))
	site := withSite(b, s)
	key, _ := makeKey(b, s, NewKey{Role: RoleAgent, SiteID: site})
	a := newTestAuth(b, s, time.Now)
	r := request(outside, "Authorization", "Bearer "+key)
	for b.Loop() {
		if err := a.authorize(r, site); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkVersions(b *testing.B) {
	s := openStore(b, filepath.Join(b.TempDir(), "manager.db"))
	for b.Loop() {
		if _, err := s.Versions(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
