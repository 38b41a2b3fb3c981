package api

import (
	"context"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/show"
	"opensource.internal/manager/internal/store"
)

type node struct {
	ID          int64     `json:"id"`
	SiteID      int64     `json:"siteId"`
	Name        string    `json:"name" example:"pve1"`
	IPv4Address *string   `json:"ipv4Address" example:"192.0.2.10"`
	Type        string    `json:"type" example:"proxmox"`
	CreatedAt   time.Time `json:"createdAt"`
	UpdatedAt   time.Time `json:"updatedAt"`
}

func showNode(n store.Node) node {
	return node{
		ID: n.ID, SiteID: n.SiteID, Name: n.Name, IPv4Address: show.Text(n.IPv4Address), Type: n.Type,
		CreatedAt: n.CreatedAt.UTC(), UpdatedAt: n.UpdatedAt.UTC(),
	}
}

type nodePatch struct {
	Name        field[string] `json:"name,omitempty" example:"pve1"`
	IPv4Address field[string] `json:"ipv4Address,omitempty" example:"192.0.2.10"`
	Type        field[string] `json:"type,omitempty" example:"proxmox" doc:"proxmox, or none for a host that is only listed"`
}

func (b nodePatch) apply(n *inventory.Node) error {
	b.Name.set(&n.Name)
	b.IPv4Address.set(&n.IPv4Address)
	b.Type.set(&n.Type)
	return nil
}

type nodeCreate nodePatch

// TransformSchema implements huma.SchemaTransformer.
func (nodeCreate) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	return require(s, "name")
}

type listNodes struct {
	ByID
	Paging
	Name string `query:"name"`
	Type string `query:"type" enum:"proxmox,none"`
}

func (a *API) listNodes(ctx context.Context, in *listNodes) (*page[node], error) {
	if _, err := a.store.GetSite(ctx, in.ID); err != nil {
		return nil, err
	}
	rows, total, err := a.store.ListNodes(ctx, store.NodeFilter{SiteID: in.ID, Name: in.Name, Type: in.Type}, in.options())
	if err != nil {
		return nil, err
	}
	return respondPage(rows, total, in.Paging, showNode), nil
}

func (a *API) createNode(ctx context.Context, in *toRecord[nodeCreate]) (*created[node], error) {
	var wanted inventory.Node
	if err := nodePatch(in.Body).apply(&wanted); err != nil {
		return nil, err
	}
	row, err := a.store.CreateNode(ctx, in.ID, wanted)
	if err != nil {
		return nil, err
	}
	return &created[node]{a.location("nodes", row.ID), data[node]{showNode(row)}}, nil
}

func (a *API) getNode(ctx context.Context, in *ByID) (*answer[node], error) {
	row, err := a.store.GetNode(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return respond(showNode(row)), nil
}

func (a *API) updateNode(ctx context.Context, in *toRecord[nodePatch]) (*answer[node], error) {
	row, err := a.store.UpdateNode(ctx, in.ID, in.Body.apply)
	if err != nil {
		return nil, err
	}
	return respond(showNode(row)), nil
}

func (a *API) deleteNode(ctx context.Context, in *cascading) (*empty, error) {
	return nil, a.store.DeleteNode(ctx, in.ID, in.Cascade)
}
