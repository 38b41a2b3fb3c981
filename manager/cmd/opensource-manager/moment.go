package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// moment is a time on the command line: so long ago, or a date with or without
// a time.
type moment struct{ time.Time }

// UnmarshalText implements encoding.TextUnmarshaler.
func (m *moment) UnmarshalText(text []byte) error {
	value := string(text)
	if days, found := strings.CutSuffix(value, "d"); found {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil {
			m.Time = time.Now().Add(-time.Duration(n) * 24 * time.Hour)
			return nil
		}
	}
	if ago, err := time.ParseDuration(value); err == nil && ago >= 0 {
		m.Time = time.Now().Add(-ago)
		return nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if at, err := time.Parse(layout, value); err == nil {
			m.Time = at
			return nil
		}
	}
	return fmt.Errorf("%q is neither so long ago, such as 90m, 24h or 7d, nor a time such as 2026-01-31 or 2026-01-31T08:00:00Z", value)
}
