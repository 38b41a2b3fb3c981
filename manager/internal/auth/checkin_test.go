package auth

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"opensource.internal/manager/internal/store/storetest"
)

func TestWhoMayCheckIn(t *testing.T) {
	s := openStore(t, storetest.Database(t))
	a := newTestAuth(t, s, time.Now)
	first, second := withSite(t, s), withSite(t, s)
	agent, _ := makeKey(t, s, NewKey{Role: RoleAgent, SiteID: second})
	admin, _ := makeKey(t, s, NewKey{Role: RoleAdmin})
	viewer, _ := makeKey(t, s, NewKey{Role: RoleViewer})
	throughBareNGINX := request("127.0.0.1:1")
	throughBareNGINX.ProtoMinor = 0
	for _, test := range []struct {
		name string
		r    *http.Request
		site int64
		want error
	}{
		{"agent, own site", request(outside, "X-Api-Key", agent), second, nil},
		{"agent, another site", request(outside, "X-Api-Key", agent), first, ErrForbidden},
		{"agent, no site", request(outside, "X-Api-Key", agent), 99, ErrForbidden},
		{"admin, any site", request(outside, "X-Api-Key", admin), second, nil},
		{"viewer", request(outside, "X-Api-Key", viewer), first, ErrForbidden},
		{"nothing", request(outside), first, ErrUnauthorized},
		{"bad key over loopback", request("127.0.0.1:1", "X-Api-Key", "wrong"), first, ErrUnauthorized},
		{"loopback", request("127.0.0.1:1"), first, nil},
		{"loopback IPv6", request("[::1]:1"), first, nil},
		{"loopback, mapped", request("[::ffff:127.0.0.1]:1"), first, nil},
		{"loopback, another site", request("127.0.0.1:1"), second, ErrUnauthorized},
		{"forged header from outside", request(outside, "X-Forwarded-For", "127.0.0.1"), first, ErrUnauthorized},
		{"forged X-Real-IP from outside", request(outside, "X-Real-IP", "::1"), first, ErrUnauthorized},
		{"through a proxy on this host", request("127.0.0.1:1", "X-Forwarded-For", "203.0.113.9"), first, ErrUnauthorized},
		{"claiming to be loopback through a proxy", request("127.0.0.1:1", "X-Forwarded-For", "127.0.0.1"), first, ErrUnauthorized},
		{"through nginx that sets no header", throughBareNGINX, first, ErrUnauthorized},
		{"empty header", request("127.0.0.1:1", "X-Forwarded-For", ""), first, ErrUnauthorized},
		{"Forwarded", request("127.0.0.1:1", "Forwarded", "for=127.0.0.1"), first, ErrUnauthorized},
		{"X-Forwarded-Proto", request("127.0.0.1:1", "X-Forwarded-Proto", "https"), first, ErrUnauthorized},
		{"X-Forwarded-Anything", request("127.0.0.1:1", "x-forwarded-anything", "1"), first, ErrUnauthorized},
		{"X_Forwarded_For", request("127.0.0.1:1", "X_Forwarded_For", "127.0.0.1"), first, ErrUnauthorized},
		{"X-Real-IP", request("127.0.0.1:1", "X-Real-IP", "127.0.0.1"), first, ErrUnauthorized},
		{"x_real_ip", request("127.0.0.1:1", "x_real_ip", "127.0.0.1"), first, ErrUnauthorized},
		{"Via", request("127.0.0.1:1", "Via", "1.1 proxy"), first, ErrUnauthorized},
		{"X-Original-Forwarded-For", request("127.0.0.1:1", "X-Original-Forwarded-For", "203.0.113.9"), first, ErrUnauthorized},
		{"CF-Connecting-IP", request("127.0.0.1:1", "CF-Connecting-IP", "203.0.113.9"), first, ErrUnauthorized},
		{"True-Client-IP", request("127.0.0.1:1", "True-Client-IP", "203.0.113.9"), first, ErrUnauthorized},
		{"X-Cluster-Client-IP", request("127.0.0.1:1", "X-Cluster-Client-IP", "203.0.113.9"), first, ErrUnauthorized},
	} {
		if err := a.authorize(test.r, test.site); err != test.want {
			t.Errorf("%s: %v, want %v", test.name, err, test.want)
		}
	}
}

func TestTrustInLoopbackEndsWithTheFirstAgentKey(t *testing.T) {
	path := storetest.Database(t)
	s, commandLine := openStore(t, path), openStore(t, path)
	a := newTestAuth(t, s, time.Now)
	site := withSite(t, s)
	loopback := request("127.0.0.1:1")
	if err := a.authorize(loopback, site); err != nil {
		t.Fatalf("fresh manager: %v", err)
	}
	makeKey(t, s, NewKey{Role: RoleAdmin})
	if err := a.authorize(loopback, site); err != nil {
		t.Errorf("an admin key ended it: %v", err)
	}
	_, row := makeKey(t, commandLine, NewKey{Role: RoleAgent, SiteID: site})
	if err := a.authorize(loopback, site); err != ErrUnauthorized {
		t.Errorf("after the first agent key: %v", err)
	}
	if _, err := commandLine.RevokeAPIKey(t.Context(), row.ID); err != nil {
		t.Fatal(err)
	}
	if err := a.authorize(loopback, site); err != ErrUnauthorized {
		t.Errorf("revoking the key brought it back: %v", err)
	}
}

func TestTrustInLoopbackIsSwitchedOff(t *testing.T) {
	s := openStore(t, storetest.Database(t))
	a := New(Options{Store: s, LoopbackSite: 0})
	for _, site := range []int64{0, 1} {
		if err := a.authorize(request("127.0.0.1:1"), site); err != ErrUnauthorized {
			t.Errorf("site %d: %v", site, err)
		}
	}
}

func TestKeysHoldWhileTheDatabaseIsAway(t *testing.T) {
	s := openStore(t, storetest.Database(t))
	site := withSite(t, s)
	key, _ := makeKey(t, s, NewKey{Role: RoleAgent, SiteID: site})
	r := request(outside, "X-Api-Key", key)
	fresh, running := newTestAuth(t, s, time.Now), newTestAuth(t, s, time.Now)
	if err := running.authorize(r, site); err != nil {
		t.Fatal(err)
	}
	if err := running.AuthorizeCheckIn(r, CheckIn{SiteID: site}, nil); err != nil {
		t.Errorf("a known key: %v", err)
	}
	if err := running.AuthorizeCheckIn(request(outside, "X-Api-Key", "wrong"), CheckIn{SiteID: site}, nil); err != ErrUnauthorized {
		t.Errorf("a wrong key: %v", err)
	}
	if err := fresh.AuthorizeCheckIn(r, CheckIn{SiteID: site}, nil); err != ErrUnavailable {
		t.Errorf("before anything was read: %v", err)
	}
}

func TestEnrolledKeyBelongsToOneHost(t *testing.T) {
	s := openStore(t, storetest.Database(t))
	a := newTestAuth(t, s, time.Now)
	site := withSite(t, s)
	wanted := NewKey{Name: "k", Role: RoleAgent, SiteID: site}
	enrolled, row := wanted.draw()
	row.Hostname = "gateway"
	if err := s.CreateAPIKey(t.Context(), &row); err != nil {
		t.Fatal(err)
	}
	free, _ := makeKey(t, s, NewKey{Role: RoleAgent, SiteID: site})
	admin, _ := makeKey(t, s, NewKey{Role: RoleAdmin})
	check := func(key, host string) error {
		r := request(outside, "X-Api-Key", key)
		return a.AuthorizeCheckIn(r, CheckIn{SiteID: site, Hostname: host}, a.keys.versions(t.Context()))
	}
	if err := check(enrolled, "gateway"); err != nil {
		t.Errorf("its own host: %v", err)
	}
	var wrong *WrongHostError
	if err := check(enrolled, "other"); !errors.As(err, &wrong) || wrong.Want != "gateway" || wrong.Got != "other" {
		t.Errorf("another host: %v", err)
	}
	for _, key := range []string{free, admin} {
		if err := check(key, "other"); err != nil {
			t.Errorf("a key of no host: %v", err)
		}
	}
}
