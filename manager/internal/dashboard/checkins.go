package dashboard

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"opensource.internal/manager/internal/events"
	"opensource.internal/manager/internal/prose"
	"opensource.internal/manager/internal/store"
)

// strip is how an agent's check-ins went in the last day, as a small chart and in
// words.
type strip struct {
	Words     string
	Bars      []bar
	Stretches []stretch // all that was not well
	Legend    []barKind
	From      time.Time
}

// bar is one quarter hour in the chart.
type bar struct {
	barKind
	X, Y, Height int
	Title        string
}

// barKind is what a quarter hour was. Heights differ, for who sees no colours.
type barKind struct {
	Word   string
	Class  string
	height int
}

// stretch is a time without a change.
type stretch struct {
	Word, Class   string
	Begins, Begun string
	Ends          string
}

// The measures of the chart.
const (
	barWidth    = 10
	chartHeight = 40
)

var (
	wasSeen          = barKind{"seen", good, 40}
	wasFailed        = barKind{"seen, with a failed change", bad, 28}
	wasLate          = barKind{"late", warn, 18}
	wasLateFailed    = barKind{"late, with a failed change", bad, 23}
	wasOffline       = barKind{"offline", bad, 8}
	wasOfflineFailed = barKind{"offline, with a failed change", bad, 13}
	wasUnknown       = barKind{"not known: no manager ran", "unknown", 3}
	wasNotYet        = barKind{"not known yet", "unknown", 0}
)

// withFailure is what a quarter was in which a change had failed.
var withFailure = map[barKind]barKind{wasSeen: wasFailed, wasLate: wasLateFailed, wasOffline: wasOfflineFailed}

// width of the chart, in its own unit.
func (s strip) width() string { return strconv.Itoa(len(s.Bars) * barWidth) }

func (d *dashboard) stripOf(ctx context.Context, a store.Agent, now time.Time) (strip, error) {
	quarters, err := d.store.Quarters(ctx, a.ID, now)
	if err != nil {
		return strip{}, err
	}
	told, err := d.store.ApplyEvents(ctx, a.ID)
	if err != nil {
		return strip{}, err
	}
	return drawStrip(a, quarters, failures(told, now), now), nil
}

// period is a time in which something was wrong.
type period struct{ from, to time.Time }

// failures are the times in which some service did not run what it had been
// given.
func failures(told []store.Event, now time.Time) []period {
	var list []period
	since := map[string]time.Time{}
	for _, event := range told {
		name, _ := event.Detail["service"].(string)
		from, failing := since[name]
		switch {
		case event.Kind == events.ApplyRecovered && failing:
			list = append(list, period{from, event.At})
			delete(since, name)
		case event.Kind != events.ApplyRecovered && !failing:
			since[name] = event.At
		}
	}
	for _, from := range since {
		list = append(list, period{from, now})
	}
	return list
}

// drawStrip makes a bar of each quarter.
func drawStrip(a store.Agent, quarters []store.Quarter, failed []period, now time.Time) strip {
	view := strip{From: quarters[0].BeganAt}
	numbers := map[string]int{}
	for i, quarter := range quarters {
		kind := kindOf(a, quarter, failed, now)
		ends := quarter.BeganAt.Add(store.QuarterLength)
		view.Bars = append(view.Bars, bar{
			barKind: kind, X: i * barWidth, Y: chartHeight - kind.height, Height: kind.height,
			Title: fmt.Sprintf("%s to %s UTC: %s", quarter.BeganAt.Format("15:04"), ends.Format("15:04"), kind.Word),
		})
		if numbers[kind.Word]++; numbers[kind.Word] == 1 && kind != wasNotYet {
			view.Legend = append(view.Legend, kind)
		}
		view.stretch(kind, quarter.BeganAt, ends)
	}
	view.Words = inWords(numbers)
	return view
}

// kindOf is what an agent was in a quarter, and whether it had failed to change.
func kindOf(a store.Agent, q store.Quarter, failed []period, now time.Time) barKind {
	kind := presenceIn(q, a, now)
	for _, p := range failed {
		if failing, any := withFailure[kind]; any && p.from.Before(q.BeganAt.Add(store.QuarterLength)) && p.to.After(q.BeganAt) {
			return failing
		}
	}
	return kind
}

// presenceIn is how an agent was heard in a quarter. The worst of it counts.
func presenceIn(q store.Quarter, a store.Agent, now time.Time) barKind {
	ends := q.BeganAt.Add(store.QuarterLength)
	if ends.After(now) && q.Offline == 0 && q.Late == 0 { // nobody has looked yet, or not since
		switch a.Presence(now) {
		case store.Offline:
			q.Offline++
		case store.Late:
			q.Late++
		}
		q.Looks++
	}
	switch {
	case !ends.After(a.FirstSeenAt):
		return wasNotYet
	case q.Looks == 0:
		return wasUnknown
	case q.Offline > 0:
		return wasOffline
	case q.Late > 0:
		return wasLate
	}
	return wasSeen
}

// stretch adds a quarter that was not well to those before it.
func (s *strip) stretch(kind barKind, began, ends time.Time) {
	if kind == wasSeen || kind == wasNotYet {
		return
	}
	end := ends.Format("15:04 UTC")
	if n := len(s.Stretches); n > 0 && s.Stretches[n-1].Word == kind.Word && s.Stretches[n-1].Ends == began.Format("15:04 UTC") {
		s.Stretches[n-1].Ends = end
		return
	}
	s.Stretches = append(s.Stretches, stretch{Word: kind.Word, Class: kind.Class, Begins: began.Format("2006-01-02 15:04"), Begun: began.Format(machineTime), Ends: end})
}

// inWords sums the day up.
func inWords(numbers map[string]int) string {
	var parts []string
	all := 0
	for _, kind := range []barKind{wasSeen, wasFailed, wasLate, wasLateFailed, wasOffline, wasOfflineFailed, wasUnknown} {
		if n := numbers[kind.Word]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s in %d", kind.Word, n))
			all += n
		}
	}
	return fmt.Sprintf("Of %s: %s.", prose.Counted(all, "quarter hour"), strings.Join(parts, "; "))
}

// swatch is the class for the height of a kind in the legend.
func (k barKind) swatch() string { return fmt.Sprintf("h%d", k.height) }
