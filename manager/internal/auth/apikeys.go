package auth

import (
	"context"
	"errors"
	"fmt"
	"time"

	"opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/store"
)

// NewKey describes a key to be created.
type NewKey struct {
	Name      string
	Role      Role
	SiteID    int64 // required for an agent, refused for others
	ExpiresAt *time.Time
	CreatedBy string
}

// CreateKey stores a new key and returns its text, which nobody can see again.
func CreateKey(ctx context.Context, s *store.Store, wanted NewKey) (key string, row store.APIKey, err error) {
	if err := wanted.normalise(); err != nil {
		return "", store.APIKey{}, err
	}
	if wanted.Role == RoleAgent {
		if err := requireSite(ctx, s, wanted.SiteID); err != nil {
			return "", store.APIKey{}, err
		}
	}
	key, row = wanted.draw()
	if err := s.CreateAPIKey(ctx, &row); err != nil {
		return "", store.APIKey{}, fmt.Errorf("create API key: %w", err)
	}
	return key, row, nil
}

func requireSite(ctx context.Context, s *store.Store, id int64) error {
	if _, err := s.GetSite(ctx, id); errors.Is(err, store.ErrNotFound) {
		return &FieldError{"siteId", fmt.Errorf("there is no site %d", id)}
	} else if err != nil {
		return fmt.Errorf("look up the key's site: %w", err)
	}
	return nil
}

// draw makes a key, and the row that is stored of it.
func (k *NewKey) draw() (key string, row store.APIKey) {
	key, prefix, sum := newKey(keyMark)
	row = store.APIKey{
		Name: k.Name, Role: string(k.Role), Prefix: prefix, Hash: sum[:],
		CreatedAt: stamp(), CreatedBy: k.CreatedBy, ExpiresAt: k.ExpiresAt,
	}
	if k.Role == RoleAgent {
		row.SiteID = &k.SiteID
	}
	return key, row
}

// stamp is the present moment as the database keeps it.
func stamp() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

func (k *NewKey) normalise() (err error) {
	if k.Name, err = inventory.ParseTitle(k.Name); err != nil {
		return &FieldError{"name", err}
	}
	if _, err := parseRole(string(k.Role)); err != nil {
		return &FieldError{"role", err}
	}
	if k.Role == RoleAgent && k.SiteID <= 0 {
		return &FieldError{"siteId", errors.New("an agent key needs the site it checks in for")}
	}
	if k.Role != RoleAgent && k.SiteID != 0 {
		return &FieldError{"siteId", fmt.Errorf("only agent keys belong to a site, not %s keys", k.Role)}
	}
	k.ExpiresAt, err = expiry(k.ExpiresAt)
	return err
}

// expiry checks when a key is to end; nil is never.
func expiry(at *time.Time) (*time.Time, error) {
	if at == nil {
		return nil, nil
	}
	if !at.After(time.Now()) {
		return nil, &FieldError{"expiresAt", fmt.Errorf("%s is past; to end a key now, revoke it", at.UTC().Format(time.RFC3339))}
	}
	stored := at.UTC().Truncate(time.Millisecond)
	return &stored, nil
}

// KeyChange is what may be changed about a key. What is nil stays.
type KeyChange struct {
	Name *string
	// ExpiresAt points to the new end; that is nil for a key that never expires.
	ExpiresAt **time.Time
}

// ChangeKey renames a key, or gives it another end: decide says what of the key
// as it is. Its errors are returned.
func ChangeKey(ctx context.Context, s *store.Store, id int64, decide func(now store.APIKey) (KeyChange, error)) (store.APIKey, error) {
	row, err := s.UpdateAPIKey(ctx, id, func(key *store.APIKey) error {
		change, err := decide(*key)
		if err != nil {
			return err
		}
		if change.Name != nil {
			if key.Name, err = inventory.ParseTitle(*change.Name); err != nil {
				return &FieldError{"name", err}
			}
		}
		if change.ExpiresAt != nil {
			key.ExpiresAt, err = expiry(*change.ExpiresAt)
		}
		return err
	})
	if err != nil {
		return store.APIKey{}, fmt.Errorf("change API key: %w", err)
	}
	return row, nil
}

// DefaultOverlap leaves a day to put a rotated key where it is used.
const DefaultOverlap = 24 * time.Hour

// maxOverlap is how long a key may at most go on beside the one that replaces it.
const maxOverlap = 30 * 24 * time.Hour

// RotateKey makes a key that takes the place of another one: of the same name,
// role, site and host. The old one goes on for the overlap. Where the old one was
// to expire, the new one is given as long a life.
func RotateKey(ctx context.Context, s *store.Store, id int64, overlap time.Duration, createdBy string) (key string, row store.APIKey, err error) {
	if overlap < 0 || overlap > maxOverlap {
		return "", store.APIKey{}, &FieldError{"overlap", errors.New("it is 0 to 30 days")}
	}
	at := stamp()
	row, err = s.RotateAPIKey(ctx, id, at.Add(overlap), func(old store.APIKey) (store.APIKey, error) {
		wanted := NewKey{Name: old.Name, Role: Role(old.Role), CreatedBy: createdBy}
		if old.SiteID != nil {
			wanted.SiteID = *old.SiteID
		}
		if old.ExpiresAt != nil {
			end := at.Add(old.ExpiresAt.Sub(old.CreatedAt))
			wanted.ExpiresAt = &end
		}
		var next store.APIKey
		key, next = wanted.draw()
		next.Hostname = old.Hostname
		return next, nil
	})
	if err != nil {
		return "", store.APIKey{}, fmt.Errorf("rotate API key: %w", err)
	}
	return key, row, nil
}
