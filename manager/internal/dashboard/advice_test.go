package dashboard_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"html"
	"strings"
	"testing"
	"time"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/store"
	"opensource.internal/manager/servertest"
)

// TestEveryValueOfACheckInHasAdvice: whatever an agent can report, by the values
// that its contract has, the page says what to do about it. A value that is new
// there fails until it has a line here.
func TestEveryValueOfACheckInHasAdvice(t *testing.T) {
	a := newAgentSite(t)
	a.tell(t, a.report(t))
	service := func(how func(*checkin.ServiceReport)) func(*checkin.Request) {
		return func(r *checkin.Request) { change(*r, "nginx", how) }
	}
	outcome := func(is checkin.Outcome) func(*checkin.Request) {
		return service(func(r *checkin.ServiceReport) { r.Outcome, r.Message = is, "words" })
	}
	leftOut := func(kind string) func(*checkin.Request) {
		return service(func(r *checkin.ServiceReport) {
			r.LastApply, r.Quarantined = checkin.ApplyFailure, []checkin.QuarantinedItem{{Kind: kind, ID: 1, Name: "web", Reason: "words"}}
		})
	}
	certificate := func(state checkin.CertificateState) func(*checkin.Request) {
		ends := later(time.Hour)
		if state == checkin.CertificateExpired {
			ends = later(-time.Hour)
		}
		return func(r *checkin.Request) {
			r.Certificates = map[string]checkin.Certificate{"example.com": {State: state, NotAfter: ends}}
		}
	}
	guard := func(kind checkin.GuardKind) func(*checkin.Request) {
		return func(r *checkin.Request) { r.Guard = &checkin.Guard{Removed: 6, Total: 8, Kind: kind} }
	}
	hop := func(hop checkin.ProbeHop) func(*checkin.Request) {
		return func(r *checkin.Request) {
			r.Probes = map[string]checkin.Probe{"app.example.com": {Hop: hop, Message: "words"}}
		}
	}
	well := func(*checkin.Request) {}
	covered := map[string]bool{}
	for name, test := range map[string]struct {
		change func(*checkin.Request)
		want   string
	}{
		"ApplySuccess":     {well, "Nothing:"},
		"ApplyFailure":     {service(func(r *checkin.ServiceReport) { r.LastApply, r.Outcome = checkin.ApplyFailure, "" }), "nginx: its last change failed"},
		"ApplyUnknown":     {service(func(r *checkin.ServiceReport) { r.LastApply, r.Outcome = checkin.ApplyUnknown, "" }), "Nothing:"},
		"OutcomeUnchanged": {outcome(checkin.OutcomeUnchanged), "Nothing:"},
		"OutcomeApplied":   {outcome(checkin.OutcomeApplied), "Nothing:"},
		"OutcomeSkipped":   {outcome(checkin.OutcomeSkipped), "nginx is not managed"},
		"NoNetwork": {func(r *checkin.Request) {
			change(*r, "dnsmasq", func(r *checkin.ServiceReport) { r.Outcome, r.Message = checkin.OutcomeSkipped, checkin.NoNetwork })
		}, "DNS and DHCP are not set up"},
		"OutcomeRejected":   {outcome(checkin.OutcomeRejected), "nginx refused the change"},
		"OutcomeRolledBack": {outcome(checkin.OutcomeRolledBack), "nginx took the change back"},
		"OutcomeStuck":      {outcome(checkin.OutcomeStuck), "and so did going back"},
		"OutcomeHeld": {service(func(r *checkin.ServiceReport) {
			r.Outcome, r.Hold = checkin.OutcomeHeld, &checkin.Hold{Until: *later(time.Hour)}
		}), "nginx is on hold"},
		"StateUnknown":          {service(func(r *checkin.ServiceReport) { r.State = checkin.StateUnknown }), "Whether nginx runs is not known"},
		"KindHTTP":              {leftOut(checkin.KindHTTP), "nginx: 1 left out"},
		"KindStream":            {leftOut(checkin.KindStream), "nginx: 1 left out"},
		"KindDomain":            {leftOut(checkin.KindDomain), "nginx: 1 left out"},
		"KindReservation":       {leftOut(checkin.KindReservation), "nginx: 1 left out"},
		"KindHost":              {leftOut(checkin.KindHost), "nginx: 1 left out"},
		"KindSRV":               {leftOut(checkin.KindSRV), "nginx: 1 left out"},
		"CertificateOK":         {certificate(checkin.CertificateOK), "Nothing:"},
		"CertificateExpiring":   {certificate(checkin.CertificateExpiring), "ends soon"},
		"CertificateExpired":    {certificate(checkin.CertificateExpired), "has expired"},
		"CertificateMissing":    {certificate(checkin.CertificateMissing), "There is no certificate"},
		"CertificateMismatch":   {certificate(checkin.CertificateMismatch), "do not belong together"},
		"CertificateUnreadable": {certificate(checkin.CertificateUnreadable), "cannot be read"},
		"GuardServices":         {guard(checkin.GuardServices), "removes 6 of 8 services"},
		"GuardReservations":     {guard(checkin.GuardReservations), "removes 6 of 8 DHCP reservations"},
		"HopNone":               {hop(checkin.HopNone), "Nothing:"},
		"HopDNS":                {hop(checkin.HopDNS), "No address in DNS"},
		"HopListener":           {hop(checkin.HopListener), "Nothing listens"},
		"HopCertificate":        {hop(checkin.HopCertificate), "The certificate is not for the name"},
		"HopBackend":            {hop(checkin.HopBackend), "The container does not answer"},
		"ServiceReport.Drift":   {service(func(r *checkin.ServiceReport) { r.Drift = []checkin.Drift{{Path: "/etc/nginx/nginx.conf"}} }), "Files of nginx were edited"},
		"ServiceReport.Hold":    {service(func(r *checkin.ServiceReport) { r.Hold = &checkin.Hold{Until: *later(time.Hour)} }), "nginx is on hold"},
		"ServiceReport.State":   {service(func(r *checkin.ServiceReport) { r.State = "failed" }), "nginx does not run"},
		"Request.Volumes": {func(r *checkin.Request) {
			r.Volumes = map[string]checkin.VolumeReport{fmt.Sprint(a.vol): {Message: "words"}}
		}, "could not be provided"},
		"Request.CurrentTime":    {func(r *checkin.Request) { r.CurrentTime += 7200 }, "Its clock is 2 hours ahead"},
		"HostInfo.DiskFreeBytes": {func(r *checkin.Request) { r.Host.DiskFreeBytes = 0 }, "nearly full: 0 bytes free"},
		"Request.Agent":          {func(r *checkin.Request) { r.Agent = nil }, "earlier generation"},
	} {
		t.Run(name, func(t *testing.T) {
			report := a.report(t)
			report.Hostname = strings.ToLower(strings.ReplaceAll(name, ".", "-"))
			test.change(&report)
			_, told, _ := strings.Cut(string(get(t, a.Server, a.tell(t, report), a.cookie).Body), `<h2 id="problems">`)
			told, _, _ = strings.Cut(told, "</section>")
			if !strings.Contains(html.UnescapeString(told), test.want) {
				t.Errorf("%q is not in %s", test.want, told)
			}
			for _, problem := range strings.Split(told, "<article ")[1:] {
				if !strings.Contains(problem, "<li>") {
					t.Errorf("it does not say what to do: %s", problem)
				}
			}
			covered[name] = true
		})
	}
	for _, name := range valuesOnTheWire(t) {
		if !covered[name] {
			t.Errorf("agents can report %s, and nothing here says what to do about it", name)
		}
	}
}

// valuesOnTheWire are the names of all constants that a check-in can have.
func valuesOnTheWire(t *testing.T) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../../../agent/checkin/request.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, declared := range file.Decls {
		group, is := declared.(*ast.GenDecl)
		if !is || group.Tok != token.CONST {
			continue
		}
		for _, spec := range group.Specs {
			for _, name := range spec.(*ast.ValueSpec).Names {
				names = append(names, name.Name)
			}
		}
	}
	if len(names) < 25 {
		t.Fatalf("only %v were found", names)
	}
	return names
}

// TestARevokedKey is told as the cause, and the way back comes first.
func TestARevokedKey(t *testing.T) {
	s := servertest.Start(t, servertest.Options{})
	cookie := signIn(t, s)
	s.Create(t, "/sites", object{"name": "lab"})
	client := enrolledBy(t, s, cookie, "/enrollments/1")
	if _, err := client.CheckIn(t.Context(), checkin.Request{SiteID: 1, Hostname: "gateway"}, ""); err != nil {
		t.Fatal(err)
	}
	agent, err := s.Store.FindAgent(t.Context(), 1, "gateway")
	if err != nil {
		t.Fatal(err)
	}
	age(t, s, agent, 6*time.Minute)
	path := fmt.Sprintf("/agents/%d", agent.ID)
	wantOn(t, text(get(t, s, path, cookie)), []string{"If the pass says 401 or 403", "sudo opensource-manager enroll 1"}, []string{"was revoked"})

	keys, _, err := s.Store.ListAPIKeys(t.Context(), store.APIKeyFilter{Hostname: "gateway"}, store.ListOptions{Limit: store.All})
	if err != nil || len(keys) != 1 {
		t.Fatalf("%v, %v", keys, err)
	}
	s.Call(t, "DELETE", fmt.Sprintf("/api-keys/%d", keys[0].ID), nil)
	wantOn(t, text(get(t, s, path, cookie)), []string{"Its key was revoked", "If it is to come back, make a token", "sudo opensource-manager enroll 1"}, []string{"If the pass says"})

	enrolledBy(t, s, cookie, "/enrollments/2") // which has another key, and not checked in yet
	wantOn(t, text(get(t, s, path, cookie)), []string{"If the pass says 401 or 403"}, []string{"was revoked"})
}
