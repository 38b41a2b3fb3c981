package volumes

import (
	"context"

	"opensource.internal/agent/checkin"
)

// Plan is what Ensure would do about a volume.
type Plan struct {
	Volume checkin.Volume
	Would  string // such as "make the directory"; empty for nothing
	Err    error  // what would keep Ensure from making or using the directory
}

// Foresee returns what Ensure would do about every volume, as far as that shows
// without doing so. It changes nothing and has the bounds of Ensure.
func Foresee(ctx context.Context, volumes []checkin.Volume, previous map[int64]Record, opts Options) []Plan {
	var plans []Plan
	for i, found := range each(ctx, volumes, previous, opts, true) {
		plans = append(plans, Plan{Volume: volumes[i], Would: found.would, Err: found.err})
	}
	return plans
}

// Look returns, by volume id, what would keep Ensure from making or using the
// directory.
func Look(ctx context.Context, volumes []checkin.Volume, opts Options) map[int64]error {
	found := map[int64]error{}
	for _, plan := range Foresee(ctx, volumes, nil, opts) {
		if plan.Err != nil {
			found[plan.Volume.ID] = plan.Err
		}
	}
	return found
}
