package store

import "context"

// ActorKind is what sort of somebody an Actor is.
type ActorKind string

// The kinds of actors.
const (
	ActorUser    ActorKind = "user"    // a person who signed in
	ActorKey     ActorKind = "key"     // the holder of an API key
	ActorCommand ActorKind = "command" // somebody on the manager's host, by the command line
	ActorAgent   ActorKind = "agent"   // an agent that checks in or enrolls
	ActorSystem  ActorKind = "system"  // the manager itself
	ActorUnknown ActorKind = "unknown" // somebody who could not say who they are
)

// Actor is who does something to the records. It travels in the context, so
// that whatever is written can name who wrote it.
type Actor struct {
	Kind ActorKind
	// ID is the id of the user or the API key, else 0.
	ID   int64
	Name string
	// Address is the client's, "" on the command line.
	Address string
	// RequestID is the id that the request has in the log, "" if there is none.
	RequestID string
}

type actorKey struct{}

// WithActor says in a context who acts.
func WithActor(ctx context.Context, who Actor) context.Context {
	return context.WithValue(ctx, actorKey{}, who)
}

// ActorOf is who acts, the manager itself if the context does not say.
func ActorOf(ctx context.Context) Actor {
	if who, ok := ctx.Value(actorKey{}).(Actor); ok {
		return who
	}
	return Actor{Kind: ActorSystem, Name: "manager"}
}
