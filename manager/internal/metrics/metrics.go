package metrics

import (
	"log/slog"
	"net/http"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"opensource.internal/manager/internal/store"
)

const namespace = "opensource_manager"

// Options are what New needs.
type Options struct {
	Store   *store.Store
	Log     *slog.Logger
	Version string
	// Detail is up to how many sites, and up to how many agents, each has series
	// of its own. Above it there are only totals.
	Detail int
	// Pending is how many notifications wait to be delivered.
	Pending func() int
	// Now is time.Now if nil.
	Now func() time.Time
}

// Metrics is everything that is measured. It is safe for concurrent use.
type Metrics struct {
	registry *prometheus.Registry
	log      *slog.Logger
	requests *requests
	builds   *prometheus.HistogramVec
	notified *prometheus.CounterVec
}

// New returns the metrics of one manager.
func New(o Options) *Metrics {
	if o.Now == nil {
		o.Now = time.Now
	}
	m := &Metrics{registry: prometheus.NewRegistry(), log: o.Log}
	m.requests = newRequests(m.registry)
	m.builds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: namespace, Name: "snapshot_build_duration_seconds",
		Help:    "Time to build and publish the snapshot of a site that has changed, by result.",
		Buckets: []float64{0.001, 0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 8},
	}, []string{"result"})
	m.notified = prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: namespace, Name: "notifications_total", Help: "Messages sent to notification targets, by result.",
	}, []string{"result"})
	for _, result := range []string{succeeded, failed} {
		m.builds.WithLabelValues(result)
		m.notified.WithLabelValues(result)
	}
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Namespace: namespace, Name: "build_info", Help: "What runs; always 1.",
		ConstLabels: prometheus.Labels{"version": o.Version, "goversion": runtime.Version()},
	})
	info.Set(1)
	m.registry.MustRegister(
		m.builds, m.notified, info,
		newAgents(o),
		newDatabase(o),
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return m
}

// The results of what is done.
const (
	succeeded = "ok"
	failed    = "failed"
)

func resultOf(err error) string {
	if err != nil {
		return failed
	}
	return succeeded
}

// Built notes that a snapshot was built, or could not be.
func (m *Metrics) Built(took time.Duration, err error) {
	m.builds.WithLabelValues(resultOf(err)).Observe(took.Seconds())
}

// Notified notes that a message was sent to a notification target, or could
// not be.
func (m *Metrics) Notified(err error) { m.notified.WithLabelValues(resultOf(err)).Inc() }

// Handler answers a scrape. What cannot be read is left out and logged: the
// rest is all the more of interest then.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		ErrorLog:      scrapeLog{m.log},
		ErrorHandling: promhttp.ContinueOnError,
	})
}

type scrapeLog struct{ *slog.Logger }

// Println implements promhttp.Logger.
func (l scrapeLog) Println(v ...any) { l.Warn("some metrics could not be read", "err", v) }
