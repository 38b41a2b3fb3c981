package api

import (
	"context"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/show"
	"opensource.internal/manager/internal/store"
)

type volume struct {
	ID            int64      `json:"id"`
	SiteID        int64      `json:"siteId"`
	ContainerID   int64      `json:"containerId"`
	Name          string     `json:"name" example:"data"`
	MountPath     string     `json:"mountPath"`
	Mode          string     `json:"mode"`
	HostPath      string     `json:"hostPath"`
	UID           int64      `json:"uid"`
	GID           int64      `json:"gid"`
	Status        string     `json:"status" enum:"pending,ready,failed"`
	StatusMessage *string    `json:"statusMessage"`
	ReportedAt    *time.Time `json:"reportedAt"`
	CreatedAt     time.Time  `json:"createdAt"`
	UpdatedAt     time.Time  `json:"updatedAt"`
}

func showVolume(v store.Volume) volume {
	return volume{
		ID: v.ID, SiteID: v.SiteID, ContainerID: v.ContainerID, Name: v.Name, MountPath: v.MountPath, Mode: v.Mode,
		HostPath: v.HostPath, UID: v.UID, GID: v.GID, Status: string(v.Status), StatusMessage: show.Text(v.StatusMessage),
		ReportedAt: show.UTC(v.ReportedAt), CreatedAt: v.CreatedAt.UTC(), UpdatedAt: v.UpdatedAt.UTC(),
	}
}

type volumePatch struct {
	Name      field[string] `json:"name,omitempty" example:"data"`
	MountPath field[string] `json:"mountPath,omitempty" example:"/var/lib/data"`
	Mode      field[string] `json:"mode,omitempty" doc:"rw or ro"`
}

func (b volumePatch) apply(v *inventory.Volume) error {
	b.Name.set(&v.Name)
	b.MountPath.set(&v.MountPath)
	b.Mode.set(&v.Mode)
	return nil
}

type volumeCreate volumePatch

// TransformSchema implements huma.SchemaTransformer.
func (volumeCreate) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	return require(s, "name", "mountPath", "mode")
}

type listVolumes struct {
	ByID
	Paging
	Status string `query:"status" enum:"pending,ready,failed"`
	Mode   string `query:"mode" enum:"rw,ro"`
}

func (a *API) listVolumes(ctx context.Context, in *listVolumes) (*page[volume], error) {
	if _, err := a.store.GetContainer(ctx, in.ID); err != nil {
		return nil, err
	}
	filter := store.VolumeFilter{ContainerID: in.ID, Status: store.VolumeStatus(in.Status), Mode: in.Mode}
	rows, total, err := a.store.ListVolumes(ctx, filter, in.options())
	if err != nil {
		return nil, err
	}
	return respondPage(rows, total, in.Paging, showVolume), nil
}

func (a *API) createVolume(ctx context.Context, in *toRecord[volumeCreate]) (*created[volume], error) {
	var wanted inventory.Volume
	if err := volumePatch(in.Body).apply(&wanted); err != nil {
		return nil, err
	}
	row, err := a.store.CreateVolume(ctx, in.ID, wanted)
	if err != nil {
		return nil, err
	}
	return &created[volume]{a.location("volumes", row.ID), data[volume]{showVolume(row)}}, nil
}

func (a *API) getVolume(ctx context.Context, in *ByID) (*answer[volume], error) {
	row, err := a.store.GetVolume(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return respond(showVolume(row)), nil
}

func (a *API) updateVolume(ctx context.Context, in *toRecord[volumePatch]) (*answer[volume], error) {
	row, err := a.store.UpdateVolume(ctx, in.ID, in.Body.apply)
	if err != nil {
		return nil, err
	}
	return respond(showVolume(row)), nil
}

func (a *API) deleteVolume(ctx context.Context, in *ByID) (*empty, error) {
	return nil, a.store.DeleteVolume(ctx, in.ID)
}
