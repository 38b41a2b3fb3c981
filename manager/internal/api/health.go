package api

import (
	"context"
	"fmt"
	"net/http"

	"opensource.internal/manager/internal/auth"
	"opensource.internal/manager/internal/show"
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
	shown := health{Live: true, PublicURLMismatch: show.Text(a.auth.PublicURLMismatch(auth.RequestOf(ctx).HTTP, a.publicURL))}
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

// alive is for whoever restarts a manager that hangs. It asks nobody: a restart
// mends no database.
func (a *API) alive(context.Context, *empty) (*aliveAnswer, error) {
	return &aliveAnswer{CacheControl: "no-store", Body: data[alive]{alive{Live: true}}}, nil
}

type alive struct {
	Live bool `json:"live"`
}

type aliveAnswer struct {
	CacheControl string `header:"Cache-Control"`
	Body         data[alive]
}

// readiness is for load balancers: whether this manager can answer.
type readiness struct {
	Ready  bool       `json:"ready" doc:"Whether all checks are ok"`
	Checks readyCheck `json:"checks"`
}

// readyCheck has "ok" or "failed" for each; why something failed is in the log.
type readyCheck struct {
	Read    string `json:"read" enum:"ok,failed" doc:"The database can be read"`
	Write   string `json:"write" enum:"ok,failed" doc:"The database can be written"`
	Schema  string `json:"schema" enum:"ok,failed" doc:"The database has the schema that this version knows"`
	Changes string `json:"changes" enum:"ok,failed" doc:"Changes that others make to the database are noticed"`
}

type readinessAnswer struct {
	Status       int
	CacheControl string `header:"Cache-Control"`
	Body         data[readiness]
}

func (a *API) readiness(ctx context.Context, _ *empty) (*readinessAnswer, error) {
	shown := readiness{Ready: true}
	for _, check := range []struct {
		name   string
		result *string
		try    func(context.Context) error
	}{
		{"read", &shown.Checks.Read, a.store.Ping},
		{"write", &shown.Checks.Write, a.store.Writable},
		{"schema", &shown.Checks.Schema, a.store.SchemaFits},
		{"changes", &shown.Checks.Changes, func(ctx context.Context) error { _, err := a.store.Versions(ctx); return err }},
	} {
		*check.result = "ok"
		if err := check.try(ctx); err != nil {
			*check.result, shown.Ready = "failed", false
			a.log.WarnContext(ctx, "not ready", "check", check.name, "err", err)
		}
	}
	answer := &readinessAnswer{Status: http.StatusOK, CacheControl: "no-store", Body: data[readiness]{shown}}
	if !shown.Ready {
		answer.Status = http.StatusServiceUnavailable
	}
	return answer, nil
}
