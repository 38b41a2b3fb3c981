package auth

import (
	"net/netip"
	"testing"
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
