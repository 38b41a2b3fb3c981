// Package inventory holds the rules of what administrators describe: sites,
// nodes, containers, their services and volumes, and external domains. Each
// type has a Normalise method that folds its values into the one form they are
// stored in and names every fault by the field's JSON name. The package is
// pure: rules that need other records (is the name still free?) belong to the
// store, which calls Normalise before every write.
//
// An optional text that is not set is empty.
package inventory

import (
	"maps"
	"slices"
	"strings"
)

// Site is what an administrator sets of a site.
type Site struct {
	Name           string
	InternalDomain string
	DHCPRange      string // "START,END"
	SubnetMask     string
	Gateway        string
	DNSForwarders  string // "ADDRESS,ADDRESS"
	ExternalIP     string
	VolumesRoot    string // DefaultVolumesRoot if not set
	PortRange      string // "2000-2999"; DefaultPortRange if not set
	Publishing     string // PublishAuto or PublishManual
}

// Node is a host of a site.
type Node struct {
	Name        string
	IPv4Address string
	Type        string // NodeProxmox or NodeNone
}

// Container is an LXC container on a node.
type Container struct {
	NodeID      int64
	Hostname    string
	Owner       string
	IPv4Address string
	MACAddress  string
}

// ServiceType says which fields of a Service are in use.
type ServiceType string

// The types of service.
const (
	ServiceHTTP      ServiceType = "http"
	ServiceTransport ServiceType = "transport"
	ServiceDNS       ServiceType = "dns"
)

// Service publishes a port of a container.
type Service struct {
	Type         ServiceType
	InternalPort int

	// Of an HTTP service.
	ExternalHostname string
	ExternalDomainID *int64
	BackendProtocol  string // "http" (the default) or "https"
	AuthRequired     bool

	// Of a transport service. The store allocates an external port that is 0.
	Protocol     string // "tcp" or "udp"
	ExternalPort int

	// Of a DNS service.
	RecordType string // "SRV"
	DNSName    string // "_sip._tcp"
}

// ExternalDomain is a domain under which HTTP services are published.
type ExternalDomain struct {
	Name          string
	AuthServer    string
	DefaultSiteID *int64
}

// Volume is a directory that a container mounts.
type Volume struct {
	Name      string
	MountPath string
	Mode      string // "rw" or "ro"
}

// InvalidError lists the faults of a record by the JSON names of its fields.
type InvalidError struct {
	Fields map[string]string
}

func (e *InvalidError) Error() string {
	var faults []string
	for _, field := range slices.Sorted(maps.Keys(e.Fields)) {
		faults = append(faults, field+": "+e.Fields[field])
	}
	return strings.Join(faults, "; ")
}
