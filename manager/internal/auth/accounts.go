package auth

import (
	"context"
	"errors"
	"fmt"
	"time"

	"opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/store"
)

// FieldError is a value of a new key or user that is refused.
type FieldError struct {
	Field string // its JSON name
	Err   error
}

func (e *FieldError) Error() string { return e.Field + ": " + e.Err.Error() }

func (e *FieldError) Unwrap() error { return e.Err }

// NewKey describes a key to be created.
type NewKey struct {
	Name      string
	Role      Role
	SiteID    int64 // required for an agent, refused for others
	CreatedBy string
}

// CreateKey stores a new key and returns its text, which nobody can see again.
func CreateKey(ctx context.Context, s *store.Store, wanted NewKey) (key string, row store.APIKey, err error) {
	if err := wanted.normalise(); err != nil {
		return "", store.APIKey{}, err
	}
	key, prefix, sum := newKey()
	row = store.APIKey{
		Name: wanted.Name, Role: string(wanted.Role), Prefix: prefix, Hash: sum[:],
		CreatedAt: time.Now().UTC(), CreatedBy: wanted.CreatedBy,
	}
	if wanted.Role == RoleAgent {
		if _, err := s.GetSite(ctx, wanted.SiteID); errors.Is(err, store.ErrNotFound) {
			return "", store.APIKey{}, &FieldError{"siteId", fmt.Errorf("there is no site %d", wanted.SiteID)}
		} else if err != nil {
			return "", store.APIKey{}, fmt.Errorf("look up the key's site: %w", err)
		}
		row.SiteID = &wanted.SiteID
	}
	if err := s.CreateAPIKey(ctx, &row); err != nil {
		return "", store.APIKey{}, fmt.Errorf("create API key: %w", err)
	}
	return key, row, nil
}

func (k *NewKey) normalise() (err error) {
	if k.Name, err = inventory.ParseTitle(k.Name); err != nil {
		return &FieldError{"name", err}
	}
	if _, err := ParseRole(string(k.Role)); err != nil {
		return &FieldError{"role", err}
	}
	if k.Role == RoleAgent && k.SiteID <= 0 {
		return &FieldError{"siteId", errors.New("an agent key needs the site it checks in for")}
	}
	if k.Role != RoleAgent && k.SiteID != 0 {
		return &FieldError{"siteId", fmt.Errorf("only agent keys belong to a site, not %s keys", k.Role)}
	}
	return nil
}

// CreateUser stores a new person.
func CreateUser(ctx context.Context, s *store.Store, name string, role Role, password string) (store.User, error) {
	name, err := inventory.ParseTitle(FoldName(name))
	if err != nil {
		return store.User{}, &FieldError{"name", err}
	}
	if role != RoleAdmin && role != RoleViewer {
		return store.User{}, &FieldError{"role", fmt.Errorf("%q is not a role of a person: admin or viewer", role)}
	}
	hash, err := HashPassword(password)
	if err != nil {
		return store.User{}, &FieldError{"password", err}
	}
	now := time.Now().UTC()
	user := store.User{Name: name, Role: string(role), PasswordHash: hash, CreatedAt: now, UpdatedAt: now}
	if err := s.CreateUser(ctx, &user); err != nil {
		return store.User{}, fmt.Errorf("create user: %w", err)
	}
	return user, nil
}

// SetPassword changes a person's password and ends all their sessions.
func SetPassword(ctx context.Context, s *store.Store, name, password string) error {
	hash, err := HashPassword(password)
	if err != nil {
		return &FieldError{"password", err}
	}
	if err := s.SetPassword(ctx, FoldName(name), hash); err != nil {
		return fmt.Errorf("set password: %w", err)
	}
	return nil
}
