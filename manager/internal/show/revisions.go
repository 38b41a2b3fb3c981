package show

import (
	"slices"
	"time"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/preview"
	"opensource.internal/manager/internal/revision"
	"opensource.internal/manager/internal/snapshot"
	"opensource.internal/manager/internal/store"
)

// Pending is what the inventory has and agents do not get.
type Pending struct {
	Waiting int `json:"waiting" doc:"How many changes agents do not get yet"`
	// Published is null if the content is not published yet.
	Published *int64 `json:"published" doc:"Number of the latest revision if it has this content already, as that of a pinned site may; else null"`
	Pin       *Pin   `json:"pin" doc:"Null if the site is not pinned"`
	Difference
}

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

// RevisionOf needs to know what agents get now, and what they run.
func RevisionOf(current *snapshot.Current, agents []store.Agent) func(store.Revision) SiteRevision {
	return func(r store.Revision) SiteRevision {
		shown := SiteRevision{
			Number: r.Number, ETag: r.ETag, CreatedAt: r.CreatedAt.UTC(), ChangedBy: r.ChangedBy, PublishedBy: Text(r.PublishedBy),
			Note: Text(r.Note), Summary: r.Summary, Changes: r.Summary.String(), Current: r.Number == current.Number,
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

// Difference is what differs between two versions of a site.
type Difference struct {
	From *int64 `json:"from" doc:"Number of the earlier revision; null for nothing, of which the first one is made"`
	To   *int64 `json:"to" doc:"Number of the later revision; null for what the inventory has now"`
	ETag string `json:"etag" doc:"Tag of the later version"`
	preview.Difference
}

// SitePreview is what a version of a site becomes on its agent's host.
type SitePreview struct {
	Revision *int64 `json:"revision" doc:"Null for what the inventory has now"`
	ETag     string `json:"etag"`
	preview.Preview
}

// DifferenceOf compares two versions of a site as its host will see it.
func DifferenceOf(from, to snapshot.Version, host preview.Host, version string) Difference {
	return Difference{From: ID(from.Number), To: ID(to.Number), ETag: to.ETag, Difference: preview.Compare(from.Snapshot, to.Snapshot, host, version)}
}

// PreviewOf renders a version of a site for its host.
func PreviewOf(of snapshot.Version, host preview.Host, version string) SitePreview {
	return SitePreview{Revision: ID(of.Number), ETag: of.ETag, Preview: preview.Of(of.Snapshot, host, version)}
}
