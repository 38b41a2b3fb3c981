package render

import (
	"errors"
	"fmt"
	"math/bits"
	"net/netip"

	"opensource.internal/agent/checkin"
)

// nginxView is the data of nginx/nginx.conf.tmpl. Every value in it has been
// parsed; nothing of a snapshot gets into a template as it came.
type nginxView struct {
	*output
	Paths        Paths
	RevisionPath string
	Revision     string
	PagesURI     string // of the error pages, below each host
	AuthURI      string // of the question to the auth server, below each host

	IPv6           bool
	HTTP2Directive bool // "http2 on", else the parameter of listen
	HTTP3          bool
	Hash           nameHash
	Resolvers      []string
	DocsRoot       string

	ManagerUpstream  string // 127.0.0.1:PORT, or empty
	ManagerByDefault bool   // the default server proxies the manager
	DefaultServer    server
	Manager          *server

	HTTPServices   []httpService
	Domains        []externalDomain
	StreamServices []streamService
	HasAuth        bool // some service asks an auth server

	certificates map[string]bool // by domain: those in use
}

func (v *nginxView) writeTo(o *output) { v.output = o }

// server is what every TLS server of nginx has. All of nginxView is in reach
// of its templates.
type server struct {
	*nginxView
	Record      Record
	Default     bool
	Name        string
	Certificate certificate
}

// certificate is the pair a server shows. Real is false for the snakeoil one.
type certificate struct {
	Cert, Key string
	Real      bool
}

// httpService is one host name that is proxied to a container.
type httpService struct {
	server
	Upstream     string // http://ADDRESS:PORT
	AuthRequired bool
	Auth         *authServer // nil: the domain has none
	source       checkin.HTTPService
	position
}

// authServer is the oauth2-proxy that a service asks.
type authServer struct {
	URL  string // SCHEME://HOST:PORT
	Name string // HOST
	// Host is what it gets as Host header. oauth2-proxy itself wants the name
	// of the service; on a default port there is a web server in front that
	// tells its hosts apart by name, and that must see its own.
	Host string
}

// externalDomain answers for the names of a domain that no service has.
type externalDomain struct {
	server
	Bare bool // the bare domain is free too
}

// streamService is one forwarded port.
type streamService struct {
	*nginxView
	Record        Record
	Port          int
	UDP           bool
	ListenOptions string
	Upstream      string // ADDRESS:PORT
	source        checkin.StreamService
	position
}

// nameHash sizes nginx's hash table of server names.
type nameHash struct{ BucketSize, MaxSize int }

// The first versions of nginx that can do something.
var (
	versionHTTP3          = Version{1, 25, 0}
	versionHTTP2Directive = Version{1, 25, 1}
)

func (v Version) atLeast(other Version) bool {
	for i := range v {
		if v[i] != other[i] {
			return v[i] > other[i]
		}
	}
	return true
}

func newNGINXView(s checkin.Snapshot, f Facts) (*nginxView, []checkin.QuarantinedItem, error) {
	paths, errPaths := f.Paths.complete()
	v := &nginxView{
		Paths:          paths,
		RevisionPath:   RevisionPath,
		Revision:       blankRevision,
		PagesURI:       "/.opensource-agent/pages/",
		AuthURI:        "/.opensource-agent/auth",
		IPv6:           f.IPv6,
		HTTP2Directive: f.NGINX.Version.atLeast(versionHTTP2Directive),
		HTTP3:          s.NGINX.HTTP3 && f.NGINX.HTTP3 && f.NGINX.Version.atLeast(versionHTTP3),
		Resolvers:      resolverList(f),
		certificates:   map[string]bool{},
	}
	v.DefaultServer = server{nginxView: v, Default: true}
	errManager := v.addManager(f)
	errDocs := v.addDocs(f.DocsRoot)
	if err := errors.Join(errPaths, errManager, errDocs); err != nil {
		return nil, nil, err
	}
	v.ManagerByDefault = v.ManagerUpstream != "" && len(s.NGINX.HTTPServices) == 0

	left := newLeftOut(f)
	names := claims[string]{}
	if v.Manager != nil {
		names[v.Manager.Name] = "the manager's dashboard (MANAGER_HOSTNAME)"
	}
	before := f.nginxBefore(s)
	v.addHTTPServices(s.NGINX.HTTPServices, before.HTTPServices, f, names, left)
	v.addDomains(s.NGINX.ExternalDomains, f, names, left)
	v.addStreamServices(s.NGINX.StreamServices, before.StreamServices, f, left)
	left.keepPrevious()
	inOrder(v.HTTPServices)
	inOrder(v.StreamServices)
	v.Hash = sizeNameHash(names, len(v.Domains))
	return v, left.items, nil
}

// inForce is the snapshot with only what is rendered of it.
func (v *nginxView) inForce(s checkin.Snapshot) checkin.Snapshot {
	s.NGINX.HTTPServices = make([]checkin.HTTPService, len(v.HTTPServices))
	for i, service := range v.HTTPServices {
		s.NGINX.HTTPServices[i] = service.source
	}
	s.NGINX.StreamServices = make([]checkin.StreamService, len(v.StreamServices))
	for i, service := range v.StreamServices {
		s.NGINX.StreamServices[i] = service.source
	}
	s.NGINX.ExternalDomains = make([]checkin.ExternalDomain, len(v.Domains))
	for i, domain := range v.Domains {
		s.NGINX.ExternalDomains[i] = checkin.ExternalDomain{Name: domain.Name}
	}
	return s
}

// addManager adds what keeps a manager on this host in reach.
func (v *nginxView) addManager(f Facts) error {
	if f.ManagerUpstream == "" {
		return nil
	}
	upstream, err := netip.ParseAddrPort(f.ManagerUpstream)
	if err != nil || !upstream.Addr().IsLoopback() {
		return fmt.Errorf("MANAGER_URL: %q is not a loopback address and port", f.ManagerUpstream)
	}
	v.ManagerUpstream = upstream.String()
	if f.ManagerHostname == "" {
		return nil
	}
	name, err := checkin.ParseDomain(f.ManagerHostname)
	if err != nil {
		return field("MANAGER_HOSTNAME", err)
	}
	v.Manager = &server{nginxView: v, Name: name, Certificate: v.certificateOfHost(name, f)}
	return nil
}

func (v *nginxView) addDocs(root string) error {
	if root == "" {
		return nil
	}
	v.DocsRoot = root
	return field("the documentation folder", checkConfPath(root))
}

// resolverList writes the host's name servers as nginx's resolver wants them.
func resolverList(f Facts) []string {
	var list []string
	for _, addr := range f.Resolvers {
		addr = addr.Unmap()
		switch {
		case addr.Is4():
			list = append(list, addr.String())
		case addr.Is6() && addr.Zone() == "" && f.IPv6:
			list = append(list, "["+addr.String()+"]")
		}
	}
	return list
}

// sizeNameHash sizes the table so that its longest name fits a bucket and nginx
// finds a size without warning of a poor one. An element of the table takes
// a pointer, the length in two bytes and the name, all padded to the size of
// a pointer, and a bucket one pointer more (NGX_HASH_ELT_SIZE in ngx_hash.c).
// Both sizes grow in powers of two, so that a new name seldom changes them.
func sizeNameHash(names claims[string], wildcards int) nameHash {
	longest := 0
	for name := range names {
		longest = max(longest, len(name))
	}
	const pointer = 8
	element := pointer + (longest+2+pointer-1)/pointer*pointer
	return nameHash{
		BucketSize: max(128, powerOfTwo(2*element+pointer)),
		MaxSize:    max(1024, powerOfTwo(4*(len(names)+wildcards))),
	}
}

// powerOfTwo returns the smallest power of two that is not below n.
func powerOfTwo(n int) int { return 1 << bits.Len(uint(max(n, 1)-1)) }

// describe names a record for an error, by its id if it has one.
func describe(what string, id int64, target string) string {
	if id == 0 {
		return what + " to " + target
	}
	return fmt.Sprintf("%s %d to %s", what, id, target)
}
