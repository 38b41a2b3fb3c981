package auth

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"time"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/store"
)

// How long things of an enrollment last.
const (
	DefaultEnrollment = time.Hour
	maxEnrollment     = 7 * 24 * time.Hour
	// lostAnswer is how long a host may ask again with the same nonce.
	lostAnswer = 10 * time.Minute
	// formerKeys is how long the keys that a host had before go on: a pass of
	// that host may be under way.
	formerKeys = 2 * time.Minute
	// minNonce is the least length of a nonce that can be random enough.
	minNonce, maxNonce = 32, 128
)

// NewEnrollment describes a token to be made.
type NewEnrollment struct {
	SiteID    int64
	Hostname  string // the only host that may use it; empty for any
	ExpiresIn time.Duration
	CreatedBy string
}

// CreateEnrollment stores a new token and returns its text, which nobody can see
// again. Without the site it is store.ErrNotFound.
func CreateEnrollment(ctx context.Context, s *store.Store, wanted NewEnrollment) (token string, row store.Enrollment, err error) {
	if wanted.ExpiresIn < time.Minute || wanted.ExpiresIn > maxEnrollment {
		return "", store.Enrollment{}, &FieldError{"expiresIn", errors.New("it is 1 minute to 7 days")}
	}
	if wanted.Hostname != "" {
		if wanted.Hostname, err = checkin.ParseDomain(wanted.Hostname); err != nil {
			return "", store.Enrollment{}, &FieldError{"hostname", err}
		}
	}
	token, prefix, sum := newKey(tokenMark)
	at := stamp()
	row = store.Enrollment{
		SiteID: wanted.SiteID, Hostname: wanted.Hostname, Prefix: prefix, Hash: sum[:],
		CreatedAt: at, CreatedBy: wanted.CreatedBy, ExpiresAt: at.Add(wanted.ExpiresIn),
	}
	if err := s.CreateEnrollment(ctx, &row); err != nil {
		return "", store.Enrollment{}, fmt.Errorf("create enrollment: %w", err)
	}
	return token, row, nil
}

// EnrollmentError refuses a token that is right, but not for this, or not any more.
type EnrollmentError struct {
	Cause   error // one of store.ErrEnrollment…
	Message string
}

func (e *EnrollmentError) Error() string { return e.Message }

func (e *EnrollmentError) Unwrap() error { return e.Cause }

// Enroll turns a token into the key of a host. Wrong tokens are counted with the
// wrong keys of the address, and right ones never asked for the count.
func (a *Auth) Enroll(ctx context.Context, request checkin.EnrollRequest) (key string, row store.APIKey, err error) {
	prefix, err := a.checkToken(ctx, request.Token)
	if err != nil {
		return "", store.APIKey{}, err
	}
	hostname, err := checkin.ParseDomain(request.Hostname)
	if err != nil {
		return "", store.APIKey{}, &FieldError{"hostname", err}
	}
	var nonce []byte
	if request.Nonce != "" {
		if len(request.Nonce) < minNonce || len(request.Nonce) > maxNonce {
			return "", store.APIKey{}, &FieldError{"nonce", fmt.Errorf("it has %d to %d characters, at random", minNonce, maxNonce)}
		}
		sum := sha256.Sum256([]byte(request.Nonce))
		nonce = sum[:]
	}
	wanted := NewKey{Name: "agent on " + hostname, Role: RoleAgent, CreatedBy: "enrollment"}
	key, drawn := wanted.draw()
	ctx = AsActor(ctx, Principal{Kind: store.ActorAgent, Name: hostname})
	row, enrollment, err := a.store.Enroll(ctx, store.Enroll{
		Prefix: prefix, Hostname: hostname, Nonce: nonce, Key: drawn, At: stamp(), Retry: lostAnswer, Overlap: formerKeys,
	})
	if err != nil {
		return "", store.APIKey{}, refusedEnrollment(err, enrollment)
	}
	a.log.Info("enrolled", "site", enrollment.SiteID, "hostname", hostname, "key", row.ID)
	return key, row, nil
}

// checkToken returns what finds a token, if it is one. Malformed, unknown and
// wrong ones cost the same and get the same answer.
func (a *Auth) checkToken(ctx context.Context, token string) (prefix string, err error) {
	sum := digest(sha256.Sum256([]byte(bounded(token))))
	prefix, _ = splitKey(bounded(token), tokenMark)
	found, err := a.store.EnrollmentByPrefix(ctx, prefix)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return "", fmt.Errorf("enroll: %w", err)
	}
	var stored digest
	copy(stored[:], found.Hash)
	if !stored.matches(sum) {
		return "", a.counted(RequestOf(ctx).HTTP, ErrUnauthorized)
	}
	return prefix, nil
}

// refusedEnrollment says why a right token does not do: whoever holds it may know.
func refusedEnrollment(err error, e store.Enrollment) error {
	const another = "ask an administrator for a new one"
	switch {
	case errors.Is(err, store.ErrEnrollmentUsed):
		return &EnrollmentError{err, fmt.Sprintf("this token was used by %q at %s; %s", e.UsedBy, e.UsedAt.UTC().Format(time.RFC3339), another)}
	case errors.Is(err, store.ErrEnrollmentExpired):
		return &EnrollmentError{err, fmt.Sprintf("this token expired at %s; %s", e.ExpiresAt.UTC().Format(time.RFC3339), another)}
	case errors.Is(err, store.ErrEnrollmentRevoked):
		return &EnrollmentError{err, "this token was revoked; " + another}
	case errors.Is(err, store.ErrEnrollmentHost):
		return &EnrollmentError{err, fmt.Sprintf("this token is for the host %q", e.Hostname)}
	}
	return fmt.Errorf("enroll: %w", err)
}

// InstallCommand is what makes a host an agent, typed in the folder that has the
// agent's package.
func InstallCommand(managerURL, token string) string {
	return "sudo apt install ./opensource-agent_*.deb && " + EnrollCommand(managerURL, token)
}

// EnrollCommand is the latter half of it, for a host that has the package.
func EnrollCommand(managerURL, token string) string {
	return "sudo opensource-agent enroll --manager '" +
		strings.ReplaceAll(managerURL, "'", "%27") + "' --token " + token
}
