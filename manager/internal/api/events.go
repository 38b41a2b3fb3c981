package api

import (
	"context"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"opensource.internal/manager/internal/events"
	"opensource.internal/manager/internal/show"
	"opensource.internal/manager/internal/store"
)

// EventFilter are the filters of every list of events.
type EventFilter struct {
	Paging
	Kind     eventKind `query:"kind"`
	Severity string    `query:"severity" enum:"info,warning,error"`
	Since    time.Time `query:"since" doc:"Not before this moment"`
	Until    time.Time `query:"until" doc:"Before this moment"`
}

// eventKind is a kind of event to filter by.
type eventKind events.Kind

// Schema implements huma.SchemaProvider: one of the kinds that there are.
func (eventKind) Schema(huma.Registry) *huma.Schema { return oneOf(events.Kinds()) }

func (f EventFilter) filter() store.EventFilter {
	return store.EventFilter{Kind: events.Kind(f.Kind), Severity: events.Severity(f.Severity), Since: f.Since, Until: f.Until}
}

type listEvents struct {
	SiteID  int64 `query:"siteId" minimum:"1"`
	AgentID int64 `query:"agentId" minimum:"1"`
	EventFilter
}

func (a *API) listEvents(ctx context.Context, in *listEvents) (*page[show.Event], error) {
	filter := in.filter()
	filter.SiteID, filter.AgentID = in.SiteID, in.AgentID
	return a.events(ctx, filter, in.Paging)
}

type listAgentEvents struct {
	ByID
	EventFilter
}

func (a *API) listAgentEvents(ctx context.Context, in *listAgentEvents) (*page[show.Event], error) {
	if _, err := a.store.GetAgent(ctx, in.ID); err != nil {
		return nil, err
	}
	filter := in.filter()
	filter.AgentID = in.ID
	return a.events(ctx, filter, in.Paging)
}

func (a *API) events(ctx context.Context, filter store.EventFilter, paging Paging) (*page[show.Event], error) {
	rows, total, err := a.store.ListEvents(ctx, filter, paging.options())
	if err != nil {
		return nil, err
	}
	return respondPage(rows, total, paging, show.EventOf), nil
}
