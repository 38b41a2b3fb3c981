package auth

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// Proxies are the networks whose forwarding headers are believed. None is the
// default: everybody can send a header.
type Proxies []netip.Prefix

// Peer is the address at the other end of the connection.
func Peer(r *http.Request) netip.Addr {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	addr, _ := netip.ParseAddr(host)
	return addr.Unmap().WithZone("")
}

// Client is the address of who is asking: the peer, or, as long as the hop is
// a trusted proxy, the one it names in X-Forwarded-For. Read from the right,
// since everything left of the first untrusted hop was sent by that hop.
func (p Proxies) Client(r *http.Request) netip.Addr {
	client := Peer(r)
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0 && p.trusts(client); i-- {
		hop, err := netip.ParseAddr(strings.TrimSpace(hops[i]))
		if err != nil {
			break
		}
		client = hop.Unmap().WithZone("")
	}
	return client
}

// maxRequestID is more than the ids that proxies make up need, in bytes.
const maxRequestID = 64

// RequestID is the id that a trusted proxy gave a request, "" if there is none
// or it is odd: it goes into the log.
func (p Proxies) RequestID(r *http.Request) string {
	sent := r.Header["X-Request-Id"]
	if len(sent) != 1 || len(sent[0]) > maxRequestID || !p.trusts(Peer(r)) {
		return ""
	}
	for _, c := range sent[0] {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-_.:", c)) {
			return ""
		}
	}
	return sent[0]
}

func (p Proxies) trusts(addr netip.Addr) bool {
	for _, network := range p {
		if network.Contains(addr) {
			return true
		}
	}
	return false
}

// forwarded reports whether any header says that the request came through a
// proxy. The value does not matter: a proxy on this host makes every client
// look like loopback. Besides the usual names there are those that products
// give the client's address (CF-Connecting-IP, True-Client-IP); an underscore
// for a hyphen is how some of them are smuggled past a proxy's own rules.
func forwarded(h http.Header) bool {
	for name := range h {
		name = strings.ReplaceAll(strings.ToLower(name), "_", "-")
		if name == "via" || strings.Contains(name, "forwarded") || strings.HasSuffix(name, "real-ip") ||
			strings.HasSuffix(name, "client-ip") || strings.HasSuffix(name, "connecting-ip") {
			return true
		}
	}
	return false
}

// FromThisHost reports whether a request was made on this host by a program
// that talks to the manager directly. HTTP/1.0 is what nginx's bare proxy_pass
// speaks, which sets no header either; no agent speaks it.
func FromThisHost(r *http.Request) bool {
	return Peer(r).IsLoopback() && !forwarded(r.Header) && r.ProtoAtLeast(1, 1)
}
