package api

import (
	"context"
	"errors"
	"net/http"

	"opensource.internal/manager/internal/auth"
	"opensource.internal/manager/internal/show"
	"opensource.internal/manager/internal/store"
)

// session says who is asking and what they may do.
type session struct {
	Name     string  `json:"name" example:"ada"`
	Role     string  `json:"role" enum:"admin,viewer,agent"`
	SiteID   *int64  `json:"siteId" doc:"The one site of an agent key"`
	Hostname *string `json:"hostname" doc:"The one host of an enrolled agent's key"`
}

func showSession(who auth.Principal) session {
	shown := session{Name: who.Name, Role: string(who.Role), Hostname: show.Text(who.Hostname)}
	if who.SiteID != 0 {
		shown.SiteID = &who.SiteID
	}
	return shown
}

type credentials struct {
	Name     string `json:"name" example:"ada" maxLength:"200"`
	Password string `json:"password" maxLength:"1024"`
}

func (a *API) signIn(ctx context.Context, in *withBody[credentials]) (*answer[session], error) {
	who, err := a.auth.SignIn(ctx, auth.RequestOf(ctx).Client, in.Body.Name, in.Body.Password)
	if errors.Is(err, auth.ErrUnauthorized) {
		return nil, &Error{Status: http.StatusUnauthorized, Code: "unauthorized", Message: "name or password is wrong", Header: errUnauthorized.Header}
	}
	if err != nil {
		return nil, err
	}
	return respond(showSession(who)), nil
}

func (a *API) whoAmI(ctx context.Context, _ *empty) (*answer[session], error) {
	return respond(showSession(principal(ctx))), nil
}

// signOut ends the session of a person; a key has none and stays valid.
func (a *API) signOut(ctx context.Context, _ *empty) (*empty, error) {
	return nil, a.auth.SignOut(ctx)
}

type passwordChange struct {
	CurrentPassword string `json:"currentPassword" maxLength:"1024"`
	NewPassword     string `json:"newPassword" doc:"10 characters or more"`
}

// changePassword is for a person: a key has no password.
func (a *API) changePassword(ctx context.Context, in *withBody[passwordChange]) (*empty, error) {
	if principal(ctx).Kind != store.ActorUser {
		return nil, &Error{Status: http.StatusForbidden, Code: "forbidden", Message: "an API key has no password: sign in, or PATCH the user"}
	}
	return nil, a.auth.ChangePassword(ctx, in.Body.CurrentPassword, in.Body.NewPassword)
}
