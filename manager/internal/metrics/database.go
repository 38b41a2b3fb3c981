package metrics

import (
	"context"
	"database/sql"
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"opensource.internal/manager/internal/store"
)

var (
	readyDesc      = describe("ready", "Whether the database can be read and written.")
	schemaDesc     = describe("database_schema_version", "Number of the last migration of the database.")
	sizeDesc       = describe("database_size_bytes", "Room that the database takes.")
	openDesc       = describe("database_connections", "Open connections to the database.", "pool", "state")
	maxDesc        = describe("database_connections_max", "Connections that may be open at once; 0 is no limit.", "pool")
	waitsDesc      = describe("database_connection_waits_total", "Times that a connection was waited for.", "pool")
	waitedDesc     = describe("database_connection_wait_seconds_total", "Time that was spent waiting for a connection.", "pool")
	queueDesc      = describe("notifications_pending", "What notification targets are still to be told, of all together; 0 unless this manager tells them.")
	failuresDesc   = describe("notification_target_failures", "Deliveries to a target that failed in a row.", "target")
	heartbeatsDesc = describe("heartbeats_pending", "Agents whose latest heartbeat is in memory only; it is stored within seconds.")
)

// database reads, at a scrape, how the database is.
type database struct {
	store   *store.Store
	pending func() int
}

func newDatabase(o Options) database {
	if o.Pending == nil {
		o.Pending = func() int { return 0 }
	}
	return database{o.Store, o.Pending}
}

// Describe implements prometheus.Collector.
func (database) Describe(to chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{readyDesc, schemaDesc, sizeDesc, openDesc, maxDesc, waitsDesc, waitedDesc, heartbeatsDesc, queueDesc, failuresDesc} {
		to <- desc
	}
}

// Collect implements prometheus.Collector. A database that does not answer is
// no reason to show nothing.
func (c database) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	ready := 1
	if c.store.Ping(ctx) != nil || c.store.Writable(ctx) != nil {
		ready = 0
	}
	to <- gauge(readyDesc, ready)
	to <- gauge(heartbeatsDesc, c.store.PendingHeartbeats())
	to <- gauge(queueDesc, c.pending())
	pools := c.store.Pools()
	for _, name := range slices.Sorted(maps.Keys(pools)) {
		collectPool(to, name, pools[name])
	}
	if ready == 0 {
		return
	}
	if version, err := c.store.SchemaVersion(ctx); err == nil {
		to <- gauge(schemaDesc, int(version))
	}
	if size, err := c.store.Size(ctx); err == nil {
		to <- gauge(sizeDesc, float64(size))
	}
	targets, _, err := c.store.ListNotificationTargets(ctx, store.NotificationTargetFilter{}, store.ListOptions{Limit: store.MaxLimit})
	if err != nil {
		to <- prometheus.NewInvalidMetric(failuresDesc, err)
		return
	}
	for _, target := range targets {
		if target.Enabled {
			to <- gauge(failuresDesc, target.Failures, target.Name)
		}
	}
}

func collectPool(to chan<- prometheus.Metric, name string, stats sql.DBStats) {
	counter := func(desc *prometheus.Desc, value float64) {
		to <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, value, name)
	}
	to <- gauge(openDesc, stats.InUse, name, "in_use")
	to <- gauge(openDesc, stats.Idle, name, "idle")
	to <- gauge(maxDesc, stats.MaxOpenConnections, name)
	counter(waitsDesc, float64(stats.WaitCount))
	counter(waitedDesc, stats.WaitDuration.Seconds())
}
