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

// CreateUser stores a new person.
func CreateUser(ctx context.Context, s *store.Store, name string, role Role, password string) (store.User, error) {
	user, err := newUser(name, role, password)
	if err != nil {
		return store.User{}, err
	}
	if err := s.CreateUser(ctx, &user); err != nil {
		return store.User{}, fmt.Errorf("create user: %w", err)
	}
	return user, nil
}

func newUser(name string, role Role, password string) (store.User, error) {
	name, err := inventory.ParseTitle(FoldName(name))
	if err != nil {
		return store.User{}, &FieldError{"name", err}
	}
	if err := checkPersonRole(role); err != nil {
		return store.User{}, err
	}
	hash, err := hashPassword(password)
	if err != nil {
		return store.User{}, &FieldError{"password", err}
	}
	now := time.Now().UTC()
	return store.User{Name: name, Role: string(role), PasswordHash: hash, CreatedAt: now, UpdatedAt: now}, nil
}

func checkPersonRole(role Role) error {
	if role != RoleAdmin && role != RoleViewer {
		return &FieldError{"role", fmt.Errorf("%q is not a role of a person: admin or viewer", role)}
	}
	return nil
}

// UserChange is what an administrator may change about a person. What is nil
// stays.
type UserChange struct {
	Name     *string
	Role     *Role
	Disabled *bool
	Password *string
	// Seen is asked about the user as stored, before anything is changed; nil if
	// that does not matter. It may still fill in what the others point to.
	Seen func(now store.User) error
}

// ChangeUser changes a person. A new password and a suspension end their
// sessions; a new role holds from their next request on.
func ChangeUser(ctx context.Context, s *store.Store, id int64, change UserChange) (store.User, error) {
	hash := ""
	if change.Password != nil {
		var err error
		if hash, err = hashPassword(*change.Password); err != nil {
			return store.User{}, &FieldError{"password", err}
		}
	}
	user, err := s.UpdateUser(ctx, id, func(u *store.User) error { return change.apply(u, hash) })
	if err != nil {
		return store.User{}, fmt.Errorf("change user: %w", err)
	}
	return user, nil
}

func (c UserChange) apply(u *store.User, hash string) error {
	if c.Seen != nil {
		if err := c.Seen(*u); err != nil {
			return err
		}
	}
	if !u.Local() {
		if err := c.checkForeign(*u); err != nil {
			return err
		}
	}
	if c.Name != nil {
		name, err := inventory.ParseTitle(FoldName(*c.Name))
		if err != nil {
			return &FieldError{"name", err}
		}
		u.Name = name
	}
	if c.Role != nil {
		if err := checkPersonRole(*c.Role); err != nil {
			return err
		}
		u.Role = string(*c.Role)
	}
	if c.Disabled != nil && *c.Disabled != (u.DisabledAt != nil) {
		u.DisabledAt = nil
		if *c.Disabled {
			now := time.Now().UTC().Truncate(time.Millisecond)
			u.DisabledAt = &now
		}
	}
	if hash != "" {
		u.PasswordHash = hash
	}
	return nil
}

// checkForeign refuses what the provider would overwrite at the next sign-in.
func (c UserChange) checkForeign(u store.User) error {
	switch {
	case c.Password != nil:
		return &FieldError{"password", errNoPassword}
	case c.Role != nil && string(*c.Role) != u.Role:
		return &FieldError{"role", errors.New("the role comes from the sign-in provider: change it there, or disable the user here")}
	case c.Name != nil && *c.Name != u.Name:
		return &FieldError{"name", errors.New("the name comes from the sign-in provider")}
	}
	return nil
}

// SetPassword changes a person's password and ends all their sessions.
func SetPassword(ctx context.Context, s *store.Store, name, password string) error {
	user, err := s.UserByName(ctx, FoldName(name))
	if err != nil {
		return fmt.Errorf("set password: %w", err)
	}
	_, err = ChangeUser(ctx, s, user.ID, UserChange{Password: &password})
	return err
}

// titleOf is a name from elsewhere that is fit to be shown, or else a substitute.
func titleOf(name, substitute string) string {
	for _, candidate := range []string{name, substitute} {
		if title, err := inventory.ParseTitle(candidate); err == nil {
			return title
		}
	}
	return "unnamed"
}
