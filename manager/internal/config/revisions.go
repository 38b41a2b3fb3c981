package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// KeepRevisions says which revisions of a site are kept: the latest ones, and
// all that are younger.
type KeepRevisions struct {
	Latest  int
	Younger time.Duration
}

// The most that can be asked for. What never ends fills the disk.
const (
	mostDays   = 3650
	mostLatest = 100_000
)

func parseAge(value string) (time.Duration, error) {
	days, err := strconv.Atoi(strings.TrimSuffix(value, "d"))
	if err != nil || days < 1 || days > mostDays {
		return 0, fmt.Errorf("%q is not a number of days such as 30d, from 1d to %dd", value, mostDays)
	}
	return time.Duration(days) * 24 * time.Hour, nil
}

func parseLatest(value string) (int, error) {
	latest, err := strconv.Atoi(value)
	if err != nil || latest < 1 || latest > mostLatest {
		return 0, fmt.Errorf("%q is not a number from 1 to %d", value, mostLatest)
	}
	return latest, nil
}
