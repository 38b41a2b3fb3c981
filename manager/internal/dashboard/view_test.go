package dashboard

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/store"
)

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
		got := strings.Join(hostWarnings(store.Agent{ClockSkewMS: &ms}), " ")
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
	if v := describeService("nginx", report, time.Now(), 0); happened(report) != "In force, 1 left out" || v.ApplyClass != warn || v.Message != "" {
		t.Errorf("%+v", v)
	}
	report.Outcome, report.Message = checkin.OutcomeRejected, "nginx: [emerg]"
	if v := describeService("nginx", report, time.Now(), 0); v.ApplyClass != bad || v.Message == "" {
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
	record := recordNames([]checkin.QuarantinedItem{{Kind: "http", Name: "xn--bcher-kva.example"}})
	warning := certificateWarning("xn--bcher-kva.example", checkin.Certificate{State: checkin.CertificateMissing}, time.Now())
	for _, words := range []string{record, warning} {
		if !strings.Contains(words, "bücher.example") {
			t.Errorf("not readable: %s", words)
		}
	}
}

// TestACertificateEndsThoughNobodyTells: the last report of an agent that is gone
// was made while its certificates were good.
func TestACertificateEndsThoughNobodyTells(t *testing.T) {
	now := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	ended := now.AddDate(0, 0, -30)
	for _, told := range []checkin.CertificateState{checkin.CertificateOK, checkin.CertificateExpiring} {
		reported := map[string]checkin.Certificate{"example.com": {State: told, NotAfter: &ended}}
		if got := certificateWarning("example.com", reported["example.com"], now); got != "Certificate of example.com: expired, since 30 days." {
			t.Errorf("%s: %q", told, got)
		}
		if got := describeCertificates(reported, now)[0]; got.State != "expired" || got.Class != bad || got.Date != "ended 30 days ago" {
			t.Errorf("%s: %+v", told, got)
		}
		advice := certificateProblems(store.Agent{Report: store.Report{Request: checkin.Request{Certificates: reported}}}, now)
		if len(advice) != 1 || advice[0].Title != "The certificate of example.com has expired" {
			t.Errorf("%s: %+v", told, advice)
		}
	}
}

func TestDamagedReportIsTold(t *testing.T) {
	skew := int64(0)
	agent := store.Agent{Hostname: "a", Report: store.Report{Fault: errors.New("unexpected end")}, LastSeenAt: time.Now(), ClockSkewMS: &skew}
	if all := hostWarnings(agent); len(all) != 1 || !strings.Contains(all[0], "could not be read") {
		t.Errorf("%q", all)
	}
}

func TestOutcomesInWords(t *testing.T) {
	for _, test := range []struct {
		apply        checkin.LastApply
		outcome      checkin.Outcome
		words, class string
	}{
		{checkin.ApplySuccess, checkin.OutcomeUnchanged, "In force", good},
		{checkin.ApplySuccess, checkin.OutcomeApplied, "In force", good},
		{checkin.ApplyUnknown, checkin.OutcomeSkipped, "Not managed", warn},
		{checkin.ApplyFailure, checkin.OutcomeRejected, "Refused before anything was changed", bad},
		{checkin.ApplyFailure, checkin.OutcomeRolledBack, "Did not work, and was taken back", bad},
		{checkin.ApplyFailure, checkin.OutcomeStuck, "Did not work, and going back failed too", bad},
		{checkin.ApplySuccess, checkin.OutcomeHeld, "On hold", warn},
		{checkin.ApplyFailure, checkin.OutcomeHeld, "On hold", warn},
		{checkin.ApplyFailure, "", "Failed", bad},
		{"", "", "Not told", neutral},
		{"splendid", "teleported_away", "Not told", neutral},
	} {
		report := checkin.ServiceReport{State: "active", LastApply: test.apply, Outcome: test.outcome}
		if words, class := happened(report), describeService("nginx", report, time.Now(), 0).ApplyClass; words != test.words || class != test.class {
			t.Errorf("%s, %s: %q %q", test.apply, test.outcome, words, class)
		}
	}
}

// The countdown goes by the agent's clock, since the hold does.
func TestHoldCountsDown(t *testing.T) {
	now := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	behind := int64(-3 * 60 * 60 * 1000)
	for _, test := range []struct {
		left       time.Duration
		skew       *int64
		reason, by string
		want       string
	}{
		{2 * time.Hour, nil, "maintenance", "root", "On hold for 2 h 0 min more, until 2026-12-01 14:00:00 UTC, by root: maintenance"},
		{2*time.Hour - time.Second, nil, "", "", "On hold for 1 h 59 min more, until 2026-12-01 13:59:59 UTC"},
		{90 * time.Second, nil, "", "root", "On hold for 1 min more, until 2026-12-01 12:01:30 UTC, by root"},
		{9 * time.Second, nil, "", "", "On hold for 9 s more, until 2026-12-01 12:00:09 UTC"},
		{25*time.Hour + time.Minute, nil, "", "", "On hold for 1 d 1 h more, until 2026-12-02 13:01:00 UTC"},
		{2 * time.Hour, nil, strings.Repeat("x", 4000), "", "On hold for 2 h 0 min more, until 2026-12-01 14:00:00 UTC: " + strings.Repeat("x", 297) + "…"},
		{-time.Minute, nil, "x", "root", "Was on hold until 2026-12-01 11:59:00 UTC, by root: x. The next pass goes on."},
		{time.Hour, &behind, "", "", "On hold for 4 h 0 min more, until 2026-12-01 16:00:00 UTC"},
	} {
		got := describeService("nginx", checkin.ServiceReport{
			State: "active", LastApply: checkin.ApplySuccess, Outcome: checkin.OutcomeHeld, Message: "held until the cows come home",
			Hold: &checkin.Hold{Until: now.Add(test.left), Reason: test.reason, By: test.by},
		}, now, clockAhead(store.Agent{ClockSkewMS: test.skew}))
		if got.Held != test.want || got.Message != "" {
			t.Errorf("%q, %q, want %q", got.Held, got.Message, test.want)
		}
	}
}

func TestAHoldLastsAsLongAsItWasAskedFor(t *testing.T) {
	now := time.Date(2026, 12, 1, 12, 0, 0, 999e6, time.UTC)
	hold := checkin.Hold{Until: now.Truncate(time.Second).Add(time.Hour)}
	if got := describeHold(hold, now, 0); got != "On hold for 1 h 0 min more, until 2026-12-01 13:00:00 UTC" {
		t.Error(got)
	}
}

// An agent does not look for edits of what is held: what is known was before.
func TestAnEditOfAHeldServiceWasBeforeTheHold(t *testing.T) {
	for _, test := range []struct {
		held     string
		restored bool
		want     string
	}{
		{"", true, " and restored"},
		{"", false, ", and not restored"},
		{"On hold", true, " before the hold and restored"},
		{"On hold", false, " before the hold, and not restored"},
	} {
		if got := (serviceView{Held: test.held, Restored: test.restored}).restored(); got != test.want {
			t.Errorf("held %q, restored %t: %q, want %q", test.held, test.restored, got, test.want)
		}
	}
}

func TestProbesInWords(t *testing.T) {
	probes := map[string]checkin.Probe{"b.example.com": {}, "xn--bcher-kva.example": {Hop: checkin.HopBackend, Message: "refused"}}
	view := describeProbes(probes)
	if view.Summary != "1 of 2 not reached" || view.Class != warn || len(view.Failing) != 1 ||
		!strings.Contains(view.Failing[0].Name, "bücher.example") || view.Failing[0].Hop != "container does not answer" || view.Failing[0].Message != "refused" {
		t.Errorf("%+v", view)
	}
	if all := describeProbes(map[string]checkin.Probe{"a.example.com": {}}); all.Summary != "1 probed, all reached" || all.Class != good {
		t.Errorf("%+v", all)
	}
	if none := describeProbes(nil); none.Summary != "" {
		t.Errorf("%+v", none)
	}
	for i := range 80 {
		probes[fmt.Sprintf("c%d.example.com", i)] = checkin.Probe{Hop: "another_dimension"}
	}
	if many := describeProbes(probes); len(many.Failing) != maxProbes || many.More != 31 || many.Failing[0].Hop != "another_dimension" {
		t.Errorf("%d listed, %d more", len(many.Failing), many.More)
	}
}

func TestHostInWords(t *testing.T) {
	now := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	facts := describeHost(checkin.Request{
		Agent: &checkin.AgentInfo{Templates: []string{"nginx/nginx.conf.tmpl"}, Pass: &checkin.PassInfo{StartedAt: now, DurationMS: 12, Rounds: 1}},
		Host:  &checkin.HostInfo{OS: "Debian", NGINX: &checkin.NGINXInfo{Version: "1.22.1"}, DiskFreeBytes: 8589934592},
	}, now)
	var all strings.Builder
	for _, f := range facts {
		all.WriteString(f.Name + " " + f.Value + "; ")
	}
	for _, want := range []string{"nginx 1.22.1, without stream module", "dnsmasq not installed", "IPv6 off", "Free on disk 8 GiB", "Own templates nginx/nginx.conf.tmpl", "Last pass 2026-12-01 12:00:00 UTC, 12 ms, 1 round"} {
		if !strings.Contains(all.String(), want) {
			t.Errorf("%q is not in %s", want, all.String())
		}
	}
	if facts := describeHost(checkin.Request{}, now); facts != nil {
		t.Errorf("an older agent tells %v", facts)
	}
}

func TestSizesInWords(t *testing.T) {
	for bytes, want := range map[int64]string{
		-1: "0 bytes", 0: "0 bytes", 1023: "1023 bytes", 1024: "1 KiB", 1536: "1.5 KiB", 1023 << 20: "1023 MiB", 1<<30 - 1: "1 GiB",
		1000<<20 + 512<<10: "1000.5 MiB", 3 << 50: "3072 TiB",
	} {
		if got := size(bytes); got != want {
			t.Errorf("%d: %q, want %q", bytes, got, want)
		}
	}
}

// TestTimesThatCannotBe: what an agent did is not in the future, and took no time
// below none.
func TestTimesThatCannotBe(t *testing.T) {
	now := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	later := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	const told = "2030-01-01 00:00:00 UTC, ahead of the manager's clock"
	facts := describeHost(checkin.Request{Agent: &checkin.AgentInfo{Pass: &checkin.PassInfo{StartedAt: later, DurationMS: -5, Rounds: 1}}}, now)
	if got := facts[len(facts)-1].Value; got != told+", for a time that is not known, 1 round" {
		t.Errorf("a pass: %q", got)
	}
	report := checkin.ServiceReport{State: "active", LastApply: checkin.ApplySuccess, Outcome: checkin.OutcomeApplied, AppliedAt: &later}
	if got := describeService("nginx", report, now, 0).Applied; got != told {
		t.Errorf("a service: %q", got)
	}
	if got := describeServiceCell("nginx", report, now); got.At != nil || got.Apply.Text != "applied ahead of the manager's clock" {
		t.Errorf("in the list: %+v", got)
	}
	const etag = `"2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"`
	agent := store.Agent{LastSeenAt: now}
	agent.Report.Running = &checkin.Running{ETag: etag, Since: later}
	if got := arrivalOf(agent, etag, now, now); !got.Applied.Done || got.Applied.Age != "" {
		t.Errorf("a revision: %+v", got.Applied)
	}
	second := now.Add(time.Second) // no clock is exact
	if got := toldTime(second, now); got != "2026-12-01 12:00:01 UTC" {
		t.Error(got)
	}
}

// TestItsWordsAreExplained: the documentation knows the words of the pages.
func TestItsWordsAreExplained(t *testing.T) {
	page, err := os.ReadFile("../../../docs/usage/dashboard.md")
	if err != nil {
		t.Fatal(err)
	}
	words := []string{"in sync", "not back yet", "not reported", "none published", "left out", "kept as before", "edited on the host"}
	for _, state := range stateWords {
		words = append(words, state.word)
	}
	for _, outcome := range outcomes {
		words = append(words, outcome.word)
	}
	for _, status := range []store.VolumeStatus{store.VolumePending, store.VolumeReady, store.VolumeFailed} {
		words = append(words, string(status))
	}
	for _, word := range words {
		if !strings.Contains(string(page), word) {
			t.Errorf("docs/usage/dashboard.md does not explain %q", word)
		}
	}
}
