package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// Session is what the server remembers of a browser.
type Session struct {
	Token  string `gorm:"primaryKey"` // hashed by whoever stores it
	Data   []byte
	Expiry time.Time
	UserID *int64 // who is signed in
}

// Session returns the session of a token, or ErrNotFound if there is none or
// it had expired at the given moment.
func (s *Store) Session(ctx context.Context, token string, at time.Time) (Session, error) {
	var session Session
	err := s.read.WithContext(ctx).Take(&session, "token = ?", token).Error
	if errors.Is(err, gorm.ErrRecordNotFound) || err == nil && !at.Before(session.Expiry) {
		return Session{}, ErrNotFound
	}
	if err != nil {
		return Session{}, fmt.Errorf("read session: %w", err)
	}
	return session, nil
}

// SaveSession creates a session or replaces it.
func (s *Store) SaveSession(ctx context.Context, session Session) error {
	return s.update(ctx, func(tx *gorm.DB) error {
		if err := tx.Clauses(clause.OnConflict{UpdateAll: true}).Create(&session).Error; err != nil {
			return fmt.Errorf("save session: %w", err)
		}
		return nil
	})
}

// DeleteSession ends a session, if there is one.
func (s *Store) DeleteSession(ctx context.Context, token string) error {
	return s.update(ctx, func(tx *gorm.DB) error {
		if err := tx.Delete(&Session{}, "token = ?", token).Error; err != nil {
			return fmt.Errorf("delete session: %w", err)
		}
		return nil
	})
}

// DeleteExpiredSessions drops the sessions that have expired at the given
// moment.
func (s *Store) DeleteExpiredSessions(ctx context.Context, at time.Time) error {
	return s.update(ctx, func(tx *gorm.DB) error {
		if err := tx.Delete(&Session{}, "expiry <= ?", at).Error; err != nil {
			return fmt.Errorf("delete expired sessions: %w", err)
		}
		return nil
	})
}
