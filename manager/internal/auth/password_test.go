package auth

import (
	"context"
	"strings"
	"testing"
)

func TestPasswords(t *testing.T) {
	hash, err := hashPassword("correct horse battery")
	if err != nil || !strings.HasPrefix(hash, "$argon2id$") {
		t.Fatalf("%q, %v", hash, err)
	}
	p := newPasswords()
	for _, test := range []struct {
		password, hash string
		want           bool
	}{
		{"correct horse battery", hash, true},
		{"correct horse batterY", hash, false},
		{"", hash, false},
		{strings.Repeat("x", maxPasswordBytes+1), hash, false},
		{"correct horse battery", "", false},
		{"", "", false},
	} {
		if got, err := p.check(t.Context(), test.password, test.hash); err != nil || got != test.want {
			t.Errorf("check(%.20q, %.20q) = %v, %v", test.password, test.hash, got, err)
		}
	}
	for _, refused := range []string{"", "short", "nine char", strings.Repeat("x", maxPasswordBytes+1)} {
		if _, err := hashPassword(refused); err == nil {
			t.Errorf("%.20q was accepted", refused)
		}
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	full := passwords{slots: make(chan struct{})}
	if _, err := full.check(cancelled, "x", hash); err == nil {
		t.Error("a check waits for ever")
	}
	if a, b := GeneratePassword(), GeneratePassword(); a == b || len(a) < 20 {
		t.Errorf("generated %q, %q", a, b)
	}
}
