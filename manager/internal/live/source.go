package live

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"opensource.internal/manager/internal/snapshot"
	"opensource.internal/manager/internal/store"
)

// lookTimeout bounds one look at the database.
const lookTimeout = 5 * time.Second

// New returns a hub of what changes in a store.
func New(s *store.Store, snapshots *snapshot.Cache, log *slog.Logger) *Hub {
	return newHub(newDatabase(s, snapshots, log), log)
}

// database compares how things stand with how they stood. That needs no log of
// changes, and whoever was away for a while misses nothing but what came and went.
type database struct {
	store     *store.Store
	snapshots *snapshot.Cache
	log       *slog.Logger
	known     *standing      // nil: nothing is known yet
	unbuilt   map[int64]bool // sites whose snapshot cannot be built, as was logged
}

func newDatabase(s *store.Store, snapshots *snapshot.Cache, log *slog.Logger) *database {
	return &database{store: s, snapshots: snapshots, log: log, unbuilt: map[int64]bool{}}
}

// standing is how things stand.
type standing struct {
	sites   map[int64]uint64              // change counters
	reports map[int64]uint64              // counters of what agents tell, by site
	agents  map[int64]map[int64]time.Time // by site and id: when they told something new
	events  []store.EventMark             // the latest ones
}

// What the data of an event holds.
type (
	agentData struct {
		ID     int64 `json:"id"`
		SiteID int64 `json:"siteId"`
	}
	siteData struct {
		ID   int64   `json:"id"`
		ETag *string `json:"etag"` // of its snapshot; null if there is none (any more), or none can be built
	}
)

func (d *database) forget() { d.known = nil }

func (d *database) listen(ctx context.Context, heard func()) { d.store.Listen(ctx, heard) }

func (d *database) changes(ctx context.Context) ([]change, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	versions, err := d.store.Versions(ctx)
	if err != nil {
		return nil, err
	}
	next := standing{sites: versions.Sites(), agents: map[int64]map[int64]time.Time{}}
	if next.reports, err = d.store.ReportCounters(ctx); err != nil {
		return nil, err
	}
	if next.events, err = d.store.LatestEvents(ctx); err != nil {
		return nil, err
	}
	if d.known == nil {
		if next.agents, err = d.store.AgentsToldAt(ctx, 0); err != nil {
			return nil, err
		}
		d.known = &next
		return nil, nil
	}
	found, err := d.compare(ctx, next, versions)
	if err != nil {
		return nil, err
	}
	return found, nil
}

// compare moves what is known on to next and tells the difference.
func (d *database) compare(ctx context.Context, next standing, versions store.Versions) ([]change, error) {
	var found []change
	for _, site := range moved(d.known.sites, next.sites) {
		etag, err := d.etag(ctx, site, versions)
		if err != nil {
			return nil, err
		}
		found = append(found, change{Site, siteData{site, etag}})
	}
	agents := maps.Clone(d.known.agents)
	for _, site := range moved(d.known.reports, next.reports) {
		now, err := d.store.AgentsToldAt(ctx, site)
		if err != nil {
			return nil, err
		}
		for _, id := range moved(d.known.agents[site], now[site]) {
			found = append(found, change{Agent, agentData{id, site}})
		}
		agents[site] = now[site]
	}
	for _, event := range next.events {
		if !slices.Contains(d.known.events, event) {
			found = append(found, change{Happened, event})
		}
	}
	next.agents = agents
	d.known = &next
	return found, nil
}

// etag is nil if a site has no snapshot. That one cannot be built for other
// reasons than the database is no reason to be silent about all other sites.
func (d *database) etag(ctx context.Context, site int64, versions store.Versions) (*string, error) {
	current, err := d.snapshots.At(ctx, site, versions)
	switch {
	case err == nil:
		delete(d.unbuilt, site)
		return &current.ETag, nil
	case errors.Is(err, store.ErrNotFound):
		delete(d.unbuilt, site)
		return nil, nil
	case store.Unavailable(err) || ctx.Err() != nil:
		return nil, fmt.Errorf("tell a change of site %d: %w", site, err)
	}
	if !d.unbuilt[site] {
		d.log.Error("live pages show a site without its snapshot", "site", site, "err", err)
		d.unbuilt[site] = true
	}
	return nil, nil
}

// moved returns the keys, sorted, whose value is another one, or that are in
// one of the two only.
func moved[V comparable](before, after map[int64]V) []int64 {
	var keys []int64
	for key, value := range after {
		if old, found := before[key]; !found || old != value {
			keys = append(keys, key)
		}
	}
	for key := range before {
		if _, found := after[key]; !found {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}
