package main

import (
	"time"

	"opensource.internal/manager/internal/inventory"
)

// past is a time on the command line that was: so long ago, or a date with or
// without a time.
type past struct{ time.Time }

// UnmarshalText implements encoding.TextUnmarshaler.
func (p *past) UnmarshalText(text []byte) (err error) {
	p.Time, err = inventory.ParseMoment(string(text), func(span time.Duration) time.Time { return time.Now().Add(-span) })
	return err
}

// future is a time that will be: in so long, or a date with or without a time.
type future struct{ time.Time }

// UnmarshalText implements encoding.TextUnmarshaler.
func (f *future) UnmarshalText(text []byte) (err error) {
	f.Time, err = inventory.ParseMoment(string(text), time.Now().Add)
	return err
}
