// Package metrics measures the manager for Prometheus: what it answers, how its
// agents are, and how its database and queues are. Nothing here costs a
// check-in more than two counters; what the database knows is read when
// somebody scrapes.
package metrics
