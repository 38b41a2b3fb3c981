package auth

import (
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Sign-in attempts one address may make: a burst, then one every six seconds.
const (
	signInBurst    = 10
	signInInterval = 6 * time.Second
	maxAddresses   = 10_000
)

// limiter slows the guessing of passwords by address. API keys are not
// limited: nobody guesses 256 bits, and a bad key must not lock out a good one
// behind the same address.
type limiter struct {
	now func() time.Time

	mu      sync.Mutex
	buckets map[netip.Prefix]*rate.Limiter
}

func newLimiter(now func() time.Time) *limiter {
	return &limiter{now: now, buckets: map[netip.Prefix]*rate.Limiter{}}
}

// allow takes one attempt of the address, or says how long to wait.
func (l *limiter) allow(addr netip.Addr) (wait time.Duration, ok bool) {
	now := l.now()
	bucket := l.bucket(network(addr), now)
	reservation := bucket.ReserveN(now, 1)
	if wait = reservation.DelayFrom(now); wait == 0 {
		return 0, true
	}
	reservation.CancelAt(now)
	return wait, false
}

func (l *limiter) bucket(key netip.Prefix, now time.Time) *rate.Limiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	bucket, known := l.buckets[key]
	if !known {
		if len(l.buckets) >= maxAddresses {
			l.forgetIdle(now)
		}
		bucket = rate.NewLimiter(rate.Every(signInInterval), signInBurst)
		l.buckets[key] = bucket
	}
	return bucket
}

// forgetIdle drops addresses whose bucket is full again; should all be in use,
// all are dropped: memory is bounded before guessing is.
func (l *limiter) forgetIdle(now time.Time) {
	for key, bucket := range l.buckets {
		if bucket.TokensAt(now) >= signInBurst {
			delete(l.buckets, key)
		}
	}
	if len(l.buckets) >= maxAddresses {
		clear(l.buckets)
	}
}

// network is what counts as one address: an IPv6 customer owns a whole /64.
func network(addr netip.Addr) netip.Prefix {
	bits := addr.BitLen()
	if addr.Is6() {
		bits = 64
	}
	prefix, err := addr.Prefix(bits)
	if err != nil {
		return netip.Prefix{} // no address at all: they share one bucket
	}
	return prefix
}
