package auth

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/store"
	"opensource.internal/manager/internal/store/storetest"
)

// openStore opens a database; opened again it is another process's.
func openStore(t testing.TB, database store.Database) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), database, store.Options{Migrate: true})
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
	return a.AuthorizeCheckIn(r, CheckIn{SiteID: siteID, Hostname: "gateway"}, a.keys.versions(r.Context()))
}

const outside = "203.0.113.9:5000"

func TestWhatCountsAsAKey(t *testing.T) {
	s := openStore(t, storetest.Database(t))
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
		if err != nil || who.Role != RoleViewer || who.Name != row.Name {
			t.Errorf("%s: %+v, %v", name, who, err)
		}
	}
}

func TestOnlyTheDigestIsStored(t *testing.T) {
	s := openStore(t, storetest.Database(t))
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
	database := storetest.Database(t)
	serving, commandLine := openStore(t, database), openStore(t, database)
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
	s := openStore(t, storetest.Database(t))
	now := time.Now()
	a := newTestAuth(t, s, func() time.Time { return now })
	key, prefix, sum := newKey(keyMark)
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
	s := openStore(t, storetest.Database(t))
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

func BenchmarkKeyCheck(b *testing.B) {
	s := openStore(b, storetest.Database(b))
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
	s := openStore(b, storetest.Database(b))
	for b.Loop() {
		if _, err := s.Versions(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
