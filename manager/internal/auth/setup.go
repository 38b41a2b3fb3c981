package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"opensource.internal/manager/internal/store"
)

// setupCodeLength is that of a setup code, in characters of 5 random bits.
const setupCodeLength = 20

// NewSetupCode draws the code by which the first account can be made in a
// browser, in place of the one before: only who reads the manager's log, or uses
// its command line, knows it. Once there are users it is store.ErrSetUp.
func NewSetupCode(ctx context.Context, s *store.Store) (code string, err error) {
	text := rand.Text()[:setupCodeLength]
	sum := sha256.Sum256([]byte(text))
	if err := s.KeepSetupCode(ctx, sum[:]); err != nil {
		return "", fmt.Errorf("make setup code: %w", err)
	}
	return text[:5] + "-" + text[5:10] + "-" + text[10:15] + "-" + text[15:], nil
}

// SetUp makes the first account, of an administrator, for who knows the setup
// code, and signs them in. A wrong code is ErrUnauthorized, many of them are
// *TooManyError, a name or password that does not do *FieldError, and a manager
// that has users store.ErrSetUp.
func (a *Auth) SetUp(ctx context.Context, client netip.Addr, code, name, password string) error {
	if err := a.checkSetupCode(ctx, client, code); err != nil {
		return err
	}
	user, err := newUser(name, RoleAdmin, password)
	if err != nil {
		return err
	}
	ctx = AsActor(ctx, Principal{Kind: store.ActorUser, Name: user.Name})
	if err := a.store.CreateFirstUser(ctx, &user); err != nil {
		return fmt.Errorf("set up: %w", err)
	}
	if err := errors.Join(a.audit(ctx, store.ActionSignIn, user), a.begin(ctx, user)); err != nil {
		return fmt.Errorf("set up: %w", err)
	}
	a.rememberDevice(ctx, user)
	a.log.Info("set up", "user", user.Name, "client", client)
	return nil
}

func (a *Auth) checkSetupCode(ctx context.Context, client netip.Addr, code string) error {
	folded := strings.ToUpper(strings.NewReplacer("-", "", " ", "").Replace(code))
	given := digest(sha256.Sum256([]byte(folded)))
	return a.attempt(ctx, []limit{{"set up from " + network(client).String(), perNetwork}}, func() (right bool, err error) {
		kept, err := a.store.SetupCode(ctx)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return false, err
		}
		var stored digest
		copy(stored[:], kept)
		return given.matches(stored), nil
	})
}
