// Package services holds the managed services, one file and one value each:
// how each is tested, reloaded and proven to be live. A further service is a
// further file here, its line in All, and its templates.
package services

import (
	"opensource.internal/agent/internal/apply"
	"opensource.internal/agent/internal/systemd"
	"opensource.internal/agent/render"
)

// All returns the managed services in the order in which they are applied.
func All(units *systemd.Manager, paths render.Paths) []apply.Service {
	return []apply.Service{}
}
