package auth

import (
	"net/netip"
	"sync"
	"time"
)

// budget is how many failures are allowed in a row, and how long it takes until
// one is forgotten.
type budget struct {
	burst int
	each  time.Duration
}

// The budgets of wrong credentials. A stranger's sign-ins are counted by address
// and name, by address for all names, and by name for all addresses; those of a
// browser in which that person has signed in before by themselves, so that
// nobody else can use that budget up. Keys and tokens are counted by address,
// and only when they are wrong.
var (
	perPair    = budget{10, 6 * time.Second}
	perNetwork = budget{60, time.Second}
	perName    = budget{100, 6 * time.Second}
	perDevice  = budget{10, 6 * time.Second}
	perKeyhole = budget{100, time.Second}
)

// slowLane is what an attempt beyond the budget waits before it is looked at,
// one at a time: the right password is never locked out, and guessing is slow.
const slowLane = 3 * time.Second

// maxBuckets bounds the memory of the limiter.
const maxBuckets = 30_000

// limiter counts wrong credentials. It never decides about right ones.
type limiter struct {
	now func() time.Time

	mu      sync.Mutex
	buckets map[string]*bucket
}

type bucket struct {
	budget budget
	left   float64
	at     time.Time
	slow   bool // an attempt beyond the budget is under way
}

func newLimiter(now func() time.Time) *limiter {
	return &limiter{now: now, buckets: map[string]*bucket{}}
}

// limit is one count that an attempt is part of.
type limit struct {
	key    string
	budget budget
}

// begin asks for leave to look at a password. Unless it is refused, end must be
// called; slow attempts have to wait for slowLane first.
func (l *limiter) begin(limits ...limit) (end func(right bool), slow, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var taken []*bucket
	for _, limit := range limits {
		b := l.bucket(limit)
		if b.left >= 1 {
			b.left--
			taken = append(taken, b)
			continue
		}
		giveBack(taken) // what is not looked at is no failure
		if b.slow {
			return nil, true, false
		}
		b.slow = true
		return func(bool) { l.endSlow(b) }, true, true
	}
	return func(right bool) { l.end(taken, right) }, false, true
}

func (l *limiter) end(taken []*bucket, right bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if right {
		giveBack(taken)
	}
}

func (l *limiter) endSlow(b *bucket) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b.slow = false
}

func giveBack(taken []*bucket) {
	for _, b := range taken {
		b.left = min(b.left+1, float64(b.budget.burst))
	}
}

// failed counts a failure; beyond the budget it says how long to wait.
func (l *limiter) failed(limit limit) (wait time.Duration, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.bucket(limit)
	if b.left >= 1 {
		b.left--
		return 0, true
	}
	return time.Duration((1 - b.left) * float64(b.budget.each)), false
}

// bucket is the present state of a count.
func (l *limiter) bucket(limit limit) *bucket {
	now := l.now()
	b, known := l.buckets[limit.key]
	if !known {
		if len(l.buckets) >= maxBuckets {
			l.forget(now)
		}
		b = &bucket{budget: limit.budget, left: float64(limit.budget.burst), at: now}
		l.buckets[limit.key] = b
	}
	b.refill(now)
	return b
}

func (b *bucket) refill(now time.Time) {
	if passed := now.Sub(b.at); passed > 0 {
		b.left = min(b.left+float64(passed)/float64(b.budget.each), float64(b.budget.burst))
		b.at = now
	}
}

// forget drops what has no failure left; should all be in use, all are dropped:
// memory is bounded before guessing is.
func (l *limiter) forget(now time.Time) {
	for key, b := range l.buckets {
		if b.refill(now); b.left >= float64(b.budget.burst) && !b.slow {
			delete(l.buckets, key)
		}
	}
	if len(l.buckets) >= maxBuckets {
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
		return netip.Prefix{} // no address at all: they share one count
	}
	return prefix
}
