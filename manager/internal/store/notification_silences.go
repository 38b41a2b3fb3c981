package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"gorm.io/gorm"

	"opensource.internal/manager/internal/inventory"
)

// NotificationSilence says that nobody is told of a site until a time.
type NotificationSilence struct {
	ID        int64
	SiteID    int64
	Until     time.Time
	Reason    string
	CreatedBy string
	CreatedAt time.Time
	UpdatedAt time.Time
}

func (n NotificationSilence) subject() Subject {
	return Subject{Resource: "notification_silence", ID: n.ID, SiteID: n.SiteID}
}

// NotificationSilenceFilter chooses silences. Zero fields choose all.
type NotificationSilenceFilter struct{ SiteID int64 }

var silenceSort = map[string]string{"siteId": "site_id", "until": "until", "createdAt": "created_at", "updatedAt": "updated_at"}

// ListNotificationSilences returns a page of the silences that last, and the
// number of all that match. Sort: id, siteId, until, createdAt, updatedAt.
func (s *Store) ListNotificationSilences(ctx context.Context, filter NotificationSilenceFilter, opts ListOptions) ([]NotificationSilence, int64, error) {
	query := where(s.read.WithContext(ctx).Where("until > ?", now()), "site_id", filter.SiteID)
	return list[NotificationSilence](query, opts, silenceSort, "reason")
}

// GetNotificationSilence returns a silence that lasts, or ErrNotFound.
func (s *Store) GetNotificationSilence(ctx context.Context, id int64) (NotificationSilence, error) {
	return get[NotificationSilence](s.reader(ctx).Where("until > ?", now()), id)
}

// SilenceSite stores that nobody is told of a site until a time. There is one
// silence a site: another one takes its place. Errors: *InvalidError.
func (s *Store) SilenceSite(ctx context.Context, wanted NotificationSilence) (NotificationSilence, error) {
	if !wanted.Until.After(now()) {
		return NotificationSilence{}, invalid("until", "%s is over already", wanted.Until.UTC().Format(time.RFC3339))
	}
	reason, err := parseReason(wanted.Reason)
	if err != nil {
		return NotificationSilence{}, invalid("reason", "%v", err)
	}
	wanted.Until, wanted.Reason = wanted.Until.UTC(), reason
	row := wanted
	err = s.update(ctx, func(tx *gorm.DB) error {
		if _, err := get[Site](tx, wanted.SiteID); errors.Is(err, ErrNotFound) {
			return invalid("siteId", "there is no site %d", wanted.SiteID)
		} else if err != nil {
			return err
		}
		var before NotificationSilence
		err := tx.Take(&before, "site_id = ?", wanted.SiteID).Error
		switch {
		case errors.Is(err, gorm.ErrRecordNotFound):
			return insert(tx, &row)
		case err != nil:
			return fmt.Errorf("read the site's silence: %w", err)
		}
		row = before
		row.Until, row.Reason, row.CreatedBy = wanted.Until, wanted.Reason, wanted.CreatedBy
		return save(tx, before, &row)
	})
	return row, err
}

// parseReason takes an absent reason, too.
func parseReason(reason string) (string, error) {
	if strings.TrimSpace(reason) == "" {
		return "", nil
	}
	return inventory.ParseRemark(reason)
}

// EndNotificationSilence deletes a silence or returns ErrNotFound.
func (s *Store) EndNotificationSilence(ctx context.Context, id int64) error {
	return s.update(ctx, func(tx *gorm.DB) error { return removeOne[NotificationSilence](tx, id) })
}
