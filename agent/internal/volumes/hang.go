package volumes

import (
	"context"
	"fmt"
	"time"
)

// ensureInTime is ensure for storage that may hang. Once a mount did, the
// other volumes on it are not tried any more: each would cost its patience and
// a thread.
func (h *host) ensureInTime(ctx context.Context, o order, patience time.Duration) outcome {
	if ctx.Err() != nil {
		return outcome{err: fmt.Errorf("not looked at: the pass ran out of time (%w)", context.Cause(ctx))}
	}
	mountPoint := h.mounts.pointOf(h.root + o.HostPath)
	if h.hung[mountPoint] {
		return outcome{err: fmt.Errorf("not looked at: the storage mounted at %q did not answer for another volume", mountPoint)}
	}

	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	done := make(chan outcome, 1) // never blocks the one left behind
	go func() { done <- h.ensure(limited, o) }()
	select {
	case result := <-done:
		return result
	case <-limited.Done():
		if mountPoint != "/" {
			h.hung[mountPoint] = true
		}
		return outcome{err: fmt.Errorf("the storage mounted at %q did not answer in time: "+
			"check the disk, or the server of a network mount", mountPoint)}
	}
}
