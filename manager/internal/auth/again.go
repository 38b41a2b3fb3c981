package auth

import (
	"context"
	"fmt"
	"net/http"
)

// Again is Authenticate for a request that is being answered for long. What has
// been revoked, ended or changed meanwhile counts; a person whose role is
// another one has to ask anew.
func (a *Auth) Again(r *http.Request) (Principal, error) {
	cookie, err := r.Cookie(a.sessions.Cookie.Name)
	if _, sent := keyIn(r.Header); sent || err != nil {
		return a.Authenticate(r)
	}
	// A context without values: that of the request holds the session as it was.
	fresh, cancel := context.WithCancel(context.Background())
	defer cancel()
	defer context.AfterFunc(r.Context(), cancel)()
	fresh, err = a.sessions.Load(fresh, cookie.Value)
	if err != nil {
		return Principal{}, fmt.Errorf("read session anew: %w", err)
	}
	user, err := a.signedIn(fresh)
	if err != nil {
		return Principal{}, err
	}
	if user.Role != a.sessions.GetString(fresh, sessionRole) {
		return Principal{}, ErrUnauthorized
	}
	return person(user), nil
}
