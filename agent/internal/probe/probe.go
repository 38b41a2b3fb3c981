// Package probe goes the way of a request to an HTTP service, hop by hop, and
// tells the first one that fails: the name in DNS, nginx, its certificate, the
// container. It keeps nothing, and changes nothing.
package probe

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"opensource.internal/agent/checkin"
)

// The bounds of a run. What does not fit into them is left for the next one.
const (
	Limit  = 5 * time.Second
	each   = 2500 * time.Millisecond // for all hops of one service
	atOnce = 32
)

// Service is an HTTP service as nginx serves it.
type Service struct {
	Name    string         // its public host name
	Backend netip.AddrPort // of its container
}

// Services are the HTTP services of a snapshot that is in force. A record that
// cannot be served is not.
func Services(snapshot checkin.Snapshot) []Service {
	var services []Service
	seen := map[string]bool{}
	for _, s := range snapshot.NGINX.HTTPServices {
		host, errHost := checkin.ParseDomain(s.ExternalHostname)
		domain, errDomain := checkin.ParseDomain(s.ExternalDomain.Name)
		addr, errAddr := checkin.ParseHostIPv4(s.Container.IPv4Address)
		name := host + "." + domain
		if errors.Join(errHost, errDomain, errAddr, checkin.CheckPort(s.InternalPort)) != nil || seen[name] {
			continue
		}
		seen[name] = true
		services = append(services, Service{Name: name, Backend: netip.AddrPortFrom(addr, uint16(s.InternalPort))})
	}
	return services
}

// Prober says where the hops of this host are.
type Prober struct {
	NameServers []netip.AddrPort
	Listener    netip.AddrPort // of nginx
	Authorities *x509.CertPool // who may vouch for a certificate; never nil
}

// Run probes services in their order, several at once. One that was not reached
// in time is not in the result.
func (p Prober) Run(ctx context.Context, services []Service) map[string]checkin.Probe {
	ctx, cancel := context.WithTimeout(ctx, Limit)
	defer cancel()
	queue := make(chan Service, len(services))
	for _, service := range services {
		queue <- service
	}
	close(queue)

	results := map[string]checkin.Probe{}
	var mutex sync.Mutex
	var running sync.WaitGroup
	for range min(atOnce, len(services)) {
		running.Go(func() {
			for service := range queue {
				if !fits(ctx) {
					return
				}
				found := p.probe(ctx, service)
				if ctx.Err() != nil {
					return // told to stop: that a hop failed then says nothing about it
				}
				mutex.Lock()
				results[service.Name] = found
				mutex.Unlock()
			}
		})
	}
	running.Wait()
	return results
}

// fits reports whether there is time for all hops of one more service: what is
// begun has its whole time, so that none is called slow that was only late.
func fits(ctx context.Context) bool {
	deadline, limited := ctx.Deadline()
	return ctx.Err() == nil && (!limited || time.Until(deadline) >= each)
}

// probe returns the first hop of a service that fails.
func (p Prober) probe(ctx context.Context, s Service) checkin.Probe {
	ctx, cancel := context.WithTimeout(ctx, each)
	defer cancel()
	if err := p.resolve(ctx, s.Name); err != nil {
		return failing(checkin.HopDNS, err)
	}
	nginx, err := connect(ctx, p.Listener)
	if err != nil {
		return failing(checkin.HopListener, err)
	}
	defer nginx.Close()
	if err := p.greet(ctx, nginx, s.Name); err != nil {
		return failing(checkin.HopCertificate, err)
	}
	backend, err := connect(ctx, s.Backend)
	if err != nil {
		return failing(checkin.HopBackend, err)
	}
	_ = backend.Close()
	return checkin.Probe{Hop: checkin.HopNone}
}

func failing(hop checkin.ProbeHop, err error) checkin.Probe {
	return checkin.Probe{Hop: hop, Message: checkin.CleanMessage(err.Error(), checkin.MaxProbeMessage)}
}

func connect(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, "tcp", to.String())
}

// greet returns an error unless the certificate that is shown for a name would
// do for a client that trusts whom this host trusts.
func (p Prober) greet(ctx context.Context, nginx net.Conn, name string) error {
	err := tls.Client(nginx, &tls.Config{ServerName: name, RootCAs: p.Authorities, MinVersion: tls.VersionTLS12}).HandshakeContext(ctx)
	var invalid x509.CertificateInvalidError
	var refused *tls.CertificateVerificationError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return fmt.Errorf("it is valid from %s to %s", invalid.Cert.NotBefore.UTC().Format(time.RFC3339), invalid.Cert.NotAfter.UTC().Format(time.RFC3339))
	case errors.As(err, &refused):
		return refused.Err
	}
	return fmt.Errorf("TLS handshake with %s: %w", p.Listener, lasting(err))
}

// lasting is an error without the port of our own end, in words that stay the
// same for as long as the fault does.
func lasting(err error) error {
	var op *net.OpError
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded), errors.Is(err, net.ErrClosed):
		return errors.New("no answer in time")
	case errors.As(err, &op) && op.Source != nil:
		return op.Err
	}
	return err
}
