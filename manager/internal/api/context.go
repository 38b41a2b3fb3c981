package api

import (
	"context"

	"opensource.internal/manager/internal/auth"
)

type principalKey struct{}

func withPrincipal(ctx context.Context, who auth.Principal) context.Context {
	return context.WithValue(ctx, principalKey{}, who)
}

// principal is who sent the request; the guard has put it there.
func principal(ctx context.Context) auth.Principal {
	who, _ := ctx.Value(principalKey{}).(auth.Principal)
	return who
}
