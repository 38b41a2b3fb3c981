package api

import (
	"context"
	"time"

	"opensource.internal/manager/internal/store"
)

// auditEntry is something that somebody did.
type auditEntry struct {
	ID         int64        `json:"id" example:"17"`
	At         time.Time    `json:"at"`
	Actor      auditActor   `json:"actor"`
	Action     string       `json:"action" doc:"create, update, delete, or a better word where there is one" example:"update"`
	Resource   string       `json:"resource" doc:"The kind of record" example:"container"`
	ResourceID *int64       `json:"resourceId" doc:"The record may be gone" example:"4"`
	Name       *string      `json:"name" doc:"The record's name" example:"web"`
	SiteID     *int64       `json:"siteId" example:"1"`
	Before     store.Values `json:"before" nullable:"true" doc:"The values that changed, as they were; of a deleted record all. Never a secret"`
	After      store.Values `json:"after" nullable:"true" doc:"The values that changed, as they are; of a new record all that are set"`
	Times      int64        `json:"times" doc:"More than 1 only for failed sign-ins: those of one address to one account within a minute are one entry" example:"1"`
}

type auditActor struct {
	Kind      string  `json:"kind" enum:"user,key,command,agent,system,unknown"`
	ID        *int64  `json:"id" doc:"Of the user or the API key" example:"2"`
	Name      *string `json:"name" example:"ada"`
	Address   *string `json:"address" doc:"Where the request came from; null on the command line" example:"192.0.2.7"`
	RequestID *string `json:"requestId" doc:"The request's id in the manager's log" example:"5LPXSGKA-2f"`
}

func showAudit(e store.AuditEntry) auditEntry {
	return auditEntry{
		ID: e.ID, At: e.At.UTC(), Action: string(e.Action), Resource: e.Resource, ResourceID: id(e.ResourceID), Name: text(e.Name),
		SiteID: id(e.SiteID), Before: e.Before, After: e.After, Times: e.Times,
		Actor: auditActor{
			Kind: string(e.Actor.Kind), ID: id(e.Actor.ID), Name: text(e.Actor.Name),
			Address: text(e.Actor.Address), RequestID: text(e.Actor.RequestID),
		},
	}
}

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

func (a *API) listAudit(ctx context.Context, in *listAudit) (*page[auditEntry], error) {
	rows, total, err := a.store.ListAudit(ctx, store.AuditFilter{
		Actor: in.Actor, ActorKind: store.ActorKind(in.Kind), Action: store.Action(in.Action), Resource: in.Resource,
		ResourceID: in.ResourceID, SiteID: in.SiteID, Since: in.Since, Until: in.Until,
	}, in.options())
	if err != nil {
		return nil, err
	}
	return respondPage(rows, total, in.Paging, showAudit), nil
}
