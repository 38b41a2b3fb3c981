package show

import (
	"time"
)

// ID is an optional id or number of an answer: null if it is not set.
func ID(n int64) *int64 {
	if n == 0 {
		return nil
	}
	return &n
}

// Text is an optional text of an answer: null if it is not set.
func Text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// UTC shows an optional time in UTC.
func UTC(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	inUTC := t.UTC()
	return &inUTC
}
