package auth

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"opensource.internal/manager/internal/store"
)

// keyring knows every API key, so that a check-in asks no table. It is read
// anew when the store's change counter of keys has moved, whoever moved it.
type keyring struct {
	store   *store.Store
	now     func() time.Time
	current atomic.Pointer[keySet]
	reading sync.Mutex
	used    sync.Map // key id → *atomic.Int64, epoch seconds of a use that is not stored yet
}

// keySet is every key as of one version of the table.
type keySet struct {
	version  uint64
	byPrefix map[string]storedKey
	// enrolled are the sites for which an agent key has ever been created.
	enrolled map[int64]bool
}

type storedKey struct {
	digest    digest
	principal Principal
	expires   time.Time // zero means never
	used      *atomic.Int64
}

// check answers who holds a key. Malformed, unknown, wrong, revoked and expired
// keys cost the same work and get the same answer.
func (k *keyring) check(ctx context.Context, key string, versions *store.Versions) (Principal, error) {
	set, err := k.load(ctx, versions)
	if err != nil {
		return Principal{}, err
	}
	sum := digest(sha256.Sum256([]byte(key)))
	prefix, _ := splitKey(key, keyMark)
	found := set.byPrefix[prefix] // the zero digest if there is none: no key has it
	now := k.now()
	if !found.digest.matches(sum) || !found.expires.IsZero() && !now.Before(found.expires) {
		return Principal{}, ErrUnauthorized
	}
	found.used.Store(now.Unix())
	return found.principal, nil
}

// versions returns the change counters, or nil if the database cannot be asked.
func (k *keyring) versions(ctx context.Context) *store.Versions {
	versions, err := k.store.Versions(ctx)
	if err != nil {
		return nil
	}
	return &versions
}

// load returns the keys as they are in the database at versions. If it could
// not be asked, what was read last still holds.
func (k *keyring) load(ctx context.Context, versions *store.Versions) (*keySet, error) {
	current := k.current.Load()
	switch {
	case current != nil && (versions == nil || current.version == versions.Keys):
		return current, nil
	case versions == nil:
		return nil, ErrUnavailable
	}
	return k.read(ctx, versions.Keys)
}

func (k *keyring) read(ctx context.Context, version uint64) (*keySet, error) {
	k.reading.Lock()
	defer k.reading.Unlock()
	if current := k.current.Load(); current != nil && current.version >= version {
		return current, nil
	}
	// Rows are read after the version: they are at least as new as it says.
	rows, _, err := k.store.ListAPIKeys(ctx, store.APIKeyFilter{}, store.ListOptions{Limit: store.All})
	if err != nil {
		return nil, fmt.Errorf("read API keys: %w", err)
	}
	set := k.index(rows, version)
	k.current.Store(set)
	return set, nil
}

func (k *keyring) index(rows []store.APIKey, version uint64) *keySet {
	set := &keySet{version: version, byPrefix: make(map[string]storedKey, len(rows)), enrolled: map[int64]bool{}}
	for _, row := range rows {
		if row.Role == string(RoleAgent) && row.SiteID != nil {
			set.enrolled[*row.SiteID] = true
		}
		if row.RevokedAt != nil || len(row.Hash) != sha256.Size {
			continue
		}
		key := storedKey{
			digest:    digest(row.Hash),
			principal: Principal{Role: Role(row.Role), Hostname: row.Hostname, Name: row.Name, Kind: store.ActorKey, ID: row.ID},
			used:      k.useOf(row.ID),
		}
		if row.SiteID != nil {
			key.principal.SiteID = *row.SiteID
		}
		if row.ExpiresAt != nil {
			key.expires = *row.ExpiresAt
		}
		set.byPrefix[row.Prefix] = key
	}
	return set
}

func (k *keyring) useOf(id int64) *atomic.Int64 {
	used, _ := k.used.LoadOrStore(id, new(atomic.Int64))
	return used.(*atomic.Int64)
}

// flush stores when keys were used last. One that cannot be stored is tried
// again with the next flush.
func (k *keyring) flush(ctx context.Context) error {
	uses := map[int64]time.Time{}
	k.used.Range(func(id, used any) bool {
		if seconds := used.(*atomic.Int64).Swap(0); seconds != 0 {
			uses[id.(int64)] = time.Unix(seconds, 0).UTC()
		}
		return true
	})
	if len(uses) == 0 {
		return nil
	}
	if err := k.store.TouchAPIKeys(ctx, uses); err != nil {
		for id, at := range uses {
			k.useOf(id).CompareAndSwap(0, at.Unix())
		}
		return fmt.Errorf("store when API keys were used: %w", err)
	}
	return nil
}
