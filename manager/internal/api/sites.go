package api

import (
	"context"

	"github.com/danielgtaylor/huma/v2"

	"opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/show"
	"opensource.internal/manager/internal/store"
)

type sitePatch struct {
	Name           field[string] `json:"name,omitempty" example:"lab"`
	InternalDomain field[string] `json:"internalDomain,omitempty" example:"lab.internal"`
	DHCPRange      field[string] `json:"dhcpRange,omitempty" example:"192.0.2.100,192.0.2.200"`
	SubnetMask     field[string] `json:"subnetMask,omitempty" example:"255.255.255.0"`
	Gateway        field[string] `json:"gateway,omitempty" example:"192.0.2.1"`
	DNSForwarders  field[string] `json:"dnsForwarders,omitempty" example:"9.9.9.9,1.1.1.1"`
	ExternalIP     field[string] `json:"externalIp,omitempty"`
	VolumesRoot    field[string] `json:"volumesRoot,omitempty" doc:"Folder that is bind-mounted into the agent; the default if null"`
	PortRange      field[string] `json:"portRange,omitempty" example:"2000-2999"`
	Publishing     field[string] `json:"publishing,omitempty" doc:"auto: agents get every change with their next check-in; manual: changes wait until they are published; auto if null"`
}

func (b sitePatch) apply(s *inventory.Site) error {
	b.Name.set(&s.Name)
	b.InternalDomain.set(&s.InternalDomain)
	b.DHCPRange.set(&s.DHCPRange)
	b.SubnetMask.set(&s.SubnetMask)
	b.Gateway.set(&s.Gateway)
	b.DNSForwarders.set(&s.DNSForwarders)
	b.ExternalIP.set(&s.ExternalIP)
	b.VolumesRoot.set(&s.VolumesRoot)
	b.PortRange.set(&s.PortRange)
	b.Publishing.set(&s.Publishing)
	return nil
}

type siteCreate sitePatch

// TransformSchema implements huma.SchemaTransformer.
func (siteCreate) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	return require(s, "name")
}

type listSites struct {
	Paging
	Name string `query:"name"`
}

func (a *API) listSites(ctx context.Context, in *listSites) (*page[show.Site], error) {
	rows, total, err := a.store.ListSites(ctx, store.SiteFilter{Name: in.Name}, in.options())
	if err != nil {
		return nil, err
	}
	pins, err := a.pins(ctx)
	if err != nil {
		return nil, err
	}
	return respondPage(rows, total, in.Paging, func(s store.Site) show.Site { return show.SiteOf(s, pins[s.ID]) }), nil
}

func (a *API) createSite(ctx context.Context, in *withBody[siteCreate]) (*created[show.Site], error) {
	var wanted inventory.Site
	if err := sitePatch(in.Body).apply(&wanted); err != nil {
		return nil, err
	}
	row, err := a.snapshots.CreateSite(ctx, wanted)
	if err != nil {
		return nil, err
	}
	return &created[show.Site]{a.location("sites", row.ID), data[show.Site]{show.SiteOf(row, nil)}}, nil
}

func (a *API) getSite(ctx context.Context, in *ByID) (*answer[show.Site], error) {
	row, err := a.store.GetSite(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return a.respondSite(ctx, row)
}

func (a *API) updateSite(ctx context.Context, in *toRecord[sitePatch]) (*answer[show.Site], error) {
	row, err := a.snapshots.UpdateSite(ctx, in.ID, in.Body.Publishing.value == inventory.PublishManual, in.Body.apply)
	if err != nil {
		return nil, err
	}
	return a.respondSite(ctx, row)
}

// respondSite answers with a site and its pin.
func (a *API) respondSite(ctx context.Context, row store.Site) (*answer[show.Site], error) {
	pinned, err := a.store.GetPin(ctx, row.ID)
	if err != nil {
		return nil, err
	}
	return respond(show.SiteOf(row, show.PinOf(pinned))), nil
}

func (a *API) deleteSite(ctx context.Context, in *cascading) (*empty, error) {
	return nil, a.store.DeleteSite(ctx, in.ID, in.Cascade)
}
