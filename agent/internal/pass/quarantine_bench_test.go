package pass

import (
	"fmt"
	"net"
	"testing"
	"time"

	"opensource.internal/agent/checkin"
)

// BenchmarkOneRefusedRecord publishes a change of 999 HTTP services together
// with a record that nginx refuses, and measures what it takes until the 999 are
// live. The times are those of passes with the real nginx, which was running.
func BenchmarkOneRefusedRecord(b *testing.B) {
	const services = 999
	refused := func(at int) checkin.HTTPService {
		s := hosts(at + 1).NGINX.HTTPServices[at]
		s.ID, s.ExternalHostname = 5000, "refused"
		return s
	}
	insert := func(at int) func(*checkin.Snapshot) {
		return func(s *checkin.Snapshot) {
			s.NGINX.HTTPServices = append(s.NGINX.HTTPServices, checkin.HTTPService{})
			copy(s.NGINX.HTTPServices[at+1:], s.NGINX.HTTPServices[at:])
			s.NGINX.HTTPServices[at] = refused(at)
		}
	}
	line := `{{if eq .Name "refused.example.com"}}no_such_directive;{{end}}`
	noLine := `{{if eq .Name "refused.example.com"}}ssl_trusted_certificate /missing.pem;{{end}}`
	for _, test := range []struct {
		name     string
		template string
		add      func(*checkin.Snapshot)
	}{
		{"none", line, func(*checkin.Snapshot) {}},
		{"line/first", line, insert(0)},
		{"line/last", line, insert(services)},
		{"no-line/first", noLine, insert(0)},
		{"no-line/last", noLine, insert(services)},
		{"port", line, func(s *checkin.Snapshot) {
			s.NGINX.StreamServices = []checkin.StreamService{{
				ID: 5000, InternalPort: 22, Container: checkin.Backend{IPv4Address: "192.0.2.101"}, ExternalPort: 9443, Protocol: "tcp",
			}}
		}},
	} {
		b.Run(test.name, func(b *testing.B) {
			l := newLiveSite(b)
			holder, err := net.Listen("tcp4", "0.0.0.0:9443")
			if err != nil {
				b.Fatal(err)
			}
			defer holder.Close()
			l.override("nginx/http-service.tmpl", "server_name {{.Name}};", "server_name {{.Name}}; "+test.template)
			var live time.Duration
			tests, n := 0, 0
			for b.Loop() {
				n++
				b.StopTimer()
				snapshot := hosts(services)
				snapshot.NGINX.HTTPServices[1].InternalPort = 10_000 + 2*n
				l.publish(snapshot)
				wantsAll(b, l.pass(Settled)) // and nothing is known of a refused one
				snapshot.NGINX.HTTPServices[1].InternalPort++
				code := Settled
				if test.name != "none" {
					code = Rejected
				}
				test.add(&snapshot)
				l.publish(snapshot)
				b.StartTimer()
				report := l.pass(code)["nginx"]
				if report.Outcome != checkin.OutcomeApplied || code == Rejected && len(report.Quarantined) != 1 {
					b.Fatal(fmt.Sprint(report.Outcome, report.Message, report.Quarantined))
				}
				live, tests = live+l.live, tests+l.tests
			}
			b.ReportMetric(live.Seconds()*1000/float64(n), "ms-live/op")
			b.ReportMetric(float64(tests)/float64(n), "tests/op")
		})
	}
}
