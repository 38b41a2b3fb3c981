package store

import (
	"context"
	"database/sql/driver"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"gorm.io/gorm"

	"opensource.internal/manager/internal/events"
)

// NotificationTarget is somebody who is told what happens to agents.
type NotificationTarget struct {
	ID   int64
	Name string
	// URL says how, with whatever secret that takes. Nobody is shown it again.
	URL      string `gorm:"column:url" audit:"-"`
	URLSetAt time.Time
	// Kinds and SiteIDs are what is told, and of which sites; all if empty.
	Kinds   Words
	SiteIDs IDs `gorm:"column:site_ids"`
	// Severity is the least that is told.
	Severity     events.Severity
	Enabled      bool
	CreatedAt    time.Time
	UpdatedAt    time.Time
	EnabledSince time.Time `audit:"-"`
	// What the manager notes of its deliveries. Failures are those in a row.
	SentAt    *time.Time `audit:"-"`
	Failures  int        `audit:"-"`
	FailedAt  *time.Time `audit:"-"`
	LastError string     `audit:"-"`
}

func (t NotificationTarget) subject() Subject {
	return Subject{Resource: "notification_target", ID: t.ID, Name: t.Name}
}

// Words are a list in one column, separated by commas.
type Words []string

// Scan implements sql.Scanner.
func (w *Words) Scan(value any) error {
	text, ok := value.(string)
	if !ok {
		return fmt.Errorf("a list of words is a %T", value)
	}
	*w = nil
	if text != "" {
		*w = strings.Split(text, ",")
	}
	return nil
}

// Value implements driver.Valuer.
func (w Words) Value() (driver.Value, error) { return strings.Join(w, ","), nil }

// IDs are a list of ids in one column, separated by commas.
type IDs []int64

// Scan implements sql.Scanner.
func (i *IDs) Scan(value any) error {
	var words Words
	if err := words.Scan(value); err != nil {
		return err
	}
	*i = nil
	for _, word := range words {
		id, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			return fmt.Errorf("a list of ids has %q", word)
		}
		*i = append(*i, id)
	}
	return nil
}

// Value implements driver.Valuer.
func (i IDs) Value() (driver.Value, error) {
	words := make(Words, 0, len(i))
	for _, id := range i {
		words = append(words, strconv.FormatInt(id, 10))
	}
	return words.Value()
}

var targetSort = map[string]string{"name": "name", "createdAt": "created_at", "updatedAt": "updated_at"}

// NotificationTargetFilter chooses targets. Zero fields choose all.
type NotificationTargetFilter struct{ Name string }

// ListNotificationTargets returns a page of targets and the number of all that
// match. Sort: id, name, createdAt, updatedAt.
func (s *Store) ListNotificationTargets(ctx context.Context, filter NotificationTargetFilter, opts ListOptions) ([]NotificationTarget, int64, error) {
	query := s.read.WithContext(ctx)
	if filter.Name != "" {
		condition, args := named("name", filter.Name)
		query = query.Where(condition, args...)
	}
	return list[NotificationTarget](query, opts, targetSort, "name")
}

// GetNotificationTarget returns a target or ErrNotFound.
func (s *Store) GetNotificationTarget(ctx context.Context, id int64) (NotificationTarget, error) {
	return get[NotificationTarget](s.reader(ctx), id)
}

// CreateNotificationTarget stores a new target, whose URL somebody has checked.
// Errors: *InvalidError, *ConflictError.
func (s *Store) CreateNotificationTarget(ctx context.Context, target NotificationTarget) (NotificationTarget, error) {
	target.URLSetAt, target.EnabledSince = now(), now()
	err := s.update(ctx, func(tx *gorm.DB) error {
		if err := target.check(tx); err != nil {
			return err
		}
		return insert(tx, &target, target.unique()...)
	})
	return target, err
}

// UpdateNotificationTarget applies change to a target. Errors: those of change,
// ErrNotFound, *InvalidError, *ConflictError.
func (s *Store) UpdateNotificationTarget(ctx context.Context, id int64, change func(*NotificationTarget) error) (NotificationTarget, error) {
	var row NotificationTarget
	err := s.update(ctx, func(tx *gorm.DB) (err error) {
		if row, err = get[NotificationTarget](tx, id); err != nil {
			return err
		}
		before := row
		if err := change(&row); err != nil {
			return err
		}
		if row.URL != before.URL {
			row.URLSetAt, row.Failures, row.FailedAt, row.LastError = now(), 0, nil, ""
		}
		if row.Enabled && !before.Enabled {
			row.EnabledSince = now() // what is over by now is no news any more
		}
		if err := row.check(tx); err != nil {
			return err
		}
		return save(tx, before, &row, row.unique()...)
	})
	return row, err
}

// DeleteNotificationTarget deletes a target or returns ErrNotFound.
func (s *Store) DeleteNotificationTarget(ctx context.Context, id int64) error {
	return s.update(ctx, func(tx *gorm.DB) error { return removeOne[NotificationTarget](tx, id) })
}

func (t NotificationTarget) unique() []unique {
	condition, args := named("name", t.Name)
	return []unique{{
		field: "name", anyCase: true, message: fmt.Sprintf("the name %q is already in use", t.Name),
		holders: `SELECT 'notification target "' || name || '"' FROM notification_targets WHERE ` + condition + ` AND id <> ?`,
		args:    append(args, t.ID),
	}}
}

// check refuses sites that do not exist.
func (t NotificationTarget) check(tx *gorm.DB) error {
	var known IDs
	if err := tx.Model(&Site{}).Where("id IN ?", []int64(t.SiteIDs)).Pluck("id", (*[]int64)(&known)).Error; err != nil {
		return fmt.Errorf("look for the target's sites: %w", err)
	}
	for _, id := range t.SiteIDs {
		if !slices.Contains(known, id) {
			return invalid("siteIds", "there is no site %d", id)
		}
	}
	return nil
}
