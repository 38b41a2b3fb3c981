package store_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/store"
	"opensource.internal/manager/internal/store/storetest"
)

func openAccess(t *testing.T) *store.Store {
	t.Helper()
	return storetest.Open(t)
}

func addKey(t *testing.T, s *store.Store, key store.APIKey) store.APIKey {
	t.Helper()
	key.Name, key.CreatedAt, key.Hash = "key "+key.Prefix, time.Now().UTC().Truncate(time.Millisecond), []byte("hash")
	if err := s.CreateAPIKey(t.Context(), &key); err != nil {
		t.Fatal(err)
	}
	return key
}

func addUser(t *testing.T, s *store.Store, name, role string) store.User {
	t.Helper()
	user := store.User{Name: name, Role: role, PasswordHash: "hash"}
	if err := s.CreateUser(t.Context(), &user); err != nil {
		t.Fatal(err)
	}
	return user
}

func TestAPIKeyIsStoredAndRevoked(t *testing.T) {
	s, ctx := openAccess(t), t.Context()
	site, err := s.CreateSite(ctx, inventory.Site{Name: "lab"})
	if err != nil {
		t.Fatal(err)
	}
	key := addKey(t, s, store.APIKey{Role: "agent", SiteID: &site.ID, Prefix: "a"})
	addKey(t, s, store.APIKey{Role: "admin", Prefix: "b"})

	got, err := s.GetAPIKey(ctx, key.ID)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(key, got); diff != "" {
		t.Error(diff)
	}
	for _, filter := range []store.APIKeyFilter{{SiteID: site.ID}, {Role: "agent"}} {
		if list, total, err := s.ListAPIKeys(ctx, filter, store.ListOptions{Sort: "-name"}); err != nil || total != 1 || list[0].ID != key.ID {
			t.Errorf("%+v: %v, %d, %v", filter, list, total, err)
		}
	}

	before, err := s.Versions(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.TouchAPIKeys(ctx, map[int64]time.Time{key.ID: time.Now()}); err != nil {
		t.Fatal(err)
	}
	if used, _ := s.GetAPIKey(ctx, key.ID); used.LastUsedAt == nil {
		t.Error("the use of the key is not stored")
	}
	if after, _ := s.Versions(ctx); after.Keys != before.Keys {
		t.Error("using a key counts as a change of keys")
	}
	revoked, err := s.RevokeAPIKey(ctx, key.ID)
	if err != nil || revoked.RevokedAt == nil {
		t.Fatalf("%+v, %v", revoked, err)
	}
	if after, _ := s.Versions(ctx); after.Keys == before.Keys {
		t.Error("revoking a key is no change of keys")
	}
	if again, err := s.RevokeAPIKey(ctx, key.ID); err != nil || !again.RevokedAt.Equal(*revoked.RevokedAt) {
		t.Errorf("revoking again: %+v, %v", again, err)
	}
	if _, err := s.RevokeAPIKey(ctx, 99); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("revoking no key: %v", err)
	}
}

func TestAgentKeyNeedsASite(t *testing.T) {
	s := openAccess(t)
	missing := int64(99)
	for _, site := range []*int64{nil, &missing} {
		key := store.APIKey{Name: "k", Role: "agent", SiteID: site, Prefix: "p", Hash: []byte("h"), CreatedAt: time.Now()}
		if err := s.CreateAPIKey(t.Context(), &key); err == nil {
			t.Errorf("site %v: stored", site)
		}
	}
}

func TestUserNamesAreUnique(t *testing.T) {
	s := openAccess(t)
	if has, err := s.HasUsers(t.Context()); err != nil || has {
		t.Errorf("fresh: %v, %v", has, err)
	}
	ada := addUser(t, s, "ada", "admin")
	var conflict *store.ConflictError
	if err := s.CreateUser(t.Context(), &store.User{Name: "ada", Role: "viewer", PasswordHash: "x"}); !errors.As(err, &conflict) || conflict.Field != "name" {
		t.Errorf("second ada: %v", err)
	}
	if has, err := s.HasUsers(t.Context()); err != nil || !has {
		t.Errorf("with ada: %v, %v", has, err)
	}
	if got, err := s.UserByName(t.Context(), "ada"); err != nil || got.ID != ada.ID {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := s.UserByName(t.Context(), "bob"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("bob: %v", err)
	}
	if list, total, err := s.ListUsers(t.Context(), store.ListOptions{Sort: "name"}); err != nil || total != 1 || list[0].Name != "ada" {
		t.Errorf("%v, %d, %v", list, total, err)
	}
}

func TestSessionsEnd(t *testing.T) {
	s, ctx, now := openAccess(t), t.Context(), time.Now().UTC()
	ada, eve := addUser(t, s, "ada", "admin"), addUser(t, s, "eve", "viewer")
	save := func(token string, user *int64, expiry time.Time) {
		t.Helper()
		if err := s.SaveSession(ctx, store.Session{Token: token, Data: []byte(token), Expiry: expiry, UserID: user}); err != nil {
			t.Fatal(err)
		}
	}
	alive := func(token string, at time.Time) bool {
		t.Helper()
		session, err := s.Session(ctx, token, at)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			t.Fatal(err)
		}
		return err == nil && session.Token == token
	}
	later := now.Add(time.Hour)
	save("one", &ada.ID, later)
	save("two", &ada.ID, later)
	save("eve", &eve.ID, later)
	save("guest", nil, later)
	save("one", &ada.ID, now.Add(2*time.Hour)) // again: replaced

	if !alive("one", later) || alive("two", later) || alive("nobody", now) {
		t.Error("expiry is not kept")
	}
	if err := s.DeleteSession(ctx, "two"); err != nil || alive("two", now) {
		t.Errorf("deleted session: %v", err)
	}
	if err := s.DeleteSession(ctx, "two"); err != nil {
		t.Errorf("no such session: %v", err)
	}
	if err := s.SetPassword(ctx, "ada", "new"); err != nil {
		t.Fatal(err)
	}
	if alive("one", now) || !alive("eve", now) || !alive("guest", now) {
		t.Error("a new password ends the sessions of that user, and of no other")
	}
	if err := s.SetPassword(ctx, "nobody", "new"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("password of nobody: %v", err)
	}
	if err := s.DeleteUser(ctx, eve.ID); err != nil || alive("eve", now) {
		t.Errorf("deleted user: %v", err)
	}
	if err := s.DeleteExpiredSessions(ctx, later); err != nil || alive("guest", now) {
		t.Errorf("expired: %v", err)
	}
}

func TestLastAdministratorStays(t *testing.T) {
	s := openAccess(t)
	ada, eve := addUser(t, s, "ada", "admin"), addUser(t, s, "eve", "viewer")
	var conflict *store.ConflictError
	if err := s.DeleteUser(t.Context(), ada.ID); !errors.As(err, &conflict) {
		t.Errorf("the last administrator: %v", err)
	}
	addUser(t, s, "bob", "admin")
	if err := s.DeleteUser(t.Context(), ada.ID); err != nil {
		t.Errorf("one of two: %v", err)
	}
	if err := s.DeleteUser(t.Context(), eve.ID); err != nil {
		t.Errorf("a viewer: %v", err)
	}
	if err := s.DeleteUser(t.Context(), eve.ID); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("nobody: %v", err)
	}
}
