package api

import (
	"context"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"opensource.internal/manager/internal/show"
	"opensource.internal/manager/internal/store"
)

// auditAction and auditResource are what to filter by.
type (
	auditAction   store.Action
	auditResource string
)

// Schema implements huma.SchemaProvider: one of the actions that there are.
func (auditAction) Schema(huma.Registry) *huma.Schema { return oneOf(store.Actions()) }

// Schema implements huma.SchemaProvider: one of the kinds of records that there are.
func (auditResource) Schema(huma.Registry) *huma.Schema { return oneOf(store.Resources()) }

// oneOf is a text that is one of some.
func oneOf[Text ~string](all []Text) *huma.Schema {
	schema := &huma.Schema{Type: huma.TypeString}
	for _, one := range all {
		schema.Enum = append(schema.Enum, string(one))
	}
	return schema
}

type listAudit struct {
	Paging
	Actor      string        `query:"actor" maxLength:"200" doc:"Name of who did it" example:"ada"`
	Kind       string        `query:"kind" enum:"user,key,command,agent,system,unknown" doc:"What sort of somebody did it"`
	Action     auditAction   `query:"action" example:"delete"`
	Resource   auditResource `query:"resource" example:"container"`
	ResourceID int64         `query:"id" minimum:"1" doc:"The record's id; goes with resource"`
	SiteID     int64         `query:"siteId" minimum:"1"`
	Since      time.Time     `query:"since" doc:"Not before this moment"`
	Until      time.Time     `query:"until" doc:"Before this moment"`
}

func (a *API) listAudit(ctx context.Context, in *listAudit) (*page[show.AuditEntry], error) {
	rows, total, err := a.store.ListAudit(ctx, store.AuditFilter{
		Actor: in.Actor, ActorKind: store.ActorKind(in.Kind), Action: store.Action(in.Action), Resource: string(in.Resource),
		ResourceID: in.ResourceID, SiteID: in.SiteID, Since: in.Since, Until: in.Until,
	}, in.options())
	if err != nil {
		return nil, err
	}
	return respondPage(rows, total, in.Paging, show.AuditOf), nil
}
