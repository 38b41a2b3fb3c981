package api

import (
	"context"
	"time"

	"opensource.internal/manager/internal/auth"
	"opensource.internal/manager/internal/store"
)

type user struct {
	ID        int64     `json:"id"`
	Name      string    `json:"name" example:"ada"`
	Role      string    `json:"role" enum:"admin,viewer"`
	CreatedAt time.Time `json:"createdAt"`
	UpdatedAt time.Time `json:"updatedAt"`
}

func showUser(u store.User) user {
	return user{ID: u.ID, Name: u.Name, Role: u.Role, CreatedAt: u.CreatedAt.UTC(), UpdatedAt: u.UpdatedAt.UTC()}
}

type userCreate struct {
	Name     string `json:"name" example:"ada"`
	Role     string `json:"role" enum:"admin,viewer"`
	Password string `json:"password" doc:"10 characters or more"`
}

func (a *API) listUsers(ctx context.Context, in *Paging) (*page[user], error) {
	rows, total, err := a.store.ListUsers(ctx, in.options())
	if err != nil {
		return nil, err
	}
	return respondPage(rows, total, *in, showUser), nil
}

func (a *API) createUser(ctx context.Context, in *withBody[userCreate]) (*created[user], error) {
	row, err := auth.CreateUser(ctx, a.store, in.Body.Name, auth.Role(in.Body.Role), in.Body.Password)
	if err != nil {
		return nil, err
	}
	return &created[user]{a.location("users", row.ID), data[user]{showUser(row)}}, nil
}

func (a *API) getUser(ctx context.Context, in *ByID) (*answer[user], error) {
	row, err := a.store.GetUser(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return respond(showUser(row)), nil
}

func (a *API) deleteUser(ctx context.Context, in *ByID) (*empty, error) {
	return nil, a.store.DeleteUser(ctx, in.ID)
}
