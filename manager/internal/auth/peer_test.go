package auth

import (
	"net/netip"
	"testing"
	"time"
)

func TestClientAddress(t *testing.T) {
	proxies := Proxies{netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("2001:db8::/32")}
	for _, test := range []struct {
		name    string
		trusted Proxies
		peer    string
		headers []string
		want    string
	}{
		{"no proxy is trusted", nil, "198.51.100.1:1", []string{"X-Forwarded-For", "127.0.0.1", "X-Real-IP", "::1"}, "198.51.100.1"},
		{"peer is no proxy", proxies, outside, []string{"X-Forwarded-For", "127.0.0.1"}, "203.0.113.9"},
		{"through a proxy", proxies, "198.51.100.1:1", []string{"X-Forwarded-For", "203.0.113.7"}, "203.0.113.7"},
		{"the client forged hops", proxies, "198.51.100.1:1", []string{"X-Forwarded-For", "127.0.0.1, 203.0.113.7"}, "203.0.113.7"},
		{"two proxies", proxies, "198.51.100.1:1", []string{"X-Forwarded-For", "127.0.0.1, 203.0.113.7, 198.51.100.2"}, "203.0.113.7"},
		{"two headers", proxies, "198.51.100.1:1", []string{"X-Forwarded-For", "127.0.0.1", "X-Forwarded-For", "203.0.113.7"}, "203.0.113.7"},
		{"junk", proxies, "198.51.100.1:1", []string{"X-Forwarded-For", "203.0.113.7, unknown"}, "198.51.100.1"},
		{"only proxies", proxies, "198.51.100.1:1", []string{"X-Forwarded-For", "198.51.100.9"}, "198.51.100.9"},
		{"no header", proxies, "198.51.100.1:1", nil, "198.51.100.1"},
		{"X-Real-IP is never believed", proxies, "198.51.100.1:1", []string{"X-Real-IP", "203.0.113.7"}, "198.51.100.1"},
		{"IPv6", proxies, "[2001:db8::1]:1", []string{"X-Forwarded-For", "2001:db9::7"}, "2001:db9::7"},
	} {
		if got := test.trusted.Client(request(test.peer, test.headers...)); got != netip.MustParseAddr(test.want) {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}

func TestLimiterCountsPerAddress(t *testing.T) {
	now := time.Now()
	l := newLimiter(func() time.Time { return now })
	address := netip.MustParseAddr("203.0.113.9")
	for n := range signInBurst {
		if wait, ok := l.allow(address); !ok {
			t.Fatalf("attempt %d has to wait %s", n, wait)
		}
	}
	wait, ok := l.allow(address)
	if ok || wait <= 0 || wait > signInInterval {
		t.Errorf("wait %s, %v", wait, ok)
	}
	if _, ok := l.allow(netip.MustParseAddr("203.0.113.10")); !ok {
		t.Error("another address has to wait, too")
	}
	now = now.Add(signInInterval)
	if _, ok := l.allow(address); !ok {
		t.Error("it never ends")
	}
	first, second := netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::2")
	for range signInBurst {
		l.allow(first)
	}
	if _, ok := l.allow(second); ok {
		t.Error("an IPv6 client has 2^64 addresses to try from")
	}
}

func TestLimiterMemoryIsBounded(t *testing.T) {
	now := time.Now()
	l := newLimiter(func() time.Time { return now })
	address := netip.MustParseAddr("10.0.0.0")
	for range maxAddresses + 100 {
		address = address.Next()
		l.allow(address)
	}
	if len(l.buckets) > maxAddresses {
		t.Errorf("%d addresses are remembered", len(l.buckets))
	}
}
