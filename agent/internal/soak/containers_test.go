package soak

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/net/ipv4"

	"opensource.internal/agent/checkin"
)

// The ports that every container listens on. All their addresses are this
// host's, so that one listener is all containers.
const (
	webPort  = 8080
	textPort = 9000 // TCP: tells who it is, and then echoes; UDP: tells who it is
)

func startContainers() error {
	web, err := net.Listen("tcp", fmt.Sprintf(":%d", webPort))
	if err != nil {
		return err
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Context().Value(http.LocalAddrContextKey))
	})}
	go func() { _ = server.Serve(web) }()
	if err := errors.Join(answerDatagrams(), answerQuestions("192.0.2.8:53"), answerQuestions("192.0.2.9:53")); err != nil {
		return err
	}
	text, err := net.Listen("tcp", fmt.Sprintf(":%d", textPort))
	if err != nil {
		return err
	}
	go func() {
		for {
			conn, err := text.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				fmt.Fprintln(conn, conn.LocalAddr())
				_, _ = io.Copy(conn, conn)
			}()
		}
	}()
	return nil
}

// answerDatagrams tells whoever asks over UDP which address was asked.
func answerDatagrams() error {
	socket, err := net.ListenPacket("udp4", fmt.Sprintf(":%d", textPort))
	if err != nil {
		return err
	}
	conn := ipv4.NewPacketConn(socket)
	if err := conn.SetControlMessage(ipv4.FlagDst, true); err != nil {
		return err
	}
	go func() {
		for question := make([]byte, 64); ; {
			_, control, from, err := conn.ReadFrom(question)
			if err != nil {
				return
			}
			answer := fmt.Appendf(nil, "%s:%d", control.Dst, textPort)
			_, _ = conn.WriteTo(answer, &ipv4.ControlMessage{Src: control.Dst}, from)
		}
	}()
	return nil
}

// answerQuestions is a name server of the world outside, which knows no name.
func answerQuestions(address string) error {
	socket, err := net.ListenPacket("udp4", address)
	if err != nil {
		return err
	}
	server := &dns.Server{PacketConn: socket, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, question *dns.Msg) {
		_ = w.WriteMsg(new(dns.Msg).SetRcode(question, dns.RcodeNameError))
	})}
	go func() { _ = server.ActivateAndServe() }()
	return nil
}

// backend is a container's address and port, "192.0.2.100:8080".
type backend = string

// socket is a port of the site, "tcp/2200".
type socket = string

// serving is what is to be had from a site: the backend behind every host name
// and port, and the names that are resolved.
type serving struct {
	http    map[string]backend
	streams map[socket]backend
	hosts   map[string]string // full name to address
	srv     map[string]string // full name to "target port"
}

// meaning is what a snapshot stands for, with the records that were left out
// left out.
func meaning(s checkin.Snapshot, left []checkin.QuarantinedItem) serving {
	m := serving{http: map[string]backend{}, streams: map[socket]backend{}, hosts: map[string]string{}, srv: map[string]string{}}
	without := func(kind, name string) bool {
		return slices.ContainsFunc(left, func(q checkin.QuarantinedItem) bool { return q.Kind == kind && q.Name == name })
	}
	for _, service := range s.NGINX.HTTPServices {
		if name := service.ExternalHostname + "." + service.ExternalDomain.Name; !without(checkin.KindHTTP, name) {
			m.http[name] = fmt.Sprintf("%s:%d", service.Container.IPv4Address, service.InternalPort)
		}
	}
	for _, service := range s.NGINX.StreamServices {
		if name := fmt.Sprintf("%s/%d", service.Protocol, service.ExternalPort); !without(checkin.KindStream, name) {
			m.streams[name] = fmt.Sprintf("%s:%d", service.Container.IPv4Address, service.InternalPort)
		}
	}
	if s.Site == nil {
		return m
	}
	domain := "." + string(s.Site.InternalDomain)
	for _, node := range s.Site.Nodes {
		for _, container := range node.Containers {
			if !without(checkin.KindHost, container.Hostname) {
				m.hosts[container.Hostname+domain] = container.IPv4Address
			}
		}
	}
	for _, record := range s.Site.DNSRecords {
		if !without(checkin.KindSRV, record.Name) {
			m.srv[record.Name+domain] = fmt.Sprintf("%s%s %d", record.Target, domain, record.Port)
		}
	}
	return m
}

// sessions spare most requests a handshake in full.
var sessions = tls.NewLRUClientSessionCache(100)

// askHost returns which backend answers for a host name, or the status if it
// is another than 200.
func askHost(name string) (string, error) {
	dialer := &net.Dialer{Timeout: 2 * time.Second}
	client := &http.Client{
		Timeout: 5 * time.Second,
		Transport: &http.Transport{
			DisableKeepAlives: true,
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return dialer.DialContext(ctx, "tcp", "127.0.0.1:443")
			},
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true, ClientSessionCache: sessions}, // it may be the fallback
		},
	}
	response, err := client.Get("https://" + name + "/")
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<10))
	if err == nil && response.StatusCode != http.StatusOK {
		return response.Status, nil
	}
	return string(body), err
}

// askRevision returns the revision that nginx tells on loopback.
func askRevision() (string, error) {
	client := &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get("http://127.0.0.1" + revisionPath)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<10))
	if err == nil && response.StatusCode != http.StatusOK {
		err = errors.New(response.Status)
	}
	return strings.TrimSpace(string(body)), err
}

// nobody is behind a port that is closed.
const nobody = "nobody"

// askPort returns which backend is behind a TCP port.
func askPort(port int) (string, error) {
	conn, err := dialPort(port)
	if err != nil {
		return nobody, nil
	}
	defer conn.Close()
	return readLine(conn)
}

// askDatagram returns which backend is behind a UDP port.
func askDatagram(port int) (string, error) {
	conn, err := net.Dial("udp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(2 * time.Second)); err != nil {
		return "", err
	}
	answer := make([]byte, 64)
	if _, err = conn.Write([]byte("who")); err == nil {
		var n int
		if n, err = conn.Read(answer); err == nil {
			return string(answer[:n]), nil
		}
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		return nobody, nil
	}
	return "", err
}

func dialPort(port int) (net.Conn, error) {
	conn, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", port), time.Second)
	if err != nil {
		return nil, err
	}
	return conn, conn.SetDeadline(time.Now().Add(5 * time.Second))
}

// readLine reads one line, byte by byte: the rest is for others.
func readLine(conn net.Conn) (string, error) {
	var line []byte
	for one := make([]byte, 1); ; {
		if _, err := conn.Read(one); err != nil {
			return "", err
		}
		if one[0] == '\n' {
			return string(line), nil
		}
		line = append(line, one[0])
	}
}

// askName returns the answer to a DNS question, with a word for every way of
// having none.
func askName(name string, kind uint16) (string, error) {
	client := &dns.Client{Timeout: 2 * time.Second}
	answer, _, err := client.Exchange(new(dns.Msg).SetQuestion(name+".", kind), "127.0.0.1:53")
	switch {
	case err != nil:
		return "", err
	case answer.Rcode != dns.RcodeSuccess:
		return dns.RcodeToString[answer.Rcode], nil
	case len(answer.Answer) == 0:
		return "no answer", nil
	}
	switch record := answer.Answer[0].(type) {
	case *dns.A:
		return record.A.String(), nil
	case *dns.SRV:
		return fmt.Sprintf("%s %d", strings.TrimSuffix(record.Target, "."), record.Port), nil
	}
	return answer.Answer[0].String(), nil
}
