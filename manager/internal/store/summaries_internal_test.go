package store

import (
	"testing"
	"time"

	"opensource.internal/agent/checkin"
)

func TestACertificateThatHasEndedIsAWarning(t *testing.T) {
	now := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	for ends, want := range map[time.Time]Severity{now.Add(time.Second): Well, now: Warning} {
		report := Report{Request: checkin.Request{Certificates: map[string]checkin.Certificate{
			"example.com": {State: checkin.CertificateOK, NotAfter: &ends},
		}}}
		if got := summaryOf(report, now).Severity; got != want {
			t.Errorf("it ends at %s: severity %d, want %d", ends, got, want)
		}
	}
}
