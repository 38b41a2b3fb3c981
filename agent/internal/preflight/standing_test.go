package preflight

import (
	"strings"
	"testing"
	"time"

	"opensource.internal/agent/checkin"
	"opensource.internal/agent/render"
)

func TestWhatPassesHaveMade(t *testing.T) {
	o := &Options{Services: []Standing{{Name: "nginx"}, {Name: "dnsmasq", Outcome: checkin.OutcomeApplied}}}
	wantLines(t, standing(t.Context(), o), "OK    : nothing is held, held back, edited or failing")

	o.HeldBack = "9 of the 12 services in force here"
	until := time.Date(2026, 12, 1, 10, 0, 0, 0, time.Local)
	o.Services = []Standing{
		{Name: "nginx", Outcome: checkin.OutcomeRejected, Message: "nginx: [emerg] no\nmore words", Edited: []string{"/etc/nginx/nginx.conf"}},
		{Name: "dnsmasq", Outcome: checkin.OutcomeHeld, Hold: &checkin.Hold{Until: until}},
	}
	wantLines(t, standing(t.Context(), o),
		"WARN  : a snapshot is held back: it removes 9 of the 12 services in force here. To do: confirm it",
		"WARN  nginx: the new configuration is not in force (rejected): nginx: [emerg] no. To do: opensource-agent status",
		"WARN  nginx: edited by somebody else: /etc/nginx/nginx.conf. To do: put what should stay into a template",
		"WARN  dnsmasq: held until 2026-12-01 10:00:00 … To do: opensource-agent release dnsmasq",
	)
}

// Nothing is said to be well that could not be read.
func TestWhatMayNotBeRead(t *testing.T) {
	o := &Options{
		UserID: 1000, Unread: true, StateDirectory: "/var/lib/x", Templates: render.LoadTemplates(nil), Proc: newProc().written(t),
		Units: fakeUnits{units: map[string]unit{"nginx.service": {"loaded", "inactive", "enabled"}}},
	}
	for name, look := range map[string]func() []Finding{
		"standing":  func() []Finding { return standing(t.Context(), o) },
		"volumes":   func() []Finding { return siteVolumes(t.Context(), o) },
		"rendering": func() []Finding { return rendering(t.Context(), o) },
		"ports":     func() []Finding { return ports(t.Context(), o) },
		"nginx":     func() []Finding { return nginxUnit(t.Context(), o) },
	} {
		found := lines(look())
		for _, line := range found {
			if !strings.HasPrefix(line, "WARN") || !strings.Contains(line, "may not read /var/lib/x. To do: run sudo opensource-agent check") {
				t.Errorf("%s: %s", name, line)
			}
		}
		if len(found) == 0 {
			t.Errorf("%s: nothing is said", name)
		}
	}
}

// A folder says nothing of the host around it.
func TestBelowAFolderTheHostIsLeftAlone(t *testing.T) {
	o := &Options{Root: "/tmp/try", Settings: []Setting{{Name: "SITE_ID", Value: "1", From: "the command line", Elsewhere: new(string)}}}
	found := append(ports(t.Context(), o), timer(t.Context(), o)...)
	found = append(append(found, lastPass(t.Context(), o)...), nginxUnit(t.Context(), o)...)
	const alone = "OK    : left alone, because of --root"
	wantLines(t, append(found, settings(t.Context(), o)...), alone, alone, alone, alone, "OK    : SITE_ID is 1, from the command line")
}
