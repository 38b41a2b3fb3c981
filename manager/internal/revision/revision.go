// Package revision compares published snapshots, record by record and field by
// field, and puts what differs into words. It is pure: it knows nothing but the
// contract with the agents.
package revision

// Action is what happened to a record.
type Action string

// The actions.
const (
	Added   Action = "added"
	Changed Action = "changed"
	Removed Action = "removed"
)

// Resource is a kind of record of a snapshot.
type Resource string

// The resources, in the order in which changes are listed.
const (
	Site             Resource = "site"
	Node             Resource = "node"
	Container        Resource = "container" // those with an address: no other is in a snapshot
	HTTPService      Resource = "httpService"
	TransportService Resource = "transportService"
	DNSRecord        Resource = "dnsRecord"
	Volume           Resource = "volume"
	ExternalDomain   Resource = "externalDomain"
)

// Change is a record that two snapshots do not have alike.
type Change struct {
	Action   Action   `json:"action" enum:"added,changed,removed"`
	Resource Resource `json:"resource" enum:"site,node,container,httpService,transportService,dnsRecord,volume,externalDomain"`
	ID       int64    `json:"id,omitempty" doc:"Where a snapshot has one"`
	Name     string   `json:"name" doc:"As people call the record" example:"app.example.com"`
	Former   string   `json:"formerName,omitempty" doc:"Of a record that was renamed"`
	// Fields are those that differ; of an added or a removed record all that
	// are set.
	Fields []Field `json:"fields" nullable:"false"`
}

// Field is a value that differs. From is nil if it was not set before, To if it
// is not set any more.
type Field struct {
	Name string `json:"name" example:"internalPort"`
	From any    `json:"from" doc:"Null if it was not set"`
	To   any    `json:"to" doc:"Null if it is not set any more"`
}
