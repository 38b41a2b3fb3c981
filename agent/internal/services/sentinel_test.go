package services

import (
	"net"
	"strings"
	"testing"

	"github.com/miekg/dns"
	"golang.org/x/net/dns/dnsmessage"
)

// nameServer answers every question over UDP on loopback, and returns its
// address.
func nameServer(t *testing.T, answer func(*dns.Msg) *dns.Msg) string {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &dns.Server{PacketConn: conn, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, question *dns.Msg) {
		_ = w.WriteMsg(answer(question))
	})}
	go func() { _ = server.ActivateAndServe() }()
	t.Cleanup(func() { _ = server.Shutdown() })
	return conn.LocalAddr().String()
}

func TestSentinelIsAskedForByHand(t *testing.T) {
	reply := func(records ...string) func(*dns.Msg) *dns.Msg {
		return func(question *dns.Msg) *dns.Msg {
			answer := new(dns.Msg).SetReply(question)
			for _, record := range records {
				r, err := dns.NewRR(question.Question[0].Name + " 0 IN " + record)
				if err != nil {
					t.Error(err)
				}
				answer.Answer = append(answer.Answer, r)
			}
			return answer
		}
	}
	for name, test := range map[string]struct {
		answer func(*dns.Msg) *dns.Msg
		fault  string
	}{
		"right":         {reply("A 127.0.0.1"), ""},
		"other address": {reply("A 203.0.113.1"), "instead of 127.0.0.1"},
		"two addresses": {reply("A 127.0.0.1", "A 203.0.113.1"), "instead of 127.0.0.1"},
		"no address":    {reply("TXT x"), "instead of 127.0.0.1"},
		"no such name":  {func(q *dns.Msg) *dns.Msg { return new(dns.Msg).SetRcode(q, dns.RcodeNameError) }, "no such name"},
		"refused":       {func(q *dns.Msg) *dns.Msg { return new(dns.Msg).SetRcode(q, dns.RcodeRefused) }, "RCodeRefused"},
		"another question": {func(q *dns.Msg) *dns.Msg {
			answer := new(dns.Msg).SetReply(q)
			answer.Id++
			return answer
		}, "another question"},
	} {
		t.Run(name, func(t *testing.T) {
			err := dnsmasq{server: nameServer(t, test.answer)}.answers(t.Context(), strings.Repeat("0", 64))
			if test.fault == "" && err != nil || test.fault != "" && (err == nil || !strings.Contains(err.Error(), test.fault)) {
				t.Errorf("got %v, want %q", err, test.fault)
			}
		})
	}
}

func TestSentinelWithoutAServer(t *testing.T) {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	free := conn.LocalAddr().String()
	conn.Close()
	if err := (dnsmasq{server: free}).answers(t.Context(), strings.Repeat("0", 64)); err == nil {
		t.Error("nobody answered, and there is no error")
	}
}

func FuzzDNSAnswer(f *testing.F) {
	f.Add([]byte{0, 1, 0x80})
	f.Fuzz(func(t *testing.T, answer []byte) {
		if addresses, err := addressesIn(answer, 1); err == nil && len(addresses) > 0 {
			var m dnsmessage.Message
			if m.Unpack(answer) != nil {
				t.Error("addresses of what is no message")
			}
		}
	})
}
