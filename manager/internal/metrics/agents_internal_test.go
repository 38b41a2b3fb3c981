package metrics

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/store"
	"opensource.internal/manager/internal/store/storetest"
)

// breaking is a context that ends when it is asked about for the nth time.
type breaking struct {
	context.Context
	end  context.CancelFunc
	asks atomic.Int64
	nth  int64
}

func breakingAt(t *testing.T, nth int64) *breaking {
	ctx, end := context.WithCancel(t.Context())
	t.Cleanup(end)
	return &breaking{Context: ctx, end: end, nth: nth}
}

func (b *breaking) Done() <-chan struct{} {
	if b.asks.Add(1) == b.nth {
		b.end()
	}
	return b.Context.Done()
}

// TestACutOffScrapeLeavesWhatItRead: with very many agents the first scrapes may
// take too long. Each begins where the one before ended.
func TestACutOffScrapeLeavesWhatItRead(t *testing.T) {
	s := storetest.Open(t)
	for i := range 2*maxReports/100 + 1 {
		site, err := s.CreateSite(t.Context(), inventory.Site{Name: fmt.Sprint("site", i)})
		if err != nil {
			t.Fatal(err)
		}
		for j := range 100 {
			if _, err := s.RecordCheckIn(t.Context(), store.CheckIn{SiteID: site.ID, Hostname: fmt.Sprint("web", j), At: time.Now()}); err != nil {
				t.Fatal(err)
			}
		}
	}
	seen, err := s.AgentsSeen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	whole := breakingAt(t, -1)
	if err := (&agents{store: s}).learn(whole, seen); err != nil || whole.asks.Load() < 3 {
		t.Fatal(whole.asks.Load(), err)
	}
	cut := &agents{store: s}
	if err := cut.learn(breakingAt(t, whole.asks.Load()*2/3), seen); err == nil {
		t.Fatal("it was not cut off")
	}
	if got := len(cut.known); got < maxReports || got >= len(seen) {
		t.Errorf("%d of %d are known", got, len(seen))
	}
}
