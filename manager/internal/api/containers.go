package api

import (
	"context"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/show"
	"opensource.internal/manager/internal/store"
)

type container struct {
	ID          int64     `json:"id"`
	SiteID      int64     `json:"siteId"`
	NodeID      int64     `json:"nodeId"`
	Hostname    string    `json:"hostname"`
	Owner       *string   `json:"owner"`
	IPv4Address *string   `json:"ipv4Address"`
	MACAddress  *string   `json:"macAddress"`
	CreatedAt   time.Time `json:"createdAt"`
	UpdatedAt   time.Time `json:"updatedAt"`
}

func showContainer(c store.Container) container {
	return container{
		ID: c.ID, SiteID: c.SiteID, NodeID: c.NodeID, Hostname: c.Hostname, Owner: show.Text(c.Owner),
		IPv4Address: show.Text(c.IPv4Address), MACAddress: show.Text(c.MACAddress),
		CreatedAt: c.CreatedAt.UTC(), UpdatedAt: c.UpdatedAt.UTC(),
	}
}

type containerPatch struct {
	NodeID      field[int64]  `json:"nodeId,omitempty"`
	Hostname    field[string] `json:"hostname,omitempty"`
	Owner       field[string] `json:"owner,omitempty"`
	IPv4Address field[string] `json:"ipv4Address,omitempty"`
	MACAddress  field[string] `json:"macAddress,omitempty"`
}

func (b containerPatch) apply(c *inventory.Container) error {
	b.NodeID.set(&c.NodeID)
	b.Hostname.set(&c.Hostname)
	b.Owner.set(&c.Owner)
	b.IPv4Address.set(&c.IPv4Address)
	b.MACAddress.set(&c.MACAddress)
	return nil
}

type containerCreate containerPatch

// TransformSchema implements huma.SchemaTransformer.
func (containerCreate) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	return require(s, "nodeId", "hostname")
}

type listContainers struct {
	ByID
	Paging
	NodeID   int64  `query:"nodeId" minimum:"1"`
	Hostname string `query:"hostname"`
	Owner    string `query:"owner"`
	Address  string `query:"ipv4Address"`
	MAC      string `query:"macAddress"`
}

func (a *API) listContainers(ctx context.Context, in *listContainers) (*page[container], error) {
	if _, err := a.store.GetSite(ctx, in.ID); err != nil {
		return nil, err
	}
	filter := store.ContainerFilter{SiteID: in.ID, NodeID: in.NodeID, Hostname: in.Hostname, Owner: in.Owner, Address: in.Address, MAC: in.MAC}
	rows, total, err := a.store.ListContainers(ctx, filter, in.options())
	if err != nil {
		return nil, err
	}
	return respondPage(rows, total, in.Paging, showContainer), nil
}

func (a *API) createContainer(ctx context.Context, in *toRecord[containerCreate]) (*created[container], error) {
	var wanted inventory.Container
	if err := containerPatch(in.Body).apply(&wanted); err != nil {
		return nil, err
	}
	row, err := a.store.CreateContainer(ctx, in.ID, wanted)
	if err != nil {
		return nil, err
	}
	return &created[container]{a.location("containers", row.ID), data[container]{showContainer(row)}}, nil
}

func (a *API) getContainer(ctx context.Context, in *ByID) (*answer[container], error) {
	row, err := a.store.GetContainer(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return respond(showContainer(row)), nil
}

func (a *API) updateContainer(ctx context.Context, in *toRecord[containerPatch]) (*answer[container], error) {
	row, err := a.store.UpdateContainer(ctx, in.ID, in.Body.apply)
	if err != nil {
		return nil, err
	}
	return respond(showContainer(row)), nil
}

func (a *API) deleteContainer(ctx context.Context, in *cascading) (*empty, error) {
	return nil, a.store.DeleteContainer(ctx, in.ID, in.Cascade)
}
