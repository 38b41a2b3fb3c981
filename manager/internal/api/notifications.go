package api

import (
	"context"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"opensource.internal/manager/internal/events"
	"opensource.internal/manager/internal/notify"
	"opensource.internal/manager/internal/show"
	"opensource.internal/manager/internal/store"
)

type notificationTargetPatch struct {
	Name     field[string]   `json:"name,omitempty" example:"on call"`
	URL      field[string]   `json:"url,omitempty" doc:"Service, server and secret, as docs/usage/notifications.md describes; never shown again" example:"ntfy://ntfy.example.com/alerts"`
	Kinds    field[[]string] `json:"kinds,omitempty" doc:"Kinds of events; all if null" example:"[\"offline\",\"apply_failed\"]"`
	SiteIDs  field[[]int64]  `json:"siteIds,omitempty" doc:"Only these sites; all if null" example:"[1]"`
	Severity field[string]   `json:"severity,omitempty" doc:"warning or error: the least that is told" example:"warning"`
	Enabled  field[bool]     `json:"enabled,omitempty" example:"true"`
}

func (b notificationTargetPatch) apply(t *store.NotificationTarget) error {
	b.Name.set(&t.Name)
	b.URL.set(&t.URL)
	b.Kinds.set((*[]string)(&t.Kinds))
	b.SiteIDs.set((*[]int64)(&t.SiteIDs))
	b.Severity.set((*string)(&t.Severity))
	b.Enabled.set(&t.Enabled)
	return notify.Check(t)
}

type notificationTargetCreate notificationTargetPatch

// TransformSchema implements huma.SchemaTransformer.
func (notificationTargetCreate) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	return require(s, "name", "url")
}

type listNotificationTargets struct {
	Paging
	Name string `query:"name"`
}

func (a *API) listNotificationTargets(ctx context.Context, in *listNotificationTargets) (*page[show.NotificationTarget], error) {
	rows, total, err := a.store.ListNotificationTargets(ctx, store.NotificationTargetFilter{Name: in.Name}, in.options())
	if err != nil {
		return nil, err
	}
	return respondPage(rows, total, in.Paging, show.NotificationTargetOf), nil
}

func (a *API) createNotificationTarget(ctx context.Context, in *withBody[notificationTargetCreate]) (*created[show.NotificationTarget], error) {
	wanted := store.NotificationTarget{Severity: events.Warning, Enabled: true}
	if err := notificationTargetPatch(in.Body).apply(&wanted); err != nil {
		return nil, err
	}
	row, err := a.store.CreateNotificationTarget(ctx, wanted)
	if err != nil {
		return nil, err
	}
	return &created[show.NotificationTarget]{a.location("notification-targets", row.ID), data[show.NotificationTarget]{show.NotificationTargetOf(row)}}, nil
}

func (a *API) getNotificationTarget(ctx context.Context, in *ByID) (*answer[show.NotificationTarget], error) {
	row, err := a.store.GetNotificationTarget(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return respond(show.NotificationTargetOf(row)), nil
}

func (a *API) updateNotificationTarget(ctx context.Context, in *toRecord[notificationTargetPatch]) (*answer[show.NotificationTarget], error) {
	row, err := a.store.UpdateNotificationTarget(ctx, in.ID, in.Body.apply)
	if err != nil {
		return nil, err
	}
	return respond(show.NotificationTargetOf(row)), nil
}

func (a *API) deleteNotificationTarget(ctx context.Context, in *ByID) (*empty, error) {
	return nil, a.store.DeleteNotificationTarget(ctx, in.ID)
}

// notificationTest says how a test ended. That a target does not work is no
// fault of the request.
type notificationTest struct {
	Delivered bool    `json:"delivered" example:"true"`
	Error     *string `json:"error" doc:"Why not; null if it was"`
}

// testTimeout leaves time to note how a test ended.
const testTimeout = databaseTimeout - time.Second

func (a *API) testNotificationTarget(ctx context.Context, in *ByID) (*answer[notificationTest], error) {
	target, err := a.store.GetNotificationTarget(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	bounded, cancel := context.WithTimeout(ctx, testTimeout)
	defer cancel()
	reason, err := a.notifier.Test(bounded, target)
	if err != nil {
		return nil, err
	}
	return respond(notificationTest{Delivered: reason == "", Error: show.Text(reason)}), nil
}

type notificationSilenceCreate struct {
	SiteID int64         `json:"siteId" minimum:"1"`
	Until  time.Time     `json:"until" example:"2126-12-01T06:00:00Z"`
	Reason field[string] `json:"reason,omitempty" example:"moving house"`
}

type listNotificationSilences struct {
	Paging
	SiteID int64 `query:"siteId" minimum:"1"`
}

func (a *API) listNotificationSilences(ctx context.Context, in *listNotificationSilences) (*page[show.NotificationSilence], error) {
	rows, total, err := a.store.ListNotificationSilences(ctx, store.NotificationSilenceFilter{SiteID: in.SiteID}, in.options())
	if err != nil {
		return nil, err
	}
	return respondPage(rows, total, in.Paging, show.NotificationSilenceOf), nil
}

func (a *API) createNotificationSilence(ctx context.Context, in *withBody[notificationSilenceCreate]) (*created[show.NotificationSilence], error) {
	row, err := a.store.SilenceSite(ctx, store.NotificationSilence{
		SiteID: in.Body.SiteID, Until: in.Body.Until.UTC(), Reason: in.Body.Reason.value, CreatedBy: principal(ctx).Name,
	})
	if err != nil {
		return nil, err
	}
	return &created[show.NotificationSilence]{a.location("notification-silences", row.ID), data[show.NotificationSilence]{show.NotificationSilenceOf(row)}}, nil
}

func (a *API) getNotificationSilence(ctx context.Context, in *ByID) (*answer[show.NotificationSilence], error) {
	row, err := a.store.GetNotificationSilence(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return respond(show.NotificationSilenceOf(row)), nil
}

func (a *API) deleteNotificationSilence(ctx context.Context, in *ByID) (*empty, error) {
	return nil, a.store.EndNotificationSilence(ctx, in.ID)
}
