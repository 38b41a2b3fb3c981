package show

import (
	"time"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/store"
)

// Agent is what the latest check-in of an agent told, and when. Whether it is
// online is decided by the manager's clock.
type Agent struct {
	ID          int64     `json:"id"`
	SiteID      int64     `json:"siteId"`
	Pin         *Pin      `json:"pin" doc:"Set if the site's agents get another revision than the latest one"`
	Hostname    string    `json:"hostname" example:"agent"`
	Status      string    `json:"status" enum:"online,late,offline"`
	FirstSeenAt time.Time `json:"firstSeenAt"`
	LastSeenAt  time.Time `json:"lastSeenAt"`
	ChangedAt   time.Time `json:"changedAt" doc:"When it last told, or was given, something new"`
	PeerAddress *string   `json:"peerAddress" doc:"Where the check-in came from: behind a router another than ipv4Address"`
	ClockSkewMS *int64    `json:"clockSkewMs" doc:"How far its clock is ahead of the manager's"`
	Note        *string   `json:"note" doc:"Why there is nothing of its report below; null if all is well"`

	IPv4Address  *string                          `json:"ipv4Address" example:"192.0.2.5" doc:"What the agent tells of its host"`
	Services     map[string]checkin.ServiceReport `json:"services"`
	Agent        *checkin.AgentInfo               `json:"agent"`
	Host         *checkin.HostInfo                `json:"host"`
	Running      *checkin.Running                 `json:"running"`
	Certificates map[string]checkin.Certificate   `json:"certificates"`
	Guard        *checkin.Guard                   `json:"guard"`
	Probes       map[string]checkin.Probe         `json:"probes" doc:"What the site's own probes found, by public name"`
	Drift        store.KeptDrift                  `json:"drift" doc:"Files that were edited on the host, by service: the last time within a day"`
}

// AgentOf shows agents as of a moment, with the pins of their sites.
func AgentOf(now time.Time, pins map[int64]*Pin) func(store.Agent) Agent {
	return func(a store.Agent) Agent {
		shown := Agent{
			ID: a.ID, SiteID: a.SiteID, Pin: pins[a.SiteID], Hostname: a.Hostname, Status: string(a.Presence(now)),
			FirstSeenAt: a.FirstSeenAt.UTC(), LastSeenAt: a.LastSeenAt.UTC(), ChangedAt: a.ChangedAt.UTC(),
			PeerAddress: Text(a.PeerAddress), ClockSkewMS: a.ClockSkewMS,
			IPv4Address: Text(string(a.Report.IPv4Address)), Services: a.Report.Services,
			Agent: a.Report.Agent, Host: a.Report.Host, Running: a.Report.Running,
			Certificates: a.Report.Certificates, Guard: a.Report.Guard, Probes: a.Report.Probes,
			Drift: a.Drift.Recent(now),
		}
		if a.Report.Fault != nil {
			shown.Note = Text("its last report could not be read")
		}
		if shown.Services == nil {
			shown.Services = map[string]checkin.ServiceReport{}
		}
		if shown.Certificates == nil {
			shown.Certificates = map[string]checkin.Certificate{}
		}
		if shown.Probes == nil {
			shown.Probes = map[string]checkin.Probe{}
		}
		return shown
	}
}
