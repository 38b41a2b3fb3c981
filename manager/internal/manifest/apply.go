package manifest

import (
	"context"
	"errors"
	"slices"

	"opensource.internal/manager/internal/snapshot"
	"opensource.internal/manager/internal/store"
)

// Apply makes what is stored say what manifests say, all of it or nothing, and
// reports what it changed. What is wrong is a *FaultsError.
func Apply(ctx context.Context, s *store.Store, manifests []*Manifest, o Options) (*Report, error) {
	files, scope := scopeOf(manifests, o)
	var p *plan
	err := s.Apply(ctx, scope, func(present store.Contents) (*store.Changes, error) {
		if o.Check != nil {
			if err := o.Check(present); err != nil {
				return nil, err
			}
		}
		p = newPlan(manifests, present, o)
		// What is wrong already is told with what the database finds wrong.
		p.changes.Encode = snapshot.Encode
		p.changes.Dry = o.DryRun || len(p.faults) > 0
		return &p.changes, nil
	})
	if err != nil && !errors.Is(err, store.ErrRefused) {
		return nil, err
	}
	if err := p.refused().err(files); err != nil {
		return nil, err
	}
	return p.report(), nil
}

func scopeOf(manifests []*Manifest, o Options) (files []string, scope store.Scope) {
	if o.SiteID != 0 {
		scope.IDs = []int64{o.SiteID}
	}
	for _, m := range manifests {
		if !slices.Contains(files, m.at.File) {
			files = append(files, m.at.File)
		}
		if m.Site != nil && o.SiteID == 0 {
			scope.Names = append(scope.Names, m.Site.Name)
		}
	}
	return files, scope
}

// refused are the faults that the database found.
func (p *plan) refused() faults {
	found := p.faults
	for _, c := range p.changes.Sites {
		p.blame(&found, c, c.Err)
	}
	for _, c := range p.changes.Domains {
		p.blame(&found, c, c.Err)
	}
	for _, c := range p.changes.Nodes {
		p.blame(&found, c, c.Err)
	}
	for _, c := range p.changes.Containers {
		p.blame(&found, c, c.Err)
	}
	for _, c := range p.changes.Services {
		p.blame(&found, c, c.Err)
	}
	for _, c := range p.changes.Volumes {
		p.blame(&found, c, c.Err)
	}
	return found
}

// blame adds why a change was refused. A value that is held by a record which is
// kept may be one that the file has under a new name.
func (p *plan) blame(found *faults, change any, err error) {
	if err == nil || errors.Is(err, errBroken) || errors.Is(err, store.ErrRefused) {
		return
	}
	var conflict *store.ConflictError
	if errors.As(err, &conflict) && len(conflict.Holders) > 0 && p.holders[conflict.Holders[0]] {
		told := *conflict
		told.Holders = []string{conflict.Holders[0] + ", which the file does not name"}
		err = &told
	}
	if r := p.records[change]; r != nil {
		found.of(r, err)
	} else {
		found.add(Place{}, "", "%v", err)
	}
}
