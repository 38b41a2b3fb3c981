package api

import (
	"context"
	"encoding/json"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"opensource.internal/agent/checkin"
)

type snapshotAnswer struct {
	ETag string `header:"ETag"`
	Body data[encodedSnapshot]
}

// encodedSnapshot is a snapshot as the agent gets it, byte for byte.
type encodedSnapshot json.RawMessage

// MarshalJSON implements json.Marshaler.
func (e encodedSnapshot) MarshalJSON() ([]byte, error) { return e, nil }

// Schema implements huma.SchemaProvider: what the bytes mean.
func (encodedSnapshot) Schema(registry huma.Registry) *huma.Schema {
	return registry.Schema(reflect.TypeFor[checkin.Snapshot](), true, "")
}

// getSnapshot shows the exact bytes that an agent of the site gets.
func (a *API) getSnapshot(ctx context.Context, in *ByID) (*snapshotAnswer, error) {
	snapshot, etag, err := a.snapshots.Get(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return &snapshotAnswer{ETag: etag, Body: data[encodedSnapshot]{snapshot}}, nil
}
