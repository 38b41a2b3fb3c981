package auth

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"opensource.internal/manager/internal/store"
)

// Person is who is signed in. The context must come through Sessions. What a
// person may do is read with every request, and when it has changed, the session
// gets a new id.
func (a *Auth) Person(ctx context.Context) (Principal, error) {
	user, err := a.signedIn(ctx)
	if err != nil {
		return Principal{}, err
	}
	if user.Role != a.sessions.GetString(ctx, sessionRole) {
		if err := a.begin(ctx, user); err != nil {
			return Principal{}, err
		}
	}
	who := person(user)
	RequestOf(ctx).note(store.Actor{Kind: who.Kind, ID: who.ID, Name: who.Name})
	return who, nil
}

// signedIn is the user of a session that has not been ended.
func (a *Auth) signedIn(ctx context.Context) (store.User, error) {
	id := a.sessions.GetInt64(ctx, sessionUser)
	if id == 0 {
		return store.User{}, ErrUnauthorized
	}
	user, err := a.store.GetUser(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return store.User{}, ErrUnauthorized
	}
	if err != nil {
		return store.User{}, fmt.Errorf("read signed-in user: %w", err)
	}
	if user.DisabledAt != nil || user.SessionEpoch != a.sessions.GetInt64(ctx, sessionEpoch) {
		return store.User{}, ErrUnauthorized
	}
	return user, nil
}

func person(user store.User) Principal {
	return Principal{Role: Role(user.Role), Name: user.Name, Kind: store.ActorUser, ID: user.ID}
}

// begin starts a session of a user, with a new id: one that was planted before,
// or seen by somebody, is worth nothing afterwards.
func (a *Auth) begin(ctx context.Context, user store.User) error {
	if err := a.sessions.RenewToken(ctx); err != nil {
		return fmt.Errorf("renew session: %w", err)
	}
	a.sessions.Put(ctx, sessionUser, user.ID)
	a.sessions.Put(ctx, sessionEpoch, user.SessionEpoch)
	a.sessions.Put(ctx, sessionRole, user.Role)
	return nil
}

// SignIn checks a password and starts a session.
func (a *Auth) SignIn(ctx context.Context, client netip.Addr, name, password string) (Principal, error) {
	user, err := a.store.UserByName(ctx, FoldName(name))
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return Principal{}, fmt.Errorf("sign in: %w", err)
	}
	if err := a.try(ctx, client, FoldName(name), user, password); err != nil {
		return Principal{}, err
	}
	if err := errors.Join(a.audit(ctx, store.ActionSignIn, user), a.begin(ctx, user)); err != nil {
		return Principal{}, fmt.Errorf("sign in: %w", err)
	}
	a.rememberDevice(ctx, user)
	a.log.Info("signed in", "user", user.Name, "client", client)
	return person(user), nil
}

// try checks a password that is claimed to be a user's, or nobody's. A disabled
// user's is not looked at.
func (a *Auth) try(ctx context.Context, client netip.Addr, name string, user store.User, password string) error {
	return a.attempt(ctx, a.limits(ctx, client, name, user), func() (right bool, err error) {
		hash := user.PasswordHash
		if user.DisabledAt != nil {
			hash = ""
		}
		right, err = a.passwords.check(ctx, password, hash)
		if err == nil && !right {
			a.log.Warn("sign-in refused", "client", client)
			a.auditRefused(ctx, user)
		}
		return right, err
	})
}

// attempt checks what somebody claims to know, as fast as the failures before
// allow.
func (a *Auth) attempt(ctx context.Context, limits []limit, check func() (right bool, err error)) error {
	end, slow, ok := a.limiter.begin(limits...)
	if !ok {
		return &TooManyError{Wait: slowLane}
	}
	right := false
	defer func() { end(right) }()
	if slow {
		if err := a.wait(ctx, slowLane); err != nil {
			return fmt.Errorf("sign in: %w", err)
		}
	}
	var err error
	if right, err = check(); err != nil {
		return fmt.Errorf("sign in: %w", err)
	}
	switch {
	case right:
		return nil
	case slow:
		return &TooManyError{Wait: slowLane}
	}
	return ErrUnauthorized
}

// limits are the counts that a sign-in is part of.
func (a *Auth) limits(ctx context.Context, client netip.Addr, name string, user store.User) []limit {
	if device, known := a.device(ctx, user); known {
		return []limit{{"device " + device, perDevice}}
	}
	if len(name) > maxName {
		name = "" // nobody's
	}
	from := network(client).String()
	return []limit{
		{"sign-in " + from + " " + name, perPair},
		{"sign-in " + from, perNetwork},
		{"sign-in as " + name, perName},
	}
}

// maxName is longer than any name, in bytes.
const maxName = 400

// ChangePassword gives the person who is signed in another password, if they
// know the present one. It ends their other sessions and renews this one.
func (a *Auth) ChangePassword(ctx context.Context, present, next string) error {
	who, err := a.Person(ctx)
	if err != nil {
		return err
	}
	user, err := a.store.GetUser(ctx, who.ID)
	if err != nil {
		return fmt.Errorf("change password: %w", err)
	}
	if !user.Local() {
		return &FieldError{"currentPassword", errNoPassword}
	}
	err = a.try(ctx, RequestOf(ctx).Client, user.Name, user, present)
	if errors.Is(err, ErrUnauthorized) {
		return &FieldError{"currentPassword", errors.New("this is not the present password")}
	}
	if err != nil {
		return err
	}
	hash, err := hashPassword(next)
	if err != nil {
		return &FieldError{"newPassword", err}
	}
	changed, err := a.store.UpdateUser(ctx, user.ID, func(u *store.User) error {
		if u.PasswordHash != user.PasswordHash {
			return &FieldError{"currentPassword", errors.New("it was changed a moment ago")}
		}
		u.PasswordHash = hash
		return nil
	})
	if err != nil {
		return fmt.Errorf("change password: %w", err)
	}
	if err := a.begin(ctx, changed); err != nil {
		return fmt.Errorf("change password: %w", err)
	}
	a.rememberDevice(ctx, changed)
	return nil
}

var errNoPassword = errors.New("this person signs in with a provider and has no password here")

// SignOut ends the session on the server.
func (a *Auth) SignOut(ctx context.Context) error {
	user, err := a.store.GetUser(ctx, a.sessions.GetInt64(ctx, sessionUser))
	if err := a.sessions.Destroy(ctx); err != nil {
		return fmt.Errorf("sign out: %w", err)
	}
	if errors.Is(err, store.ErrNotFound) {
		return nil // nobody was signed in
	}
	if err == nil {
		err = a.audit(ctx, store.ActionSignOut, user)
	}
	if err != nil {
		return fmt.Errorf("sign out: %w", err)
	}
	return nil
}

// sleep waits, or until the context ends.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
