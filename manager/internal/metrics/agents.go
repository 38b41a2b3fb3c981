package metrics

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/store"
)

// scrapeTimeout bounds what one scrape asks of the database, and freshFor is
// how long its result serves others.
const (
	scrapeTimeout = 5 * time.Second
	freshFor      = time.Second
)

// ageBuckets are about the limits of online and late.
var ageBuckets = []float64{30, 60, 90, 300, 900, 3600, 86400}

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(namespace+"_"+name, help, labels, nil)
}

var (
	agentsDesc       = describe("agents", "Agents by how long ago they checked in: online up to 90 s, late up to 5 minutes, then offline.", "state")
	problemsDesc     = describe("agents_with_problem", "Agents whose latest report tells of a problem. One may have several.", "problem")
	agesDesc         = describe("agents_last_checkin_age_seconds", "Agents by the time since their last check-in.")
	volumesDesc      = describe("volumes", "Volumes by status.", "status")
	siteAgentsDesc   = describe("site_agents", "Agents of a site by state.", "site_id", "site", "state")
	siteOldestDesc   = describe("site_oldest_checkin_age_seconds", "Time since the last check-in of that agent of a site which was heard longest ago.", "site_id", "site")
	siteProblemsDesc = describe("site_agents_with_problem", "Agents of a site whose latest report tells of a problem; no series if there are none.", "site_id", "site", "problem")
	siteFailedDesc   = describe("site_volumes_failed", "Volumes of a site that could not be provided; no series if there are none.", "site_id", "site")
	agentAgeDesc     = describe("agent_last_checkin_age_seconds", "Time since an agent's last check-in.", "site_id", "site", "hostname")
	omittedDesc      = describe("detail_omitted", "Sites and agents that have no series of their own, as there are more than METRICS_DETAIL.", "of")
)

var agentDescs = []*prometheus.Desc{
	agentsDesc, problemsDesc, agesDesc, volumesDesc, siteAgentsDesc,
	siteOldestDesc, siteProblemsDesc, siteFailedDesc, agentAgeDesc, omittedDesc,
}

// The problems that a report can tell of.
const (
	applyFailed = "apply_failed"
	certificate = "certificate"
	drifted     = "drift"
	guardHeld   = "guard_held"
	held        = "held"
	quarantined = "quarantined"
	unreadable  = "unreadable_report"
)

var problems = []string{applyFailed, certificate, drifted, guardHeld, held, quarantined, unreadable}

// agents reads, at a scrape, how all agents are. Reports are large: one is read
// again only after it has changed.
type agents struct {
	store  *store.Store
	detail int
	now    func() time.Time

	mu    sync.Mutex // held while reading
	known map[int64]knownAgent
	at    time.Time
	last  []prometheus.Metric
	err   error
}

type knownAgent struct {
	told     int64
	problems []string
}

func newAgents(o Options) *agents {
	return &agents{store: o.Store, detail: o.Detail, now: o.Now, known: map[int64]knownAgent{}}
}

// Describe implements prometheus.Collector.
func (c *agents) Describe(to chan<- *prometheus.Desc) {
	for _, desc := range agentDescs {
		to <- desc
	}
}

// Collect implements prometheus.Collector.
func (c *agents) Collect(to chan<- prometheus.Metric) {
	read, err := c.fresh()
	if err != nil {
		to <- prometheus.NewInvalidMetric(agentsDesc, err)
		return
	}
	for _, metric := range read {
		to <- metric
	}
}

// fresh reads everything, unless somebody has done so just now.
func (c *agents) fresh() ([]prometheus.Metric, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if age := c.now().Sub(c.at); age >= 0 && age < freshFor {
		return c.last, c.err
	}
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	c.last, c.err = c.read(ctx)
	c.at = c.now()
	return c.last, c.err
}

func (c *agents) read(ctx context.Context) ([]prometheus.Metric, error) {
	seen, err := c.store.AgentsSeen(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.learn(ctx, seen); err != nil {
		return nil, err
	}
	volumes, err := c.store.CountVolumes(ctx)
	if err != nil {
		return nil, err
	}
	names, err := c.store.SiteNames(ctx)
	if err != nil {
		return nil, err
	}
	return c.sum(seen, volumes, names).metrics(c.detail), nil
}

// maxReports is how many reports are read at once.
const maxReports = 500

// learn reads the reports that have changed, and forgets agents that are gone.
func (c *agents) learn(ctx context.Context, seen []store.AgentSeen) error {
	fresh := make(map[int64]knownAgent, len(seen))
	defer func() { c.known = fresh }() // with what was read before a fault
	var changed []int64
	for _, agent := range seen {
		if known, ok := c.known[agent.ID]; ok && known.told == agent.Told {
			fresh[agent.ID] = known
			continue
		}
		changed = append(changed, agent.ID)
	}
	for ids := range slices.Chunk(changed, maxReports) {
		read, err := c.store.AgentsByID(ctx, ids)
		if err != nil {
			return err
		}
		for _, agent := range read {
			fresh[agent.ID] = knownAgent{agent.Told, problemsOf(agent.Report)}
		}
	}
	return nil
}

// problemsOf names what a report tells of, each once.
func problemsOf(report store.Report) []string {
	if report.Fault != nil {
		return []string{unreadable}
	}
	found := map[string]bool{guardHeld: report.Guard != nil}
	for _, service := range report.Services {
		found[applyFailed] = found[applyFailed] || service.Failing()
		found[quarantined] = found[quarantined] || len(service.Quarantined) > 0
		found[held] = found[held] || service.Hold != nil
		found[drifted] = found[drifted] || len(service.Drift) > 0
	}
	for _, pair := range report.Certificates {
		found[certificate] = found[certificate] || pair.State != checkin.CertificateOK
	}
	maps.DeleteFunc(found, func(_ string, is bool) bool { return !is })
	return slices.Sorted(maps.Keys(found))
}

// totals are the figures of all agents, or of those of one site.
type totals struct {
	id            int64
	name          string
	states        map[store.Presence]int
	problems      map[string]int
	oldest        time.Duration
	agents        int
	failedVolumes int
}

// summary is what a scrape tells of the agents.
type summary struct {
	all     totals
	sites   []*totals
	ages    []agentAge
	volumes map[store.VolumeStatus]int
}

type agentAge struct {
	site     *totals
	hostname string
	age      time.Duration
}

func (c *agents) sum(seen []store.AgentSeen, volumes []store.VolumeCount, names map[int64]string) summary {
	s := summary{all: newTotals(0, ""), volumes: map[store.VolumeStatus]int{}}
	sites := map[int64]*totals{}
	for id, name := range names {
		site := newTotals(id, name)
		sites[id] = &site
		s.sites = append(s.sites, &site)
	}
	slices.SortFunc(s.sites, func(a, b *totals) int { return cmp.Compare(a.id, b.id) })
	now := c.now()
	for _, agent := range seen {
		site := sites[agent.SiteID]
		if site == nil {
			continue // deleted in between
		}
		as := store.Agent{LastSeenAt: agent.LastSeenAt}
		for _, t := range []*totals{&s.all, site} {
			t.add(as.Presence(now), as.Age(now), c.known[agent.ID].problems)
		}
		s.ages = append(s.ages, agentAge{site, agent.Hostname, as.Age(now)})
	}
	for _, count := range volumes {
		s.volumes[count.Status] += count.Total
		if site := sites[count.SiteID]; site != nil && count.Status == store.VolumeFailed {
			site.failedVolumes = count.Total
		}
	}
	return s
}

func newTotals(id int64, name string) totals {
	return totals{id: id, name: name, states: map[store.Presence]int{}, problems: map[string]int{}}
}

func (t *totals) add(state store.Presence, age time.Duration, problems []string) {
	t.agents++
	t.states[state]++
	t.oldest = max(t.oldest, age)
	for _, problem := range problems {
		t.problems[problem]++
	}
}

// labels name a site. Its name may change, its id does not.
func (t *totals) labels(more ...string) []string {
	return append([]string{strconv.FormatInt(t.id, 10), t.name}, more...)
}

func gauge[N int | float64](desc *prometheus.Desc, value N, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(value), labels...)
}

var presences = []store.Presence{store.Online, store.Late, store.Offline}

// metrics turns the summary into series: totals always, sites and agents of
// their own if there are not too many.
func (s summary) metrics(detail int) []prometheus.Metric {
	var list []prometheus.Metric
	for _, state := range presences {
		list = append(list, gauge(agentsDesc, s.all.states[state], string(state)))
	}
	for _, problem := range problems {
		list = append(list, gauge(problemsDesc, s.all.problems[problem], problem))
	}
	for _, status := range []store.VolumeStatus{store.VolumePending, store.VolumeReady, store.VolumeFailed} {
		list = append(list, gauge(volumesDesc, s.volumes[status], string(status)))
	}
	list = append(list, s.histogram())
	omittedSites, omittedAgents := 0, 0
	if omittedSites = overflow(len(s.sites), detail); omittedSites == 0 {
		for _, site := range s.sites {
			list = append(list, site.metrics()...)
		}
	}
	if omittedAgents = overflow(len(s.ages), detail); omittedAgents == 0 {
		for _, agent := range s.ages {
			list = append(list, gauge(agentAgeDesc, agent.age.Seconds(), agent.site.labels(agent.hostname)...))
		}
	}
	return append(list, gauge(omittedDesc, omittedSites, "sites"), gauge(omittedDesc, omittedAgents, "agents"))
}

// overflow is how many get no series: all, if there are too many.
func overflow(total, limit int) int {
	if total > limit {
		return total
	}
	return 0
}

func (s summary) histogram() prometheus.Metric {
	buckets := map[float64]uint64{}
	var sum float64
	for _, agent := range s.ages {
		sum += agent.age.Seconds()
		for _, limit := range ageBuckets {
			if agent.age.Seconds() <= limit {
				buckets[limit]++
			}
		}
	}
	for _, limit := range ageBuckets {
		buckets[limit] += 0 // an empty one is shown, too
	}
	return prometheus.MustNewConstHistogram(agesDesc, uint64(len(s.ages)), sum, buckets)
}

func (t *totals) metrics() []prometheus.Metric {
	var list []prometheus.Metric
	for _, state := range presences {
		list = append(list, gauge(siteAgentsDesc, t.states[state], t.labels(string(state))...))
	}
	if t.agents > 0 {
		list = append(list, gauge(siteOldestDesc, t.oldest.Seconds(), t.labels()...))
	}
	for _, problem := range slices.Sorted(maps.Keys(t.problems)) {
		list = append(list, gauge(siteProblemsDesc, t.problems[problem], t.labels(problem)...))
	}
	if t.failedVolumes > 0 {
		list = append(list, gauge(siteFailedDesc, t.failedVolumes, t.labels()...))
	}
	return list
}
