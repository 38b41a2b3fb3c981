package pass

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"opensource.internal/agent/checkin"
	"opensource.internal/agent/internal/probe"
	"opensource.internal/agent/internal/state"
)

// probedSite is a site with probes, whose public names a name server of the test
// knows or not.
type probedSite struct {
	*liveSite
	known     atomic.Bool
	questions atomic.Int64
}

func newProbedSite(t *testing.T) *probedSite {
	t.Helper()
	s := &probedSite{liveSite: newLiveSite(t)}
	s.probes, s.byHand = true, false
	s.steady = time.Second // nginx lets the workers before take connections a little longer
	conn, err := net.ListenPacket("udp", "127.0.0.77:53")
	if err != nil {
		t.Fatal(err)
	}
	server := &dns.Server{PacketConn: conn, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, question *dns.Msg) {
		s.questions.Add(1)
		answer := new(dns.Msg).SetRcode(question, dns.RcodeNameError)
		if s.known.Load() {
			answer = new(dns.Msg).SetReply(question)
			answer.Answer = []dns.RR{&dns.A{
				Hdr: dns.RR_Header{Name: question.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET}, A: net.IPv4(198, 51, 100, 1),
			}}
		}
		_ = w.WriteMsg(answer)
	})}
	go func() { _ = server.ActivateAndServe() }()
	t.Cleanup(func() { _ = server.Shutdown() })
	s.write("etc/resolv.conf", "nameserver 127.0.0.77\n")
	return s
}

// certify puts a certificate of example.com into its place. It has signed
// itself, and is returned.
func (s *probedSite) certify() string {
	s.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		s.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"*.example.com"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(100 * 24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		s.t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		s.t.Fatal(err)
	}
	certificate := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	s.write("etc/ssl/certs/example.com.crt", certificate)
	s.write("etc/ssl/private/example.com.key", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
	return certificate
}

// found runs a pass, and wants its last check-in to tell of a service of the
// name app.example.com.
func (s *probedSite) found(checkIns int, hop checkin.ProbeHop) {
	s.t.Helper()
	requests := s.checkIns(Settled)
	result, told := last(s.t, requests).Probes["app.example.com"]
	if len(requests) != checkIns || !told || result.Hop != hop || (hop == checkin.HopNone) != (result.Message == "") {
		s.t.Errorf("%d check-ins, the last one tells %+v; want %d, %q", len(requests), last(s.t, requests).Probes, checkIns, hop)
	}
}

// wait lets time pass since the last run of the probes.
func (s *probedSite) wait(pause time.Duration) {
	s.t.Helper()
	dir, err := state.Open(s.options().StateDirectory)
	if err != nil {
		s.t.Fatal(err)
	}
	known, _, _ := dir.Load()
	known.Probes.At = known.Probes.At.Add(-pause)
	if err := dir.SaveState(known); err != nil {
		s.t.Fatal(err)
	}
}

// One fault after the other is mended on the way to a service, from the first hop
// to the last.
func TestServicesAreProbed(t *testing.T) {
	s := newProbedSite(t)
	s.publish(lab())
	s.found(2, checkin.HopDNS)

	t.Run("a pass without a probe", func(t *testing.T) {
		s.known.Store(true)
		asked, before := s.questions.Load(), s.files()
		s.found(1, checkin.HopDNS)
		s.wait(probePause - earlier - 2*time.Second)
		s.found(1, checkin.HopDNS)
		if diff := cmp.Diff(asked, s.questions.Load()); diff != "" {
			t.Errorf("the name server was asked (-want +got):\n%s", diff)
		}
		delete(before, "var/lib/opensource-agent/state.json") // the test itself has written it
		after := s.files()
		delete(after, "var/lib/opensource-agent/state.json")
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("files were written (-before +after):\n%s", diff)
		}
	})
	t.Run("after the pause", func(t *testing.T) {
		s.wait(2 * time.Second)
		s.found(2, checkin.HopCertificate)
	})
	t.Run("nothing new after the pause", func(t *testing.T) {
		s.wait(probePause)
		s.found(1, checkin.HopCertificate)
	})
	t.Run("after an apply", func(t *testing.T) {
		certificate := s.certify()
		s.found(2, checkin.HopCertificate) // in other words
		s.write("etc/ssl/certs/ca-certificates.crt", certificate)
		s.wait(probePause)
		s.found(2, checkin.HopBackend)
	})
	t.Run("after a new snapshot", func(t *testing.T) {
		s.serve("192.0.2.101:8080")
		snapshot := lab()
		snapshot.Site.Name = "renamed" // nothing of it is in a file
		s.publish(snapshot)
		s.found(2, checkin.HopNone)
	})
	t.Run("nginx is dead", func(t *testing.T) {
		s.nginx.Stop()
		s.wait(probePause)
		s.found(2, checkin.HopListener)
	})
	t.Run("off", func(t *testing.T) {
		s.probes = false
		if requests := s.checkIns(Settled); last(t, requests).Probes != nil {
			t.Errorf("told: %+v", last(t, requests).Probes)
		}
		s.probes = true
		s.found(2, checkin.HopListener)
	})
}

// serve takes connections on an address of a container until the test ends.
func (s *probedSite) serve(address string) {
	s.t.Helper()
	host, _, _ := net.SplitHostPort(address)
	if out, err := exec.Command("ip", "address", "add", host+"/32", "dev", "lo").CombinedOutput(); err != nil {
		s.t.Fatalf("ip address add: %v\n%s", err, out)
	}
	s.t.Cleanup(func() { _ = exec.Command("ip", "address", "del", host+"/32", "dev", "lo").Run() })
	backend, err := net.Listen("tcp", address)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { backend.Close() })
}

// Probed is what runs: no record that is left out, the previous version of one
// that keeps it, and of a snapshot that is held back nothing.
func TestOnlyWhatRunsIsProbed(t *testing.T) {
	s := newProbedSite(t)
	s.guard = 50
	names := func(want Code) []string {
		t.Helper()
		var told []string
		for name := range last(t, s.checkIns(want)).Probes {
			told = append(told, name)
		}
		slices.Sort(told)
		return told
	}
	want := func(want, got []string) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("probed (-want +got):\n%s", diff)
		}
	}
	want([]string{"h0.example.com", "h1.example.com", "h2.example.com", "h3.example.com", "h4.example.com", "h5.example.com"}, func() []string {
		s.publish(hosts(6))
		return names(Settled)
	}())
	s.publish(hosts(1))
	want([]string{"h0.example.com", "h1.example.com", "h2.example.com", "h3.example.com", "h4.example.com", "h5.example.com"}, names(Rejected))
	bad := hosts(6)
	bad.NGINX.HTTPServices[0].InternalPort = 80800                                       // keeps its previous version
	bad.NGINX.HTTPServices[1].ExternalHostname, bad.NGINX.HTTPServices[1].ID = "a b", 99 // never ran
	s.publish(bad)
	want([]string{"h0.example.com", "h2.example.com", "h3.example.com", "h4.example.com", "h5.example.com"}, names(Rejected))
}

// A pass that has no time left leaves the probes to the next one, and what was
// found before stays.
func TestProbesWaitForAPassThatHasTime(t *testing.T) {
	s := newSite(t)
	s.probes = true
	s.publish(lab())
	s.pass(Settled)
	p, unlock, err := begin(t.Context(), s.options())
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	p.engine.Reload = true
	before := &state.Probes{At: time.Now(), Of: "another one", Services: map[string]state.Probe{"app.example.com": {}}}
	p.state.Probes = before
	late, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	p.probeServices(late)
	if p.state.Probes != before || !p.probesDue() {
		t.Errorf("probed: %+v", p.state.Probes)
	}
}

// The manager is told all of it, the log of a few.
func TestManyServicesThatFail(t *testing.T) {
	var log bytes.Buffer
	p := &pass{Options: Options{Log: slog.New(slog.NewTextHandler(&log, nil))}}
	good, bad := map[string]state.Probe{}, map[string]state.Probe{}
	for i := range maxLines + 30 {
		good[hostName(i)], bad[hostName(i)] = state.Probe{}, state.Probe{Probe: checkin.Probe{Hop: checkin.HopDNS, Message: "in other words"}}
	}
	count := func(before, now map[string]state.Probe, words string) int {
		log.Reset()
		p.logProbes(before, now)
		return strings.Count(log.String(), words)
	}
	for name, got := range map[string]int{
		"fail":         count(nil, bad, "service cannot be reached"),
		"are well":     count(bad, good, "can be reached again"),
		"and a line":   count(nil, bad, "30 more") + maxLines - 1,
		"fail as ever": count(bad, bad, "\n") + maxLines,
		"are new":      count(nil, good, "\n") + maxLines,
	} {
		if got != maxLines {
			t.Errorf("services that %s: %d lines", name, got)
		}
	}
}

// Where there is no time for all services, each has its turn.
func TestServicesTakeTurns(t *testing.T) {
	services := make([]probe.Service, 10)
	for i := range services {
		services[i].Name = fmt.Sprint(i)
	}
	results := map[string]state.Probe{}
	var turns []string
	for run := range 4 {
		longestAgoFirst(services, results)
		for _, service := range services[:4] { // as far as the time goes
			turns = append(turns, service.Name)
			results[service.Name] = state.Probe{At: time.Unix(int64(run), 0)}
		}
	}
	want := []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "0", "1", "2", "3", "4", "5"}
	if diff := cmp.Diff(want, turns); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
