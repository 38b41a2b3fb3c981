// Package manifest is a whole site as a file: what it says (Read), what would
// have to change so that the database says the same (Plan), and how what is
// stored is written down (Export). It is pure; the store makes the changes.
//
// A manifest names records rather than numbering them, and is complete: an
// optional field that is absent is not set or has its default (but for
// publishing, which is no part of what a site is). What it says of
// a record is checked by the same rules as everywhere (package inventory and
// the store), and every fault names file, line, column and field.
package manifest

import (
	"opensource.internal/manager/internal/inventory"
)

// Version is the version of the format that this program reads and writes.
const Version = 1

// Manifest is one document of a file.
type Manifest struct {
	// Site is nil in a document that only has external domains.
	Site       *Site
	Domains    []*Domain
	Nodes      []*Node
	Containers []*Container
	record

	faults faults // that the document has by itself
}

// Site is what a manifest says of its site.
type Site struct {
	inventory.Site
	record
}

// Domain is an external domain. Its DefaultSiteID is decided by the plan.
type Domain struct {
	inventory.ExternalDomain
	DefaultSite string
	record
}

// Node is a node of the site.
type Node struct {
	inventory.Node
	record
}

// Container is a container with all that belongs to it. Its NodeID is decided
// by the plan.
type Container struct {
	inventory.Container
	Node     string
	Services []*Service
	Volumes  []*Volume
	record
}

// Service is a service of a container. Its ExternalDomainID is decided by the
// plan.
type Service struct {
	inventory.Service
	Domain string
	record
}

// Volume is a volume of a container.
type Volume struct {
	inventory.Volume
	record
}

// Place is where something stands. Lines and columns count from 1; without a
// line it is the file as a whole.
type Place struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
}

// record is where a record and its fields stand.
type record struct {
	path   string // such as containers[2], "" for the document
	at     Place
	fields map[string]Place
	known  map[string]setter // of its kind
	told   map[string]bool   // fields with a fault: further ones would only repeat it
	broken bool              // cannot be tried, even without those fields
}

// where is the place and the path of a field, those of the record if the field
// is absent.
func (r *record) where(field string) (Place, string) {
	path := field
	if r.path != "" {
		path = r.path + "." + field
	}
	if at, found := r.fields[field]; found {
		return at, path
	}
	return r.at, path
}
