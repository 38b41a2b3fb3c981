//go:build e2e

// Package wait waits for conditions, by asking again and again.
package wait

import (
	"errors"
	"testing"
	"time"
)

// ErrHopeless ends a wait early: asking again will not help.
var ErrHopeless = errors.New("hopeless")

// interval is the pause between two questions.
const interval = 100 * time.Millisecond

// For asks until the condition returns nil, and fails the test with the last
// error when that takes longer than the timeout.
func For(t testing.TB, timeout time.Duration, what string, condition func() error) {
	t.Helper()
	deadline := time.Now().Add(timeout)
	for {
		err := condition()
		if err == nil {
			return
		}
		if errors.Is(err, ErrHopeless) || time.Now().After(deadline) {
			t.Fatalf("waiting %v for %s: %v", timeout, what, err)
		}
		time.Sleep(interval)
	}
}
