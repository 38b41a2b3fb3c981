package store

import (
	"context"
	"fmt"
	"time"

	"gorm.io/gorm"
)

// APIKey is a stored API key: everything but the key itself.
type APIKey struct {
	ID         int64
	Name       string
	Role       string // admin, viewer or agent
	SiteID     *int64 // the one site of an agent key
	Prefix     string // names the key in lists and finds it
	Hash       []byte `audit:"-"` // SHA-256 of the whole key
	CreatedAt  time.Time
	CreatedBy  string
	LastUsedAt *time.Time `audit:"-"` // up to a minute old
	ExpiresAt  *time.Time
	RevokedAt  *time.Time
}

// APIKeyFilter chooses keys. Zero fields choose all.
type APIKeyFilter struct {
	SiteID int64
	Role   string
}

var apiKeySorts = map[string]string{
	"name": "name", "role": "role", "siteId": "site_id", "createdAt": "created_at", "lastUsedAt": "last_used_at",
}

// ListAPIKeys returns a page of keys, revoked ones among them, and the number
// of all that match. Sort: id, name, role, siteId, createdAt, lastUsedAt.
func (s *Store) ListAPIKeys(ctx context.Context, filter APIKeyFilter, opts ListOptions) ([]APIKey, int64, error) {
	query := s.read.WithContext(ctx)
	if filter.SiteID != 0 {
		query = query.Where("site_id = ?", filter.SiteID)
	}
	if filter.Role != "" {
		query = query.Where("role = ?", filter.Role)
	}
	return list[APIKey](query, opts, apiKeySorts, "name", "prefix", "created_by")
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

// RevokeAPIKey makes a key worthless for good, or returns ErrNotFound. The row
// stays. A key that is already revoked keeps its date.
func (s *Store) RevokeAPIKey(ctx context.Context, id int64) (APIKey, error) {
	var key APIKey
	err := s.update(ctx, func(tx *gorm.DB) (err error) {
		if key, err = get[APIKey](tx, id); err != nil || key.RevokedAt != nil {
			return err
		}
		before, at := key, now()
		key.RevokedAt = &at
		return save(tx, before, &key)
	})
	return key, err
}

// TouchAPIKeys stores when keys were used last, all in one transaction.
func (s *Store) TouchAPIKeys(ctx context.Context, uses map[int64]time.Time) error {
	return s.update(ctx, func(tx *gorm.DB) error {
		for id, at := range uses {
			if err := tx.Model(&APIKey{ID: id}).Update("last_used_at", at).Error; err != nil {
				return fmt.Errorf("touch API key %d: %w", id, err)
			}
		}
		return nil
	})
}
