package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"
)

// User is a person who may sign in: with a password, or through the provider
// that knows them as Subject.
type User struct {
	ID           int64
	Name         string // of one with a password: folded to lower case
	PasswordHash string `audit:"-"` // argon2id in PHC form; empty for whoever comes by a provider
	Issuer       string
	Subject      string
	Role         string // admin or viewer
	DisabledAt   *time.Time
	// SessionEpoch is what a session must have been begun in to count.
	SessionEpoch int64 `audit:"-"`
	CreatedAt    time.Time
	UpdatedAt    time.Time
}

// Local reports whether the user signs in with a password.
func (u User) Local() bool { return u.Issuer == "" }

func (u User) isActiveAdmin() bool { return u.Role == "admin" && u.DisabledAt == nil }

func (u User) unique() []unique {
	return []unique{{
		field: "name", message: fmt.Sprintf("there is already a user %q", u.Name),
		holders: `SELECT 'user "' || name || '"' FROM users WHERE name = ? AND id <> ?`, args: []any{u.Name, u.ID},
	}, {
		field: "subject", message: "there is already a user of this identity",
		holders: `SELECT 'user "' || name || '"' FROM users WHERE issuer = ? AND subject = ? AND issuer <> '' AND id <> ?`,
		args:    []any{u.Issuer, u.Subject, u.ID},
	}}
}

var userSorts = map[string]string{"name": "name", "role": "role", "createdAt": "created_at", "updatedAt": "updated_at"}

// ListUsers returns a page of users and the number of all. Sort: id, name,
// role, createdAt, updatedAt.
func (s *Store) ListUsers(ctx context.Context, opts ListOptions) ([]User, int64, error) {
	return list[User](s.reader(ctx), opts, userSorts, "name", "issuer", "subject")
}

// HasUsers reports whether anybody could sign in.
func (s *Store) HasUsers(ctx context.Context) (bool, error) { return hasUsers(s.reader(ctx)) }

func hasUsers(tx *gorm.DB) (bool, error) {
	var count int64
	if err := tx.Model(&User{}).Count(&count).Error; err != nil {
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
	return findUser(s.reader(ctx), "name = ?", name)
}

// UserByIdentity returns the user whom a provider knows as subject, or
// ErrNotFound.
func (s *Store) UserByIdentity(ctx context.Context, issuer, subject string) (User, error) {
	return findUser(s.reader(ctx), "issuer = ? AND subject = ? AND issuer <> ''", issuer, subject)
}

func findUser(tx *gorm.DB, condition string, args ...any) (User, error) {
	var user User
	err := tx.Where(condition, args...).Take(&user).Error
	if errors.Is(err, gorm.ErrRecordNotFound) {
		return User{}, ErrNotFound
	}
	if err != nil {
		return User{}, fmt.Errorf("read user: %w", err)
	}
	return user, nil
}

// CreateUser stores a new user and gives it an id. A name that is taken is a
// *ConflictError.
func (s *Store) CreateUser(ctx context.Context, user *User) error {
	return s.update(ctx, func(tx *gorm.DB) error { return insert(tx, user, user.unique()...) })
}

func (u User) subject() Subject { return Subject{Resource: "user", ID: u.ID, Name: u.Name} }

func (u User) action(plain Action, before any) Action {
	if was, existed := before.(User); existed && was.PasswordHash != u.PasswordHash {
		return ActionPasswordChanged
	}
	return plain
}

// UpdateUser applies change to a user. A new password and a suspension end all
// sessions of that user in the same transaction. Errors: those of change,
// ErrNotFound, *ConflictError for a taken name and for the last administrator.
func (s *Store) UpdateUser(ctx context.Context, id int64, change func(*User) error) (User, error) {
	var row User
	err := s.update(ctx, func(tx *gorm.DB) error {
		admins, err := activeAdmins(tx)
		if err != nil {
			return err
		}
		if row, err = get[User](tx, id); err != nil {
			return err
		}
		before := row
		if err := change(&row); err != nil {
			return err
		}
		if before.isActiveAdmin() && !row.isActiveAdmin() {
			if err := requireOther(admins, before); err != nil {
				return err
			}
		}
		if endsSessions(before, row) {
			row.SessionEpoch++
			if err := endSessions(tx, id); err != nil {
				return err
			}
		}
		return save(tx, before, &row, row.unique()...)
	})
	return row, err
}

func endsSessions(before, after User) bool {
	return before.PasswordHash != after.PasswordHash || before.DisabledAt == nil && after.DisabledAt != nil
}

// EndSessions signs a user out everywhere, or returns ErrNotFound.
func (s *Store) EndSessions(ctx context.Context, userID int64) error {
	return s.update(ctx, func(tx *gorm.DB) error {
		user, err := get[User](tx, userID)
		if err != nil {
			return err
		}
		before := user
		user.SessionEpoch++
		return errors.Join(save(tx, before, &user), endSessions(tx, userID), auditAct(tx, ActionSessionsEnded, user.subject(), nil))
	})
}

func endSessions(tx *gorm.DB, userID int64) error {
	if err := tx.Delete(&Session{}, "user_id = ?", userID).Error; err != nil {
		return fmt.Errorf("end sessions of user %d: %w", userID, err)
	}
	return nil
}

// DeleteUser deletes a user and, by the foreign key, all their sessions, or
// returns ErrNotFound. The last administrator stays: *ConflictError.
func (s *Store) DeleteUser(ctx context.Context, id int64) error {
	return s.update(ctx, func(tx *gorm.DB) error {
		admins, err := activeAdmins(tx)
		if err != nil {
			return err
		}
		user, err := get[User](tx, id)
		if err != nil {
			return err
		}
		if user.isActiveAdmin() {
			if err := requireOther(admins, user); err != nil {
				return err
			}
		}
		return removeOne[User](tx, id)
	})
}

// activeAdmins reads the administrators who can sign in. Of those who come by a
// provider only it knows whether they still can: they count while they have a
// session.
func activeAdmins(tx *gorm.DB) ([]User, error) {
	var admins []User
	err := tx.Where("role = 'admin' AND disabled_at IS NULL").
		Where("issuer = '' OR EXISTS (SELECT 1 FROM sessions WHERE user_id = users.id AND expiry > ?)", now()).Order("id").Find(&admins).Error
	if err != nil {
		return nil, fmt.Errorf("read administrators: %w", err)
	}
	return admins, nil
}

// requireOther refuses what would leave the manager without an administrator.
func requireOther(admins []User, but User) error {
	for _, admin := range admins {
		if admin.ID != but.ID {
			return nil
		}
	}
	return &ConflictError{Message: fmt.Sprintf("%q is the last administrator who can sign in; make another one first, who has a password or is signed in (opensource-manager user create on the manager's host does it, too)", but.Name)}
}
