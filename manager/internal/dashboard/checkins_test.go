package dashboard

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"opensource.internal/manager/internal/events"
	"opensource.internal/manager/internal/store"
)

func TestTheStripOfADay(t *testing.T) {
	now := time.Date(2026, 12, 1, 12, 5, 0, 0, time.UTC)
	quarters := make([]store.Quarter, 97)
	for i := range quarters {
		quarters[i] = store.Quarter{BeganAt: now.Truncate(store.QuarterLength).Add(time.Duration(i-96) * store.QuarterLength), Looks: 15}
	}
	quarters[96].Looks = 0 // nobody has looked yet
	quarters[20].Looks = 0
	quarters[30].Late = 1
	quarters[40].Late, quarters[40].Offline = 3, 12
	quarters[41].Offline = 15
	quarters[50].Late, quarters[51].Offline = 1, 1
	a := store.Agent{FirstSeenAt: quarters[10].BeganAt.Add(time.Minute), LastSeenAt: now}
	told := []store.Event{
		{Kind: events.ApplyFailed, At: quarters[50].BeganAt.Add(time.Minute), Detail: store.Values{"service": "nginx"}},
		{Kind: events.ApplyFailed, At: quarters[51].BeganAt, Detail: store.Values{"service": "nginx"}},
		{Kind: events.ApplyRecovered, At: quarters[51].BeganAt.Add(time.Minute), Detail: store.Values{"service": "nginx"}},
		{Kind: events.Stuck, At: quarters[95].BeganAt, Detail: store.Values{"service": "dnsmasq"}},
	}
	view := drawStrip(a, quarters, failures(told, now), now)
	got := map[string][]int{}
	for i, bar := range view.Bars {
		if bar.barKind != wasSeen {
			got[bar.Word] = append(got[bar.Word], i)
		}
	}
	want := map[string][]int{
		wasNotYet.Word: {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, wasUnknown.Word: {20}, wasLate.Word: {30}, wasOffline.Word: {40, 41}, wasLateFailed.Word: {50}, wasOfflineFailed.Word: {51}, wasFailed.Word: {95, 96},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	words := "Of 87 quarter hours: seen in 79; seen, with a failed change in 2; late in 1; late, with a failed change in 1; offline in 2; offline, with a failed change in 1; not known: no manager ran in 1."
	if view.Words != words {
		t.Error(view.Words)
	}
	var stretches []string
	for _, s := range view.Stretches {
		stretches = append(stretches, fmt.Sprintf("%s to %s %s", s.Begins, s.Ends, s.Word))
	}
	if diff := cmp.Diff([]string{
		"2026-11-30 17:00 to 17:15 UTC not known: no manager ran", "2026-11-30 19:30 to 19:45 UTC late", "2026-11-30 22:00 to 22:30 UTC offline",
		"2026-12-01 00:30 to 00:45 UTC late, with a failed change", "2026-12-01 00:45 to 01:00 UTC offline, with a failed change", "2026-12-01 11:45 to 12:15 UTC seen, with a failed change",
	}, stretches); diff != "" {
		t.Error(diff)
	}
	a.LastSeenAt = now.Add(-10 * time.Minute)
	if last := drawStrip(a, quarters, nil, now).Bars[96].barKind; last != wasOffline {
		t.Errorf("the present is %q", last.Word)
	}
}
