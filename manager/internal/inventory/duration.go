package inventory

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ParseDuration reads a time span such as 90m, 24h or 30d, which must not be
// negative.
func ParseDuration(s string) (time.Duration, error) {
	if days, found := strings.CutSuffix(s, "d"); found {
		if count, err := strconv.ParseUint(days, 10, 16); err == nil {
			return time.Duration(count) * 24 * time.Hour, nil
		}
	} else if span, err := time.ParseDuration(s); err == nil && span >= 0 {
		return span, nil
	}
	return 0, fmt.Errorf("%s is not a time span such as 90m, 24h or 30d", quoted(s))
}
