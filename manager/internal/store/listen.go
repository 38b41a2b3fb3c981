package store

import (
	"context"
	"time"
)

// listenAgain is how long a listener waits after its connection was lost.
const listenAgain = time.Second

// Listen calls heard soon after a manager, this one or another, has committed a
// change that moved a change counter, and whenever something may have been
// missed; until the context ends. It is a hint to look now (see Versions) for
// whoever looks now and then: on SQLite nothing is ever heard.
func (s *Store) Listen(ctx context.Context, heard func()) {
	for ctx.Err() == nil {
		err := s.engine.listen(ctx, heard)
		if err != nil && ctx.Err() == nil {
			s.log.WarnContext(ctx, "changes of other managers are seen a little later: their notifications do not come", "err", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(listenAgain):
		}
	}
}
