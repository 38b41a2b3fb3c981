//go:build e2e

package e2e

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"opensource.internal/e2e/internal/wait"
)

// killed kills the agent with SIGKILL at random points of an apply that
// changes nginx and dnsmasq. The next pass must always end in a configuration
// that is consistent and served.
func killed(t *testing.T, s *site) {
	service := fmt.Sprintf("/services/%d", s.http(t, "kill", s.domain, 8080))
	ranges := fmt.Sprintf("/sites/%d", s.id)
	s.wantPass(t, 0)
	whole := s.timeChange(t, service, ranges)

	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("an apply takes %v; seed %d", whole, seed)
	interrupted := 0
	for round := range 50 {
		port, end := 8080+round%2, 60-round%2
		s.manager.change(t, service, object{"internalPort": port})
		s.manager.change(t, ranges, object{"dhcpRange": s.dhcpRange(end)})
		s.Run(t, "systemctl", "start", "--no-block", "opensource-agent.service")
		// Not a wait for anything: the moment of death is the input.
		time.Sleep(time.Duration(random.Int64N(int64(whole))))
		_, _ = s.Try("systemctl", "kill", "--signal=SIGKILL", "opensource-agent.service")
		if s.ended(t) == "signal" {
			interrupted++
		}

		s.wantPass(t, 0)
		if err := s.serves(s.host("kill")+".example.test", s.backend(port)); err != nil {
			t.Errorf("round %d: %v", round, err)
		}
		s.wantServed(t)
		if conf := s.Read(t, "/etc/dnsmasq.conf"); !strings.Contains(conf, s.dhcpRange(end)+",") {
			t.Errorf("round %d: dnsmasq.conf does not have the range %s", round, s.dhcpRange(end))
		}
		if err := s.dig("web.lab.internal", "A", s.webAddress.String()); err != nil {
			t.Errorf("round %d: %v", round, err)
		}
		if t.Failed() {
			t.Fatalf("round %d", round)
		}
	}
	t.Logf("%d of 50 passes were killed before their end", interrupted)
	if interrupted < 25 {
		t.Error("too few passes were killed to tell anything")
	}
	s.Run(t, "nginx", "-t")
	s.Run(t, "dnsmasq", "--test")
	s.wantNoLeftovers(t)
}

// timeChange measures a pass that changes both services.
func (s *site) timeChange(t testing.TB, service, ranges string) time.Duration {
	t.Helper()
	s.manager.change(t, service, object{"internalPort": 8081})
	s.manager.change(t, ranges, object{"dhcpRange": s.dhcpRange(59)})
	start := time.Now()
	s.wantPass(t, 0)
	return time.Since(start)
}

func (s *site) dhcpRange(end int) string {
	return s.wires.Host(10).String() + "," + s.wires.Host(end).String()
}

// ended waits for the end of the agent's service and returns how its program
// ended: "exited" or "signal".
func (s *site) ended(t testing.TB) string {
	t.Helper()
	wait.For(t, 10*time.Second, "the killed pass to end", func() error {
		if state := s.Property(t, "opensource-agent.service", "ActiveState"); state == "activating" {
			return fmt.Errorf("it is %s", state)
		}
		return nil
	})
	switch result := s.Property(t, "opensource-agent.service", "Result"); result {
	case "signal":
		return "signal"
	default:
		return "exited"
	}
}

// wantNoLeftovers wants no file that the agent staged and never renamed.
func (s *site) wantNoLeftovers(t testing.TB) {
	t.Helper()
	left := s.Run(t, "find", "/etc", "/var/lib/dnsmasq", "/var/lib/opensource-agent", "-xdev", "-name", "*opensource-agent*", "-newer", "/etc/machine-id",
		"!", "-path", "/etc/systemd/*", "!", "-path", "/etc/opensource-agent*", "-type", "f")
	if left != "" {
		t.Errorf("left over:\n%s", left)
	}
}
