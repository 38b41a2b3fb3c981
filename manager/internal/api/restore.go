package api

import (
	"context"
	"errors"
	"net/http"

	"opensource.internal/manager/internal/auth"
	"opensource.internal/manager/internal/manifest"
)

type restoreRequest struct {
	ETag field[string] `json:"etag,omitempty" doc:"Tag of what was looked at, as a dry run tells it: if something else would be changed by now, nothing is. If-Match does the same." example:"\"2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae\""`
}

type restoreRevision struct {
	ByNumber
	DryRun bool `query:"dryRun" doc:"Find out what would change, by doing and undoing it"`
	Body   *restoreRequest
}

// restoreRevision makes the inventory what it was when a revision was made.
func (a *API) restoreRevision(ctx context.Context, in *restoreRevision) (*answer[manifest.SetBackReport], error) {
	var wanted restoreRequest
	if in.Body != nil {
		wanted = *in.Body
	}
	seen, matched, err := seenTag(ctx, wanted.ETag)
	if err != nil {
		return nil, err
	}
	report, err := manifest.SetBack(ctx, a.store, in.ID, in.Number, manifest.SetBackOptions{DryRun: in.DryRun, Seen: seen})
	var refused *manifest.RefusedError
	if errors.As(err, &refused) {
		return nil, &Error{Status: http.StatusConflict, Code: "conflict", Message: refused.Error()}
	}
	if err != nil {
		return nil, unlessMatched(matched, err)
	}
	if !report.DryRun && len(report.Changes) > 0 {
		auth.RequestOf(ctx).Logger().Info("inventory set back", "site", in.ID, "revision", in.Number, "changes", len(report.Changes), "by", principal(ctx).Name)
	}
	return respond(*report), nil
}
