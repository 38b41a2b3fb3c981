package auth

import (
	"errors"
	"fmt"
	"time"
)

// The ways to be refused. What exactly was wrong with credentials is not
// said: an unknown key and a wrong one look the same.
var (
	// ErrUnauthorized means that credentials are missing or not valid.
	ErrUnauthorized = errors.New("valid credentials are required")
	// ErrUnavailable means that the database cannot tell.
	ErrUnavailable = errors.New("the database cannot be asked for API keys")
	// ErrForbidden means that valid credentials do not allow this.
	ErrForbidden = errors.New("these credentials do not allow this")
)

// TooManyError refuses a sign-in because its address has tried too often.
type TooManyError struct{ Wait time.Duration }

func (e *TooManyError) Error() string {
	return fmt.Sprintf("too many sign-in attempts; try again in %d seconds", e.Seconds())
}

// Seconds is the wait in whole seconds, at least one, as for Retry-After.
func (e *TooManyError) Seconds() int { return int((e.Wait + time.Second - 1) / time.Second) }
