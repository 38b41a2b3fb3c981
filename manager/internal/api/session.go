package api

import (
	"context"
	"errors"
	"net/http"

	"opensource.internal/manager/internal/auth"
)

// session says who is asking and what they may do.
type session struct {
	Name   string `json:"name" example:"ada"`
	Role   string `json:"role" enum:"admin,viewer,agent"`
	SiteID *int64 `json:"siteId" doc:"The one site of an agent key"`
}

func showSession(who auth.Principal) session {
	shown := session{Name: who.Name, Role: string(who.Role)}
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
