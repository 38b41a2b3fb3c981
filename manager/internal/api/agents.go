package api

import (
	"context"
	"time"

	"opensource.internal/manager/internal/show"
	"opensource.internal/manager/internal/store"
)

type listAgents struct {
	Paging
	SiteID   int64  `query:"siteId" minimum:"1"`
	Hostname string `query:"hostname"`
	Status   string `query:"status" enum:"online,late,offline" doc:"By what is stored, which may lag by five seconds"`
}

func (a *API) listAgents(ctx context.Context, in *listAgents) (*page[show.Agent], error) {
	filter := store.AgentFilter{SiteID: in.SiteID, Hostname: in.Hostname, Presence: store.Presence(in.Status)}
	rows, total, err := a.store.ListAgents(ctx, filter, in.options())
	if err != nil {
		return nil, err
	}
	pins, err := a.pins(ctx)
	if err != nil {
		return nil, err
	}
	return respondPage(rows, total, in.Paging, show.AgentOf(time.Now(), pins)), nil
}

func (a *API) getAgent(ctx context.Context, in *ByID) (*answer[show.Agent], error) {
	row, err := a.store.GetAgent(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	pins, err := a.pins(ctx)
	if err != nil {
		return nil, err
	}
	return respond(show.AgentOf(time.Now(), pins)(row)), nil
}

func (a *API) deleteAgent(ctx context.Context, in *ByID) (*empty, error) {
	return nil, a.store.DeleteAgent(ctx, in.ID)
}
