package api

import (
	"context"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/show"
	"opensource.internal/manager/internal/store"
)

type externalDomain struct {
	ID            int64     `json:"id"`
	Name          string    `json:"name" example:"example.com"`
	AuthServer    *string   `json:"authServer"`
	DefaultSiteID *int64    `json:"defaultSiteId"`
	CreatedAt     time.Time `json:"createdAt"`
	UpdatedAt     time.Time `json:"updatedAt"`
}

func showExternalDomain(d store.ExternalDomain) externalDomain {
	return externalDomain{
		ID: d.ID, Name: d.Name, AuthServer: show.Text(d.AuthServer), DefaultSiteID: d.DefaultSiteID,
		CreatedAt: d.CreatedAt.UTC(), UpdatedAt: d.UpdatedAt.UTC(),
	}
}

type externalDomainPatch struct {
	Name          field[string] `json:"name,omitempty" example:"example.com"`
	AuthServer    field[string] `json:"authServer,omitempty" doc:"Base URL of an oauth2-proxy"`
	DefaultSiteID field[int64]  `json:"defaultSiteId,omitempty" doc:"Site that answers for the bare domain"`
}

func (b externalDomainPatch) apply(d *inventory.ExternalDomain) error {
	b.Name.set(&d.Name)
	b.AuthServer.set(&d.AuthServer)
	b.DefaultSiteID.setPointer(&d.DefaultSiteID)
	return nil
}

type externalDomainCreate externalDomainPatch

// TransformSchema implements huma.SchemaTransformer.
func (externalDomainCreate) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	return require(s, "name")
}

type listExternalDomains struct {
	Paging
	Name          string `query:"name"`
	DefaultSiteID int64  `query:"defaultSiteId" minimum:"1"`
}

func (a *API) listExternalDomains(ctx context.Context, in *listExternalDomains) (*page[externalDomain], error) {
	filter := store.ExternalDomainFilter{Name: in.Name, DefaultSiteID: in.DefaultSiteID}
	rows, total, err := a.store.ListExternalDomains(ctx, filter, in.options())
	if err != nil {
		return nil, err
	}
	return respondPage(rows, total, in.Paging, showExternalDomain), nil
}

func (a *API) createExternalDomain(ctx context.Context, in *withBody[externalDomainCreate]) (*created[externalDomain], error) {
	var wanted inventory.ExternalDomain
	if err := externalDomainPatch(in.Body).apply(&wanted); err != nil {
		return nil, err
	}
	row, err := a.store.CreateExternalDomain(ctx, wanted)
	if err != nil {
		return nil, err
	}
	return &created[externalDomain]{a.location("external-domains", row.ID), data[externalDomain]{showExternalDomain(row)}}, nil
}

func (a *API) getExternalDomain(ctx context.Context, in *ByID) (*answer[externalDomain], error) {
	row, err := a.store.GetExternalDomain(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return respond(showExternalDomain(row)), nil
}

func (a *API) updateExternalDomain(ctx context.Context, in *toRecord[externalDomainPatch]) (*answer[externalDomain], error) {
	row, err := a.store.UpdateExternalDomain(ctx, in.ID, in.Body.apply)
	if err != nil {
		return nil, err
	}
	return respond(showExternalDomain(row)), nil
}

func (a *API) deleteExternalDomain(ctx context.Context, in *cascading) (*empty, error) {
	return nil, a.store.DeleteExternalDomain(ctx, in.ID, in.Cascade)
}
