package events_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/events"
)

func nginx(s checkin.ServiceReport) checkin.Request {
	return checkin.Request{Services: map[string]checkin.ServiceReport{"nginx": s}}
}

func certificate(state checkin.CertificateState) checkin.Request {
	ends := time.Date(2026, 2, 3, 4, 5, 0, 0, time.UTC)
	return checkin.Request{
		Agent:        &checkin.AgentInfo{Version: "1.0"},
		Certificates: map[string]checkin.Certificate{"example.com": {State: state, NotAfter: &ends}},
	}
}

func version(v string) checkin.Request {
	return checkin.Request{Agent: &checkin.AgentInfo{Version: v}}
}

var (
	fine     = nginx(checkin.ServiceReport{LastApply: "success", Outcome: "applied", ReceivedETag: "a", RunningETag: "a"})
	refused  = nginx(checkin.ServiceReport{LastApply: "failure", Outcome: "rejected", ReceivedETag: "b", Message: "nginx: [emerg] bad port\nnginx: test failed"})
	another  = nginx(checkin.ServiceReport{LastApply: "failure", Outcome: "rejected", ReceivedETag: "c", Message: "nginx: [emerg] bad name"})
	rolled   = nginx(checkin.ServiceReport{LastApply: "failure", Outcome: "rolled_back", ReceivedETag: "b", Message: "port taken"})
	stuck    = nginx(checkin.ServiceReport{LastApply: "failure", Outcome: "stuck", ReceivedETag: "b"})
	old      = nginx(checkin.ServiceReport{LastApply: "failure", Message: "bad option"})
	oldFine  = nginx(checkin.ServiceReport{LastApply: "success"})
	skipped  = nginx(checkin.ServiceReport{LastApply: "unknown", Outcome: "skipped", Message: "no gateway"})
	unknown  = nginx(checkin.ServiceReport{LastApply: "unknown"})
	until    = time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)
	held     = nginx(checkin.ServiceReport{LastApply: "success", Outcome: "held", Hold: &checkin.Hold{Until: until, By: "ada", Reason: "moving"}})
	heldIll  = nginx(checkin.ServiceReport{LastApply: "failure", Outcome: "held", Hold: &checkin.Hold{Until: until, By: "ada", Reason: "moving"}})
	sameHold = nginx(checkin.ServiceReport{LastApply: "success", Outcome: "held", Hold: &checkin.Hold{Until: until.In(time.FixedZone("", 3600)), By: "ada", Reason: "moving"}})
	left     = nginx(checkin.ServiceReport{LastApply: "failure", Outcome: "applied", Quarantined: []checkin.QuarantinedItem{{Kind: "http", ID: 3, Name: "app.example.com", Reason: "no such host"}}})
	drifted  = nginx(checkin.ServiceReport{LastApply: "success", Outcome: "applied", Drift: []checkin.Drift{{Path: "/etc/nginx/nginx.conf", Diff: "-a\n+b"}}})
	guarded  = checkin.Request{Guard: &checkin.Guard{Removed: 6, Total: 9, Kind: "services", ETag: "x"}}
)

func TestBetween(t *testing.T) {
	for name, test := range map[string]struct {
		before, after checkin.Request
		want          []string // "severity kind summary"
	}{
		"nothing new":       {fine, fine, nil},
		"the first report":  {checkin.Request{}, fine, nil},
		"first and failing": {checkin.Request{}, refused, []string{"error apply_failed nginx: the new configuration was refused, the one before stays in force: nginx: [emerg] bad port"}},
		"refused":           {fine, refused, []string{"error apply_failed nginx: the new configuration was refused, the one before stays in force: nginx: [emerg] bad port"}},
		"still refused":     {refused, refused, nil},
		"another refused":   {refused, another, []string{"error apply_failed nginx: the new configuration was refused, the one before stays in force: nginx: [emerg] bad name"}},
		"rolled back":       {fine, rolled, []string{"error apply_failed nginx: the new configuration did not work, the one before is in force again: port taken"}},
		"stuck":             {rolled, stuck, []string{"error stuck nginx: the new configuration did not work, and going back failed: look at the host"}},
		"stuck at once":     {fine, stuck, []string{"error stuck nginx: the new configuration did not work, and going back failed: look at the host"}},
		"still stuck":       {stuck, stuck, nil},
		"recovered":         {refused, fine, []string{"info apply_recovered nginx: the configuration is in force again"}},
		"nothing to manage": {refused, skipped, []string{"info apply_recovered nginx: there is nothing to manage any more: no gateway"}},
		"out of stuck":      {stuck, fine, []string{"info apply_recovered nginx: the configuration is in force again"}},
		"older agent fails": {oldFine, old, []string{"error apply_failed nginx: the last apply failed: bad option"}},
		"older agent again": {old, oldFine, []string{"info apply_recovered nginx: the configuration is in force again"}},
		"not known":         {refused, unknown, nil},
		"service vanishes":  {refused, checkin.Request{}, []string{"info apply_recovered nginx: is not reported any more"}},
		"fine one vanishes": {fine, checkin.Request{}, nil},
		"vanishes with all": {left, checkin.Request{}, []string{"info quarantine_cleared nginx: is not reported any more, nor what was left out: http app.example.com"}},
		"vanishes held":     {held, checkin.Request{}, []string{"info hold_ended nginx: is not reported any more, nor its hold"}},
		"hold":              {fine, held, []string{"info hold_begun nginx: held by ada until 2026-01-02 03:04 UTC: moving"}},
		"same hold":         {held, sameHold, nil},
		"hold ends":         {held, fine, []string{"info hold_ended nginx: the hold has ended, changes are applied again"}},
		"held while failing": {refused, heldIll, []string{
			"info hold_begun nginx: held by ada until 2026-01-02 03:04 UTC: moving",
		}},
		"recovered after a hold": {heldIll, fine, []string{
			"info apply_recovered nginx: the configuration is in force again",
			"info hold_ended nginx: the hold has ended, changes are applied again",
		}},
		"quarantine":         {fine, left, []string{"warning quarantined nginx: left out http app.example.com, the rest is in force: no such host"}},
		"still quarantined":  {left, left, nil},
		"quarantine cleared": {left, fine, []string{"info quarantine_cleared nginx: no longer left out: http app.example.com"}},
		"drift":              {fine, drifted, []string{"warning drift nginx: edited on the host and restored: /etc/nginx/nginx.conf"}},
		"drift told again":   {drifted, drifted, nil},
		"drift is over":      {drifted, fine, nil},
		"expiring":           {certificate("ok"), certificate("expiring"), []string{"warning certificate_expiring certificate about to expire: example.com (2026-02-03 04:05 UTC)"}},
		"expired":            {certificate("expiring"), certificate("expired"), []string{"error certificate_expired certificate expired: example.com (2026-02-03 04:05 UTC)"}},
		"renewed":            {certificate("expired"), certificate("ok"), []string{"info certificate_recovered certificate in order again: example.com"}},
		"missing from the beginning": {
			version("1.0"), certificate("missing"),
			[]string{"error certificate_faulty certificate cannot be used: example.com (missing)"},
		},
		"missing, then mismatched": {certificate("missing"), certificate("mismatch"), []string{"error certificate_faulty certificate cannot be used: example.com (mismatch)"}},
		"fine from the beginning":  {version("1.0"), certificate("ok"), nil},
		"a state of the future":    {certificate("ok"), certificate("shiny"), nil},
		"domain is gone":           {certificate("expired"), version("1.0"), []string{"info certificate_recovered certificate in order again: example.com (not used any more)"}},
		"nothing about it":         {certificate("expired"), checkin.Request{}, nil},
		"guard":                    {checkin.Request{}, guarded, []string{"warning guard_held holds back a configuration that removes 6 of 9 services, until an administrator confirms it"}},
		"guard again":              {guarded, guarded, nil},
		"released":                 {guarded, checkin.Request{}, []string{"info guard_released holds back no configuration any more"}},
		"updated":                  {version("1.0"), version("1.1"), []string{"info agent_updated the agent's version is 1.1, it was 1.0"}},
		"older agent":              {version("1.0"), checkin.Request{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, e := range events.Between(test.before, test.after) {
				got = append(got, fmt.Sprintf("%s %s %s", e.Severity, e.Kind, e.Summary))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// However much an agent tells, an event is small, whole characters, one line.
func TestEventsAreSmall(t *testing.T) {
	huge := strings.Repeat("ä\n", 4000)
	report := checkin.Request{
		Agent:        &checkin.AgentInfo{Version: strings.Repeat("ö", 200)},
		Services:     map[string]checkin.ServiceReport{},
		Certificates: map[string]checkin.Certificate{},
		Guard:        &checkin.Guard{Kind: checkin.GuardKind(huge), ETag: "x"},
	}
	var items []checkin.QuarantinedItem
	var drift []checkin.Drift
	for i := range 1000 {
		items = append(items, checkin.QuarantinedItem{Kind: "http", Name: fmt.Sprint(i, huge), Reason: huge})
		drift = append(drift, checkin.Drift{Path: fmt.Sprint("/", i, huge), Diff: huge})
		report.Certificates[fmt.Sprintf("d%d.example.com", i)] = checkin.Certificate{State: "missing"}
	}
	report.Services["nginx"] = checkin.ServiceReport{
		LastApply: "failure", Outcome: "rejected", Message: huge, Quarantined: items, Drift: drift,
		Hold: &checkin.Hold{By: strings.Repeat("x", 256), Reason: huge},
	}
	list := events.Between(version("1"), report)
	if len(list) != 7 {
		t.Errorf("%d events", len(list))
	}
	var volumes []events.Volume
	for i := range 1000 {
		volumes = append(volumes, events.Volume{ID: int64(i), Name: huge, Container: huge, Message: huge})
	}
	for _, e := range append(list, events.OfVolumes(volumes, volumes)...) {
		detail, err := json.Marshal(e.Detail)
		if err != nil || len(detail) > 32<<10 || len(e.Summary) > 300 || strings.ContainsAny(e.Summary, "\n") || strings.Contains(string(detail), `\ufffd`) {
			t.Errorf("%s: summary %q, detail of %d bytes, %v", e.Kind, e.Summary, len(detail), err)
		}
	}
}

func TestOfVolumes(t *testing.T) {
	data := events.Volume{ID: 1, Name: "data", Container: "web", Message: "mkdir: permission denied"}
	var many []events.Volume
	for i := range 7 {
		many = append(many, events.Volume{ID: int64(i), Name: fmt.Sprint("v", i), Container: "db"})
	}
	var got []string
	for _, list := range [][]events.Event{events.OfVolumes([]events.Volume{data}, nil), events.OfVolumes(nil, many), events.OfVolumes(nil, nil)} {
		for _, e := range list {
			got = append(got, e.Summary)
		}
	}
	want := []string{
		"volume data of web: cannot be provided: mkdir: permission denied",
		"volumes v0 of db, v1 of db, v2 of db, v3 of db, v4 of db and 2 more: ready",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
