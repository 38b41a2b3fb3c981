package volumes

import (
	"context"
	"strings"

	"opensource.internal/agent/checkin"
)

// Look returns, by volume id, what would keep Ensure from making or using the
// directory, as far as that shows without doing so. It changes nothing and has
// the bounds of Ensure.
func Look(ctx context.Context, volumes []checkin.Volume, opts Options) map[int64]error {
	if opts.Patience == 0 {
		opts.Patience = DefaultPatience
	}
	found := map[int64]error{}
	refused := findFaults(volumes)
	host, hostErr := readHost(strings.TrimSuffix(opts.Root, "/"))
	for i, volume := range volumes {
		err := refused[i]
		switch {
		case err != nil:
		case hostErr != nil:
			err = hostErr
		default:
			err = host.inTime(ctx, volume.HostPath, opts.Patience, func(context.Context) outcome {
				return outcome{err: host.look(volume.HostPath)}
			}).err
		}
		if err != nil {
			found[volume.ID] = err
		}
	}
	return found
}

// look walks to a directory as far as it exists, and checks what it has
// reached.
func (h *host) look(path string) error {
	reached, missing, err := reach(h.root, path)
	if err != nil {
		return err
	}
	defer reached.close()
	if err := h.mounts.check(reached, path); err != nil || len(missing) > 0 {
		return err
	}
	have, err := reached.stat()
	if err != nil {
		return err
	}
	return h.ids.checkKnown(reached, have)
}
