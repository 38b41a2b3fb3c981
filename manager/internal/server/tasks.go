package server

import (
	"opensource.internal/manager/internal/config"
	"opensource.internal/manager/internal/tasks"
)

// newTasks is everything that one of the managers does now and then.
func (s *Server) newTasks(config.Config) *tasks.Runner {
	return tasks.New(s.Store.NewLease(tasks.LeaseName, tasks.LeaseTerm), s.log)
}
