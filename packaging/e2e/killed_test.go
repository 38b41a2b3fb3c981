//go:build e2e

package e2e

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"opensource.internal/e2e/internal/wait"
)

const agentProgram = "/usr/sbin/opensource-agent"

// managedFiles are the files that the changes of this test touch.
var managedFiles = []string{"/var/lib/dnsmasq/hosts", "/etc/dnsmasq.conf", "/etc/nginx/nginx.conf"}

// variant is one of two states of a site. Going from one to the other changes
// nginx, the main file of dnsmasq and a side file.
type variant struct {
	port int // the backend's
	end  int // last host of the DHCP range
	node int // host of the node
}

var variants = [2]variant{{port: 8080, end: 60, node: 3}, {port: 8081, end: 59, node: 4}}

// kills is how often the agent is killed on each of the two releases.
const kills = 25

// killed kills the agent with SIGKILL many times while it applies: at any
// time, and every other time soon after the first file was replaced. The next
// pass must always end in a configuration that is consistent and served.
func killed(t *testing.T, s *site) {
	service := s.http(t, "kill", s.domain, 8080)
	s.wantPass(t, 0)
	s.publish(t, service, variants[1])
	start := time.Now()
	s.Run(t, "systemctl", "start", "--no-block", "opensource-agent.service")
	wait.For(t, passInterval, "the change to be live", func() error {
		return s.serves(s.host("kill")+".example.test", s.backend(variants[1].port))
	})
	// After that the pass only watches, for three seconds.
	whole := time.Since(start)
	s.wantPass(t, 0)

	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("an apply takes %v; seed %d", whole, seed)
	interrupted, halfway := 0, 0
	for round := range kills {
		wanted := variants[round%2]
		before := s.contents(t)
		s.publish(t, service, wanted)
		s.Run(t, "systemctl", "start", "--no-block", "opensource-agent.service")
		if round/2%2 == 0 {
			// Not a wait for anything: the moment of death is the input.
			time.Sleep(time.Duration(random.Int64N(int64(whole))))
		} else {
			s.awaitFirstFile(before)
			time.Sleep(time.Duration(random.Int64N(int64(20 * time.Millisecond))))
		}
		died := s.killAgent(t)
		left := s.contents(t)

		s.wantPass(t, 0)
		s.wantVariant(t, wanted)
		if t.Failed() {
			t.Fatalf("in round %d; killed: %v", round, died)
		}
		if died {
			interrupted++
			if left != before && left != s.contents(t) {
				halfway++
			}
		}
	}
	t.Logf("%d of %d passes were killed before their end, %d of them between the first file and the last", interrupted, kills, halfway)
	if interrupted < kills/2 {
		t.Error("too few passes were killed to tell anything")
	}
	s.Run(t, "nginx", "-t")
	s.Run(t, "dnsmasq", "--test")
	s.wantNoLeftovers(t)
}

// publish makes the manager publish a variant.
func (s *site) publish(t testing.TB, service int64, v variant) {
	t.Helper()
	s.manager.change(t, fmt.Sprintf("/services/%d", service), object{"internalPort": v.port})
	s.manager.change(t, fmt.Sprintf("/sites/%d", s.id), object{"dhcpRange": s.dhcpRange(v)})
	s.manager.change(t, fmt.Sprintf("/nodes/%d", s.node), object{"ipv4Address": s.wires.Host(v.node).String()})
}

func (s *site) dhcpRange(v variant) string {
	return s.wires.Host(10).String() + "," + s.wires.Host(v.end).String()
}

// wantVariant wants a variant to be on disk and alive.
func (s *site) wantVariant(t testing.TB, v variant) {
	t.Helper()
	if err := s.serves(s.host("kill")+".example.test", s.backend(v.port)); err != nil {
		t.Error(err)
	}
	s.wantServed(t)
	if conf := s.Read(t, "/etc/dnsmasq.conf"); !strings.Contains(conf, s.dhcpRange(v)+",") {
		t.Errorf("dnsmasq.conf does not have the range %s", s.dhcpRange(v))
	}
	for name, address := range map[string]string{
		"web.lab.internal": s.webAddress.String(), "pve1.lab.internal": s.wires.Host(v.node).String(),
	} {
		if err := s.dig(name, "A", address); err != nil {
			t.Error(err)
		}
	}
}

// contents returns all managed files in one piece.
func (s *site) contents(t testing.TB) string {
	t.Helper()
	var all strings.Builder
	for _, file := range managedFiles {
		all.WriteString(s.Read(t, file))
	}
	return all.String()
}

// awaitFirstFile returns as soon as a managed file is another one than before,
// or after five seconds.
func (s *site) awaitFirstFile(before string) {
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); {
		var all strings.Builder
		for _, file := range managedFiles {
			content, _ := os.ReadFile(s.Path(file))
			all.Write(content)
		}
		if all.String() != before {
			return
		}
	}
}

// killAgent kills the agent's process and waits until its unit has ended. It
// reports whether there was one to kill.
func (s *site) killAgent(t testing.TB) bool {
	t.Helper()
	if pid, err := s.Process(agentProgram); err == nil {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	wait.For(t, 10*time.Second, "the killed pass to end", func() error {
		if state := s.Property(t, "opensource-agent.service", "ActiveState"); state == "activating" {
			return errors.New(state)
		}
		return nil
	})
	return s.Property(t, "opensource-agent.service", "Result") == "signal"
}

// wantNoLeftovers wants no file that the agent staged and never renamed.
func (s *site) wantNoLeftovers(t testing.TB) {
	t.Helper()
	left := s.Run(t, "find", "/etc", "/var/lib/dnsmasq", "/var/lib/opensource-agent", "-xdev", "-name", ".*.opensource-agent.*")
	if left != "" {
		t.Errorf("left over:\n%s", left)
	}
}
