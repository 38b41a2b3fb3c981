package api

import (
	"context"
	"fmt"
	"net/http"

	"opensource.internal/manager/internal/auth"
)

// health is for load balancers and people; it needs no credentials and tells
// nothing that is worth hiding.
type health struct {
	Live          bool   `json:"live"`
	Ready         bool   `json:"ready" doc:"Whether the database can be read and written"`
	SchemaVersion *int64 `json:"schemaVersion" doc:"Of the database; null if it does not answer"`
	// PublicURLMismatch helps with proxies that are not set up right.
	PublicURLMismatch *string `json:"publicUrlMismatch" doc:"How this request differs from PUBLIC_URL; null if it does not"`
}

type healthAnswer struct {
	Status       int
	CacheControl string `header:"Cache-Control"`
	Body         data[health]
}

func (a *API) health(ctx context.Context, _ *empty) (*healthAnswer, error) {
	shown := health{Live: true, PublicURLMismatch: text(a.auth.PublicURLMismatch(auth.RequestOf(ctx).HTTP, a.publicURL))}
	version, err := a.schema(ctx)
	if err == nil {
		shown.SchemaVersion = &version
		err = a.store.Writable(ctx)
	}
	answer := &healthAnswer{Status: http.StatusOK, CacheControl: "no-store"}
	if shown.Ready = err == nil; !shown.Ready {
		answer.Status = http.StatusServiceUnavailable
		a.log.WarnContext(ctx, "not ready", "err", err)
	}
	answer.Body.Data = shown
	return answer, nil
}

// schema reads something real before it trusts the version: a database whose
// tables are gone has one, too.
func (a *API) schema(ctx context.Context) (int64, error) {
	if err := a.store.Ping(ctx); err != nil {
		return 0, fmt.Errorf("ping database: %w", err)
	}
	version, err := a.store.SchemaVersion(ctx)
	if err != nil {
		return 0, fmt.Errorf("read schema version: %w", err)
	}
	return version, nil
}
