package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"opensource.internal/manager/internal/auth"
	"opensource.internal/manager/internal/show"
	"opensource.internal/manager/internal/snapshot"
	"opensource.internal/manager/internal/store"
)

// pins are those of all sites, by site.
func (a *API) pins(ctx context.Context) (map[int64]*show.Pin, error) {
	rows, err := a.store.ListPins(ctx)
	if err != nil {
		return nil, err
	}
	return show.PinsOf(rows), nil
}

type pinRequest struct {
	Revision field[int64]  `json:"revision,omitempty" doc:"The number of a revision; the one that agents get now if not given"`
	Reason   field[string] `json:"reason,omitempty" doc:"Is shown wherever the site is, until it is unpinned" example:"the new proxy settings break sign-in"`
}

// TransformSchema implements huma.SchemaTransformer.
func (pinRequest) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	return require(s, "reason")
}

// pinSite gives agents a revision whatever is published, from their next
// check-in on.
func (a *API) pinSite(ctx context.Context, in *toRecord[pinRequest]) (*answer[show.Pin], error) {
	wanted := in.Body.Revision
	if wanted.present && !wanted.null && wanted.value < 1 {
		return nil, invalidFields(map[string]string{"revision": "the numbers of revisions begin with 1"})
	}
	row, err := a.snapshots.Pin(ctx, in.ID, wanted.value, in.Body.Reason.value)
	if err != nil {
		return nil, err
	}
	auth.RequestOf(ctx).Logger().Info("site pinned", "site", in.ID, "revision", row.Revision, "by", row.PinnedBy, "reason", row.Reason)
	return respond(*show.PinOf(&row)), nil
}

func (a *API) unpinSite(ctx context.Context, in *ByID) (*empty, error) {
	unpinned, err := a.store.UnpinSite(ctx, in.ID)
	if err != nil || !unpinned {
		return nil, err
	}
	auth.RequestOf(ctx).Logger().Info("site unpinned", "site", in.ID, "by", principal(ctx).Name)
	return nil, nil
}

type pendingRequest struct {
	ByID
	From int64 `query:"from" minimum:"1" doc:"Number of the revision to compare with; the one that agents get now if not given"`
}

// pendingAnswer has the tag of the content, so that it can be given to publish.
type pendingAnswer struct {
	ETag string `header:"ETag"`
	Body data[show.Pending]
}

func (a *API) getPending(ctx context.Context, in *pendingRequest) (*pendingAnswer, error) {
	from, current, err := a.snapshots.Served(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	now, err := a.snapshots.Inventory(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	shown := show.Pending{Pin: show.PinOf(current.Pin), Waiting: len(snapshot.Unpublished(from, now))}
	if in.From != 0 {
		if from, err = a.namedRevision(ctx, in.ID, in.From, "from"); err != nil {
			return nil, err
		}
	}
	if shown.Difference, err = a.compare(ctx, in.ID, from, now); err != nil {
		return nil, err
	}
	if shown.Published, err = a.snapshots.PublishedAs(ctx, in.ID, now); err != nil {
		return nil, err
	}
	return &pendingAnswer{ETag: now.ETag, Body: data[show.Pending]{shown}}, nil
}

type publishRequest struct {
	ETag field[string] `json:"etag,omitempty" doc:"Tag of the content that was looked at, as pending shows it: if the site has other content by now, nothing is published. If-Match does the same." example:"\"2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae\""`
	Note field[string] `json:"note,omitempty" doc:"Is kept with the revision" example:"move the wiki to its new host"`
}

type publishSite struct {
	ByID
	Body *publishRequest
}

type publishedRevision struct {
	SiteID   int64  `json:"siteId"`
	Revision int64  `json:"revision"`
	ETag     string `json:"etag"`
	// Published is false if it was asked for once more.
	Published bool      `json:"published" doc:"False if the latest revision had this content already: nothing waited"`
	Pin       *show.Pin `json:"pin" doc:"Set if agents get another revision until the site is unpinned"`
}

// publishSite publishes what the inventory has now.
func (a *API) publishSite(ctx context.Context, in *publishSite) (*answer[publishedRevision], error) {
	var wanted publishRequest
	if in.Body != nil {
		wanted = *in.Body
	}
	seen, match, err := seenTag(ctx, wanted.ETag)
	if err != nil {
		return nil, err
	}
	row, published, err := a.snapshots.Publish(ctx, in.ID, seen, wanted.Note.value)
	if err != nil {
		return nil, unlessMatched(match, err)
	}
	pinned, err := a.store.GetPin(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	if published {
		auth.RequestOf(ctx).Logger().Info("site published", "site", in.ID, "revision", row.Number, "by", principal(ctx).Name)
	}
	return respond(publishedRevision{SiteID: in.ID, Revision: row.Number, ETag: row.ETag, Published: published, Pin: show.PinOf(pinned)}), nil
}

// seenTag is the tag of what the client has looked at, "" if it does not say:
// that of the body, or, matched, of If-Match.
func seenTag(ctx context.Context, inBody field[string]) (seen string, matched bool, err error) {
	if seen, err = tagIn(inBody); err != nil {
		return "", false, err
	}
	match := readTags(exchangeOf(ctx), "If-Match")
	if match.sent && !match.any {
		if len(match.list) != 1 || seen != "" && seen != match.list[0] {
			return "", true, preconditionFailed("")
		}
		seen = match.list[0]
	}
	return seen, match.sent, nil
}

// unlessMatched makes a conflict what has failed of If-Match, if that was sent.
func unlessMatched(matched bool, err error) error {
	var other *store.ConflictError
	if matched && errors.As(err, &other) {
		return &Error{Status: http.StatusPreconditionFailed, Code: "precondition_failed", Message: other.Message}
	}
	return err
}
