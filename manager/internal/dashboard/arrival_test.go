package dashboard

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/preview"
	"opensource.internal/manager/internal/store"
)

func TestHowFarAChangeHasComeOnAnAgent(t *testing.T) {
	const newer, older = `"2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"`, `"fcde2b2edba56bf408601fb721fe9b5c338d10ee429ea04fae5511b68fbf8fb9"`
	now := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	published := now.Add(-time.Minute)
	service := func(received, running string, outcome checkin.Outcome) checkin.ServiceReport {
		return checkin.ServiceReport{LastApply: checkin.ApplySuccess, Outcome: outcome, ReceivedETag: received, RunningETag: running}
	}
	both := func(nginx, dnsmasq checkin.ServiceReport) map[string]checkin.ServiceReport {
		return map[string]checkin.ServiceReport{"nginx": nginx, "dnsmasq": dnsmasq}
	}
	old, had, has := service(older, older, checkin.OutcomeUnchanged), service(newer, older, checkin.OutcomeApplied), service(newer, newer, checkin.OutcomeApplied)
	refused, held := service(newer, older, checkin.OutcomeRejected), had
	refused.Message = "[emerg] unknown directive"
	failed := checkin.ServiceReport{LastApply: checkin.ApplyFailure, ReceivedETag: newer}
	held.Hold = &checkin.Hold{Until: now.Add(time.Hour), By: "root", Reason: "upgrade"}
	runs := func(etag string) *checkin.Running {
		return &checkin.Running{ETag: etag, Since: now.Add(-5 * time.Second)}
	}
	for _, test := range []struct {
		name            string
		seen            time.Duration // before now
		report          checkin.Request
		stage, class    string
		received, words string
		message         string
	}{
		{"in force", 3 * time.Second, checkin.Request{Services: both(has, has), Running: runs(newer)}, "in force", good, "20 s ago", "", ""},
		{"not asked", 80 * time.Second, checkin.Request{Services: both(old, old), Running: runs(older)}, "waiting", neutral, "", "has not checked in since", ""},
		{"gone", time.Hour, checkin.Request{Services: both(old, old), Running: runs(older)}, "offline", bad, "", "systemctl status opensource-agent.timer", ""},
		{"fetched", 3 * time.Second, checkin.Request{Services: both(old, old), Running: runs(older)}, "received", neutral, "20 s ago", "has not told yet", ""},
		{"tells nothing", 3 * time.Second, checkin.Request{}, "unknown", neutral, "20 s ago", "older agent", ""},
		{"takes it over", 3 * time.Second, checkin.Request{Services: both(had, had), Running: runs(older)}, "received", neutral, "20 s ago", "taking it over", ""},
		{"half of it", 3 * time.Second, checkin.Request{Services: both(has, had), Running: runs(older)}, "received", neutral, "20 s ago", "nginx has it in force, dnsmasq not yet", ""},
		{"not every record", 3 * time.Second, checkin.Request{Services: both(has, has), Running: runs(older)}, "in part", warn, "20 s ago", "not every record or volume", ""},
		{"refused", 3 * time.Second, checkin.Request{Services: both(refused, has), Running: runs(older)}, "rejected", bad, "20 s ago", "nginx: Refused before anything was changed", "[emerg] unknown directive"},
		{"failed somehow", 3 * time.Second, checkin.Request{Services: both(failed, has), Running: runs(older)}, "failed", bad, "20 s ago", "nginx: its last apply failed.", ""},
		{"on hold", 3 * time.Second, checkin.Request{Services: both(held, has), Running: runs(older)}, "on hold", warn, "20 s ago", "On hold for 1 h 0 min more", ""},
		{"one refused, one on hold", 3 * time.Second, checkin.Request{Services: both(refused, held), Running: runs(older)}, "rejected", bad, "20 s ago", "nginx: Refused before anything was changed: the previous configuration goes on. On hold for 1 h 0 min more", "[emerg] unknown directive"},
		{"held back", 3 * time.Second, checkin.Request{Services: both(had, had), Running: runs(older), Guard: &checkin.Guard{Removed: 6, Total: 8, Kind: checkin.GuardServices, ETag: newer}}, "held back", warn, "20 s ago", "It removes 6 of 8 services", ""},
		{"held another one back", 80 * time.Second, checkin.Request{Services: both(old, old), Running: runs(older), Guard: &checkin.Guard{Removed: 6, Total: 8, ETag: older}}, "waiting", neutral, "", "has not checked in since", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			fetched := now.Add(-20 * time.Second)
			agent := store.Agent{ID: 1, Hostname: "gw", LastSeenAt: now.Add(-test.seen), Report: store.Report{Request: test.report}, FetchedETag: older, FetchedAt: &published}
			if test.received != "" {
				agent.FetchedETag, agent.FetchedAt = newer, &fetched
			}
			got := arrivalOf(agent, newer, published, now)
			if got.Stage != test.stage || got.Class != test.class || !strings.Contains(got.Words, test.words) || got.Message != test.message {
				t.Errorf("%+v", got)
			}
			if got.Received.Age != test.received || got.Received.Done != (test.received != "") || got.Applied.Done != (test.stage == "in force") || got.InForce != (test.stage == "in force") {
				t.Errorf("received %+v, applied %+v", got.Received, got.Applied)
			}
		})
	}
}

// TestReceivedBeforeThatWasKept: that an agent has it is known, but not since when.
func TestReceivedBeforeThatWasKept(t *testing.T) {
	now := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	const etag = `"2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"`
	agent := store.Agent{LastSeenAt: now}
	agent.Report.Running = &checkin.Running{ETag: etag, Since: now}
	if got := arrivalOf(agent, etag, now, now); !got.Received.Done || got.Received.Age != "" {
		t.Errorf("%+v", got.Received)
	}
}

// TestAppliedByTheManagersClock: the time of an agent whose clock is ahead is put
// right.
func TestAppliedByTheManagersClock(t *testing.T) {
	now, ahead := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC), (10 * time.Minute).Milliseconds()
	const etag = `"2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"`
	agent := store.Agent{LastSeenAt: now, ClockSkewMS: &ahead}
	agent.Report.Running = &checkin.Running{ETag: etag, Since: now.Add(9 * time.Minute)}
	if got := arrivalOf(agent, etag, now, now); got.Applied.Age != "1 minute ago" {
		t.Errorf("applied %q", got.Applied.Age)
	}
}

func TestHowFarAChangeHasComeInASentence(t *testing.T) {
	in := func(n int) []arrivalView {
		var agents []arrivalView
		for range n {
			agents = append(agents, arrivalView{InForce: true, Class: good})
		}
		return agents
	}
	for want, agents := range map[string][]arrivalView{
		"No agent has checked in for this site yet.": nil,
		"The agent runs revision 7.":                 in(1),
		"The agent does not run revision 7 yet.":     {{}},
		"All 3 agents run revision 7.":               in(3),
		"2 of 3 agents run revision 7.":              append(in(2), arrivalView{Class: bad}),
		"0 of 2 agents run revision 7.":              {{}, {}},
	} {
		view := arrivalsView{Number: 7, Agents: agents}
		for _, a := range agents {
			if a.InForce {
				view.Done++
			}
		}
		if got := view.sumUp(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func previewFile(diff string) preview.FileDiff { return preview.FileDiff{Path: "f", Diff: diff} }

// String is a line as a test reads it.
func (l line) String() string {
	show := func(s side, sign string) string {
		switch {
		case !s.There:
			return ""
		case s.Differs:
			return fmt.Sprintf("%s%d %s", sign, s.Number, s.Text)
		}
		return fmt.Sprintf("%d %s", s.Number, s.Text)
	}
	return show(l.Left, "-") + "|" + show(l.Right, "+")
}

func TestLinesSideBySide(t *testing.T) {
	file := sideBySide(previewFile("--- f\n+++ f\n@@ -3,4 +3,5 @@\n a\n-b\n-c\n+B\n+--- x\n+@@ -1 +1 @@\n \td\n@@ -20 +21 @@\n-last\n\\ No newline at end of file\n+end\n"))
	var got []string
	for _, h := range file.Hunks {
		for _, l := range h.Lines {
			got = append(got, l.String())
		}
	}
	want := []string{"3 a|3 a", "-4 b|+4 B", "-5 c|+5 --- x", "|+6 @@ -1 +1 @@", "6 \td|7 \td", "-20 last|+21 end"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%q", got)
	}
	if large := sideBySide(previewFile("The files differ.\n")); large.Note != "The files differ." || len(large.Hunks) != 0 {
		t.Errorf("%+v", large)
	}
	if long := sideBySide(previewFile("@@ -0,0 +1,1000 @@\n" + strings.Repeat("+x\n", 1000))); len(long.Hunks[0].Lines) != maxLines || long.More != 1000-maxLines {
		t.Errorf("%d lines, %d more", len(long.Hunks[0].Lines), long.More)
	}
}
