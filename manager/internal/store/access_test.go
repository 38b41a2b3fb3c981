package store_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
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
	setPassword := func(user int64, hash string) error {
		_, err := s.UpdateUser(ctx, user, func(u *store.User) error { u.PasswordHash = hash; return nil })
		return err
	}
	if err := setPassword(ada.ID, "new"); err != nil {
		t.Fatal(err)
	}
	if alive("one", now) || !alive("eve", now) || !alive("guest", now) {
		t.Error("a new password ends the sessions of that user, and of no other")
	}
	if err := setPassword(99, "new"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("password of nobody: %v", err)
	}
	if err := s.DeleteUser(ctx, eve.ID); err != nil || alive("eve", now) {
		t.Errorf("deleted user: %v", err)
	}
	if err := s.DeleteExpiredSessions(ctx, later); err != nil || alive("guest", now) {
		t.Errorf("expired: %v", err)
	}
}

// TestSuspensionEndsSessions: what was begun before does not come back, not even
// a session that was being stored meanwhile.
func TestSuspensionEndsSessions(t *testing.T) {
	s, ctx := openAccess(t), t.Context()
	addUser(t, s, "ada", "admin")
	eve := addUser(t, s, "eve", "viewer")
	session := store.Session{Token: "eve", Data: []byte("x"), Expiry: time.Now().Add(time.Hour), UserID: &eve.ID}
	if err := s.SaveSession(ctx, session); err != nil {
		t.Fatal(err)
	}
	epoch := eve.SessionEpoch
	at := time.Now().UTC().Truncate(time.Millisecond)
	for name, change := range map[string]func(*store.User) error{
		"disable": func(u *store.User) error { u.DisabledAt = &at; return nil },
		"enable":  func(u *store.User) error { u.DisabledAt = nil; return nil },
	} {
		if _, err := s.UpdateUser(ctx, eve.ID, change); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	if _, err := s.Session(ctx, "eve", time.Now()); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("session of a disabled user: %v", err)
	}
	if got, err := s.GetUser(ctx, eve.ID); err != nil || got.SessionEpoch != epoch+1 {
		t.Errorf("%+v, %v", got, err)
	}
	if err := s.EndSessions(ctx, eve.ID); err != nil {
		t.Error(err)
	}
	if got, _ := s.GetUser(ctx, eve.ID); got.SessionEpoch != epoch+2 {
		t.Errorf("%+v", got)
	}
	if err := s.EndSessions(ctx, 99); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("sessions of nobody: %v", err)
	}
}

func TestLastAdministratorStays(t *testing.T) {
	s, ctx := openAccess(t), t.Context()
	ada, eve := addUser(t, s, "ada", "admin"), addUser(t, s, "eve", "viewer")
	bob := addUser(t, s, "bob", "admin")
	at := time.Now().UTC().Truncate(time.Millisecond)
	disable := func(u *store.User) error { u.DisabledAt = &at; return nil }
	demote := func(u *store.User) error { u.Role = "viewer"; return nil }
	if _, err := s.UpdateUser(ctx, bob.ID, disable); err != nil {
		t.Fatalf("one of two administrators: %v", err)
	}
	var conflict *store.ConflictError
	for name, try := range map[string]func() error{
		"delete":  func() error { return s.DeleteUser(ctx, ada.ID) },
		"demote":  func() error { _, err := s.UpdateUser(ctx, ada.ID, demote); return err },
		"disable": func() error { _, err := s.UpdateUser(ctx, ada.ID, disable); return err },
	} {
		if err := try(); !errors.As(err, &conflict) {
			t.Errorf("%s the last administrator who can sign in: %v", name, err)
		}
	}
	if got, err := s.GetUser(ctx, ada.ID); err != nil || got.Role != "admin" || got.DisabledAt != nil {
		t.Errorf("%+v, %v", got, err)
	}
	addUser(t, s, "cyd", "admin")
	if err := s.DeleteUser(ctx, ada.ID); err != nil {
		t.Errorf("one of two: %v", err)
	}
	for _, id := range []int64{eve.ID, bob.ID} {
		if err := s.DeleteUser(ctx, id); err != nil {
			t.Errorf("user %d: %v", id, err)
		}
	}
	if err := s.DeleteUser(ctx, eve.ID); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("nobody: %v", err)
	}
}

// TestAdministratorsCannotDemoteEachOther: of any number at once, one stays.
func TestAdministratorsCannotDemoteEachOther(t *testing.T) {
	s := openAccess(t)
	var all []store.User
	for n := range 8 {
		all = append(all, addUser(t, s, fmt.Sprint("admin", n), "admin"))
	}
	var running sync.WaitGroup
	for _, user := range all {
		running.Go(func() {
			_, err := s.UpdateUser(t.Context(), user.ID, func(u *store.User) error { u.Role = "viewer"; return nil })
			if conflict := (*store.ConflictError)(nil); err != nil && !errors.As(err, &conflict) {
				t.Error(err)
			}
		})
	}
	running.Wait()
	admins := 0
	list, _, err := s.ListUsers(t.Context(), store.ListOptions{})
	for _, user := range list {
		if user.Role == "admin" {
			admins++
		}
	}
	if err != nil || admins != 1 {
		t.Errorf("%d administrators are left, %v", admins, err)
	}
}

func TestRotatedKeyWorksOnForAWhile(t *testing.T) {
	s, ctx := openAccess(t), t.Context()
	old := addKey(t, s, store.APIKey{Role: "admin", Prefix: "a"})
	until := time.Now().UTC().Truncate(time.Millisecond).Add(time.Hour)
	replace := func(old store.APIKey) (store.APIKey, error) {
		return store.APIKey{Name: old.Name, Role: old.Role, Prefix: old.Prefix + "2", Hash: []byte("h"), CreatedAt: until}, nil
	}
	next, err := s.RotateAPIKey(ctx, old.ID, until, replace)
	if err != nil || next.ID == old.ID || next.Name != old.Name {
		t.Fatalf("%+v, %v", next, err)
	}
	if got, err := s.GetAPIKey(ctx, old.ID); err != nil || got.ExpiresAt == nil || !got.ExpiresAt.Equal(until) {
		t.Errorf("the old one: %+v, %v", got, err)
	}
	if _, err := s.RotateAPIKey(ctx, next.ID, until.Add(-2*time.Hour), func(old store.APIKey) (store.APIKey, error) {
		return store.APIKey{Name: old.Name, Role: old.Role, Prefix: "b", Hash: []byte("h"), CreatedAt: until}, nil
	}); err != nil {
		t.Fatal(err)
	}
	var conflict *store.ConflictError
	if _, err := s.RotateAPIKey(ctx, next.ID, until, replace); !errors.As(err, &conflict) {
		t.Errorf("an expired key was rotated: %v", err)
	}
	if _, err := s.RotateAPIKey(ctx, 99, until, replace); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("no key: %v", err)
	}
	if list, total, err := s.ListAPIKeys(ctx, store.APIKeyFilter{}, store.ListOptions{}); err != nil || total != 3 {
		t.Errorf("%v, %v", list, err)
	}
}

// Only the provider knows whether one of its people still may come: an
// administrator of it counts while signed in.
func TestAdministratorsOfAProvider(t *testing.T) {
	s, ctx := openAccess(t), t.Context()
	ada := addUser(t, s, "ada", "admin")
	who := store.Identity{Issuer: "https://idp", Subject: "1", Name: "grace", Role: "admin", Provider: "IdP"}
	grace, err := s.AdmitIdentity(ctx, who)
	if err != nil {
		t.Fatal(err)
	}
	demote := func(u *store.User) error { u.Role = "viewer"; return nil }
	var conflict *store.ConflictError
	if _, err := s.UpdateUser(ctx, ada.ID, demote); !errors.As(err, &conflict) || !strings.Contains(err.Error(), "opensource-manager user create") {
		t.Errorf("grace is not signed in: %v", err)
	}
	session := store.Session{Token: "t", Data: []byte("x"), Expiry: time.Now().UTC().Add(time.Hour), UserID: &grace.ID}
	if err := s.SaveSession(ctx, session); err != nil {
		t.Fatal(err)
	}
	if _, err := s.UpdateUser(ctx, ada.ID, demote); err != nil {
		t.Errorf("grace is signed in: %v", err)
	}
	// The provider's word holds, even of the last one.
	who.Role = "viewer"
	if got, err := s.AdmitIdentity(ctx, who); err != nil || got.Role != "viewer" {
		t.Errorf("%+v, %v", got, err)
	}
}
