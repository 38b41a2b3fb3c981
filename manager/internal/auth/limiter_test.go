package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"opensource.internal/manager/internal/store"
	"opensource.internal/manager/internal/store/storetest"
)

// guessing is a manager that ada may sign in to, with a clock that only the
// waiting of slow attempts moves.
type guessing struct {
	*Auth
	now    time.Time
	waited int
}

const adasPassword = "correct horse battery"

func newGuessing(t *testing.T) *guessing {
	t.Helper()
	s := openStore(t, storetest.Database(t))
	g := &guessing{now: time.Now()}
	g.Auth = newTestAuth(t, s, func() time.Time { return g.now })
	g.wait = func(context.Context, time.Duration) error { g.waited++; return nil }
	for _, name := range []string{"ada", "eve"} {
		if _, err := CreateUser(t.Context(), s, name, RoleAdmin, adasPassword); err != nil {
			t.Fatal(err)
		}
	}
	return g
}

// try is one attempt from an address, in a browser with these cookies.
func (g *guessing) attempt(t *testing.T, address, name, password, cookie string) error {
	t.Helper()
	user, err := g.store.UserByName(t.Context(), name)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		t.Fatal(err)
	}
	r := httptest.NewRequest("POST", "/sign-in", nil)
	if cookie != "" {
		r.Header.Set("Cookie", cookie)
	}
	ctx := WithRequest(t.Context(), Request{HTTP: r})
	return g.try(ctx, netip.MustParseAddr(address), name, user, password)
}

// exhaust guesses until guessing is refused.
func (g *guessing) exhaust(t *testing.T, addresses func(n int) string, name string) int {
	t.Helper()
	for n := range 1000 {
		var tooMany *TooManyError
		if err := g.attempt(t, addresses(n), name, "wrong", ""); errors.As(err, &tooMany) {
			return n
		} else if !errors.Is(err, ErrUnauthorized) {
			t.Fatal(err)
		}
	}
	t.Fatal("guessing is never slowed")
	return 0
}

func one(address string) func(int) string { return func(int) string { return address } }

func TestGuessingIsSlowedAndNobodyIsLockedOut(t *testing.T) {
	g := newGuessing(t)
	const attacker = "203.0.113.9"
	if n := g.exhaust(t, one(attacker), "ada"); n != perPair.burst || g.waited != 1 {
		t.Errorf("slowed after %d attempts, %d of them slow", n, g.waited)
	}
	if err := g.attempt(t, attacker, "ada", adasPassword, ""); err != nil {
		t.Errorf("the right password behind the same address: %v", err)
	}
	if g.waited != 2 {
		t.Error("it was not looked at slowly: guessing is as fast as before")
	}
	if err := g.attempt(t, attacker, "eve", adasPassword, ""); err != nil || g.waited != 2 {
		t.Errorf("another person behind the same address: %v", err)
	}
	if err := g.attempt(t, "203.0.113.10", "ada", adasPassword, ""); err != nil || g.waited != 2 {
		t.Errorf("the same person elsewhere: %v", err)
	}
	g.now = g.now.Add(perPair.each)
	if err := g.attempt(t, attacker, "ada", "wrong", ""); !errors.Is(err, ErrUnauthorized) {
		t.Errorf("it is never forgotten: %v", err)
	}
}

func TestOneSlowAttemptAtATime(t *testing.T) {
	g := newGuessing(t)
	g.exhaust(t, one("203.0.113.9"), "ada")
	g.wait = func(context.Context, time.Duration) error {
		var tooMany *TooManyError
		if err := g.attempt(t, "203.0.113.9", "ada", adasPassword, ""); !errors.As(err, &tooMany) || tooMany.Seconds() != 3 {
			t.Errorf("a second one meanwhile: %v", err)
		}
		return nil
	}
	if err := g.attempt(t, "203.0.113.9", "ada", adasPassword, ""); err != nil {
		t.Error(err)
	}
}

func TestRightPasswordsAreNotCounted(t *testing.T) {
	g := newGuessing(t)
	for range 3 * perPair.burst {
		if err := g.attempt(t, "203.0.113.9", "ada", adasPassword, ""); err != nil {
			t.Fatal(err)
		}
	}
	if g.waited != 0 {
		t.Error("they were")
	}
}

func TestIPv6ClientIsItsNetwork(t *testing.T) {
	g := newGuessing(t)
	if n := g.exhaust(t, func(n int) string { return fmt.Sprintf("2001:db8::%x", n+1) }, "ada"); n != perPair.burst {
		t.Errorf("slowed after %d addresses of one network", n)
	}
}

func TestManyNamesFromOneAddress(t *testing.T) {
	g := newGuessing(t)
	refused := 0
	for n := range 200 {
		var tooMany *TooManyError
		if err := g.attempt(t, "203.0.113.9", fmt.Sprint("name", n), "wrong", ""); errors.As(err, &tooMany) {
			refused++
		}
	}
	if refused != 200-perNetwork.burst {
		t.Errorf("%d of 200 names were refused", refused)
	}
	if err := g.attempt(t, "203.0.113.9", "ada", adasPassword, ""); err != nil {
		t.Errorf("the right password: %v", err)
	}
}

// TestManyAddressesForOneName: guesses from everywhere slow the sign-ins of that
// name, but not in the browser that its owner uses.
func TestManyAddressesForOneName(t *testing.T) {
	g := newGuessing(t)
	everywhere := func(n int) string { return fmt.Sprintf("198.51.%d.%d", n/200, n%200+1) }
	if n := g.exhaust(t, everywhere, "ada"); n != perName.burst {
		t.Errorf("slowed after %d addresses", n)
	}
	answer := httptest.NewRecorder()
	ada, err := g.store.UserByName(t.Context(), "ada")
	if err != nil {
		t.Fatal(err)
	}
	g.rememberDevice(context.WithValue(t.Context(), answerKey{}, answer), ada)
	cookie := answer.Result().Cookies()[0]
	known := cookie.Name + "=" + cookie.Value
	g.waited = 0
	if err := g.attempt(t, "203.0.113.1", "ada", adasPassword, known); err != nil || g.waited != 0 {
		t.Errorf("in a known browser: %v, %d slow", err, g.waited)
	}
	for name, cookie := range map[string]string{
		"forged": cookie.Name + "=" + cookie.Value[:len(cookie.Value)-1] + "x", "renamed": cookie.Name + "=x" + cookie.Value, "empty": cookie.Name + "=",
	} {
		g.waited = 0
		if err := g.attempt(t, "203.0.113.1", "ada", adasPassword, cookie); err != nil || g.waited != 1 {
			t.Errorf("%s: %v, %d slow", name, err, g.waited)
		}
	}
	for range perDevice.burst { // a stolen cookie is a budget and no more
		if err := g.attempt(t, "203.0.113.1", "ada", "wrong", known); !errors.Is(err, ErrUnauthorized) {
			t.Fatal(err)
		}
	}
	var tooMany *TooManyError
	if err := g.attempt(t, "203.0.113.1", "ada", "wrong", known); !errors.As(err, &tooMany) {
		t.Errorf("endless guessing with a known browser's cookie: %v", err)
	}
	if err := SetPassword(t.Context(), g.store, "ada", "another long password"); err != nil {
		t.Fatal(err)
	}
	g.waited = 0
	if err := g.attempt(t, "203.0.113.1", "ada", "another long password", known); err != nil || g.waited != 1 {
		t.Errorf("a cookie from before the new password: %v, %d slow", err, g.waited)
	}
}

func TestBadKeysNeverLockOutGoodOnes(t *testing.T) {
	g := newGuessing(t)
	good, _ := makeKey(t, g.store, NewKey{Role: RoleViewer})
	var tooMany *TooManyError
	for n := range perKeyhole.burst {
		// Whatever header a client sends, it stays one client.
		r := request(outside, "X-Api-Key", "wrong", "X-Forwarded-For", fmt.Sprintf("198.51.100.%d", n), "X-Real-Ip", "::1")
		if _, err := g.Authenticate(r); err != ErrUnauthorized {
			t.Fatalf("attempt %d: %v", n, err)
		}
	}
	if _, err := g.Authenticate(request(outside, "X-Api-Key", "wrong")); !errors.As(err, &tooMany) || tooMany.Seconds() != 1 {
		t.Errorf("bad keys without end: %v", err)
	}
	if err := g.authorize(request(outside, "X-Api-Key", "wrong"), 1); !errors.As(err, &tooMany) {
		t.Errorf("bad keys of check-ins without end: %v", err)
	}
	if _, err := g.Authenticate(request(outside, "X-Api-Key", good)); err != nil {
		t.Errorf("a good key behind the same address: %v", err)
	}
	if _, err := g.Authenticate(request("203.0.113.10:1", "X-Api-Key", "wrong")); err != ErrUnauthorized {
		t.Errorf("another address: %v", err)
	}
	if _, err := g.Authenticate(request(outside)); err != ErrUnauthorized {
		t.Errorf("no key at all: %v", err)
	}
}

func TestLimiterMemoryIsBounded(t *testing.T) {
	now := time.Now()
	l := newLimiter(func() time.Time { return now })
	for n := range maxBuckets + 100 {
		l.failed(limit{fmt.Sprint(n), perKeyhole})
	}
	if len(l.buckets) > maxBuckets {
		t.Errorf("%d counts are kept", len(l.buckets))
	}
}

func TestTheWaitIsSaidInGoodEnglish(t *testing.T) {
	for wait, want := range map[time.Duration]string{time.Millisecond: "in 1 second", 90 * time.Second: "in 90 seconds"} {
		if got := (&TooManyError{Wait: wait}).Error(); !strings.HasSuffix(got, want) {
			t.Errorf("%s: %s", wait, got)
		}
	}
}
