package health_test

import (
	"testing"
	"time"

	"opensource.internal/manager/internal/health"
	"opensource.internal/manager/internal/store"
)

// TestClocks: the middle of what agents say is told in whole sentences, for one
// agent and for many, and whichever way the clocks differ.
func TestClocks(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	ms := func(seconds int64) *int64 { seconds *= 1000; return &seconds }
	agent := func(skew *int64, ago time.Duration) store.Agent {
		return store.Agent{ClockSkewMS: skew, LastSeenAt: now.Add(-ago)}
	}
	for name, test := range map[string]struct {
		agents []store.Agent
		state  string
		want   string
	}{
		"one":          {[]store.Agent{agent(ms(1), 0)}, health.Fine, "that of the one agent online agrees with this one"},
		"two":          {[]store.Agent{agent(ms(1), 0), agent(ms(-2), 0)}, health.Fine, "those of 2 agents agree with this one"},
		"one is ahead": {[]store.Agent{agent(ms(40), 0)}, health.Warn, "the one agent online is 40s or more ahead of this clock"},
		"most behind":  {[]store.Agent{agent(ms(-50), 0), agent(ms(-40), 0), agent(ms(0), 0)}, health.Warn, "half of 3 agents are 40s or more behind this clock"},
		"one is gone":  {[]store.Agent{agent(ms(500), time.Hour), agent(ms(0), 0)}, health.Fine, "that of the one agent online agrees with this one"},
	} {
		t.Run(name, func(t *testing.T) {
			found := health.Clocks(test.agents, now)
			if len(found) != 1 || found[0].State != test.state || found[0].Message != test.want {
				t.Errorf("%+v, want %q", found, test.want)
			}
		})
	}
	if found := health.Clocks([]store.Agent{agent(nil, 0), agent(ms(500), time.Hour)}, now); found != nil {
		t.Errorf("of nobody's clock: %+v", found)
	}
}
