package auth

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"

	"opensource.internal/manager/internal/store"
)

type contextKey struct{}

// Request is what a handler may want to know of the HTTP request it answers,
// where it only has the context.
type Request struct {
	// Client is the address of who is asking, behind trusted proxies.
	Client netip.Addr
	// HTTP is the request as it came, for what depends on its headers.
	HTTP *http.Request
	// ID is how log and client speak of the request.
	ID  string
	Log *slog.Logger
	// Noted is filled while the request is answered, for what is said of it
	// afterwards; nil if nobody wants to know.
	Noted *Noted
}

// Noted is what is found out about a request on its way.
type Noted struct {
	// Route is the pattern that the path matched, "" if none.
	Route string
	// Actor is who sent it, as far as credentials were asked for.
	Actor store.Actor
}

// Logger names the request in every line. It is made only when something is
// to be said: check-ins are many.
func (r Request) Logger() *slog.Logger { return r.Log.With("request", r.ID) }

func (r Request) note(who store.Actor) {
	if r.Noted != nil {
		r.Noted.Actor = who
	}
}

// WithRequest puts the description of a request into its context.
func WithRequest(ctx context.Context, r Request) context.Context {
	return context.WithValue(ctx, contextKey{}, r)
}

// RequestOf is the description of the request being answered.
func RequestOf(ctx context.Context) Request {
	r, _ := ctx.Value(contextKey{}).(Request)
	if r.Log == nil {
		r.Log = slog.Default()
	}
	return r
}

// AsActor says in the context of a request who makes its changes.
func AsActor(ctx context.Context, who Principal) context.Context {
	request := RequestOf(ctx)
	actor := store.Actor{Kind: who.Kind, ID: who.ID, Name: who.Name, RequestID: request.ID}
	if request.Client.IsValid() {
		actor.Address = request.Client.String()
	}
	request.note(actor)
	return store.WithActor(ctx, actor)
}
