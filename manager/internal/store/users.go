package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"
)

// User is a person who may sign in.
type User struct {
	ID           int64
	Name         string // folded to lower case
	PasswordHash string `audit:"-"` // argon2id in PHC form
	Role         string // admin or viewer
	CreatedAt    time.Time
	UpdatedAt    time.Time
}

var userSorts = map[string]string{"name": "name", "role": "role", "createdAt": "created_at", "updatedAt": "updated_at"}

// ListUsers returns a page of users and the number of all. Sort: id, name,
// role, createdAt, updatedAt.
func (s *Store) ListUsers(ctx context.Context, opts ListOptions) ([]User, int64, error) {
	return list[User](s.read.WithContext(ctx), opts, userSorts, "name")
}

// HasUsers reports whether anybody could sign in.
func (s *Store) HasUsers(ctx context.Context) (bool, error) {
	var count int64
	if err := s.read.WithContext(ctx).Model(&User{}).Limit(1).Count(&count).Error; err != nil {
		return false, fmt.Errorf("count users: %w", err)
	}
	return count > 0, nil
}

// GetUser returns a user or ErrNotFound.
func (s *Store) GetUser(ctx context.Context, id int64) (User, error) {
	return get[User](s.reader(ctx), id)
}

// UserByName returns a user or ErrNotFound.
func (s *Store) UserByName(ctx context.Context, name string) (User, error) {
	return userByName(s.read.WithContext(ctx), name)
}

func userByName(tx *gorm.DB, name string) (User, error) {
	var user User
	err := tx.Take(&user, "name = ?", name).Error
	if errors.Is(err, gorm.ErrRecordNotFound) {
		return User{}, ErrNotFound
	}
	if err != nil {
		return User{}, fmt.Errorf("read user %q: %w", name, err)
	}
	return user, nil
}

// CreateUser stores a new user and gives it an id. A name that is taken is a
// *ConflictError.
func (s *Store) CreateUser(ctx context.Context, user *User) error {
	return s.update(ctx, func(tx *gorm.DB) error {
		_, err := userByName(tx, user.Name)
		if err == nil {
			return &ConflictError{Field: "name", Message: fmt.Sprintf("there is already a user %q", user.Name)}
		}
		if !errors.Is(err, ErrNotFound) {
			return err
		}
		return insert(tx, user)
	})
}

func (u User) subject() Subject { return Subject{Resource: "user", ID: u.ID, Name: u.Name} }

func (u User) action(plain Action, before any) Action {
	if was, existed := before.(User); existed && was.PasswordHash != u.PasswordHash {
		return ActionPasswordChanged
	}
	return plain
}

// SetPassword replaces a user's password and ends all sessions of that user in
// the same transaction, or returns ErrNotFound.
func (s *Store) SetPassword(ctx context.Context, name, hash string) error {
	return s.update(ctx, func(tx *gorm.DB) error {
		user, err := userByName(tx, name)
		if err != nil {
			return err
		}
		before := user
		user.PasswordHash = hash
		if err := save(tx, before, &user); err != nil {
			return err
		}
		if err := tx.Delete(&Session{}, "user_id = ?", user.ID).Error; err != nil {
			return fmt.Errorf("end sessions of user %q: %w", name, err)
		}
		return nil
	})
}

// DeleteUser deletes a user and, by the foreign key, all their sessions, or
// returns ErrNotFound. The last administrator stays: *ConflictError.
func (s *Store) DeleteUser(ctx context.Context, id int64) error {
	return s.update(ctx, func(tx *gorm.DB) error {
		user, err := get[User](tx, id)
		if err != nil {
			return err
		}
		var others int64
		if err := tx.Model(&User{}).Where("role = 'admin' AND id <> ?", id).Count(&others).Error; err != nil {
			return fmt.Errorf("count administrators: %w", err)
		}
		if user.Role == "admin" && others == 0 {
			return &ConflictError{Field: "role", Message: fmt.Sprintf("%q is the last administrator; make another one first", user.Name)}
		}
		return removeOne[User](tx, id)
	})
}
