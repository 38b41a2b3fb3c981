package probe

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
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

// free is an address at which nobody listens.
func free(t testing.TB) netip.AddrPort {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	listener.Close()
	return netip.MustParseAddrPort(listener.Addr().String())
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestFirstHopThatFails(t *testing.T) {
	trusted, stranger := newAuthority(t), newAuthority(t)
	alright := trusted.server(time.Minute, "*.example.com")
	known, container := says("A 192.0.2.1"), listen(t, func(net.Conn) {})
	for name, test := range map[string]struct {
		dns       func(*dns.Msg) *dns.Msg
		listener  netip.AddrPort
		container netip.AddrPort
		want      checkin.ProbeHop
		message   string
	}{
		"none":               {known, listenTLS(t, alright), container, checkin.HopNone, ""},
		"no such name":       {refuses(dns.RcodeNameError), free(t), free(t), checkin.HopDNS, "no address of app.example.com: name server "},
		"nothing listens":    {known, free(t), free(t), checkin.HopListener, "connection refused"},
		"not TLS":            {known, listen(t, func(c net.Conn) { fmt.Fprintln(c, "SSH-2.0-OpenSSH") }), free(t), checkin.HopCertificate, "not look like a TLS handshake"},
		"closes":             {known, listen(t, func(net.Conn) {}), free(t), checkin.HopCertificate, ""},
		"says nothing":       {known, listen(t, func(net.Conn) { <-t.Context().Done() }), free(t), checkin.HopCertificate, "deadline exceeded"},
		"of another name":    {known, listenTLS(t, trusted.server(time.Minute, "*.example.org")), free(t), checkin.HopCertificate, "certificate is valid for *.example.org, not app.example.com"},
		"expired":            {known, listenTLS(t, trusted.server(2*time.Hour, "app.example.com")), free(t), checkin.HopCertificate, "certificate has expired"},
		"not valid yet":      {known, listenTLS(t, trusted.server(-time.Hour, "app.example.com")), free(t), checkin.HopCertificate, "is before"},
		"unknown authority":  {known, listenTLS(t, stranger.server(time.Minute, "app.example.com")), free(t), checkin.HopCertificate, "signed by unknown authority"},
		"container is away":  {known, listenTLS(t, alright), free(t), checkin.HopBackend, "connection refused"},
		"container is later": {refuses(dns.RcodeServerFailure), listenTLS(t, alright), free(t), checkin.HopDNS, "RCodeServerFailure"},
	} {
		t.Run(name, func(t *testing.T) {
			p := Prober{NameServers: []netip.AddrPort{nameServer(t, test.dns)}, Listener: test.listener, Roots: trusted.pool()}
			got := p.Run(t.Context(), []Service{{Name: "app.example.com", Backend: test.container}})["app.example.com"]
			if got.Hop != test.want || !strings.Contains(got.Message, test.message) || (got.Hop == checkin.HopNone) != (got.Message == "") {
				t.Errorf("got %+v, want %s: %s", got, test.want, test.message)
			}
			if test.container.Port() != 0 && strings.Contains(got.Message, "connection refused") &&
				!strings.Contains(got.Message, map[checkin.ProbeHop]netip.AddrPort{checkin.HopListener: test.listener, checkin.HopBackend: test.container}[got.Hop].String()) {
				t.Errorf("%q does not say who refused", got.Message)
			}
		})
	}
}

func TestNameServers(t *testing.T) {
	silent := func(*dns.Msg) *dns.Msg { return nil }
	lost := 0
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
		"silence":             {list(silent), "no answer in time"},
		"the first question is lost": {list(func(question *dns.Msg) *dns.Msg {
			if lost++; lost == 1 {
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

// What there is no time for is not in the result, rather than to be told as a
// fault.
func TestRunIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), each-time.Millisecond)
		defer cancel()
		if got := (Prober{}).Run(ctx, []Service{{Name: "app.example.com"}}); len(got) > 0 {
			t.Errorf("probed without the time for it: %v", got)
		}
	})
}
