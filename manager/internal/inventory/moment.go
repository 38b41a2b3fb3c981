package inventory

import (
	"fmt"
	"time"
)

// ParseMoment reads a date with or without a time, or a time span, which away
// turns into a moment.
func ParseMoment(value string, away func(time.Duration) time.Time) (time.Time, error) {
	if span, err := ParseDuration(value); err == nil {
		return away(span), nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if at, err := time.Parse(layout, value); err == nil {
			return at, nil
		}
	}
	return time.Time{}, fmt.Errorf("%s is neither a time such as 2026-01-31T12:00:00Z or 2026-01-31, nor a time span such as 90m, 24h or 7d", quoted(value))
}
