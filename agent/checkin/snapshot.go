package checkin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Snapshot is the configuration of one site as the manager publishes it.
// Site is nil only in the bootstrap answer (see Bootstrap).
type Snapshot struct {
	Site  *Site `json:"site"`
	NGINX NGINX `json:"nginx"`
	// RemovalsConfirmed lets a snapshot pass the guard against mass removal.
	RemovalsConfirmed bool `json:"removalsConfirmed,omitempty"`
}

// Site holds the network settings of a site and what lives in it.
type Site struct {
	ID             int64  `json:"id"`
	Name           Text   `json:"name"`
	InternalDomain Text   `json:"internalDomain"`
	DHCPRange      Text   `json:"dhcpRange"` // "START,END"
	SubnetMask     Text   `json:"subnetMask"`
	Gateway        Text   `json:"gateway"`
	DNSForwarders  Text   `json:"dnsForwarders"` // "ADDRESS,ADDRESS"
	Nodes          []Node `json:"nodes"`
	// DNSRecords and Volumes are nil when an older manager sent none at all:
	// nil means "not managed", empty means "there are none".
	DNSRecords []DNSRecord `json:"dnsRecords"`
	Volumes    []Volume    `json:"volumes"`
}

// Node is a Proxmox host of the site.
type Node struct {
	Name        string      `json:"name"`
	IPv4Address Text        `json:"ipv4Address"`
	Containers  []Container `json:"containers"`
}

// Container is an LXC container with an address.
type Container struct {
	Hostname    string `json:"hostname"`
	IPv4Address string `json:"ipv4Address"`
	MACAddress  Text   `json:"macAddress"`
}

// DNSRecord is an SRV record: Name ("_sip._tcp") under the internal domain
// points to Port of the container named Target.
type DNSRecord struct {
	ID     int64  `json:"id,omitempty"`
	Type   string `json:"type"`
	Name   string `json:"name"`
	Target string `json:"target"`
	Port   int    `json:"port"`
}

// Volume is a directory that the agent makes sure exists. UID and GID are
// those seen by the agent's own user namespace.
type Volume struct {
	ID       int64      `json:"id"`
	HostPath string     `json:"hostPath"`
	Mode     VolumeMode `json:"mode"` // "rw" or "ro"
	UID      int64      `json:"uid"`
	GID      int64      `json:"gid"`
}

// VolumeMode is the mode of a volume as it was sent: see DirectoryMode.
type VolumeMode string

// UnmarshalJSON implements json.Unmarshaler. Permissions are often written as
// a number: such a mode is kept as its text, so that it is refused with this
// volume and not with the whole snapshot.
func (m *VolumeMode) UnmarshalJSON(data []byte) error {
	switch data[0] {
	case '"':
		return json.Unmarshal(data, (*string)(m))
	case 'n': // null
		*m = ""
	default:
		*m = VolumeMode(data)
	}
	return nil
}

// NGINX holds everything the reverse proxy serves.
type NGINX struct {
	HTTPServices    []HTTPService    `json:"httpServices"`
	StreamServices  []StreamService  `json:"streamServices"`
	ExternalDomains []ExternalDomain `json:"externalDomains"`
	HTTP3           bool             `json:"http3,omitempty"`
}

// HTTPService publishes a container's port as https://EXTERNALHOSTNAME.DOMAIN.
type HTTPService struct {
	ID               int64             `json:"id,omitempty"`
	InternalPort     int               `json:"internalPort"`
	Container        Backend           `json:"container"`
	ExternalHostname string            `json:"externalHostname"`
	BackendProtocol  string            `json:"backendProtocol"` // "http" or "https"
	AuthRequired     bool              `json:"authRequired"`
	ExternalDomain   HTTPServiceDomain `json:"externalDomain"`
}

// Backend is the container a service forwards to.
type Backend struct {
	IPv4Address string `json:"ipv4Address"`
}

// HTTPServiceDomain is the external domain of an HTTP service, with the URL of
// its oauth2-proxy if it has one.
type HTTPServiceDomain struct {
	Name       string `json:"name"`
	AuthServer Text   `json:"authServer"`
}

// StreamService forwards a TCP or UDP port.
type StreamService struct {
	ID           int64   `json:"id,omitempty"`
	InternalPort int     `json:"internalPort"`
	Container    Backend `json:"container"`
	ExternalPort int     `json:"externalPort"`
	Protocol     string  `json:"protocol"` // "tcp" or "udp"
}

// ExternalDomain is a domain the site answers for.
type ExternalDomain struct {
	Name string `json:"name"`
}

// Bootstrap is the answer to a loopback agent whose site does not exist yet.
func Bootstrap() Snapshot {
	return Snapshot{NGINX: NGINX{
		HTTPServices: []HTTPService{}, StreamServices: []StreamService{}, ExternalDomains: []ExternalDomain{},
	}}
}

// Encode returns the JSON of the snapshot and the ETag of exactly those bytes.
// It refuses a nil list: on the wire a missing list and an empty one differ.
func Encode(s Snapshot) (data []byte, etag string, err error) {
	if err := s.checkLists(); err != nil {
		return nil, "", fmt.Errorf("encode snapshot: %w", err)
	}
	if s.Site != nil && (s.Site.DNSRecords == nil || s.Site.Volumes == nil) {
		return nil, "", errors.New("encode snapshot: site.dnsRecords and site.volumes must be lists")
	}
	data, err = json.Marshal(s)
	if err != nil {
		return nil, "", fmt.Errorf("encode snapshot: %w", err)
	}
	return data, ETag(data), nil
}

// MaxObjects is how many JSON objects a snapshot may have: many times those of
// the largest site. Millions of tiny ones fit into MaxAnswer, and would take
// gigabytes of memory and minutes to render.
const MaxObjects = 250_000

// ParseSnapshot reads a snapshot as strictly as a running site deserves: one
// JSON object, `site` present (null only means bootstrap), every list that an
// empty site would have present as a list. Unknown fields are ignored. The
// values themselves are parsed where they are used.
func ParseSnapshot(data []byte) (Snapshot, error) {
	if bytes.Count(data, []byte{'{'}) > MaxObjects {
		return Snapshot{}, fmt.Errorf("parse snapshot: more than %d objects", MaxObjects)
	}
	var s Snapshot
	if err := json.Unmarshal(data, &s); err != nil {
		return Snapshot{}, fmt.Errorf("parse snapshot: %w", err)
	}
	if s.Site == nil {
		if err := siteIsThere(data); err != nil {
			return Snapshot{}, fmt.Errorf("parse snapshot: %w", err)
		}
	}
	if err := s.checkLists(); err != nil {
		return Snapshot{}, fmt.Errorf("parse snapshot: %w", err)
	}
	return s, nil
}

// siteIsThere tells a site that is null from a missing one. Decoding a second
// time for it costs nothing in the long run: every real snapshot has a site.
func siteIsThere(data []byte) error {
	var fields struct {
		Site json.RawMessage `json:"site"`
	}
	if err := json.Unmarshal(data, &fields); err != nil {
		return err
	}
	if fields.Site == nil {
		return errors.New("site is missing")
	}
	return nil
}

// checkLists names the first list that is null or missing.
func (s Snapshot) checkLists() error {
	var errs []error
	must := func(present bool, field string) {
		if !present {
			errs = append(errs, fmt.Errorf("%s must be a list", field))
		}
	}
	must(s.NGINX.HTTPServices != nil, "nginx.httpServices")
	must(s.NGINX.StreamServices != nil, "nginx.streamServices")
	must(s.NGINX.ExternalDomains != nil, "nginx.externalDomains")
	if s.Site != nil {
		must(s.Site.Nodes != nil, "site.nodes")
		for i, n := range s.Site.Nodes {
			must(n.Containers != nil, fmt.Sprintf("site.nodes[%d].containers", i))
		}
	}
	return errors.Join(errs...)
}

// unmarshalOne decodes exactly one JSON value and nothing after it.
func unmarshalOne(data []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	if err := decoder.Decode(into); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one JSON value")
	}
	return nil
}
