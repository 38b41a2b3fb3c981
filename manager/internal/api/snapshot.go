package api

import (
	"context"
	"encoding/json"
	"net/http"

	"opensource.internal/agent/checkin"
)

type snapshotRequest struct {
	ByID
	IfNoneMatch string `header:"If-None-Match"`
}

type snapshotAnswer struct {
	Status int
	ETag   string `header:"ETag"`
	Body   data[json.RawMessage]
}

// getSnapshot shows the exact bytes that an agent of the site gets.
func (a *API) getSnapshot(ctx context.Context, in *snapshotRequest) (*snapshotAnswer, error) {
	snapshot, etag, err := a.snapshots.Get(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	if checkin.MatchETag(in.IfNoneMatch, etag) {
		return &snapshotAnswer{Status: http.StatusNotModified, ETag: etag}, nil
	}
	return &snapshotAnswer{Status: http.StatusOK, ETag: etag, Body: data[json.RawMessage]{snapshot}}, nil
}
