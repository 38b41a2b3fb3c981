package render

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"opensource.internal/agent/checkin"
)

// leftOut gathers the records that are left out of a configuration.
type leftOut struct {
	refused map[Record]Refusal
	items   []checkin.QuarantinedItem
	seen    map[Record]int // by key
	// previous holds, for the items not yet settled, what puts the previous
	// version of the record into its place, and reports whether it could.
	previous map[int]func() bool
}

func newLeftOut(f Facts) *leftOut {
	return &leftOut{refused: f.Refused, seen: map[Record]int{}, previous: map[int]func() bool{}}
}

// keep reports whether a record is to be rendered as it is wanted: it has no
// fault and was not refused by the host. What it has claimed stays claimed, or
// the name of a refused service would go to another. previous may be nil.
func (l *leftOut) keep(r Record, fault error, previous func() bool) bool {
	l.seen[r.Key()]++
	refusal, refused := l.refused[r]
	if fault == nil && refused {
		fault = errors.New(refusal.Reason)
	}
	if fault == nil {
		return true
	}
	if previous != nil && !refusal.Previous {
		l.previous[len(l.items)] = previous
	}
	l.items = append(l.items, checkin.QuarantinedItem{
		Kind: r.Kind, ID: r.ID, Name: r.Name,
		Reason: strings.ReplaceAll(fault.Error(), "\n", "; "), // joined errors
	})
	return false
}

// keepPrevious renders the previous version of records that are left out. It is
// called when all others have claimed what they need. Of two records that are
// one by their key, nobody can say whose version it is.
func (l *leftOut) keepPrevious() {
	for i, item := range l.items {
		key := Record{item.Kind, item.ID, item.Name}.Key()
		if previous := l.previous[i]; previous != nil && l.seen[key] == 1 {
			l.items[i].KeptPrevious = previous()
		}
		delete(l.previous, i)
	}
}

// Key is the same for all versions of a record, in whatever snapshot: its id, or
// its name where there is none.
func (r Record) Key() Record {
	if r.ID != 0 {
		r.Name = ""
	}
	return r
}

// versions finds records by their key.
func versions[T any](all []T, recordOf func(T) Record) map[Record]T {
	found := make(map[Record]T, len(all))
	for _, version := range all {
		found[recordOf(version).Key()] = version
	}
	return found
}

// position is the place that a record has in the snapshot. A previous version
// that is kept takes the place of the wanted one: nothing changes then.
type position int

func (p position) place() position { return p }

// inOrder puts records into the order of the snapshot.
func inOrder[T interface{ place() position }](records []T) {
	slices.SortStableFunc(records, func(a, b T) int { return cmp.Compare(a.place(), b.place()) })
}

// before returns the snapshot that was in force before, an empty one if there
// was none.
func (f Facts) before() checkin.Snapshot {
	if f.Before == nil {
		return checkin.Snapshot{}
	}
	return *f.Before
}

// claims remembers who was first to claim something there is only one of.
type claims[K comparable] map[K]string

// check returns an error that names both if key belongs to another owner.
func (c claims[K]) check(key K, what, owner string) error {
	first, taken := c[key]
	if !taken {
		return nil
	}
	return fmt.Errorf("%s %v is used twice: by %s, which keeps it, and by %s", what, key, first, owner)
}

// claim is check, and takes the key if it was free.
func (c claims[K]) claim(key K, what, owner string) error {
	if err := c.check(key, what, owner); err != nil {
		return err
	}
	c[key] = owner
	return nil
}

// shown makes a value of unknown content fit to name a record in a report.
func shown(s string) string {
	const limit = 253
	cut := s
	if len(cut) > limit {
		cut = cut[:limit] + "…"
	}
	for _, c := range []byte(s) {
		if c <= ' ' || c > '~' {
			return strconv.QuoteToASCII(cut)
		}
	}
	return cut
}

// field puts the JSON name of a field before the error of its value.
func field(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", name, err)
}
