package main

import (
	"fmt"
	"time"

	"opensource.internal/manager/internal/inventory"
)

// past is a time on the command line that was: so long ago, or a date with or
// without a time.
type past struct{ time.Time }

// UnmarshalText implements encoding.TextUnmarshaler.
func (p *past) UnmarshalText(text []byte) (err error) {
	p.Time, err = readTime(string(text), func(span time.Duration) time.Time { return time.Now().Add(-span) })
	return err
}

// future is a time that will be: in so long, or a date with or without a time.
type future struct{ time.Time }

// UnmarshalText implements encoding.TextUnmarshaler.
func (f *future) UnmarshalText(text []byte) (err error) {
	f.Time, err = readTime(string(text), time.Now().Add)
	return err
}

func readTime(value string, away func(time.Duration) time.Time) (time.Time, error) {
	if span, err := inventory.ParseDuration(value); err == nil {
		return away(span), nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if at, err := time.Parse(layout, value); err == nil {
			return at, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is neither a time such as 2026-01-31T12:00:00Z or 2026-01-31, nor a time span such as 90m, 24h or 7d", value)
}
