package api

import (
	"context"
	"time"

	"opensource.internal/manager/internal/show"
	"opensource.internal/manager/internal/store"
)

type listAudit struct {
	Paging
	Actor      string    `query:"actor" maxLength:"200" doc:"Name of who did it" example:"ada"`
	Kind       string    `query:"kind" enum:"user,key,command,agent,system,unknown" doc:"What sort of somebody did it"`
	Action     string    `query:"action" maxLength:"64" example:"delete"`
	Resource   string    `query:"resource" maxLength:"64" example:"container"`
	ResourceID int64     `query:"id" minimum:"1" doc:"The record's id; goes with resource"`
	SiteID     int64     `query:"siteId" minimum:"1"`
	Since      time.Time `query:"since" doc:"Not before this moment"`
	Until      time.Time `query:"until" doc:"Before this moment"`
}

func (a *API) listAudit(ctx context.Context, in *listAudit) (*page[show.AuditEntry], error) {
	rows, total, err := a.store.ListAudit(ctx, store.AuditFilter{
		Actor: in.Actor, ActorKind: store.ActorKind(in.Kind), Action: store.Action(in.Action), Resource: in.Resource,
		ResourceID: in.ResourceID, SiteID: in.SiteID, Since: in.Since, Until: in.Until,
	}, in.options())
	if err != nil {
		return nil, err
	}
	return respondPage(rows, total, in.Paging, show.AuditOf), nil
}
