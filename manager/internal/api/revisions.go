package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/preview"
	"opensource.internal/manager/internal/revision"
	"opensource.internal/manager/internal/snapshot"
	"opensource.internal/manager/internal/store"
)

// SiteRevision is a published snapshot, without its data.
type SiteRevision struct {
	Number      int64            `json:"number" doc:"Counts from 1 in each site"`
	ETag        string           `json:"etag" doc:"That of the answers to check-ins" example:"\"2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae\""`
	CreatedAt   time.Time        `json:"createdAt"`
	ChangedBy   []string         `json:"changedBy" nullable:"false" doc:"Who changed the site since the revision before" example:"[\"ada\",\"ci (key)\"]"`
	PublishedBy *string          `json:"publishedBy" doc:"Who published it; null if it was published by itself"`
	Note        *string          `json:"note" doc:"What was said when it was published"`
	Summary     revision.Summary `json:"summary" doc:"How many records it changed, by resource"`
	Changes     string           `json:"changes" doc:"The summary in words" example:"1 container added, 2 HTTP services changed"`
	Current     bool             `json:"current" doc:"Whether agents get it now"`
	Pinned      bool             `json:"pinned" doc:"Whether the site is pinned to it"`
	RunningOn   []string         `json:"runningOn" nullable:"false" doc:"Host names of the agents that tell that all of it is in force"`
}

type revisionWithData struct {
	SiteRevision
	Data json.RawMessage `json:"data" doc:"The snapshot, byte for byte as agents get it"`
}

// showRevision needs to know what agents get now, and what they run.
func showRevision(current *snapshot.Current, agents []store.Agent) func(store.Revision) SiteRevision {
	return func(r store.Revision) SiteRevision {
		shown := SiteRevision{
			Number: r.Number, ETag: r.ETag, CreatedAt: r.CreatedAt.UTC(), ChangedBy: r.ChangedBy, PublishedBy: text(r.PublishedBy),
			Note: text(r.Note), Summary: r.Summary, Changes: r.Summary.String(), Current: r.Number == current.Number,
			Pinned: current.Pin != nil && current.Pin.Revision == r.Number, RunningOn: []string{},
		}
		if shown.ChangedBy == nil {
			shown.ChangedBy = []string{}
		}
		for _, a := range agents {
			if a.Report.Running != nil && checkin.SameETag(a.Report.Running.ETag, r.ETag) {
				shown.RunningOn = append(shown.RunningOn, a.Hostname)
			}
		}
		slices.Sort(shown.RunningOn)
		return shown
	}
}

type listRevisions struct {
	ByID
	Paging
}

func (a *API) listRevisions(ctx context.Context, in *listRevisions) (*page[SiteRevision], error) {
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
func (a *API) revisionsOf(ctx context.Context, siteID int64) (func(store.Revision) SiteRevision, error) {
	_, current, err := a.snapshots.Served(ctx, siteID)
	if err != nil {
		return nil, err
	}
	agents, _, err := a.store.ListAgents(ctx, store.AgentFilter{SiteID: siteID}, store.ListOptions{Limit: store.All})
	return showRevision(current, agents), err
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

// difference is what differs between two versions of a site.
type Difference struct {
	From *int64 `json:"from" doc:"Number of the earlier revision; null for nothing, of which the first one is made"`
	To   *int64 `json:"to" doc:"Number of the later revision; null for what the inventory has now"`
	ETag string `json:"etag" doc:"Tag of the later version"`
	preview.Difference
}

func (a *API) compare(ctx context.Context, siteID int64, from, to snapshot.Version) (Difference, error) {
	host, err := a.snapshots.Host(ctx, siteID)
	if err != nil {
		return Difference{}, err
	}
	return Difference{
		From: id(from.Number), To: id(to.Number), ETag: to.ETag,
		Difference: preview.Compare(from.Snapshot, to.Snapshot, host, a.version),
	}, nil
}

// id is an optional id or number of an answer: null if it is not set.
func id(n int64) *int64 {
	if n == 0 {
		return nil
	}
	return &n
}

type diffRevision struct {
	ByNumber
	From int64 `query:"from" minimum:"1" doc:"Number of the revision to compare with; the one before if not given"`
}

func (a *API) diffRevision(ctx context.Context, in *diffRevision) (*answer[Difference], error) {
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

// sitePreview is what a version of a site becomes on its agent's host.
type sitePreview struct {
	Revision *int64 `json:"revision" doc:"Null for what the inventory has now"`
	ETag     string `json:"etag"`
	preview.Preview
}

func (a *API) previewSite(ctx context.Context, in *previewRequest) (*answer[sitePreview], error) {
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
	return respond(sitePreview{Revision: id(version.Number), ETag: version.ETag, Preview: preview.Of(version.Snapshot, host, a.version)}), nil
}
