package api

import (
	"context"
	"time"

	"opensource.internal/manager/internal/auth"
	"opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/store"
)

// APIKey is a key as it is listed: without its secret part.
type APIKey struct {
	ID         int64      `json:"id"`
	Name       string     `json:"name" example:"deploy"`
	Role       string     `json:"role" enum:"admin,viewer,agent" example:"agent"`
	SiteID     *int64     `json:"siteId"`
	Hostname   *string    `json:"hostname" doc:"The one host that may check in with the key of an enrolled agent"`
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
		ID: k.ID, Name: k.Name, Role: k.Role, SiteID: k.SiteID, Hostname: text(k.Hostname), Prefix: k.Prefix,
		CreatedAt: k.CreatedAt.UTC(), CreatedBy: text(k.CreatedBy), LastUsedAt: utc(k.LastUsedAt),
		ExpiresAt: utc(k.ExpiresAt), RevokedAt: utc(k.RevokedAt),
	}
}

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

// defaultOverlap leaves a day to put a rotated key where it is used.
const defaultOverlap = 24 * time.Hour

type listAPIKeys struct {
	Paging
	SiteID int64  `query:"siteId" minimum:"1"`
	Role   string `query:"role" enum:"admin,viewer,agent"`

	Hostname string `query:"hostname" doc:"Of an enrolled agent's key"`
}

func (a *API) listAPIKeys(ctx context.Context, in *listAPIKeys) (*page[APIKey], error) {
	rows, total, err := a.store.ListAPIKeys(ctx, store.APIKeyFilter{SiteID: in.SiteID, Role: in.Role, Hostname: in.Hostname}, in.options())
	if err != nil {
		return nil, err
	}
	return respondPage(rows, total, in.Paging, showAPIKey), nil
}

func (a *API) createAPIKey(ctx context.Context, in *withBody[apiKeyCreate]) (*created[newAPIKey], error) {
	wanted := auth.NewKey{Name: in.Body.Name, Role: auth.Role(in.Body.Role), SiteID: in.Body.SiteID.value, CreatedBy: principal(ctx).Name}
	in.Body.ExpiresAt.setPointer(&wanted.ExpiresAt)
	key, row, err := auth.CreateKey(ctx, a.store, wanted)
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

func (a *API) updateAPIKey(ctx context.Context, in *toRecord[apiKeyPatch]) (*answer[APIKey], error) {
	change := auth.KeyChange{Name: in.Body.Name}
	if in.Body.ExpiresAt.present {
		var end *time.Time
		in.Body.ExpiresAt.setPointer(&end)
		change.ExpiresAt = &end
	}
	row, err := auth.ChangeKey(ctx, a.store, in.ID, change)
	if err != nil {
		return nil, err
	}
	return respond(showAPIKey(row)), nil
}

func (a *API) rotateAPIKey(ctx context.Context, in *apiKeyRotate) (*created[newAPIKey], error) {
	overlap := defaultOverlap
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
	return &created[newAPIKey]{a.location("api-keys", row.ID), data[newAPIKey]{newAPIKey{showAPIKey(row), key}}}, nil
}

func (a *API) revokeAPIKey(ctx context.Context, in *ByID) (*empty, error) {
	_, err := a.store.RevokeAPIKey(ctx, in.ID)
	return nil, err
}
