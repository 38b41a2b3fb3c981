package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"
)

// AgentState is what an overview of agents can be filtered by. An agent may be in
// several.
type AgentState string

// The values of AgentState, besides those of Presence.
const (
	StateFailing AgentState = "failing" // a service or volume of it is not as it should be
	StateBehind  AgentState = "behind"  // it runs another revision than is published
	StateHeld    AgentState = "held"    // it is kept from the latest content: by a hold, the guard or a pin
	StateWarning AgentState = "warning" // it works, but somebody should look
)

// AgentStates are all states, in the order of an overview.
var AgentStates = []AgentState{
	AgentState(Online), AgentState(Late), AgentState(Offline), StateFailing, StateBehind, StateWarning, StateHeld,
}

// conditions choose the agents of a state from agentStates.
var conditions = map[AgentState]string{
	AgentState(Online): "absence = 0", AgentState(Late): "absence = 1", AgentState(Offline): "absence = 2",
	StateFailing: "failing = 1", StateBehind: "behind = 1", StateWarning: "warning = 1", StateHeld: "held = 1",
}

// OverviewOptions choose a page of an overview of agents.
type OverviewOptions struct {
	SiteID int64      // 0 for all
	State  AgentState // "" for all
	// Search chooses agents whose host name, addresses, or site contain it.
	Search string
	// Sort is one of OverviewSorts, "-" before it for the other way around; the worst
	// first if empty.
	Sort string
	// BySite keeps the agents of a site together.
	BySite        bool
	Limit, Offset int
}

// overviewSorts are what an overview is sorted by: site and host come after it.
var overviewSorts = map[string]string{
	"state": "rank", "host": "lower(hostname)", "site": "lower(site)", "address": "address_order", "version": "version_order",
	"seen": "last_seen_at", "services": "severity", "revision": "behind",
}

// OverviewSorts are what an overview can be sorted by.
func OverviewSorts() []string { return slices.Sorted(maps.Keys(overviewSorts)) }

// AgentOverview is a page of an overview, with how many agents there are.
type AgentOverview struct {
	Rows []AgentRow
	// Counts are by state, of what is chosen by site and search alone. All is how
	// many these are, Total how many are in the state as well, and Any how many
	// agents there are at all.
	Counts          map[AgentState]int64
	All, Total, Any int64
}

// AgentRow is an agent with what decides how it stands.
type AgentRow struct {
	Agent
	Site       string
	Publishing string // of the site
	Pin        *Pin
	Volumes    map[VolumeStatus]int // of the site
	Failing    bool
	Warning    bool
	AgentRevision
}

// AgentRevision says which revision an agent runs, and which it is given.
type AgentRevision struct {
	Behind      bool
	Published   int64      // number of the revision that it is given, 0 if there is none yet
	Running     int64      // number of the one that it runs, 0 if that is not known
	None        bool       // none is in force as a whole
	BehindSince *time.Time // when the first one came that it does not run; nil if that is not known
}

// agentStates has one row for each agent. What an agent is given is the pinned
// revision, or the latest.
const agentStates = `SELECT states.*,
  CASE WHEN absence = 2 THEN 0 WHEN failing = 1 THEN 1 WHEN behind = 1 THEN 2 WHEN absence = 1 THEN 3 WHEN warning = 1 THEN 4 WHEN held = 1 THEN 5 ELSE 6 END AS rank
FROM (
  SELECT a.id, a.site_id, a.hostname, a.address, a.address_order, a.peer_address, a.version_order, a.last_seen_at, a.severity, s.name AS site,
    CASE WHEN a.last_seen_at >= @online THEN 0 WHEN a.last_seen_at >= @late THEN 1 ELSE 2 END AS absence,
    CASE WHEN a.severity = 2 OR f.site_id IS NOT NULL THEN 1 ELSE 0 END AS failing,
    CASE WHEN a.severity = 1 OR a.clock_skew_ms IS NULL OR abs(a.clock_skew_ms) > @skew THEN 1 ELSE 0 END AS warning,
    CASE WHEN a.running_etag <> '' AND a.running_etag <> r.etag THEN 1 ELSE 0 END AS behind,
    CASE WHEN a.held = 1 OR p.site_id IS NOT NULL THEN 1 ELSE 0 END AS held
  FROM agents a
  JOIN sites s ON s.id = a.site_id
  LEFT JOIN pins p ON p.site_id = a.site_id
  LEFT JOIN (SELECT DISTINCT site_id FROM volumes WHERE status = 'failed') f ON f.site_id = a.site_id
  LEFT JOIN (SELECT site_id, max(number) AS number FROM revisions GROUP BY site_id) l ON l.site_id = a.site_id
  LEFT JOIN revisions r ON r.site_id = a.site_id AND r.number = COALESCE(p.revision, l.number)
) states`

// SkewWorthTelling is how far an agent's clock may be off without a word.
const SkewWorthTelling = 30 * time.Second

// OverviewAgents returns a page of all agents with how they stand. It is made by
// the database, of what is stored: presence may lag by a heartbeat interval in
// what it is filtered and sorted by, but not in the rows themselves.
func (s *Store) OverviewAgents(ctx context.Context, opts OverviewOptions) (AgentOverview, error) {
	var view AgentOverview
	err := s.read.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		chosen, err := chosenAgents(tx, opts)
		if err != nil {
			return err
		}
		if err := view.count(tx, chosen, opts); err != nil {
			return err
		}
		ids, err := pageOfAgents(chosen, opts)
		if err != nil {
			return err
		}
		view.Rows, err = readAgentRows(tx, ids)
		return err
	}, asOfOneMoment)
	if err != nil {
		return AgentOverview{}, fmt.Errorf("overview of agents: %w", err)
	}
	s.bringUpToDate(view.Rows)
	return view, nil
}

// chosenAgents are those of a site and search, whatever their state.
func chosenAgents(tx *gorm.DB, opts OverviewOptions) (*gorm.DB, error) {
	if _, known := conditions[opts.State]; opts.State != "" && !known {
		return nil, invalid("state", "%q is not a state of agents", opts.State)
	}
	states := tx.Raw(agentStates, sql.Named("online", now().Add(-OnlineFor)), sql.Named("late", now().Add(-LateFor)),
		sql.Named("skew", SkewWorthTelling.Milliseconds()))
	query := where(tx.Table("(?) AS agent_states", states), "site_id", opts.SiteID)
	if opts.Search != "" {
		query = containing(query, opts.Search, "hostname", "address", "peer_address", "site")
	}
	return query.Session(&gorm.Session{}), nil // used several times
}

func (v *AgentOverview) count(tx, chosen *gorm.DB, opts OverviewOptions) error {
	columns := []string{"count(*) AS total"}
	for _, state := range AgentStates {
		columns = append(columns, fmt.Sprintf("COALESCE(sum(CASE WHEN %s THEN 1 ELSE 0 END), 0) AS %s", conditions[state], state))
	}
	var counted struct{ Total, Online, Late, Offline, Failing, Behind, Warning, Held int64 }
	if err := chosen.Select(strings.Join(columns, ", ")).Scan(&counted).Error; err != nil {
		return err
	}
	v.All = counted.Total
	v.Counts = map[AgentState]int64{
		AgentState(Online): counted.Online, AgentState(Late): counted.Late, AgentState(Offline): counted.Offline,
		StateFailing: counted.Failing, StateBehind: counted.Behind, StateWarning: counted.Warning, StateHeld: counted.Held,
	}
	if v.Total = v.All; opts.State != "" {
		v.Total = v.Counts[opts.State]
	}
	if v.Any = v.All; v.Any > 0 {
		return nil
	}
	return tx.Model(&Agent{}).Count(&v.Any).Error
}

// pageOfAgents are the ids of the agents of a page, in its order.
func pageOfAgents(chosen *gorm.DB, opts OverviewOptions) ([]int64, error) {
	query := chosen
	if opts.State != "" {
		query = query.Where(conditions[opts.State])
	}
	field, reversed := strings.CutPrefix(opts.Sort, "-")
	if field == "" {
		field = "state"
	}
	column, known := overviewSorts[field]
	if !known {
		return nil, invalid("sort", "cannot sort by %q: one of %s", field, strings.Join(OverviewSorts(), ", "))
	}
	if opts.BySite {
		query = query.Order("lower(site), site_id")
	}
	var ids []int64
	err := query.Order(column+direction(reversed)+", lower(site), site_id, lower(hostname), id").
		Limit(opts.Limit).Offset(opts.Offset).Pluck("id", &ids).Error
	return ids, err
}

// readAgentRows reads all about the agents of a page.
func readAgentRows(tx *gorm.DB, ids []int64) ([]AgentRow, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	var agents []Agent
	if err := tx.Where("id IN ?", ids).Find(&agents).Error; err != nil {
		return nil, err
	}
	sites, err := readSitesOf(tx, agents)
	if err != nil {
		return nil, err
	}
	revisions, err := readAgentRevisions(tx, ids)
	if err != nil {
		return nil, err
	}
	rows := make([]AgentRow, len(ids))
	for _, agent := range agents {
		row := sites[agent.SiteID]
		row.Agent, row.AgentRevision = agent, revisions[agent.ID]
		rows[slices.Index(ids, agent.ID)] = row
	}
	return rows, nil
}

// readSitesOf reads what the agents of a site have in common, by site.
func readSitesOf(tx *gorm.DB, agents []Agent) (map[int64]AgentRow, error) {
	var ids []int64
	for _, agent := range agents {
		ids = append(ids, agent.SiteID)
	}
	var sites []Site
	var pins []Pin
	var volumes []VolumeCount
	err := errors.Join(
		tx.Where("id IN ?", ids).Find(&sites).Error,
		tx.Where("site_id IN ?", ids).Find(&pins).Error,
		tx.Model(&Volume{}).Select("site_id, status, count(*) AS total").Where("site_id IN ?", ids).
			Group("site_id, status").Scan(&volumes).Error)
	if err != nil {
		return nil, err
	}
	rows := map[int64]AgentRow{}
	for _, site := range sites {
		rows[site.ID] = AgentRow{Site: site.Name, Publishing: site.Publishing, Volumes: map[VolumeStatus]int{}}
	}
	for _, pin := range pins {
		row := rows[pin.SiteID]
		row.Pin = &pin
		rows[pin.SiteID] = row
	}
	for _, volume := range volumes {
		rows[volume.SiteID].Volumes[volume.Status] = volume.Total
	}
	return rows, nil
}

// agentRevisions compares what some agents run with what they are given. After
// the revision that one runs came the next.
const agentRevisions = `SELECT a.id, a.running, a.running_etag, p.pinned_at,
  COALESCE(given.number, 0) AS published, given.etag AS published_etag, next.created_at AS next_at
FROM (
  SELECT agents.id, agents.site_id, agents.running_etag, COALESCE((
    SELECT max(number) FROM revisions WHERE revisions.site_id = agents.site_id AND revisions.etag = agents.running_etag
  ), 0) AS running
  FROM agents WHERE agents.id IN @ids
) a
LEFT JOIN pins p ON p.site_id = a.site_id
LEFT JOIN revisions given ON given.site_id = a.site_id
  AND given.number = COALESCE(p.revision, (SELECT max(m.number) FROM revisions m WHERE m.site_id = a.site_id))
LEFT JOIN revisions next ON next.site_id = a.site_id
  AND next.number = (SELECT min(m.number) FROM revisions m WHERE m.site_id = a.site_id AND m.number > a.running)`

func readAgentRevisions(tx *gorm.DB, ids []int64) (map[int64]AgentRevision, error) {
	var read []struct {
		ID, Running, Published int64
		RunningETag            string `gorm:"column:running_etag"`
		PublishedETag          string `gorm:"column:published_etag"`
		PinnedAt, NextAt       *time.Time
	}
	if err := tx.Raw(agentRevisions, sql.Named("ids", ids)).Scan(&read).Error; err != nil {
		return nil, err
	}
	byAgent := map[int64]AgentRevision{}
	for _, row := range read {
		r := AgentRevision{Published: row.Published, Running: row.Running}
		r.None = row.RunningETag == noneInForce
		r.Behind = row.Published != 0 && row.RunningETag != "" && row.RunningETag != row.PublishedETag
		switch {
		case !r.Behind:
			r.Running = min(row.Running, row.Published) // of the same content, the one that it was given
		case row.Running == 0: // a revision that is not kept any more, or another manager's
		case row.Running > row.Published:
			r.BehindSince = row.PinnedAt
		default:
			r.BehindSince = row.NextAt
		}
		byAgent[row.ID] = r
	}
	return byAgent, nil
}

// bringUpToDate adds the heartbeats that are still in memory.
func (s *Store) bringUpToDate(rows []AgentRow) {
	agents := make([]Agent, len(rows))
	for i, row := range rows {
		agents[i] = row.Agent
	}
	s.damaged.tell(agents)
	s.heartbeats.mergeInto(agents)
	for i := range rows {
		row := &rows[i]
		row.Agent = agents[i]
		row.Failing = row.Summary.Severity == Failing || row.Volumes[VolumeFailed] > 0
		row.Warning = row.Summary.Severity == Warning || row.ClockSkewMS == nil || skewWorthTelling(*row.ClockSkewMS)
	}
}

func skewWorthTelling(ms int64) bool {
	return (time.Duration(ms) * time.Millisecond).Abs() > SkewWorthTelling
}
