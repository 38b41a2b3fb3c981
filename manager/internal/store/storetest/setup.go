package storetest

import (
	"bytes"
	"errors"
	"testing"

	"opensource.internal/manager/internal/store"
)

// The last setup code holds, until the first user uses it up.
func testSetup(t *testing.T, s *store.Store) {
	ctx := t.Context()
	if _, err := s.SetupCode(ctx); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("fresh: %v", err)
	}
	for _, hash := range []string{"former", "last"} {
		if err := s.KeepSetupCode(ctx, []byte(hash)); err != nil {
			t.Fatal(err)
		}
	}
	if got := must(s.SetupCode(ctx))(t); !bytes.Equal(got, []byte("last")) {
		t.Errorf("%q holds", got)
	}
	if err := s.CreateFirstUser(ctx, &store.User{Name: "ada", Role: "admin", PasswordHash: "x"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.SetupCode(ctx); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("used: %v", err)
	}
	if err := s.CreateFirstUser(ctx, &store.User{Name: "eve", Role: "admin", PasswordHash: "x"}); !errors.Is(err, store.ErrSetUp) {
		t.Errorf("second one: %v", err)
	}
	if err := s.KeepSetupCode(ctx, []byte("late")); !errors.Is(err, store.ErrSetUp) {
		t.Errorf("a code after that: %v", err)
	}
}
