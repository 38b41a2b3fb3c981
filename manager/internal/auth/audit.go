package auth

import (
	"context"

	"opensource.internal/manager/internal/store"
)

// audit keeps what a person did about their session.
func (a *Auth) audit(ctx context.Context, action store.Action, user store.User) error {
	of := store.Subject{Resource: "session", ID: user.ID, Name: user.Name}
	return a.store.Audit(AsActor(ctx, person(user)), action, of, nil)
}

// auditRefused keeps that somebody could not sign in as a user; one without an
// id if there is no such user. That it cannot be kept changes nothing for them.
func (a *Auth) auditRefused(ctx context.Context, user store.User) {
	nobody := Principal{Kind: store.ActorUnknown}
	of := store.Subject{Resource: "session", ID: user.ID, Name: user.Name}
	if err := a.store.AuditFailedSignIn(AsActor(ctx, nobody), of); err != nil {
		a.log.Error("a failed sign-in is not in the audit log", "err", err)
	}
}
