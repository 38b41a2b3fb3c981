package api

import (
	"context"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/show"
	"opensource.internal/manager/internal/store"
)

// service has the fields of its type; those of the other types are null.
type service struct {
	ID               int64     `json:"id"`
	SiteID           int64     `json:"siteId"`
	ContainerID      int64     `json:"containerId"`
	Type             string    `json:"type" example:"http"`
	InternalPort     int       `json:"internalPort"`
	ExternalHostname *string   `json:"externalHostname"`
	ExternalDomainID *int64    `json:"externalDomainId"`
	BackendProtocol  *string   `json:"backendProtocol"`
	AuthRequired     *bool     `json:"authRequired"`
	Protocol         *string   `json:"protocol"`
	ExternalPort     *int      `json:"externalPort"`
	RecordType       *string   `json:"recordType"`
	DNSName          *string   `json:"dnsName"`
	CreatedAt        time.Time `json:"createdAt"`
	UpdatedAt        time.Time `json:"updatedAt"`
}

func showService(s store.Service) service {
	shown := service{
		ID: s.ID, SiteID: s.SiteID, ContainerID: s.ContainerID, Type: string(s.Type), InternalPort: s.InternalPort,
		ExternalHostname: show.Text(s.ExternalHostname), ExternalDomainID: s.ExternalDomainID,
		BackendProtocol: show.Text(s.BackendProtocol), Protocol: show.Text(s.Protocol), ExternalPort: number(s.ExternalPort),
		RecordType: show.Text(s.RecordType), DNSName: show.Text(s.DNSName),
		CreatedAt: s.CreatedAt.UTC(), UpdatedAt: s.UpdatedAt.UTC(),
	}
	if s.Type == inventory.ServiceHTTP {
		shown.AuthRequired = &s.AuthRequired
	}
	return shown
}

type servicePatch struct {
	Type             field[string] `json:"type,omitempty" doc:"http, transport or dns; fixed once the service exists"`
	InternalPort     field[int]    `json:"internalPort,omitempty"`
	ExternalHostname field[string] `json:"externalHostname,omitempty" doc:"http: the labels before the domain"`
	ExternalDomainID field[int64]  `json:"externalDomainId,omitempty" doc:"http"`
	BackendProtocol  field[string] `json:"backendProtocol,omitempty" doc:"http: http or https"`
	AuthRequired     field[bool]   `json:"authRequired,omitempty" doc:"http"`
	Protocol         field[string] `json:"protocol,omitempty" doc:"transport: tcp or udp"`
	ExternalPort     field[int]    `json:"externalPort,omitempty" doc:"transport: allocated from the site's range if null"`
	RecordType       field[string] `json:"recordType,omitempty" doc:"dns: SRV"`
	DNSName          field[string] `json:"dnsName,omitempty" doc:"dns" example:"_sip._tcp"`
}

func (b servicePatch) apply(s *inventory.Service) error {
	if b.ExternalPort.present && !b.ExternalPort.null && b.ExternalPort.value == 0 {
		return invalidFields(map[string]string{"externalPort": "0 is not a port: 1 to 65535, or null for one of the site's range"})
	}
	b.InternalPort.set(&s.InternalPort)
	b.ExternalHostname.set(&s.ExternalHostname)
	b.ExternalDomainID.setPointer(&s.ExternalDomainID)
	b.BackendProtocol.set(&s.BackendProtocol)
	b.AuthRequired.set(&s.AuthRequired)
	b.Protocol.set(&s.Protocol)
	b.ExternalPort.set(&s.ExternalPort)
	b.RecordType.set(&s.RecordType)
	b.DNSName.set(&s.DNSName)
	return b.checkType(s)
}

// checkType sets the type of a new service and refuses to change it later:
// nearly every other field would lose its meaning.
func (b servicePatch) checkType(s *inventory.Service) error {
	wanted := inventory.ServiceType(b.Type.value)
	if b.Type.present && s.Type != "" && wanted != s.Type {
		return invalidFields(map[string]string{"type": "the type of a service cannot be changed: delete it and create another"})
	}
	if s.Type == "" {
		s.Type = wanted
	}
	return nil
}

type serviceCreate servicePatch

// TransformSchema implements huma.SchemaTransformer.
func (serviceCreate) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	return require(s, "type", "internalPort")
}

type listServices struct {
	ByID
	Paging
	Type     string `query:"type" enum:"http,transport,dns"`
	DomainID int64  `query:"externalDomainId" minimum:"1"`
}

func (a *API) listServices(ctx context.Context, in *listServices) (*page[service], error) {
	if _, err := a.store.GetContainer(ctx, in.ID); err != nil {
		return nil, err
	}
	filter := store.ServiceFilter{ContainerID: in.ID, Type: inventory.ServiceType(in.Type), DomainID: in.DomainID}
	rows, total, err := a.store.ListServices(ctx, filter, in.options())
	if err != nil {
		return nil, err
	}
	return respondPage(rows, total, in.Paging, showService), nil
}

func (a *API) createService(ctx context.Context, in *toRecord[serviceCreate]) (*created[service], error) {
	var wanted inventory.Service
	if err := servicePatch(in.Body).apply(&wanted); err != nil {
		return nil, err
	}
	row, err := a.store.CreateService(ctx, in.ID, wanted)
	if err != nil {
		return nil, err
	}
	return &created[service]{a.location("services", row.ID), data[service]{showService(row)}}, nil
}

func (a *API) getService(ctx context.Context, in *ByID) (*answer[service], error) {
	row, err := a.store.GetService(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return respond(showService(row)), nil
}

func (a *API) updateService(ctx context.Context, in *toRecord[servicePatch]) (*answer[service], error) {
	row, err := a.store.UpdateService(ctx, in.ID, in.Body.apply)
	if err != nil {
		return nil, err
	}
	return respond(showService(row)), nil
}

func (a *API) deleteService(ctx context.Context, in *ByID) (*empty, error) {
	return nil, a.store.DeleteService(ctx, in.ID)
}
