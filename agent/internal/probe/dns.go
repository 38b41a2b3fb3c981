package probe

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// answerTime is how long an answer is waited for before the question is put
// again.
const answerTime = 900 * time.Millisecond

// maxAnswer is the longest answer over UDP that name servers are offered to
// give, in bytes: one that is never fragmented.
const maxAnswer = 1232

// resolve returns an error unless a name has an address in DNS. All name servers
// are asked at once, and the first address decides: whether one of them is down
// is another matter. The question is put by hand, since a resolver would take
// what /etc/hosts says for an answer.
func (p Prober) resolve(ctx context.Context, name string) error {
	if len(p.NameServers) == 0 {
		return errors.New("this host has no name server")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	faults, answered := make([]error, len(p.NameServers)), make(chan int, len(p.NameServers))
	for i, server := range p.NameServers {
		go func() {
			faults[i] = hasAddress(ctx, server, name)
			answered <- i
		}()
	}
	for range p.NameServers {
		if faults[<-answered] == nil {
			return nil
		}
	}
	return fmt.Errorf("no address of %s: %s", name, strings.ReplaceAll(errors.Join(faults...).Error(), "\n", "; "))
}

// hasAddress asks one name server, first for an IPv4 address.
func hasAddress(ctx context.Context, server netip.AddrPort, name string) error {
	for _, kind := range []dnsmessage.Type{dnsmessage.TypeA, dnsmessage.TypeAAAA} {
		found, err := ask(ctx, server, name, kind)
		if err != nil {
			return fmt.Errorf("name server %s: %w", server, err)
		}
		if found {
			return nil
		}
	}
	return fmt.Errorf("name server %s knows the name, but no address of it", server)
}

// ask asks for the addresses of a name, and reports whether there is one.
func ask(ctx context.Context, server netip.AddrPort, name string, kind dnsmessage.Type) (bool, error) {
	id := uint16(rand.Uint32())
	query, err := question(id, name, kind)
	if err != nil {
		return false, err
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "udp", server.String())
	if err != nil {
		return false, err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	answer, err := exchange(conn, query)
	if err != nil {
		return false, lasting(err)
	}
	return addressIn(answer, id)
}

// exchange puts a question, and once more if the first one seems to be lost.
func exchange(conn net.Conn, query []byte) ([]byte, error) {
	answer := make([]byte, maxAnswer)
	var err error
	for range 2 {
		n := 0
		if _, err = conn.Write(query); err != nil {
			return nil, err
		}
		if err = conn.SetReadDeadline(time.Now().Add(answerTime)); err != nil {
			return nil, err
		}
		if n, err = conn.Read(answer); err == nil {
			return answer[:n], nil
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
	}
	return nil, err
}

func question(id uint16, name string, kind dnsmessage.Type) ([]byte, error) {
	full, err := dnsmessage.NewName(name + ".")
	if err != nil {
		return nil, err
	}
	var size dnsmessage.ResourceHeader
	if err := size.SetEDNS0(maxAnswer, dnsmessage.RCodeSuccess, false); err != nil {
		return nil, err
	}
	return (&dnsmessage.Message{
		Header:      dnsmessage.Header{ID: id, RecursionDesired: true},
		Questions:   []dnsmessage.Question{{Name: full, Type: kind, Class: dnsmessage.ClassINET}},
		Additionals: []dnsmessage.Resource{{Header: size, Body: &dnsmessage.OPTResource{}}},
	}).Pack()
}

// addressIn reports whether there is an address in an answer to the question id,
// or more of them than there was room for.
func addressIn(answer []byte, id uint16) (bool, error) {
	var message dnsmessage.Message
	if err := message.Unpack(answer); err != nil {
		return false, fmt.Errorf("read the answer: %w", err)
	}
	switch {
	case message.ID != id || !message.Response:
		return false, errors.New("the answer is to another question")
	case message.RCode == dnsmessage.RCodeNameError:
		return false, errors.New("there is no such name")
	case message.RCode != dnsmessage.RCodeSuccess:
		return false, fmt.Errorf("the answer is %s", message.RCode)
	case message.Truncated:
		return true, nil
	}
	for _, record := range message.Answers {
		switch record.Body.(type) {
		case *dnsmessage.AResource, *dnsmessage.AAAAResource:
			return true, nil
		}
	}
	return false, nil
}
