package api

import (
	"context"
	"encoding/json"
)

type snapshotAnswer struct {
	ETag string `header:"ETag"`
	Body data[json.RawMessage]
}

// getSnapshot shows the exact bytes that an agent of the site gets.
func (a *API) getSnapshot(ctx context.Context, in *ByID) (*snapshotAnswer, error) {
	snapshot, etag, err := a.snapshots.Get(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return &snapshotAnswer{ETag: etag, Body: data[json.RawMessage]{snapshot}}, nil
}
