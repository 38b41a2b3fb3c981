package snapshot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/preview"
	"opensource.internal/manager/internal/revision"
	"opensource.internal/manager/internal/store"
)

// Version is a snapshot that is looked at: a revision of a site, what its
// inventory has now, or nothing at all.
type Version struct {
	Number   int64  // 0 if it is no revision
	ETag     string // "" of nothing
	Snapshot checkin.Snapshot
}

// Nothing is what there is before the first revision.
func Nothing() Version { return Version{Snapshot: checkin.Bootstrap()} }

// Revision returns a revision that is kept, or store.ErrNotFound.
func (c *Cache) Revision(ctx context.Context, siteID, number int64) (Version, error) {
	row, err := c.store.GetRevision(ctx, siteID, number)
	if err != nil {
		return Version{}, err
	}
	return versionOf(row.Number, row.ETag, row.Data)
}

// Inventory returns what a site's inventory has now, published or not, or
// store.ErrNotFound.
func (c *Cache) Inventory(ctx context.Context, siteID int64) (Version, error) {
	inventory, err := c.store.ReadInventory(ctx, siteID)
	if err != nil {
		return Version{}, err
	}
	snapshot := Build(inventory)
	_, etag, err := checkin.Encode(snapshot)
	return Version{ETag: etag, Snapshot: snapshot}, err
}

// Served returns what agents of a site get now, or store.ErrNotFound.
func (c *Cache) Served(ctx context.Context, siteID int64) (Version, *Current, error) {
	versions, err := c.store.Versions(ctx)
	if err != nil {
		return Version{}, nil, err
	}
	current, err := c.At(ctx, siteID, versions)
	if err != nil {
		return Version{}, nil, err
	}
	version, err := versionOf(current.Number, current.ETag, current.Data)
	return version, current, err
}

// Settled returns the same and the site's pin, nil if there is none, as of the
// transaction that the context is part of: nothing that is not committed is cached,
// and nobody who builds for the cache is waited for.
func (c *Cache) Settled(ctx context.Context, siteID int64) (Version, *store.Pin, error) {
	published, err := c.store.Publish(ctx, siteID, Encode)
	if err != nil {
		return Version{}, nil, err
	}
	version, err := versionOf(published.Revision.Number, published.Revision.ETag, published.Revision.Data)
	return version, published.Pin, err
}

func versionOf(number int64, etag string, data []byte) (Version, error) {
	snapshot, err := checkin.ParseSnapshot(data)
	if err != nil {
		return Version{}, fmt.Errorf("read revision %d: %w", number, err)
	}
	return Version{Number: number, ETag: etag, Snapshot: snapshot}, nil
}

// Host is the host of a site as its agents have told of it: of several agents
// the one that was heard last, of those that tell what their host has.
func (c *Cache) Host(ctx context.Context, siteID int64) (preview.Host, error) {
	agents, _, err := c.store.ListAgents(ctx, store.AgentFilter{SiteID: siteID}, store.ListOptions{Limit: store.All})
	if err != nil {
		return preview.Host{}, fmt.Errorf("list agents of site %d: %w", siteID, err)
	}
	if len(agents) == 0 {
		return preview.HostOf(nil), nil
	}
	heard := slices.MaxFunc(agents, func(a, b store.Agent) int {
		return cmp.Or(cmp.Compare(tells(a), tells(b)), a.LastSeenAt.Compare(b.LastSeenAt))
	})
	report := heard.Report.Request
	report.Hostname = heard.Hostname
	host := preview.HostOf(&report)
	host.Others = len(agents) - 1
	return host, nil
}

func tells(a store.Agent) int {
	if a.Report.Host == nil {
		return 0
	}
	return 1
}

// Waiting counts the changes of the inventory that agents do not get: those of
// a site that is pinned or published by hand.
func (c *Cache) Waiting(ctx context.Context, siteID int64) (int, error) {
	served, current, err := c.Served(ctx, siteID)
	if err != nil {
		return 0, err
	}
	site := c.site(siteID)
	if known := site.waiting.Load(); known != nil && known.version == current.version {
		return known.changes, nil
	}
	now, err := c.Inventory(ctx, siteID)
	if err != nil {
		return 0, err
	}
	changes := len(Unpublished(served, now))
	site.waiting.Store(&waiting{version: current.version, changes: changes})
	return changes, nil
}

// waiting is a number of changes that goes with a change counter.
type waiting struct {
	version uint64
	changes int
}

// Unpublished lists the changes from what agents get to what the inventory has.
// That removals were confirmed is none: it goes with the content.
func Unpublished(served, now Version) []revision.Change {
	served.Snapshot.RemovalsConfirmed = now.Snapshot.RemovalsConfirmed
	return revision.Compare(served.Snapshot, now.Snapshot)
}

// PublishedAs is the number of the latest revision if it has the content of a
// version already, as that of a pinned site may; else nil.
func (c *Cache) PublishedAs(ctx context.Context, siteID int64, v Version) (*int64, error) {
	latest, _, err := c.store.ListRevisions(ctx, store.RevisionFilter{SiteID: siteID}, store.ListOptions{Limit: 1})
	if err != nil || len(latest) == 0 || latest[0].ETag != v.ETag {
		return nil, err
	}
	return &latest[0].Number, nil
}

// Publish publishes what a site's inventory has now, as store.PublishSite does.
func (c *Cache) Publish(ctx context.Context, siteID int64, seen, note string) (row store.Revision, published bool, err error) {
	return c.store.PublishSite(ctx, siteID, seen, note, Encode)
}

// Settle keeps what agents would get now as a revision, whether one has asked or
// not. A site of which changes wait to be published has one to compare with.
func (c *Cache) Settle(ctx context.Context, siteID int64) error {
	_, err := c.store.Publish(ctx, siteID, Encode)
	return err
}

// CreateSite stores a new site. One that is published by hand has what it begins
// with as its first revision, in the same transaction.
func (c *Cache) CreateSite(ctx context.Context, wanted inventory.Site) (row store.Site, err error) {
	err = c.store.Atomically(ctx, func(ctx context.Context) (err error) {
		if row, err = c.store.CreateSite(ctx, wanted); err != nil || row.Publishing != inventory.PublishManual {
			return err
		}
		return c.Settle(ctx, row.ID)
	})
	return row, err
}

// UpdateSite changes a site as store.UpdateSite does. With byHand, that it is to be
// published by hand from now on, what was changed before is kept as a revision in
// the same transaction: it is none of the changes that wait.
func (c *Cache) UpdateSite(ctx context.Context, id int64, byHand bool, change func(*inventory.Site) error) (row store.Site, err error) {
	err = c.store.Atomically(ctx, func(ctx context.Context) (err error) {
		if byHand {
			if err := c.Settle(ctx, id); err != nil {
				return err
			}
		}
		row, err = c.store.UpdateSite(ctx, id, change)
		return err
	})
	return row, err
}

// Pin pins a site to a revision, as store.PinSite does.
func (c *Cache) Pin(ctx context.Context, siteID, number int64, reason string) (store.Pin, error) {
	return c.store.PinSite(ctx, siteID, number, reason, Encode)
}

// Before returns the revision before one, or Nothing if there is none that is
// kept.
func (c *Cache) Before(ctx context.Context, siteID, number int64) (Version, error) {
	rows, _, err := c.store.ListRevisions(ctx, store.RevisionFilter{SiteID: siteID, Below: number}, store.ListOptions{Limit: 1, Sort: "-number"})
	if err != nil {
		return Version{}, err
	}
	if len(rows) == 0 {
		return Nothing(), nil
	}
	before, err := c.Revision(ctx, siteID, rows[0].Number)
	if errors.Is(err, store.ErrNotFound) {
		return Nothing(), nil // deleted meanwhile
	}
	return before, err
}
