package store

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"
)

// Enrollment is a token that an agent turns into its own key, once: everything
// but the token itself.
type Enrollment struct {
	ID        int64
	SiteID    int64
	Hostname  string // the only host that may use it; empty for any
	Prefix    string // finds the token
	Hash      []byte `audit:"-"` // SHA-256 of the whole token
	CreatedAt time.Time
	CreatedBy string
	ExpiresAt time.Time
	RevokedAt *time.Time
	UsedAt    *time.Time
	UsedBy    string // the host that used it
	NonceHash []byte `audit:"-"` // by which that host may ask once more
	APIKeyID  *int64 // what it was turned into
}

func (e Enrollment) subject() Subject {
	return Subject{Resource: "enrollment", ID: e.ID, Name: e.Prefix, SiteID: e.SiteID}
}

// EnrollmentFilter chooses enrollments. Zero fields choose all.
type EnrollmentFilter struct{ SiteID int64 }

var enrollmentSorts = map[string]string{"hostname": "hostname", "createdAt": "created_at", "expiresAt": "expires_at", "usedAt": "used_at"}

// ListEnrollments returns a page of the enrollments of a site, used and expired
// ones among them, and the number of all. Sort: id, hostname, createdAt,
// expiresAt, usedAt. Without such a site it is ErrNotFound.
func (s *Store) ListEnrollments(ctx context.Context, filter EnrollmentFilter, opts ListOptions) ([]Enrollment, int64, error) {
	if filter.SiteID != 0 {
		if _, err := s.GetSite(ctx, filter.SiteID); err != nil {
			return nil, 0, err
		}
	}
	return list[Enrollment](where(s.reader(ctx), "site_id", filter.SiteID), opts, enrollmentSorts, "hostname", "prefix", "created_by", "used_by")
}

// GetEnrollment returns an enrollment or ErrNotFound.
func (s *Store) GetEnrollment(ctx context.Context, id int64) (Enrollment, error) {
	return get[Enrollment](s.reader(ctx), id)
}

// EnrollmentByPrefix returns an enrollment or ErrNotFound.
func (s *Store) EnrollmentByPrefix(ctx context.Context, prefix string) (Enrollment, error) {
	return enrollmentByPrefix(s.reader(ctx), prefix)
}

func enrollmentByPrefix(tx *gorm.DB, prefix string) (Enrollment, error) {
	var row Enrollment
	err := tx.Take(&row, "prefix = ?", prefix).Error
	if errors.Is(err, gorm.ErrRecordNotFound) {
		return Enrollment{}, ErrNotFound
	}
	if err != nil {
		return Enrollment{}, fmt.Errorf("read enrollment: %w", err)
	}
	return row, nil
}

// CreateEnrollment stores a new enrollment and gives it an id, or returns
// ErrNotFound if there is no such site.
func (s *Store) CreateEnrollment(ctx context.Context, row *Enrollment) error {
	return s.update(ctx, func(tx *gorm.DB) error {
		if _, err := get[Site](tx, row.SiteID); err != nil {
			return err
		}
		return insert(tx, row)
	})
}

// RevokeEnrollment makes a token worthless, or returns ErrNotFound. One that was
// used is a *ConflictError: what it was turned into is an API key.
func (s *Store) RevokeEnrollment(ctx context.Context, id int64) (Enrollment, error) {
	var row Enrollment
	err := s.update(ctx, func(tx *gorm.DB) (err error) {
		if row, err = get[Enrollment](tx, id); err != nil {
			return err
		}
		if row.UsedAt != nil {
			return &ConflictError{Message: fmt.Sprintf("the token was used by %q: revoke that host's API key", row.UsedBy)}
		}
		if row.RevokedAt != nil {
			return nil
		}
		before, at := row, now()
		row.RevokedAt = &at
		return save(tx, before, &row)
	})
	return row, err
}

// The ways in which a right token does not enroll a host.
var (
	ErrEnrollmentUsed    = errors.New("the enrollment was used")
	ErrEnrollmentRevoked = errors.New("the enrollment was revoked")
	ErrEnrollmentExpired = errors.New("the enrollment has expired")
	ErrEnrollmentHost    = errors.New("the enrollment is for another host")
)

// Enroll is a host that turns a token into its own key.
type Enroll struct {
	Prefix   string
	Hostname string
	Nonce    []byte // hashed
	Key      APIKey // to be stored; its site and host are filled in
	At       time.Time
	// Retry is how long after the first answer the same nonce may ask for
	// another one: the first may have been lost on the way.
	Retry time.Duration
	// Overlap is how long keys that this host was given before work on.
	Overlap time.Duration
}

// Enroll turns a token into a key, in one transaction: of any number of hosts
// that try at once, one succeeds. Keys that the host was given before expire.
// Errors: ErrNotFound, ErrEnrollmentUsed, …Revoked, …Expired, …Host.
func (s *Store) Enroll(ctx context.Context, by Enroll) (key APIKey, enrollment Enrollment, err error) {
	err = s.update(ctx, func(tx *gorm.DB) error {
		if enrollment, err = enrollmentByPrefix(tx, by.Prefix); err != nil {
			return err
		}
		if err := enrollment.admits(by); err != nil {
			return err
		}
		key = by.Key
		key.SiteID, key.Hostname = &enrollment.SiteID, by.Hostname
		if err := insert(tx, &key); err != nil {
			return err
		}
		if err := replaceKeys(tx, key, enrollment.APIKeyID, by); err != nil {
			return err
		}
		before := enrollment
		if enrollment.UsedAt == nil {
			enrollment.UsedAt = &by.At
		}
		enrollment.UsedBy, enrollment.NonceHash, enrollment.APIKeyID = by.Hostname, by.Nonce, &key.ID
		return save(tx, before, &enrollment)
	})
	return key, enrollment, err
}

func (e Enrollment) admits(by Enroll) error {
	switch {
	case e.Hostname != "" && e.Hostname != by.Hostname:
		return ErrEnrollmentHost
	case e.UsedAt != nil && e.isRetry(by):
		return nil
	case e.UsedAt != nil:
		return ErrEnrollmentUsed
	case e.RevokedAt != nil:
		return ErrEnrollmentRevoked
	case !by.At.Before(e.ExpiresAt):
		return ErrEnrollmentExpired
	}
	return nil
}

// isRetry reports whether the host that used the token has not got the answer.
func (e Enrollment) isRetry(by Enroll) bool {
	return len(by.Nonce) > 0 && e.UsedBy == by.Hostname && by.At.Sub(*e.UsedAt) < by.Retry && subtle.ConstantTimeCompare(e.NonceHash, by.Nonce) == 1
}

// replaceKeys ends what the host was given before: at once what nobody has got,
// after a while what it may be using at this moment.
func replaceKeys(tx *gorm.DB, key APIKey, lost *int64, by Enroll) error {
	var former []APIKey
	err := tx.Where("role = 'agent' AND site_id = ? AND hostname = ? AND id <> ? AND revoked_at IS NULL", key.SiteID, key.Hostname, key.ID).
		Order("id").Find(&former).Error
	if err != nil {
		return fmt.Errorf("read the host's former keys: %w", err)
	}
	for _, row := range former {
		before := row
		if lost != nil && row.ID == *lost {
			row.RevokedAt = &by.At
		} else {
			row.endBy(by.At.Add(by.Overlap))
		}
		if err := save(tx, before, &row); err != nil {
			return err
		}
	}
	return nil
}

// DeleteOldEnrollments forgets enrollments that expired before a moment.
func (s *Store) DeleteOldEnrollments(ctx context.Context, before time.Time) error {
	return s.update(ctx, func(tx *gorm.DB) error {
		if err := tx.Where("expires_at < ?", before).Delete(&Enrollment{}).Error; err != nil {
			return fmt.Errorf("delete old enrollments: %w", err)
		}
		return nil
	})
}
