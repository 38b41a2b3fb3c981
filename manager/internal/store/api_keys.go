package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"gorm.io/gorm"
)

// APIKey is a stored API key: everything but the key itself.
type APIKey struct {
	ID         int64
	Name       string
	Role       string // admin, viewer or agent
	SiteID     *int64 // the one site of an agent key
	Hostname   string // the one host of an enrolled agent's key
	Prefix     string // names the key in lists and finds it
	Hash       []byte `audit:"-"` // SHA-256 of the whole key
	CreatedAt  time.Time
	CreatedBy  string
	LastUsedAt *time.Time `audit:"-"` // up to a minute old
	ExpiresAt  *time.Time
	RevokedAt  *time.Time
}

// valid reports whether the key still works at a moment.
func (k APIKey) valid(at time.Time) bool {
	return k.RevokedAt == nil && (k.ExpiresAt == nil || at.Before(*k.ExpiresAt))
}

// endBy makes the key expire at a moment, unless it does so before.
func (k *APIKey) endBy(at time.Time) {
	if k.ExpiresAt == nil || at.Before(*k.ExpiresAt) {
		k.ExpiresAt = &at
	}
}

// APIKeyFilter chooses keys. Zero fields choose all.
type APIKeyFilter struct {
	SiteID   int64
	Role     string
	Hostname string
	State    KeyState
}

// KeyState is whether a key still works.
type KeyState string

// The states of a key.
const (
	KeyWorks KeyState = "works"
	KeyEnded KeyState = "ended" // revoked or expired
)

var apiKeySorts = map[string]string{
	"name": "name", "role": "role", "siteId": "site_id", "hostname": "hostname",
	"createdAt": "created_at", "lastUsedAt": "last_used_at", "expiresAt": "expires_at",
}

// ListAPIKeys returns a page of keys, revoked ones among them, and the number
// of all that match. Sort: id, name, role, siteId, hostname, createdAt,
// lastUsedAt, expiresAt.
func (s *Store) ListAPIKeys(ctx context.Context, filter APIKeyFilter, opts ListOptions) ([]APIKey, int64, error) {
	query := s.reader(ctx)
	query = where(query, "site_id", filter.SiteID)
	query = where(query, "role", filter.Role)
	query = where(query, "hostname", filter.Hostname)
	switch filter.State {
	case KeyWorks:
		query = query.Where("revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?)", now())
	case KeyEnded:
		query = query.Where("(revoked_at IS NOT NULL OR expires_at <= ?)", now())
	}
	return list[APIKey](query, opts, apiKeySorts, "name", "prefix", "hostname", "created_by")
}

// GetAPIKey returns a key or ErrNotFound.
func (s *Store) GetAPIKey(ctx context.Context, id int64) (APIKey, error) {
	return get[APIKey](s.reader(ctx), id)
}

// CreateAPIKey stores a new key and gives it an id.
func (s *Store) CreateAPIKey(ctx context.Context, key *APIKey) error {
	return s.update(ctx, func(tx *gorm.DB) error { return insert(tx, key) })
}

func (k APIKey) subject() Subject {
	of := Subject{Resource: "api_key", ID: k.ID, Name: k.Name}
	if k.SiteID != nil {
		of.SiteID = *k.SiteID
	}
	return of
}

func (k APIKey) action(plain Action, before any) Action {
	was, existed := before.(APIKey)
	switch {
	case !existed:
		return ActionKeyCreated
	case was.RevokedAt == nil && k.RevokedAt != nil:
		return ActionKeyRevoked
	}
	return plain
}

// UpdateAPIKey applies change to a key. Errors: those of change, ErrNotFound.
func (s *Store) UpdateAPIKey(ctx context.Context, id int64, change func(*APIKey) error) (APIKey, error) {
	var row APIKey
	err := s.update(ctx, func(tx *gorm.DB) (err error) {
		if row, err = get[APIKey](tx, id); err != nil {
			return err
		}
		before := row
		if err := change(&row); err != nil {
			return err
		}
		return save(tx, before, &row)
	})
	return row, err
}

// RotateAPIKey stores the key that replace makes of an old one, and lets the
// old one expire at the given moment unless it does so before. Errors: those of
// replace, ErrNotFound, *ConflictError for a key that does not work any more.
func (s *Store) RotateAPIKey(ctx context.Context, id int64, until time.Time, replace func(old APIKey) (APIKey, error)) (next APIKey, err error) {
	err = s.update(ctx, func(tx *gorm.DB) error {
		old, err := get[APIKey](tx, id)
		if err != nil {
			return err
		}
		if !old.valid(now()) {
			return &ConflictError{Message: fmt.Sprintf("API key %d (%s) is revoked or expired: create a new one", id, old.Name)}
		}
		if next, err = replace(old); err != nil {
			return err
		}
		before := old
		old.endBy(until)
		if err := save(tx, before, &old); err != nil {
			return err
		}
		return insert(tx, &next)
	})
	return next, err
}

// RevokeAPIKey makes a key worthless for good, or returns ErrNotFound. The row
// stays. A key that is already revoked keeps its date.
func (s *Store) RevokeAPIKey(ctx context.Context, id int64) (APIKey, error) {
	return s.UpdateAPIKey(ctx, id, func(key *APIKey) error {
		if key.RevokedAt == nil {
			at := now()
			key.RevokedAt = &at
		}
		return nil
	})
}

// TouchAPIKeys stores when keys were used last, all in one transaction. Keys
// that were used in the same second take one statement.
func (s *Store) TouchAPIKeys(ctx context.Context, uses map[int64]time.Time) error {
	return s.update(ctx, func(tx *gorm.DB) error {
		keys := map[time.Time][]int64{}
		for id, at := range uses {
			keys[at] = append(keys[at], id)
		}
		for at, ids := range keys {
			for some := range slices.Chunk(ids, 500) {
				if err := tx.Model(&APIKey{}).Where("id IN ?", some).Update("last_used_at", at).Error; err != nil {
					return fmt.Errorf("store the last use of API keys: %w", err)
				}
			}
		}
		return nil
	})
}
