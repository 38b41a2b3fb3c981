package api

import (
	"context"

	"opensource.internal/manager/internal/auth"
	"opensource.internal/manager/internal/show"
	"opensource.internal/manager/internal/store"
)

type userCreate struct {
	Name     string `json:"name" example:"ada"`
	Role     string `json:"role" enum:"admin,viewer"`
	Password string `json:"password" doc:"10 characters or more"`
}

type userPatch struct {
	Name     *string `json:"name,omitempty"`
	Role     *string `json:"role,omitempty" enum:"admin,viewer" doc:"Holds from the person's next request on"`
	Disabled *bool   `json:"disabled,omitempty" doc:"A disabled person cannot sign in, and is signed out everywhere"`
	Password *string `json:"password,omitempty" doc:"A new password for somebody else: their sessions end"`
}

func (a *API) listUsers(ctx context.Context, in *Paging) (*page[show.User], error) {
	rows, total, err := a.store.ListUsers(ctx, in.options())
	if err != nil {
		return nil, err
	}
	return respondPage(rows, total, *in, show.UserOf), nil
}

func (a *API) createUser(ctx context.Context, in *withBody[userCreate]) (*created[show.User], error) {
	row, err := auth.CreateUser(ctx, a.store, in.Body.Name, auth.Role(in.Body.Role), in.Body.Password)
	if err != nil {
		return nil, err
	}
	return &created[show.User]{a.location("users", row.ID), data[show.User]{show.UserOf(row)}}, nil
}

func (a *API) getUser(ctx context.Context, in *ByID) (*answer[show.User], error) {
	row, err := a.store.GetUser(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return respond(show.UserOf(row)), nil
}

func (a *API) updateUser(ctx context.Context, in *toRecord[userPatch]) (*answer[show.User], error) {
	if who := principal(ctx); in.Body.Password != nil && who.Kind == store.ActorUser && who.ID == in.ID {
		return nil, invalidFields(map[string]string{"password": "your own password is changed by POST /session/password, with the present one"})
	}
	row, err := auth.ChangeUser(ctx, a.store, in.ID, auth.UserChange{
		Name: in.Body.Name, Role: (*auth.Role)(in.Body.Role), Disabled: in.Body.Disabled, Password: in.Body.Password,
	})
	if err != nil {
		return nil, err
	}
	return respond(show.UserOf(row)), nil
}

// endSessions takes no browser's word for it: the sessions are gone.
func (a *API) endSessions(ctx context.Context, in *ByID) (*empty, error) {
	return nil, a.store.EndSessions(ctx, in.ID)
}

func (a *API) deleteUser(ctx context.Context, in *ByID) (*empty, error) {
	return nil, a.store.DeleteUser(ctx, in.ID)
}
