package snapshot

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/store"
)

// Current is a site's published snapshot. It is shared: nobody changes it.
type Current struct {
	Data []byte // the exact JSON of the snapshot
	Body []byte // the answer to a check-in: {"data":SNAPSHOT}
	ETag string
	// Number is the number of the revision.
	Number int64
	// Pin is why it is not the latest one; nil if the site is not pinned.
	Pin *store.Pin
	// Volumes are the site's volumes by id, and Pending says how many of them no
	// agent has reported on yet. Of a site that is pinned or published by hand
	// they are those that the snapshot has as the inventory has them: a result on
	// another form of a volume says nothing about it.
	Volumes map[int64]VolumeResult
	Pending int
	// Moot are the volumes of such a site on which a result is no fault, and
	// changes nothing.
	Moot map[int64]bool

	version uint64
}

// VolumeResult is what is known about a volume's directory.
type VolumeResult struct {
	Status  store.VolumeStatus
	Message string
}

// Cache keeps the current snapshot of every site that was asked for. A
// snapshot is built anew only when its site's change counter has moved,
// whoever moved it. It is safe for concurrent use.
type Cache struct {
	// OnBuild, if set, is told how long each build took and how it ended. It is
	// set before the cache is used.
	OnBuild func(took time.Duration, err error)

	store *store.Store
	sites sync.Map // site id → *cached
}

type cached struct {
	building sync.Mutex // one build at a time; the others take its result
	current  atomic.Pointer[Current]
	waiting  atomic.Pointer[waiting]
}

// NewCache returns an empty cache.
func NewCache(s *store.Store) *Cache { return &Cache{store: s} }

// Get returns the JSON and the strong ETag of a site's current snapshot:
// nothing committed before the call is missing from it. It returns
// store.ErrNotFound if there is no such site; any other fault is an error too,
// never an older or smaller snapshot.
func (c *Cache) Get(ctx context.Context, siteID int64) (data []byte, etag string, err error) {
	versions, err := c.store.Versions(ctx)
	if err != nil {
		return nil, "", err
	}
	current, err := c.At(ctx, siteID, versions)
	if err != nil {
		return nil, "", err
	}
	return current.Data, current.ETag, nil
}

// Held returns a site's snapshot if it is in memory and at least as new as
// versions, else nil.
func (c *Cache) Held(siteID int64, versions store.Versions) *Current {
	if current := c.Last(siteID); current != nil && current.version >= versions.Site(siteID) {
		return current
	}
	return nil
}

// At returns a site's snapshot that is at least as new as versions. Errors are
// those of Get.
func (c *Cache) At(ctx context.Context, siteID int64, versions store.Versions) (*Current, error) {
	wanted := versions.Site(siteID)
	if wanted == 0 {
		return nil, store.ErrNotFound // and leave no entry: ids are anybody's guess
	}
	if current := c.Held(siteID, versions); current != nil {
		return current, nil
	}
	site := c.site(siteID)
	site.building.Lock()
	defer site.building.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err // waited too long for somebody else's build
	}
	if current := site.current.Load(); current != nil && current.version >= wanted {
		return current, nil
	}
	began := time.Now()
	published, err := c.store.Publish(ctx, siteID, Encode)
	if errors.Is(err, store.ErrNotFound) {
		c.sites.Delete(siteID)
	} else if c.OnBuild != nil {
		c.OnBuild(time.Since(began), err)
	}
	if err != nil {
		return nil, err
	}
	current, err := newCurrent(published)
	if err != nil {
		return nil, err
	}
	site.current.Store(current)
	return current, nil
}

// ConfirmRemovals publishes a site's present content with the word that its
// removals are meant, as store.ConfirmRemovals does, and returns it.
func (c *Cache) ConfirmRemovals(ctx context.Context, siteID int64, by, seen string) (*Current, error) {
	published, err := c.store.ConfirmRemovals(ctx, siteID, by, seen, Encode)
	if err != nil {
		return nil, err
	}
	return newCurrent(published) // whoever asks next finds the counter moved
}

// Encode builds the snapshot of an inventory and its tag.
func Encode(i store.Inventory) ([]byte, string, error) { return checkin.Encode(Build(i)) }

// Last returns the snapshot of a site that was current when the database was
// asked last, or nil: for when it cannot be asked.
func (c *Cache) Last(siteID int64) *Current {
	site, ok := c.sites.Load(siteID)
	if !ok {
		return nil
	}
	return site.(*cached).current.Load()
}

func (c *Cache) site(siteID int64) *cached {
	if site, ok := c.sites.Load(siteID); ok {
		return site.(*cached)
	}
	site, _ := c.sites.LoadOrStore(siteID, &cached{})
	return site.(*cached)
}

func newCurrent(p store.Published) (*Current, error) {
	current := &Current{
		ETag: p.Revision.ETag, Number: p.Revision.Number, Pin: p.Pin, version: p.Version,
		Volumes: make(map[int64]VolumeResult, len(p.Volumes)),
	}
	// One buffer for both: the data is a part of the body.
	const before, after = `{"data":`, `}`
	current.Body = append(append(append(make([]byte, 0, len(before)+len(p.Revision.Data)+len(after)), before...), p.Revision.Data...), after...)
	current.Data = current.Body[len(before) : len(current.Body)-len(after)]
	moot, err := mootVolumes(p)
	if err != nil {
		return nil, err
	}
	current.Moot = moot
	for _, v := range p.Volumes {
		if moot[v.ID] {
			continue
		}
		current.Volumes[v.ID] = VolumeResult{v.Status, v.StatusMessage}
		if v.Status == store.VolumePending {
			current.Pending++
		}
	}
	return current, nil
}

// mootVolumes are those that a held snapshot and the inventory do not have
// alike: deleted, created or changed since.
func mootVolumes(p store.Published) (map[int64]bool, error) {
	if !p.Held {
		return nil, nil
	}
	held, err := checkin.ParseSnapshot(p.Revision.Data)
	if err != nil {
		return nil, fmt.Errorf("read revision %d of site %d: %w", p.Revision.Number, p.Revision.SiteID, err)
	}
	var handedOut []checkin.Volume
	if held.Site != nil {
		handedOut = held.Site.Volumes
	}
	moot := map[int64]bool{}
	wanted := map[int64]checkin.Volume{}
	for _, v := range volumes(store.Inventory{Volumes: p.Volumes}) {
		moot[v.ID], wanted[v.ID] = true, v
	}
	for _, v := range handedOut {
		moot[v.ID] = v != wanted[v.ID]
	}
	return moot, nil
}
