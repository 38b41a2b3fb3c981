package auth

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// PublicURLMismatch says in words how a request differs from the URL browsers
// are supposed to use, or nothing. A wrong scheme keeps people from signing
// in (a Secure cookie is not stored over plain HTTP), a wrong host makes their
// forms look like those of another origin.
func (a *Auth) PublicURLMismatch(r *http.Request, public *url.URL) string {
	if public == nil || r == nil {
		return ""
	}
	scheme, host := a.origin(r)
	if strings.EqualFold(host, public.Host) && (scheme == public.Scheme || scheme == "") {
		return ""
	}
	if scheme == "" {
		scheme = public.Scheme
	}
	return fmt.Sprintf("PUBLIC_URL is %s, but this page was asked for as %s://%s. Use that address, or set PUBLIC_URL and let the proxy pass the Host header on.",
		public, scheme, host)
}

// origin is what the browser has in its address bar, as far as it can be
// known; the scheme is empty if a proxy that is not trusted is in between.
func (a *Auth) origin(r *http.Request) (scheme, host string) {
	scheme, host = "http", r.Host
	switch {
	case r.TLS != nil:
		scheme = "https"
	case a.proxies.trusts(Peer(r)):
		if forwarded := last(r.Header.Get("X-Forwarded-Proto")); forwarded != "" {
			scheme = strings.ToLower(forwarded)
		}
		if forwarded := last(r.Header.Get("X-Forwarded-Host")); forwarded != "" {
			host = forwarded
		}
	case forwarded(r.Header):
		scheme = ""
	}
	return scheme, host
}

// last is the element of a list header that the nearest proxy has added.
func last(list string) string {
	return strings.TrimSpace(list[strings.LastIndexByte(list, ',')+1:])
}
