package server

import (
	"context"

	"opensource.internal/manager/internal/config"
)

// pruneRevisions deletes what nobody is going to go back to.
func (s *Server) pruneRevisions(ctx context.Context, c config.Config) error {
	deleted, err := s.Store.PruneRevisions(ctx, c.Revisions.Latest, c.Revisions.Younger)
	if deleted > 0 {
		s.log.Info("deleted old revisions", "revisions", deleted)
	}
	return err
}
