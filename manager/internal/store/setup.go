package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"
)

// ErrSetUp refuses what is only for a manager without users.
var ErrSetUp = errors.New("there are users already")

// setupCode is what the first user has to know, in the only row of its table.
type setupCode struct {
	ID        int64
	Hash      []byte
	CreatedAt time.Time
}

// KeepSetupCode stores the hash of a setup code in place of the one before. Once
// there are users it is ErrSetUp.
func (s *Store) KeepSetupCode(ctx context.Context, hash []byte) error {
	return s.update(ctx, func(tx *gorm.DB) error {
		if err := requireNoUsers(tx); err != nil {
			return err
		}
		if err := tx.Save(&setupCode{ID: 1, Hash: hash, CreatedAt: now()}).Error; err != nil {
			return fmt.Errorf("keep setup code: %w", err)
		}
		return nil
	})
}

// SetupCode is the hash of the setup code, or ErrNotFound.
func (s *Store) SetupCode(ctx context.Context) ([]byte, error) {
	var code setupCode
	err := s.reader(ctx).Take(&code).Error
	if errors.Is(err, gorm.ErrRecordNotFound) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("read setup code: %w", err)
	}
	return code.Hash, nil
}

// CreateFirstUser stores the first user, which uses the setup code up. If there
// are users it is ErrSetUp.
func (s *Store) CreateFirstUser(ctx context.Context, user *User) error {
	return s.update(ctx, func(tx *gorm.DB) error {
		if err := requireNoUsers(tx); err != nil {
			return err
		}
		if err := tx.Where("TRUE").Delete(&setupCode{}).Error; err != nil {
			return fmt.Errorf("use setup code: %w", err)
		}
		return insert(tx, user, user.unique()...)
	})
}

func requireNoUsers(tx *gorm.DB) error {
	has, err := hasUsers(tx)
	if err == nil && has {
		return ErrSetUp
	}
	return err
}
