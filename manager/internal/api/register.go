package api

import (
	"context"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gin-gonic/gin"

	"opensource.internal/manager/internal/auth"
	"opensource.internal/manager/internal/store"
)

// handler answers one operation: it gets a decoded, valid request and returns
// an answer or an error for toError.
type handler[I, O any] func(context.Context, *I) (*O, error)

// maxBody is more than any record needs, in bytes. What is decoded without being
// known takes a hundred times its length, and signing in needs no credentials.
const maxBody = 16 << 10

// group is a part of the API that one guard protects.
type group struct {
	api   huma.API
	store *store.Store
	records
	// faults are the codes that everything in the group may be refused with.
	faults []string
}

// register adds an operation to the API and its description.
func register[I, O any](g group, method, path, summary string, success int, h handler[I, O], with []option) {
	operation := huma.Operation{
		OperationID:   operationID(method, path),
		Method:        method,
		Path:          path,
		Summary:       summary,
		DefaultStatus: success,
		MaxBodyBytes:  maxBody,
		// The time for the body is over once strictly has read it. A deadline that
		// stayed would end the request in the midst of its work.
		BodyReadTimeout: -1,
		Tags:            []string{strings.Split(path, "/")[1]},
		Middlewares:     huma.Middlewares{strictly, withExchange},
	}
	documentFaults(&operation, g.faults, reflect.TypeFor[I]())
	for _, change := range with {
		change(&operation)
	}
	if method == http.MethodGet {
		g.records.add(path, reflect.TypeFor[O](), tagBy(h))
		h = tagged(h)
	} else if operation.Metadata[ownMatch] == nil {
		h = conditional(g, method, path, h)
	}
	documentTags(&operation, hasField(reflect.TypeFor[O](), "Status"))
	huma.Register(g.api, operation, func(ctx context.Context, in *I) (*O, error) {
		// A fault is told apart from a client that went away by the outer context.
		bounded, cancel := context.WithTimeout(ctx, timeFor(&operation, databaseTimeout, manifestTimeout))
		defer cancel()
		out, err := h(bounded, in)
		if err == nil {
			return out, nil
		}
		refused := toError(err)
		logFault(ctx, refused)
		return nil, refused
	})
}

// patience marks operations that may take longer than one record does.
const patience = "patience"

// patiently gives an operation with a body as small as others have that time.
func patiently(o *huma.Operation) {
	if o.Metadata == nil {
		o.Metadata = map[string]any{}
	}
	o.Metadata[patience] = true
}

// timeFor is how long an operation may take with something.
func timeFor(o *huma.Operation, usual, patient time.Duration) time.Duration {
	if o.Metadata[patience] != nil {
		return patient
	}
	return usual
}

// manifestTimeout bounds the work on a manifest. The server cuts the answer off
// ten seconds later.
const manifestTimeout = 50 * time.Second

// operationID is the method and the path in words: patch-sites-id.
func operationID(method, path string) string {
	words := strings.NewReplacer("/", "-", "{", "", "}", "").Replace(path)
	return strings.ToLower(method) + words
}

// someone lets everybody through who has valid credentials.
func (a *API) someone(c *gin.Context) {
	a.admit(c, func(auth.Role) bool { return true })
}

// member lets viewers read and administrators do everything.
func (a *API) member(c *gin.Context) {
	if c.Request.Method == http.MethodGet {
		a.admit(c, auth.Role.CanRead)
		return
	}
	a.admit(c, auth.Role.CanWrite)
}

// admin lets administrators through, also to read.
func (a *API) admin(c *gin.Context) {
	a.admit(c, auth.Role.CanWrite)
}

// admit checks the credentials before anything of the request is looked at.
func (a *API) admit(c *gin.Context, allowed func(auth.Role) bool) {
	who, err := a.auth.Authenticate(c.Request)
	if err == nil && !allowed(who.Role) {
		err = auth.ErrForbidden
	}
	if err != nil {
		Refuse(c.Writer, c.Request, err)
		c.Abort()
		return
	}
	c.Request = c.Request.WithContext(withPrincipal(auth.AsActor(c.Request.Context(), who), who))
}
