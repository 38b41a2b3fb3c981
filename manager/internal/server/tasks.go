package server

import (
	"context"
	"time"

	"opensource.internal/manager/internal/config"
	"opensource.internal/manager/internal/store"
	"opensource.internal/manager/internal/tasks"
)

// newTasks is everything that one of the managers does now and then.
func (s *Server) newTasks(c config.Config, lease *store.Lease) *tasks.Runner {
	return tasks.New(lease, s.log,
		tasks.Task{Name: "delete old revisions", Every: time.Hour, Run: func(ctx context.Context) error { return s.pruneRevisions(ctx, c) }},
		tasks.Task{Name: "note silent agents", Every: 15 * time.Second, Run: s.markOffline},
		tasks.Task{Name: "note who is silent", Every: time.Minute, Run: s.noteSilence},
		tasks.Task{Name: "forget old enrollments", Every: time.Hour, Run: s.forgetEnrollments},
		tasks.Task{Name: "notify", Every: 5 * time.Second, Run: s.notifier.Run},
		tasks.Task{Name: "drop old audit entries", Every: 10 * time.Minute, Run: func(ctx context.Context) error {
			return s.Store.PruneAudit(ctx, store.Retention(c.Audit))
		}},
		tasks.Task{Name: "drop old events", Every: 10 * time.Minute, Run: func(ctx context.Context) error {
			return s.Store.PruneEvents(ctx, store.Retention(c.Events))
		}},
	)
}

// markOffline counts silence only since there has always been some manager to
// hear an agent.
func (s *Server) markOffline(ctx context.Context) error {
	since, err := s.Store.UnbrokenSince(ctx, tasks.LeaseName)
	if err != nil {
		return err
	}
	return s.Store.MarkOffline(ctx, since)
}

// noteSilence keeps how agents checked in during the last day.
func (s *Server) noteSilence(ctx context.Context) error {
	since, err := s.Store.UnbrokenSince(ctx, tasks.LeaseName)
	if err != nil {
		return err
	}
	return s.Store.NoteSilence(ctx, since)
}

// keptEnrollments is how long it is shown who used a token, and when.
const keptEnrollments = 90 * 24 * time.Hour

func (s *Server) forgetEnrollments(ctx context.Context) error {
	return s.Store.DeleteOldEnrollments(ctx, time.Now().UTC().Add(-keptEnrollments))
}
