package probe

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"opensource.internal/agent/checkin"
)

// authority is a certificate authority of the test.
type authority struct {
	t    testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t testing.TB) *authority {
	a := &authority{t: t}
	pair := a.issue(&x509.Certificate{
		Subject: pkix.Name{CommonName: "Test"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	})
	a.cert, a.key = pair.Leaf, pair.PrivateKey.(*ecdsa.PrivateKey)
	return a
}

// issue signs a certificate, by itself if there is no authority yet.
func (a *authority) issue(template *x509.Certificate) tls.Certificate {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(a.t, err)
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	must(a.t, err)
	leaf, err := x509.ParseCertificate(der)
	must(a.t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// server is a certificate for names, valid from a time that long ago for an hour.
func (a *authority) server(age time.Duration, names ...string) tls.Certificate {
	begin := time.Now().Add(-age)
	return a.issue(&x509.Certificate{DNSNames: names, NotBefore: begin, NotAfter: begin.Add(time.Hour)})
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// listen takes connections on loopback until the test ends.
func listen(t testing.TB, serve func(net.Conn)) netip.AddrPort {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				serve(conn)
			}()
		}
	}()
	return netip.MustParseAddrPort(listener.Addr().String())
}

// listenTLS shows a certificate to everybody.
func listenTLS(t testing.TB, pair tls.Certificate) netip.AddrPort {
	return listen(t, func(conn net.Conn) {
		_ = tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{pair}}).HandshakeContext(t.Context())
	})
}

// nameServer answers every question over UDP on loopback; nil is no answer.
func nameServer(t testing.TB, answer func(*dns.Msg) *dns.Msg) netip.AddrPort {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	must(t, err)
	server := &dns.Server{PacketConn: conn, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, question *dns.Msg) {
		if reply := answer(question); reply != nil {
			_ = w.WriteMsg(reply)
		}
	})}
	go func() { _ = server.ActivateAndServe() }()
	t.Cleanup(func() { _ = server.Shutdown() })
	return netip.MustParseAddrPort(conn.LocalAddr().String())
}

// says answers with those of the records that are asked for: "A 192.0.2.1".
func says(records ...string) func(*dns.Msg) *dns.Msg {
	return func(question *dns.Msg) *dns.Msg {
		reply := new(dns.Msg).SetReply(question)
		for _, record := range records {
			parsed, err := dns.NewRR(question.Question[0].Name + " 0 IN " + record)
			if err != nil {
				panic(err)
			}
			if kind := parsed.Header().Rrtype; kind == question.Question[0].Qtype || kind == dns.TypeCNAME {
				reply.Answer = append(reply.Answer, parsed)
			}
		}
		return reply
	}
}

func refuses(code int) func(*dns.Msg) *dns.Msg {
	return func(question *dns.Msg) *dns.Msg { return new(dns.Msg).SetRcode(question, code) }
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestFirstHopThatFails(t *testing.T) {
	trusted, stranger := newAuthority(t), newAuthority(t)
	known, container := says("A 192.0.2.1"), listen(t, func(net.Conn) {})
	good := listenTLS(t, trusted.server(time.Minute, "*.example.com"))
	expired, early := trusted.server(2*time.Hour, "app.example.com"), trusted.server(-time.Hour, "app.example.com")
	nobody, silent := netip.MustParseAddrPort("127.0.0.9:1"), func(net.Conn) { <-t.Context().Done() }
	for name, test := range map[string]struct {
		dns      func(*dns.Msg) *dns.Msg
		listener netip.AddrPort
		backend  netip.AddrPort
		want     checkin.Probe
	}{
		"none": {known, good, container, checkin.Probe{}},
		// Everything behind the first one fails, too, and is not told.
		"no such name":    {refuses(dns.RcodeNameError), nobody, nobody, checkin.Probe{Hop: checkin.HopDNS, Message: "no address of app.example.com: name server NAMESERVER: there is no such name"}},
		"nothing listens": {known, nobody, nobody, checkin.Probe{Hop: checkin.HopListener, Message: "dial tcp LISTENER: connect: connection refused"}},
		"closes":          {known, listen(t, func(c net.Conn) { _, _ = c.Read(make([]byte, 16<<10)) }), nobody, checkin.Probe{Hop: checkin.HopCertificate, Message: "TLS handshake with LISTENER: EOF"}},
		"says nothing":    {known, listen(t, silent), nobody, checkin.Probe{Hop: checkin.HopCertificate, Message: "TLS handshake with LISTENER: no answer in time"}},
		"says another thing": {
			known, listen(t, func(c net.Conn) { fmt.Fprintln(c, "SSH-2.0-OpenSSH") }), nobody,
			checkin.Probe{Hop: checkin.HopCertificate, Message: "TLS handshake with LISTENER: tls: first record does not look like a TLS handshake"},
		},
		"certificate of another name": {
			known, listenTLS(t, trusted.server(time.Minute, "edge.example.org")), nobody,
			checkin.Probe{Hop: checkin.HopCertificate, Message: "x509: certificate is valid for edge.example.org, not app.example.com"},
		},
		"expired":       {known, listenTLS(t, expired), nobody, checkin.Probe{Hop: checkin.HopCertificate, Message: "it is valid " + dates(expired)}},
		"not valid yet": {known, listenTLS(t, early), nobody, checkin.Probe{Hop: checkin.HopCertificate, Message: "it is valid " + dates(early)}},
		"of an unknown authority": {
			known, listenTLS(t, stranger.server(time.Minute, "app.example.com")), nobody,
			checkin.Probe{Hop: checkin.HopCertificate, Message: "x509: certificate signed by unknown authority"},
		},
		"container is away": {known, good, nobody, checkin.Probe{Hop: checkin.HopBackend, Message: "dial tcp BACKEND: connect: connection refused"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := nameServer(t, test.dns)
			p := Prober{NameServers: []netip.AddrPort{server}, Listener: test.listener, Authorities: trusted.pool()}
			places := strings.NewReplacer("NAMESERVER", server.String(), "LISTENER", test.listener.String(), "BACKEND", test.backend.String())
			want := checkin.Probe{Hop: test.want.Hop, Message: places.Replace(test.want.Message)}
			var first checkin.Probe
			for i := range 2 {
				got, probed := p.Run(t.Context(), []Service{{Name: "app.example.com", Backend: test.backend}})["app.example.com"]
				if !probed || got.Hop != want.Hop || !strings.HasPrefix(got.Message, want.Message) || want.Hop == checkin.HopNone && got.Message != "" {
					t.Errorf("got %+v, want %+v", got, want)
				}
				if i > 0 && got != first {
					t.Errorf("the same fault is told in other words: %+v, %+v", first, got)
				}
				first = got
			}
		})
	}
}

func dates(pair tls.Certificate) string {
	return "from " + pair.Leaf.NotBefore.UTC().Format(time.RFC3339) + " to " + pair.Leaf.NotAfter.UTC().Format(time.RFC3339)
}

func TestNameServers(t *testing.T) {
	silent := func(*dns.Msg) *dns.Msg { return nil }
	var asked atomic.Int32
	for name, test := range map[string]struct {
		servers []func(*dns.Msg) *dns.Msg
		fault   string
	}{
		"an IPv4 address":     {list(says("A 192.0.2.1")), ""},
		"an IPv6 address":     {list(says("AAAA 2001:db8::1")), ""},
		"by another name":     {list(says("CNAME www.example.net.", "A 192.0.2.1")), ""},
		"another name only":   {list(says("CNAME www.example.net.")), "knows the name, but no address of it"},
		"no address":          {list(says()), "knows the name, but no address of it"},
		"one of them knows":   {list(refuses(dns.RcodeNameError), says("A 192.0.2.1")), ""},
		"one of them is away": {list(silent, says("A 192.0.2.1")), ""},
		"none of them knows":  {list(refuses(dns.RcodeNameError), refuses(dns.RcodeRefused)), "the answer is RCodeRefused"},
		"no name server":      {nil, "no name server"},
		"silence":             {list(silent), "no answer in time"},
		"the first question is lost": {list(func(question *dns.Msg) *dns.Msg {
			if asked.Add(1) == 1 {
				return nil
			}
			return says("A 192.0.2.1")(question)
		}), ""},
		"of another question": {list(func(question *dns.Msg) *dns.Msg {
			reply := says("A 192.0.2.1")(question)
			reply.Id++
			return reply
		}), "another question"},
		"more than fits": {list(func(question *dns.Msg) *dns.Msg {
			reply := says()(question)
			reply.Truncated = true
			return reply
		}), ""},
	} {
		t.Run(name, func(t *testing.T) {
			var p Prober
			for _, server := range test.servers {
				p.NameServers = append(p.NameServers, nameServer(t, server))
			}
			err := p.resolve(t.Context(), "app.example.com")
			if test.fault == "" && err != nil || test.fault != "" && (err == nil || !strings.Contains(err.Error(), test.fault)) {
				t.Errorf("got %v, want %q", err, test.fault)
			}
		})
	}
}

func list(servers ...func(*dns.Msg) *dns.Msg) []func(*dns.Msg) *dns.Msg { return servers }

func TestServicesOfASnapshot(t *testing.T) {
	service := func(host, domain, addr string, port int) checkin.HTTPService {
		return checkin.HTTPService{
			ExternalHostname: host, ExternalDomain: checkin.HTTPServiceDomain{Name: domain},
			Container: checkin.Backend{IPv4Address: addr}, InternalPort: port,
		}
	}
	snapshot := checkin.Snapshot{NGINX: checkin.NGINX{HTTPServices: []checkin.HTTPService{
		service("App", "example.com.", "192.0.2.101", 8080),
		service("app", "example.com", "192.0.2.102", 8080), // its name belongs to the first
		service("a b", "example.com", "192.0.2.101", 8080),
		service("b", "example..com", "192.0.2.101", 8080),
		service("c", "example.com", "192.0.2.1010", 8080),
		service("d", "example.com", "192.0.2.101", 80800),
		service("e", "example.com", "192.0.2.103", 80),
	}}}
	want := []string{"app.example.com 192.0.2.101:8080", "e.example.com 192.0.2.103:80"}
	var got []string
	for _, s := range Services(snapshot) {
		got = append(got, fmt.Sprint(s.Name, " ", s.Backend))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAuthorities(t *testing.T) {
	bundle := filepath.Join(t.TempDir(), "ca-certificates.crt")
	if pool, err := Authorities(bundle); !errors.Is(err, fs.ErrNotExist) || pool == nil {
		t.Errorf("without a bundle: %v, %v", pool, err)
	}
	must(t, os.WriteFile(bundle, []byte("none\n"), 0o644))
	if pool, err := Authorities(bundle); err == nil || !strings.Contains(err.Error(), bundle) || pool == nil {
		t.Errorf("with an empty bundle: %v, %v", pool, err)
	}
	one, other := newAuthority(t), newAuthority(t)
	var text []byte
	for _, a := range []*authority{one, other} {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})...)
	}
	must(t, os.WriteFile(bundle, text, 0o644))
	want := one.pool()
	want.AddCert(other.cert)
	if pool, err := Authorities(bundle); err != nil || !pool.Equal(want) {
		t.Errorf("%v, %v", pool, err)
	}
}

// A name server that says nothing is the worst case: no service fails at once.
func TestRunIsBounded(t *testing.T) {
	silent := nameServer(t, func(*dns.Msg) *dns.Msg { return nil })
	start := time.Now()
	found := Prober{NameServers: []netip.AddrPort{silent}}.Run(t.Context(), many(1000))
	if took := time.Since(start); took > Limit {
		t.Errorf("it took %v", took)
	}
	// Those that were not reached are not told to fail.
	if len(found) < atOnce || len(found) > 3*atOnce {
		t.Errorf("%d services were probed", len(found))
	}
	for name, result := range found {
		if result.Hop != checkin.HopDNS || !strings.Contains(result.Message, "no answer in time") {
			t.Errorf("%s: %+v", name, result)
		}
	}
}

// The first ones are kept until there are as many as may be, so that one more
// would show.
func TestOnlySoManyAtOnce(t *testing.T) {
	var now atomic.Int32
	var once sync.Once
	full := make(chan bool)
	listener := listen(t, func(net.Conn) {
		switch count := now.Add(1); {
		case count == atOnce:
			once.Do(func() { time.AfterFunc(300*time.Millisecond, func() { close(full) }) })
		case count > atOnce:
			t.Errorf("%d are probed at once", count)
		}
		select {
		case <-full:
		case <-t.Context().Done():
		}
		now.Add(-1) // before the client can know
	})
	p := Prober{NameServers: []netip.AddrPort{nameServer(t, says("A 192.0.2.1"))}, Listener: listener, Authorities: x509.NewCertPool()}
	found := p.Run(t.Context(), many(4*atOnce))
	select {
	case <-full:
	default:
		t.Errorf("of %d never as many at once as may be", len(found))
	}
}

// many are services whose containers nobody gets to.
func many(count int) []Service {
	services := make([]Service, count)
	for i := range services {
		services[i] = Service{Name: fmt.Sprintf("app%d.example.com", i)}
	}
	return services
}

// What there is no time for is not in the result, rather than to be told as a
// fault; neither is what was under way when the agent was told to stop.
func TestNothingIsToldThatWasNotProbedToItsEnd(t *testing.T) {
	late, cancel := context.WithTimeout(t.Context(), each-time.Millisecond)
	defer cancel()
	if found := (Prober{}).Run(late, many(1)); len(found) > 0 {
		t.Errorf("probed without the time for it: %v", found)
	}
	stopped, stop := context.WithCancel(t.Context())
	p := Prober{NameServers: []netip.AddrPort{nameServer(t, func(*dns.Msg) *dns.Msg {
		stop()
		return nil
	})}}
	if found := p.Run(stopped, many(1)); len(found) > 0 {
		t.Errorf("told to stop: %v", found)
	}
}
