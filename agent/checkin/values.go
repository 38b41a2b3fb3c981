package checkin

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path"
	"strconv"
	"strings"
)

// The parsers below are the rules of every value that reaches a configuration
// file. The manager applies them to what people type, the agent to what it is
// sent: a snapshot that came from somewhere else cannot inject a line either.
// Errors quote the value and say what is allowed.

// quoteRune writes a rune as a Go escape between single quotes.
func quoteRune(r rune) string { return strconv.QuoteRuneToASCII(r) }

// quoted shows a refused value in an error: escaped, and cut to a sane length.
func quoted(s string) string {
	if len(s) > 80 {
		s = s[:80] + "…"
	}
	return strconv.QuoteToASCII(s)
}

// lower folds ASCII letters only: strings.ToLower would turn the Kelvin sign
// into a k, and so make a plain name of one that is not.
func lower(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}

// ParseLabel checks one host-name label (RFC 1123 section 2.1): 1 to 63 letters,
// digits and hyphens, no hyphen at an edge. It returns it in lower case.
func ParseLabel(s string) (string, error) {
	label := lower(s)
	if err := checkLabel(label, false); err != nil {
		return "", fmt.Errorf("%s is not a host name: %w", quoted(s), err)
	}
	return label, nil
}

// ParseDomain checks a domain name of one or more labels (at most 253
// characters, RFC 1035 section 2.3.4). It returns it in lower case and without
// a trailing dot. A name that looks like an IPv4 address is refused.
func ParseDomain(s string) (string, error) {
	name := strings.TrimSuffix(lower(s), ".")
	if err := checkDomain(name, false); err != nil {
		return "", fmt.Errorf("%s is not a domain name: %w", quoted(s), err)
	}
	return name, nil
}

// ParseServiceName checks the owner name of an SRV record (RFC 2782): labels
// that may begin with an underscore, such as "_sip._tcp".
func ParseServiceName(s string) (string, error) {
	name := strings.TrimSuffix(lower(s), ".")
	if err := checkDomain(name, true); err != nil {
		return "", fmt.Errorf("%s is not a service name: %w", quoted(s), err)
	}
	return name, nil
}

func checkDomain(name string, underscore bool) error {
	if len(name) > 253 {
		return errors.New("longer than 253 characters")
	}
	if _, err := netip.ParseAddr(name); err == nil {
		return errors.New("it is an IP address")
	}
	for label := range strings.SplitSeq(name, ".") {
		if err := checkLabel(label, underscore); err != nil {
			return err
		}
	}
	return nil
}

func checkLabel(label string, underscore bool) error {
	allowed := "only letters, digits and hyphens are allowed"
	if underscore {
		label = strings.TrimPrefix(label, "_")
		allowed = "only letters, digits, hyphens and one underscore in front are allowed"
	}
	switch {
	case label == "":
		return errors.New("it has an empty label")
	case len(label) > 63:
		return errors.New("a label has more than 63 characters")
	case label[0] == '-' || label[len(label)-1] == '-':
		return errors.New("a label begins or ends with a hyphen")
	}
	for _, c := range []byte(label) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return errors.New(allowed)
		}
	}
	return nil
}

// ParseIPv4 checks a plain IPv4 address: four decimal numbers, no prefix
// length, no leading zeros.
func ParseIPv4(s string) (netip.Addr, error) {
	addr, err := netip.ParseAddr(s)
	if err != nil || !addr.Is4() {
		return netip.Addr{}, fmt.Errorf("%s is not an IPv4 address such as 192.0.2.10", quoted(s))
	}
	return addr, nil
}

// ParseHostIPv4 checks the IPv4 address of a host: no unspecified, loopback,
// multicast or broadcast address.
func ParseHostIPv4(s string) (netip.Addr, error) {
	addr, err := ParseIPv4(s)
	if err != nil {
		return netip.Addr{}, err
	}
	if addr.IsUnspecified() || addr.IsLoopback() || addr.IsMulticast() || addr == netip.AddrFrom4([4]byte{255, 255, 255, 255}) {
		return netip.Addr{}, fmt.Errorf("%s is not the address of a host", quoted(s))
	}
	return addr, nil
}

// ParseMAC checks a unicast EUI-48 hardware address written with colons or
// hyphens. It returns it in lower case with colons.
func ParseMAC(s string) (string, error) {
	mac, err := net.ParseMAC(s)
	if err != nil || len(mac) != 6 || len(s) != 17 {
		return "", fmt.Errorf("%s is not a MAC address such as 02:00:00:00:00:01", quoted(s))
	}
	if mac[0]&1 != 0 || mac.String() == "00:00:00:00:00:00" {
		return "", fmt.Errorf("%s is not the MAC address of one network card (multicast or zero)", quoted(s))
	}
	return mac.String(), nil
}

// CheckPort checks a TCP or UDP port number.
func CheckPort(port int) error {
	if port < 1 || port > 65535 {
		return fmt.Errorf("%d is not a port: 1 to 65535", port)
	}
	return nil
}

// CheckProtocol checks the transport protocol of a stream service.
func CheckProtocol(s string) error {
	if s != "tcp" && s != "udp" {
		return fmt.Errorf(`%s is not a protocol: "tcp" or "udp"`, quoted(s))
	}
	return nil
}

// CheckBackendProtocol checks how an HTTP service's container is spoken to.
func CheckBackendProtocol(s string) error {
	if s != "http" && s != "https" {
		return fmt.Errorf(`%s is not a backend protocol: "http" or "https"`, quoted(s))
	}
	return nil
}

// AuthServer is a parsed `authServer`: the base URL of an oauth2-proxy.
type AuthServer struct {
	Scheme string // "http" or "https"
	Host   string // name or address, lower case
	Port   int
}

// ParseAuthServer checks the URL of an oauth2-proxy: http or https, a host,
// an optional port, and nothing else.
func ParseAuthServer(s string) (AuthServer, error) {
	refused := fmt.Errorf("%s is not the URL of an auth server such as http://auth.example.com:4180", quoted(s))
	u, err := url.Parse(s)
	if err != nil || u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" ||
		strings.Contains(s, "#") || u.Path != "" && u.Path != "/" || u.Opaque != "" {
		return AuthServer{}, refused
	}
	server := AuthServer{Scheme: u.Scheme, Host: lower(u.Hostname())}
	switch server.Scheme {
	case "http":
		server.Port = 80
	case "https":
		server.Port = 443
	default:
		return AuthServer{}, refused
	}
	if _, err := ParseIPv4(server.Host); err != nil {
		if server.Host, err = ParseDomain(server.Host); err != nil {
			return AuthServer{}, refused
		}
	}
	if port := u.Port(); port != "" {
		if server.Port, err = strconv.Atoi(port); err != nil || CheckPort(server.Port) != nil {
			return AuthServer{}, refused
		}
	} else if strings.HasSuffix(u.Host, ":") {
		return AuthServer{}, refused
	}
	return server, nil
}

// ServedAs returns the name under which a server at its scheme's own port is
// asked for, and so which service of the same nginx it may be. It is empty for
// an address and for another port.
func (a AuthServer) ServedAs() string {
	_, notAddress := netip.ParseAddr(a.Host)
	if notAddress != nil && (a.Scheme == "http" && a.Port == 80 || a.Scheme == "https" && a.Port == 443) {
		return a.Host
	}
	return ""
}

// MaxID is the largest user or group id: 4294967295 means "no change" to
// chown(2).
const MaxID = 1<<32 - 2

// CheckUnixID checks a numeric user or group id.
func CheckUnixID(id int64) error {
	if id < 0 || id > MaxID {
		return fmt.Errorf("%d is not a user or group id: 0 to %d", id, int64(MaxID))
	}
	return nil
}

// DirectoryMode returns the permission bits of a volume mode: 0755 for "rw",
// 0555 for "ro". There are no others.
func DirectoryMode(mode string) (uint32, error) {
	switch mode {
	case "rw":
		return 0o755, nil
	case "ro":
		return 0o555, nil
	}
	return 0, fmt.Errorf(`%s is not a volume mode: "rw" or "ro"`, quoted(mode))
}

// CheckHostPath checks the path of a volume directory: absolute, clean, below
// the root, at most 4095 bytes (PATH_MAX of limits.h without its NUL), no NUL.
func CheckHostPath(p string) error {
	switch {
	case p == "":
		return errors.New("the path is empty")
	case !path.IsAbs(p):
		return fmt.Errorf("%s is not an absolute path", quoted(p))
	case strings.ContainsRune(p, 0):
		return fmt.Errorf("%s contains a NUL byte", quoted(p))
	case path.Clean(p) != p:
		return fmt.Errorf("%s is not a clean path (no '..', '.', '//' or trailing '/')", quoted(p))
	case p == "/":
		return errors.New("the path is the root directory")
	case len(p) > 4095:
		return fmt.Errorf("%s is longer than 4095 bytes", quoted(p))
	}
	return nil
}
