package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/alexedwards/scs/v2"

	"opensource.internal/manager/internal/store"
)

// sessionLifetime is how long a person stays signed in.
const sessionLifetime = 24 * time.Hour

// What a session keeps of its user: the id, the epoch it belongs to, and the role
// at which it got its present id. Name and role are read with every request.
const (
	sessionUser  = "user"
	sessionEpoch = "epoch"
	sessionRole  = "role"
)

func newSessions(s *store.Store, secure bool, path string) *scs.SessionManager {
	sessions := scs.New()
	sessions.Lifetime = sessionLifetime
	sessions.HashTokenInStore = true // a copy of the database signs nobody in
	sessions.Store = sessionStore{s}
	sessions.Cookie.Name = "opensource_manager_session"
	if secure {
		// Browsers take the __Secure- prefix only with the Secure attribute.
		sessions.Cookie.Name = "__Secure-" + sessions.Cookie.Name
	}
	sessions.Cookie.HttpOnly = true
	sessions.Cookie.SameSite = http.SameSiteLaxMode
	sessions.Cookie.Secure = secure
	sessions.Cookie.Path = path + "/"
	return sessions
}

// sessionStore keeps the sessions of scs in our database.
type sessionStore struct{ store *store.Store }

// FindCtx implements scs.CtxStore.
func (s sessionStore) FindCtx(ctx context.Context, token string) ([]byte, bool, error) {
	session, err := s.store.Session(ctx, token, time.Now().UTC())
	if errors.Is(err, store.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("find session: %w", err)
	}
	return session.Data, true, nil
}

// CommitCtx implements scs.CtxStore. The user's id is stored beside the data,
// so that all sessions of a person can be ended.
func (s sessionStore) CommitCtx(ctx context.Context, token string, data []byte, expiry time.Time) error {
	session := store.Session{Token: token, Data: data, Expiry: expiry.UTC()}
	_, values, err := scs.GobCodec{}.Decode(data)
	if err != nil {
		return fmt.Errorf("decode session: %w", err)
	}
	if id, ok := values[sessionUser].(int64); ok {
		session.UserID = &id
	}
	return s.store.SaveSession(ctx, session)
}

// DeleteCtx implements scs.CtxStore.
func (s sessionStore) DeleteCtx(ctx context.Context, token string) error {
	return s.store.DeleteSession(ctx, token)
}

// Find, Commit and Delete are part of scs.Store; scs prefers those with a
// context.
func (s sessionStore) Find(token string) ([]byte, bool, error) {
	return s.FindCtx(context.Background(), token)
}

// Commit implements scs.Store.
func (s sessionStore) Commit(token string, data []byte, expiry time.Time) error {
	return s.CommitCtx(context.Background(), token, data, expiry)
}

// Delete implements scs.Store.
func (s sessionStore) Delete(token string) error { return s.DeleteCtx(context.Background(), token) }
