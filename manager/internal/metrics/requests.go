package metrics

import (
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Answer is what is measured of a request.
type Answer struct {
	Method string
	// Route is the pattern that the path matched, "" if none. The path itself is
	// the client's to choose, and would make a series each.
	Route  string
	Status int
	Took   time.Duration
	// CheckIn marks the check-in of an agent.
	CheckIn bool
	// Stream marks an answer that lasts as long as the client wants.
	Stream bool
}

// requests counts and times the answers.
type requests struct {
	total    *prometheus.CounterVec
	duration *prometheus.HistogramVec
	checkIns *prometheus.CounterVec

	mu     sync.RWMutex
	series map[seriesKey]*series
}

type seriesKey struct {
	method, route string
	status        int
}

// series are the ready counters of one kind of answer: to look them up by
// their labels would cost more than to count.
type series struct {
	total    prometheus.Counter
	duration prometheus.Observer
	checkIns prometheus.Counter
}

func newRequests(registry prometheus.Registerer) *requests {
	labels := []string{"method", "route", "status"}
	r := &requests{
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Name: "http_requests_total", Help: "Answered requests, by the pattern of their path.",
		}, labels),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: namespace, Name: "http_request_duration_seconds", Help: "Time from the request's headers to the end of the answer; live streams are not part of it.",
			Buckets: []float64{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 1, 2.5, 8},
		}, labels),
		checkIns: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Name: "checkins_total", Help: "Check-ins of agents, by answer.",
		}, []string{"answer"}),
		series: map[seriesKey]*series{},
	}
	for _, answer := range []string{"200", "304", "4xx", "5xx"} {
		r.checkIns.WithLabelValues(answer)
	}
	registry.MustRegister(r.total, r.duration, r.checkIns)
	return r
}

// Answered notes that a request has been answered.
func (m *Metrics) Answered(a Answer) { m.requests.add(a) }

func (r *requests) add(a Answer) {
	s := r.of(seriesKey{a.Method, a.Route, a.Status})
	s.total.Inc()
	if !a.Stream {
		s.duration.Observe(a.Took.Seconds())
	}
	if a.CheckIn {
		s.checkIns.Inc()
	}
}

func (r *requests) of(key seriesKey) *series {
	r.mu.RLock()
	found := r.series[key]
	r.mu.RUnlock()
	if found != nil {
		return found
	}
	method, route, status := knownMethod(key.method), key.route, strconv.Itoa(key.status)
	if route == "" {
		route = "none"
	}
	made := &series{
		total:    r.total.WithLabelValues(method, route, status),
		duration: r.duration.WithLabelValues(method, route, status),
		checkIns: r.checkIns.WithLabelValues(checkInAnswer(key.status)),
	}
	if method != key.method {
		return made // clients can make up any number of methods
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.series[key] = made
	return made
}

var methods = []string{
	http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch,
	http.MethodDelete, http.MethodOptions,
}

func knownMethod(method string) string {
	if slices.Contains(methods, method) {
		return method
	}
	return "other"
}

func checkInAnswer(status int) string {
	switch {
	case status == http.StatusOK, status == http.StatusNotModified:
		return strconv.Itoa(status)
	case status >= http.StatusInternalServerError:
		return "5xx"
	default:
		return "4xx"
	}
}
