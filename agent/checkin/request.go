package checkin

import "time"

// Request is the body of POST /api/v1/agents: one check-in of one agent.
// Older agents send the fields up to Volumes; the rest is optional.
type Request struct {
	SiteID      int64  `json:"siteId"`
	Hostname    string `json:"hostname"`
	CurrentTime int64  `json:"currentTime"` // the agent's clock, epoch seconds
	IPv4Address Text   `json:"ipv4Address"`

	// Services holds one report per managed service, by name.
	Services map[string]ServiceReport `json:"services"`
	// Volumes holds one result per volume, by decimal volume id. It is
	// absent when there is nothing to tell.
	Volumes map[string]VolumeReport `json:"volumes,omitempty"`

	Agent        *AgentInfo             `json:"agent,omitempty"`
	Host         *HostInfo              `json:"host,omitempty"`
	Running      *Running               `json:"running,omitempty"`
	Certificates map[string]Certificate `json:"certificates,omitempty"`
	Guard        *Guard                 `json:"guard,omitempty"`
	// Probes holds what the site's own probes found, by the public name of an
	// HTTP service. A service that was not probed is not in it.
	Probes map[string]Probe `json:"probes,omitempty"`
}

// LastApply says how the latest apply of a service ended.
type LastApply string

// The values of LastApply on the wire.
const (
	ApplySuccess LastApply = "success"
	ApplyFailure LastApply = "failure"
	ApplyUnknown LastApply = "unknown"
)

// Outcome says what an apply did to a service.
type Outcome string

// The values of Outcome on the wire.
const (
	OutcomeUnchanged  Outcome = "unchanged"   // nothing differed
	OutcomeApplied    Outcome = "applied"     // the new configuration is live
	OutcomeSkipped    Outcome = "skipped"     // nothing to manage; the message says why
	OutcomeRejected   Outcome = "rejected"    // refused before any live file was touched
	OutcomeRolledBack Outcome = "rolled_back" // the previous configuration is live again
	OutcomeStuck      Outcome = "stuck"       // the rollback failed too: needs a person
	OutcomeHeld       Outcome = "held"        // suspended by an administrator
)

// Failed reports whether what was there before an apply is there again, or
// still.
func (o Outcome) Failed() bool {
	return o == OutcomeRejected || o == OutcomeRolledBack || o == OutcomeStuck
}

// StateUnknown is the service state of an agent that could not ask systemd.
// All other states are systemd's ActiveState (org.freedesktop.systemd1(5)).
const StateUnknown = "unknown"

// ServiceReport is what an agent tells about one managed service.
type ServiceReport struct {
	State     string    `json:"state"`
	LastApply LastApply `json:"lastApply"`
	// Message holds the validator's or systemd's own words, cleaned by
	// CleanMessage.
	Message      string            `json:"message,omitempty"`
	Outcome      Outcome           `json:"outcome,omitempty"`
	ReceivedETag string            `json:"receivedEtag,omitempty"`
	RunningETag  string            `json:"runningEtag,omitempty"`
	AppliedAt    *time.Time        `json:"appliedAt,omitempty"`
	Quarantined  []QuarantinedItem `json:"quarantined,omitempty"`
	Drift        []Drift           `json:"drift,omitempty"`
	Hold         *Hold             `json:"hold,omitempty"`
}

// Failing reports whether a service does not run what it was last told to run.
// A failure that only stands for records that were left out is none: the rest is
// in force. It goes by the outcome; where that says nothing, as from older
// agents and while a service is held, by the last apply.
func (s ServiceReport) Failing() bool {
	if s.Outcome.known() {
		return s.Outcome.Failed()
	}
	return s.LastApply == ApplyFailure && len(s.Quarantined) == 0
}

// Working reports whether it is known that a service is not failing.
func (s ServiceReport) Working() bool {
	known := s.Outcome.known() || s.LastApply == ApplySuccess || s.LastApply == ApplyFailure
	return known && !s.Failing()
}

// TellsTags reports whether an agent says which snapshots its services have. Those
// of the earlier generation do not.
func (r Request) TellsTags() bool {
	for _, service := range r.Services {
		if service.ReceivedETag != "" || service.RunningETag != "" {
			return true
		}
	}
	return false
}

// NoNetwork is the message of dnsmasq for a site that has none of the fields it
// would be managed by.
const NoNetwork = "dnsmasq is not managed: DNS and DHCP are not set up for the site"

// Unwanted reports whether a service is left alone because the site wants nothing
// of it.
func (s ServiceReport) Unwanted() bool { return s.Outcome == OutcomeSkipped && s.Message == NoNetwork }

// known reports whether an outcome says by itself whether an apply failed.
func (o Outcome) known() bool {
	return o.Failed() || o == OutcomeApplied || o == OutcomeUnchanged || o == OutcomeSkipped
}

// The kinds of record that can be left out of a configuration.
const (
	KindHTTP        = "http"
	KindStream      = "stream"
	KindDomain      = "domain"
	KindReservation = "reservation"
	KindHost        = "host"
	KindSRV         = "srv"
)

// QuarantinedItem is a record that was left out so that the rest could go
// live, and why. ID is the record's id where the manager sent one.
type QuarantinedItem struct {
	Kind         string `json:"kind"`
	ID           int64  `json:"id,omitempty"`
	Name         string `json:"name"`
	Reason       string `json:"reason"`
	KeptPrevious bool   `json:"keptPrevious"`
}

// Drift is a managed file that somebody else changed, with a unified diff of
// at most MaxDiff bytes.
type Drift struct {
	Path string `json:"path"`
	Diff string `json:"diff"`
}

// Hold says until when apply is suspended for a service, why and by whom.
type Hold struct {
	Until  time.Time `json:"until"`
	Reason string    `json:"reason"`
	By     string    `json:"by"`
}

// VolumeReport is the result of ensuring one volume directory.
type VolumeReport struct {
	Applied bool   `json:"applied"`
	Message string `json:"message,omitempty"`
}

// AgentInfo describes the agent program itself.
type AgentInfo struct {
	Version   string `json:"version"`
	MachineID string `json:"machineId,omitempty"` // hashed, never the raw one
	// Templates names the templates an administrator has overridden.
	Templates []string  `json:"templates"`
	Pass      *PassInfo `json:"pass,omitempty"`
}

// PassInfo describes the pass that sends the check-in.
type PassInfo struct {
	StartedAt  time.Time `json:"startedAt"`
	DurationMS int64     `json:"durationMs"`
	Rounds     int       `json:"rounds"`
}

// HostInfo is what the agent found out about its host. A nil pointer is a
// tool that is not installed.
type HostInfo struct {
	OS            string       `json:"os"`
	NGINX         *NGINXInfo   `json:"nginx,omitempty"`
	DNSMasq       *DNSMasqInfo `json:"dnsmasq,omitempty"`
	IPv6          bool         `json:"ipv6"`
	UserNamespace bool         `json:"userNamespace"`
	DiskFreeBytes int64        `json:"diskFreeBytes"`
}

// NGINXInfo is the installed nginx: its version ("1.26.3") and the modules
// that decide what can be rendered for it.
type NGINXInfo struct {
	Version string `json:"version"`
	HTTP3   bool   `json:"http3"`
	Stream  bool   `json:"stream"`
}

// DNSMasqInfo is the installed dnsmasq.
type DNSMasqInfo struct {
	Version string `json:"version"`
}

// Running names the snapshot that is in force as a whole, and since when.
type Running struct {
	ETag  string    `json:"etag"`
	Since time.Time `json:"since"`
}

// CertificateState is what the agent thinks of a domain's certificate.
type CertificateState string

// The values of CertificateState on the wire.
const (
	CertificateOK         CertificateState = "ok"
	CertificateExpiring   CertificateState = "expiring"
	CertificateExpired    CertificateState = "expired"
	CertificateMissing    CertificateState = "missing"
	CertificateMismatch   CertificateState = "mismatch"
	CertificateUnreadable CertificateState = "unreadable"
)

// Certificate reports on the certificate of one external domain.
type Certificate struct {
	State    CertificateState `json:"state"`
	NotAfter *time.Time       `json:"notAfter,omitempty"`
	// Fallback is true when the self-signed certificate is served instead.
	Fallback bool `json:"fallback"`
}

// StateAt is the state at a moment: a report can be older than the end of a
// certificate that was good when it was made.
func (c Certificate) StateAt(now time.Time) CertificateState {
	good := c.State == CertificateOK || c.State == CertificateExpiring
	if good && c.NotAfter != nil && !now.Before(*c.NotAfter) {
		return CertificateExpired
	}
	return c.State
}

// Guard says that a snapshot is held back because it removes too much: of
// Total records of a kind in force, Removed are not in it any more.
type Guard struct {
	Removed int `json:"removed"`
	Total   int `json:"total"`
	// Kind says of what: GuardServices or GuardReservations.
	Kind GuardKind `json:"kind,omitempty"`
	// ETag is that of the snapshot that is held back.
	ETag string `json:"etag,omitempty"`
}

// GuardKind is what the guard counts together.
type GuardKind string

// The values of GuardKind on the wire.
const (
	GuardServices     GuardKind = "services"     // HTTP and TCP/UDP services
	GuardReservations GuardKind = "reservations" // DHCP reservations
)

// ProbeHop is a hop on the way of a request to an HTTP service.
type ProbeHop string

// The values of ProbeHop on the wire, in the order of the way.
const (
	HopNone        ProbeHop = ""            // none fails: all is well
	HopDNS         ProbeHop = "dns"         // the name has no address
	HopListener    ProbeHop = "listener"    // nothing listens there
	HopCertificate ProbeHop = "certificate" // it is not for the name, not in its time, or of nobody the host trusts
	HopBackend     ProbeHop = "backend"     // the container does not take the connection
)

// Probe is the result of probing one HTTP service. It never changes what is
// applied.
type Probe struct {
	Hop ProbeHop `json:"hop"` // the first one that fails
	// Message says how, in at most MaxProbeMessage bytes.
	Message string `json:"message,omitempty"`
}
