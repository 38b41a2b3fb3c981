package notify

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"opensource.internal/manager/internal/events"
	"opensource.internal/manager/internal/store"
)

// maxName is how long the name of a target may be, in characters.
const maxName = 100

// Check brings a target into its stored form, or names every fault of it by
// its JSON field in an *store.InvalidError.
func Check(t *store.NotificationTarget) error {
	faults := map[string]string{}
	t.Name = strings.TrimSpace(t.Name)
	if n := utf8.RuneCountInString(t.Name); n == 0 || n > maxName || plain(t.Name) != t.Name {
		faults["name"] = fmt.Sprintf("must have 1 to %d characters, in one line", maxName)
	}
	t.URL = strings.TrimSpace(t.URL)
	if t.URL == "" {
		faults["url"] = "is required"
	} else if err := checkURL(t.URL); err != nil {
		faults["url"] = strings.TrimPrefix(err.Error(), "url: ")
	}
	if t.Severity == "" {
		t.Severity = events.Warning
	}
	if t.Severity != events.Warning && t.Severity != events.Error {
		faults["severity"] = fmt.Sprintf("%q is not warning or error", t.Severity)
	}
	slices.Sort(t.Kinds)
	t.Kinds = slices.Compact(t.Kinds)
	for _, kind := range t.Kinds {
		if !slices.Contains(kinds(), events.Kind(kind)) {
			faults["kinds"] = fmt.Sprintf("%q is not something that is told: one of %s", kind, kindNames())
		}
	}
	slices.Sort(t.SiteIDs)
	t.SiteIDs = slices.Compact(t.SiteIDs)
	if len(faults) > 0 {
		return &store.InvalidError{Fields: faults}
	}
	return nil
}

func kindNames() string {
	var names []string
	for _, kind := range kinds() {
		names = append(names, string(kind))
	}
	return strings.Join(names, ", ")
}
