package api

import (
	"context"
	"time"

	"opensource.internal/manager/internal/auth"
	"opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/show"
	"opensource.internal/manager/internal/store"
)

type apiKeyCreate struct {
	Name   string       `json:"name" example:"deploy"`
	Role   string       `json:"role" enum:"admin,viewer,agent"`
	SiteID field[int64] `json:"siteId,omitempty" doc:"The one site of an agent key"`

	ExpiresAt field[time.Time] `json:"expiresAt,omitempty" doc:"When the key stops to work; never if null"`
}

type apiKeyPatch struct {
	Name      *string          `json:"name,omitempty"`
	ExpiresAt field[time.Time] `json:"expiresAt,omitempty" doc:"When the key stops to work; null for never"`
}

type apiKeyRotate struct {
	ByID
	Body *struct {
		Overlap *string `json:"overlap,omitempty" doc:"How long the old key works on: up to 30d, 24h if not given" example:"24h"`
	}
}

type listAPIKeys struct {
	Paging
	SiteID int64  `query:"siteId" minimum:"1"`
	Role   string `query:"role" enum:"admin,viewer,agent"`

	Hostname string `query:"hostname" doc:"Of an enrolled agent's key"`
}

func (a *API) listAPIKeys(ctx context.Context, in *listAPIKeys) (*page[show.APIKey], error) {
	rows, total, err := a.store.ListAPIKeys(ctx, store.APIKeyFilter{SiteID: in.SiteID, Role: in.Role, Hostname: in.Hostname}, in.options())
	if err != nil {
		return nil, err
	}
	return respondPage(rows, total, in.Paging, show.APIKeyOf), nil
}

func (a *API) createAPIKey(ctx context.Context, in *withBody[apiKeyCreate]) (*created[show.NewAPIKey], error) {
	wanted := auth.NewKey{Name: in.Body.Name, Role: auth.Role(in.Body.Role), SiteID: in.Body.SiteID.value, CreatedBy: principal(ctx).Name}
	in.Body.ExpiresAt.setPointer(&wanted.ExpiresAt)
	key, row, err := auth.CreateKey(ctx, a.store, wanted)
	if err != nil {
		return nil, err
	}
	return &created[show.NewAPIKey]{a.location("api-keys", row.ID), data[show.NewAPIKey]{show.NewAPIKey{APIKey: show.APIKeyOf(row), Key: key}}}, nil
}

func (a *API) getAPIKey(ctx context.Context, in *ByID) (*answer[show.APIKey], error) {
	row, err := a.store.GetAPIKey(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return respond(show.APIKeyOf(row)), nil
}

func (a *API) updateAPIKey(ctx context.Context, in *toRecord[apiKeyPatch]) (*answer[show.APIKey], error) {
	change := auth.KeyChange{Name: in.Body.Name}
	if in.Body.ExpiresAt.present {
		var end *time.Time
		in.Body.ExpiresAt.setPointer(&end)
		change.ExpiresAt = &end
	}
	row, err := auth.ChangeKey(ctx, a.store, in.ID, func(store.APIKey) (auth.KeyChange, error) { return change, nil })
	if err != nil {
		return nil, err
	}
	return respond(show.APIKeyOf(row)), nil
}

func (a *API) rotateAPIKey(ctx context.Context, in *apiKeyRotate) (*created[show.NewAPIKey], error) {
	overlap := auth.DefaultOverlap
	if in.Body != nil && in.Body.Overlap != nil {
		var err error
		if overlap, err = inventory.ParseDuration(*in.Body.Overlap); err != nil {
			return nil, invalidFields(map[string]string{"overlap": err.Error()})
		}
	}
	key, row, err := auth.RotateKey(ctx, a.store, in.ID, overlap, principal(ctx).Name)
	if err != nil {
		return nil, err
	}
	return &created[show.NewAPIKey]{a.location("api-keys", row.ID), data[show.NewAPIKey]{show.NewAPIKey{APIKey: show.APIKeyOf(row), Key: key}}}, nil
}

func (a *API) revokeAPIKey(ctx context.Context, in *ByID) (*empty, error) {
	_, err := a.store.RevokeAPIKey(ctx, in.ID)
	return nil, err
}
