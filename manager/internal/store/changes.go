package store

import (
	"context"

	"gorm.io/gorm"
)

// Versions are the change counters of one moment. A counter moves with every
// committed change of what it stands for, whichever process made it; whoever
// caches something remembers the counter it was read under and drops it when
// the counter has moved.
type Versions struct {
	Keys     uint64 // API keys: any change but their last use
	Sessions uint64
	Users    uint64
	Agents   uint64 // agents: deletions only
	sites    map[int64]uint64
}

// Site returns the counter of everything a site's snapshot is built from,
// and of the status of its volumes. It is 0 for a site that never existed.
func (v Versions) Site(id int64) uint64 { return v.sites[id] }

// Versions returns the counters. It sees everything committed before the
// call, costs a few microseconds, and is meant to be asked on every request:
// concurrent calls share one look at the database.
func (s *Store) Versions(ctx context.Context) (Versions, error) { panic("soon") }

type changes struct{}

func watchChanges(path string, read *gorm.DB) (*changes, error) { return &changes{}, nil }

func (*changes) close() error { return nil }
