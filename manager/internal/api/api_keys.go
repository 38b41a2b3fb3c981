package api

import (
	"context"
	"time"

	"opensource.internal/manager/internal/auth"
	"opensource.internal/manager/internal/store"
)

// APIKey is a key as it is listed: without its secret part.
type APIKey struct {
	ID         int64      `json:"id"`
	Name       string     `json:"name" example:"deploy"`
	Role       string     `json:"role" enum:"admin,viewer,agent" example:"agent"`
	SiteID     *int64     `json:"siteId"`
	Prefix     string     `json:"prefix"`
	CreatedAt  time.Time  `json:"createdAt"`
	CreatedBy  *string    `json:"createdBy"`
	LastUsedAt *time.Time `json:"lastUsedAt" doc:"Up to a minute old"`
	ExpiresAt  *time.Time `json:"expiresAt"`
	RevokedAt  *time.Time `json:"revokedAt"`
}

// newAPIKey is the one answer that shows the key itself.
type newAPIKey struct {
	APIKey
	Key string `json:"key" doc:"Shown only now"`
}

func showAPIKey(k store.APIKey) APIKey {
	return APIKey{
		ID: k.ID, Name: k.Name, Role: k.Role, SiteID: k.SiteID, Prefix: k.Prefix,
		CreatedAt: k.CreatedAt.UTC(), CreatedBy: text(k.CreatedBy), LastUsedAt: utc(k.LastUsedAt),
		ExpiresAt: utc(k.ExpiresAt), RevokedAt: utc(k.RevokedAt),
	}
}

type apiKeyCreate struct {
	Name   string       `json:"name" example:"deploy"`
	Role   string       `json:"role" enum:"admin,viewer,agent"`
	SiteID field[int64] `json:"siteId,omitempty" doc:"The one site of an agent key"`
}

type listAPIKeys struct {
	Paging
	SiteID int64  `query:"siteId" minimum:"1"`
	Role   string `query:"role" enum:"admin,viewer,agent"`
}

func (a *API) listAPIKeys(ctx context.Context, in *listAPIKeys) (*page[APIKey], error) {
	rows, total, err := a.store.ListAPIKeys(ctx, store.APIKeyFilter{SiteID: in.SiteID, Role: in.Role}, in.options())
	if err != nil {
		return nil, err
	}
	return respondPage(rows, total, in.Paging, showAPIKey), nil
}

func (a *API) createAPIKey(ctx context.Context, in *withBody[apiKeyCreate]) (*created[newAPIKey], error) {
	key, row, err := auth.CreateKey(ctx, a.store, auth.NewKey{
		Name: in.Body.Name, Role: auth.Role(in.Body.Role), SiteID: in.Body.SiteID.value, CreatedBy: principal(ctx).Name,
	})
	if err != nil {
		return nil, err
	}
	return &created[newAPIKey]{a.location("api-keys", row.ID), data[newAPIKey]{newAPIKey{showAPIKey(row), key}}}, nil
}

func (a *API) getAPIKey(ctx context.Context, in *ByID) (*answer[APIKey], error) {
	row, err := a.store.GetAPIKey(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return respond(showAPIKey(row)), nil
}

func (a *API) revokeAPIKey(ctx context.Context, in *ByID) (*empty, error) {
	_, err := a.store.RevokeAPIKey(ctx, in.ID)
	return nil, err
}
