package api

import (
	"context"
	"strings"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/auth"
)

type removalsConfirm struct {
	ETag field[string] `json:"etag,omitempty" doc:"Tag of the content that is meant, as the snapshot or the agent's guard names it; if the site has other content by now, nothing is confirmed. Without it the present content is meant." example:"\"2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae\""`
}

type confirmRemovalsRequest struct {
	ByID
	Body *removalsConfirm
}

type confirmedRemovals struct {
	SiteID            int64  `json:"siteId"`
	ETag              string `json:"etag" doc:"Of the snapshot as it is published now"`
	Revision          int64  `json:"revision"`
	RemovalsConfirmed bool   `json:"removalsConfirmed"`
}

// confirmRemovals lets agents apply the site's present content even if they
// hold it back for removing too much. The site's next change takes it back.
func (a *API) confirmRemovals(ctx context.Context, in *confirmRemovalsRequest) (*answer[confirmedRemovals], error) {
	var seen field[string]
	if in.Body != nil {
		seen = in.Body.ETag
	}
	tag, err := tagIn(seen)
	if err != nil {
		return nil, err
	}
	by := principal(ctx).Name
	current, err := a.snapshots.ConfirmRemovals(ctx, in.ID, by, tag)
	if err != nil {
		return nil, err
	}
	auth.RequestOf(ctx).Logger().Info("removals confirmed", "site", in.ID, "by", by, "etag", current.ETag)
	return respond(confirmedRemovals{SiteID: in.ID, ETag: current.ETag, Revision: current.Number, RemovalsConfirmed: true}), nil
}

// tagIn is the tag of a snapshot in the field etag, "" if none is given.
func tagIn(given field[string]) (etag string, err error) {
	if !given.present || given.null {
		return "", nil
	}
	etag, ok := readETag(given.value)
	if !ok {
		return "", invalidFields(map[string]string{"etag": "is not the tag of a snapshot, which is 64 hexadecimal digits in quotes"})
	}
	return etag, nil
}

// readETag reads a tag in the forms in which people copy it: with its quotes,
// as a proxy has weakened it, or bare.
func readETag(text string) (etag string, ok bool) {
	etag = strings.TrimPrefix(strings.TrimSpace(text), "W/")
	if !strings.HasPrefix(etag, `"`) {
		etag = `"` + etag + `"`
	}
	return etag, checkin.ValidETag(etag)
}
