package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"opensource.internal/manager/internal/show"
	"opensource.internal/manager/internal/snapshot"
	"opensource.internal/manager/internal/store"
)

type revisionWithData struct {
	show.SiteRevision
	Data json.RawMessage `json:"data" doc:"The snapshot, byte for byte as agents get it"`
}

type listRevisions struct {
	ByID
	Paging
}

func (a *API) listRevisions(ctx context.Context, in *listRevisions) (*page[show.SiteRevision], error) {
	show, err := a.revisionsOf(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	rows, total, err := a.store.ListRevisions(ctx, store.RevisionFilter{SiteID: in.ID}, in.options())
	if err != nil {
		return nil, err
	}
	return respondPage(rows, total, in.Paging, show), nil
}

// revisionsOf knows how to show the revisions of a site. What was changed since
// the last check-in is one by then.
func (a *API) revisionsOf(ctx context.Context, siteID int64) (func(store.Revision) show.SiteRevision, error) {
	_, current, err := a.snapshots.Served(ctx, siteID)
	if err != nil {
		return nil, err
	}
	agents, _, err := a.store.ListAgents(ctx, store.AgentFilter{SiteID: siteID}, store.ListOptions{Limit: store.All})
	return show.RevisionOf(current, agents), err
}

type ByNumber struct {
	ByID
	Number int64 `path:"number" minimum:"1"`
}

func (a *API) getRevision(ctx context.Context, in *ByNumber) (*answer[revisionWithData], error) {
	show, err := a.revisionsOf(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	row, err := a.store.GetRevision(ctx, in.ID, in.Number)
	if err != nil {
		return nil, err
	}
	return respond(revisionWithData{show(row), json.RawMessage(row.Data)}), nil
}

func (a *API) compare(ctx context.Context, siteID int64, from, to snapshot.Version) (show.Difference, error) {
	host, err := a.snapshots.Host(ctx, siteID)
	if err != nil {
		return show.Difference{}, err
	}
	return show.DifferenceOf(from, to, host, a.version), nil
}

type diffRevision struct {
	ByNumber
	From int64 `query:"from" minimum:"1" doc:"Number of the revision to compare with; the one before if not given"`
}

func (a *API) diffRevision(ctx context.Context, in *diffRevision) (*answer[show.Difference], error) {
	to, err := a.snapshots.Revision(ctx, in.ID, in.Number)
	if err != nil {
		return nil, err
	}
	from, err := a.former(ctx, in)
	if err != nil {
		return nil, err
	}
	compared, err := a.compare(ctx, in.ID, from, to)
	if err != nil {
		return nil, err
	}
	return respond(compared), nil
}

func (a *API) former(ctx context.Context, in *diffRevision) (snapshot.Version, error) {
	if in.From == 0 {
		return a.snapshots.Before(ctx, in.ID, in.Number)
	}
	return a.namedRevision(ctx, in.ID, in.From, "from")
}

// namedRevision is the revision that a parameter names.
func (a *API) namedRevision(ctx context.Context, siteID, number int64, field string) (snapshot.Version, error) {
	version, err := a.snapshots.Revision(ctx, siteID, number)
	if errors.Is(err, store.ErrNotFound) {
		return version, invalidFields(map[string]string{field: fmt.Sprintf("there is no revision %d of this site, or it is not kept any more", number)})
	}
	return version, err
}

type previewRequest struct {
	ByID
	Revision int64 `query:"revision" minimum:"1" doc:"Number of a revision; what the inventory has now if not given"`
}

func (a *API) previewSite(ctx context.Context, in *previewRequest) (*answer[show.SitePreview], error) {
	version, err := a.snapshots.Inventory(ctx, in.ID) // also to find out whether there is such a site
	if err == nil && in.Revision != 0 {
		version, err = a.namedRevision(ctx, in.ID, in.Revision, "revision")
	}
	if err != nil {
		return nil, err
	}
	host, err := a.snapshots.Host(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return respond(show.PreviewOf(version, host, a.version)), nil
}
