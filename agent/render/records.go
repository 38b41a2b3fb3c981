package render

import (
	"fmt"
	"strconv"
	"strings"

	"opensource.internal/agent/checkin"
)

// leftOut gathers the records that are left out of a configuration.
type leftOut []checkin.QuarantinedItem

func (l *leftOut) add(r Record, reason error) {
	*l = append(*l, checkin.QuarantinedItem{
		Kind: r.Kind, ID: r.ID, Name: r.Name,
		Reason: strings.ReplaceAll(reason.Error(), "\n", "; "), // joined errors
	})
}

// keep reports whether reason is nil, and leaves the record out otherwise.
func (l *leftOut) keep(r Record, reason error) bool {
	if reason != nil {
		l.add(r, reason)
	}
	return reason == nil
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
