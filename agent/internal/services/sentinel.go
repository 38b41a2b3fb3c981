package services

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"opensource.internal/agent/render"
)

// maxDNSAnswer is the longest answer over UDP without EDNS, in bytes (RFC 1035
// section 2.3.4).
const maxDNSAnswer = 512

// answers returns an error unless dnsmasq resolves the sentinel name of the
// revision, which stands in the hosts file, to 127.0.0.1. The question is put
// by hand: a resolver would first ask the host's settings whether DNS is to be
// asked at all.
func (d dnsmasq) answers(ctx context.Context, revision string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	name := render.DNSMasqSentinel(revision) + "."
	addresses, err := lookupA(ctx, d.server, name)
	if err != nil {
		return fmt.Errorf("ask for the sentinel name: %w", err)
	}
	if len(addresses) != 1 || addresses[0] != [4]byte{127, 0, 0, 1} {
		return fmt.Errorf("the sentinel name %s has the address %v instead of 127.0.0.1", name, addresses)
	}
	return nil
}

// lookupA asks the DNS server ("ADDRESS:PORT") for the IPv4 addresses of a
// name with its final dot, once, over UDP.
func lookupA(ctx context.Context, server, name string) ([][4]byte, error) {
	question, err := dnsmessage.NewName(name)
	if err != nil {
		return nil, err
	}
	id := uint16(time.Now().UnixNano())
	query, err := (&dnsmessage.Message{
		Header:    dnsmessage.Header{ID: id, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: question, Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}},
	}).Pack()
	if err != nil {
		return nil, err
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "udp", server)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if deadline, limited := ctx.Deadline(); limited {
		if err := conn.SetDeadline(deadline); err != nil {
			return nil, err
		}
	}
	if _, err := conn.Write(query); err != nil {
		return nil, err
	}
	answer := make([]byte, maxDNSAnswer)
	n, err := conn.Read(answer)
	if err != nil {
		return nil, err
	}
	return addressesIn(answer[:n], id)
}

// addressesIn returns the addresses of an answer to the question id.
func addressesIn(answer []byte, id uint16) ([][4]byte, error) {
	var message dnsmessage.Message
	if err := message.Unpack(answer); err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	switch {
	case message.ID != id || !message.Response:
		return nil, errors.New("the answer is to another question")
	case message.RCode == dnsmessage.RCodeNameError:
		return nil, errors.New("there is no such name")
	case message.RCode != dnsmessage.RCodeSuccess:
		return nil, fmt.Errorf("the answer is %s", message.RCode)
	}
	var addresses [][4]byte
	for _, record := range message.Answers {
		if a, ok := record.Body.(*dnsmessage.AResource); ok {
			addresses = append(addresses, a.A)
		}
	}
	return addresses, nil
}
