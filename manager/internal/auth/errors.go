package auth

import (
	"errors"
	"fmt"
	"time"

	"opensource.internal/manager/internal/prose"
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

// TooManyError refuses an attempt because there were too many wrong ones.
type TooManyError struct{ Wait time.Duration }

func (e *TooManyError) Error() string {
	return "too many attempts with wrong credentials; try again in " + prose.Counted(e.Seconds(), "second")
}

// Seconds is the wait in whole seconds, at least one, as for Retry-After.
func (e *TooManyError) Seconds() int { return max(1, int((e.Wait+time.Second-1)/time.Second)) }

// WrongHostError refuses an enrolled agent's key on another host than its own.
type WrongHostError struct{ Want, Got string }

func (e *WrongHostError) Error() string {
	return fmt.Sprintf("this key is the one of the host %q, not of %q: enroll this host with a token of its own", e.Want, e.Got)
}
