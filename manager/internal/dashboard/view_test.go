package dashboard

import (
	"errors"
	"strings"
	"testing"
	"time"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/store"
)

func TestHowAnAgentIsFeltAbout(t *testing.T) {
	now := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	report := func(state string, apply checkin.LastApply, outcome checkin.Outcome) checkin.Request {
		return checkin.Request{Services: map[string]checkin.ServiceReport{"nginx": {State: state, LastApply: apply, Outcome: outcome}}}
	}
	healthy := report("active", checkin.ApplySuccess, checkin.OutcomeUnchanged)
	second := int64(1000)
	for _, test := range []struct {
		name          string
		age           time.Duration
		report        checkin.Request
		skew          *int64
		volume        store.VolumeStatus
		status, class string
	}{
		{"healthy", 10 * time.Second, healthy, &second, store.VolumeReady, "online", good},
		{"clock set back", -time.Hour, healthy, &second, store.VolumeReady, "online", good},
		{"just online", 90 * time.Second, healthy, &second, store.VolumePending, "online", good},
		{"late", 91 * time.Second, healthy, &second, store.VolumeReady, "late", warn},
		{"offline", 6 * time.Minute, healthy, &second, store.VolumeReady, "offline", bad},
		{"no clock", 0, healthy, nil, store.VolumeReady, "online", warn},
		{"volume failed", 0, healthy, &second, store.VolumeFailed, "online", bad},
		{"apply failed", 0, report("active", checkin.ApplyFailure, checkin.OutcomeRejected), &second, store.VolumeReady, "online", bad},
		{"service failed", 0, report("failed", checkin.ApplySuccess, ""), &second, store.VolumeReady, "online", bad},
		{"service stopped", 0, report("inactive", checkin.ApplySuccess, ""), &second, store.VolumeReady, "online", warn},
		{"not managed", 0, report("active", checkin.ApplyUnknown, checkin.OutcomeSkipped), &second, store.VolumeReady, "online", warn},
		{"no bus", 0, report("unknown", checkin.ApplySuccess, ""), &second, store.VolumeReady, "online", good},
		{"words of another age", 0, report("hibernating", "splendid", "teleported"), &second, store.VolumeReady, "online", good},
	} {
		agent := store.Agent{ID: 1, SiteID: 1, Hostname: "a", Report: store.Report{Request: test.report}, LastSeenAt: now.Add(-test.age), ClockSkewMS: test.skew}
		got := describe(agent, "lab", []store.Volume{{Status: test.volume}}, now)
		if got.Status != test.status || got.Class != test.class {
			t.Errorf("%s: %s %q, want %s %q", test.name, got.Status, got.Class, test.status, test.class)
		}
		if strings.Contains(got.Age, "-") {
			t.Errorf("%s: age %q", test.name, got.Age)
		}
	}
}

func TestSpansInWords(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "just now", 400 * time.Millisecond: "just now", 12 * time.Second: "12 s ago", 61 * time.Second: "1 minute ago",
		59*time.Minute + 50*time.Second: "1 hour ago", 3*time.Hour - time.Second: "3 hours ago", 25 * time.Hour: "1 day ago", 100 * 24 * time.Hour: "100 days ago",
	} {
		if got := ago(d); got != want {
			t.Errorf("%s: %q, want %q", d, got, want)
		}
	}
}

func TestClockSkewIsTold(t *testing.T) {
	for skew, want := range map[time.Duration]string{
		29 * time.Second: "", -29 * time.Second: "", 3 * time.Hour: "3 hours ahead of", -3 * time.Hour: "3 hours behind", 45 * time.Second: "45 s ahead of",
	} {
		ms := skew.Milliseconds()
		got := strings.Join(warnings(store.Agent{ClockSkewMS: &ms}, time.Now()), " ")
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q", skew, got)
		}
	}
}

func TestALeftOutRecordIsNoFailedApply(t *testing.T) {
	report := checkin.ServiceReport{
		State: "active", LastApply: checkin.ApplyFailure, Outcome: checkin.OutcomeApplied, Message: "left out: http x",
		Quarantined: []checkin.QuarantinedItem{{Kind: "http", Name: "x"}},
	}
	if v := describeService("nginx", report); v.Apply != "last apply: applied, 1 left out" || v.ApplyClass != warn || v.Message != "" {
		t.Errorf("%+v", v)
	}
	report.Outcome, report.Message = checkin.OutcomeRejected, "nginx: [emerg]"
	if v := describeService("nginx", report); v.ApplyClass != bad || v.Message == "" {
		t.Errorf("%+v", v)
	}
}

func TestNamesAreReadable(t *testing.T) {
	for name, want := range map[string]string{
		"example.com": "example.com", "xn--bcher-kva.example": "bücher.example (xn--bcher-kva.example)",
		"xn--zzzzzzzz-": "xn--zzzzzzzz-", "<b>": "<b>", "": "", "_sip._tcp": "_sip._tcp",
	} {
		if got := readable(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
	view := describeService("nginx", checkin.ServiceReport{Quarantined: []checkin.QuarantinedItem{{Kind: "http", Name: "xn--bcher-kva.example"}}})
	warning := certificateWarning("xn--bcher-kva.example", checkin.Certificate{State: checkin.CertificateMissing}, time.Now())
	for _, words := range []string{view.Quarantined[0].Record, warning} {
		if !strings.Contains(words, "bücher.example") {
			t.Errorf("not readable: %s", words)
		}
	}
}

func TestDamagedReportIsTold(t *testing.T) {
	skew := int64(0)
	agent := store.Agent{Hostname: "a", Report: store.Report{Fault: errors.New("unexpected end")}, LastSeenAt: time.Now(), ClockSkewMS: &skew}
	view := describe(agent, "lab", nil, time.Now())
	if len(view.Warnings) != 1 || !strings.Contains(view.Warnings[0], "could not be read") || view.Class != warn {
		t.Errorf("%+v", view)
	}
}
