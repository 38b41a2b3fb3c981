package api

import (
	"context"
	"time"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/store"
)

// agent is what the latest check-in of an agent told, and when. Whether it is
// online is decided by the manager's clock.
type agent struct {
	ID          int64     `json:"id"`
	SiteID      int64     `json:"siteId"`
	Pin         *pin      `json:"pin" doc:"Set if the site's agents get another revision than the latest one"`
	Hostname    string    `json:"hostname" example:"agent"`
	Status      string    `json:"status" enum:"online,late,offline"`
	FirstSeenAt time.Time `json:"firstSeenAt"`
	LastSeenAt  time.Time `json:"lastSeenAt"`
	ChangedAt   time.Time `json:"changedAt" doc:"When it last told something new"`
	PeerAddress *string   `json:"peerAddress" doc:"Where the check-in came from"`
	ClockSkewMS *int64    `json:"clockSkewMs" doc:"How far its clock is ahead of the manager's"`
	Note        *string   `json:"note" doc:"Why there is nothing of its report below; null if all is well"`

	IPv4Address  *string                          `json:"ipv4Address" example:"192.0.2.5"`
	Services     map[string]checkin.ServiceReport `json:"services"`
	Agent        *checkin.AgentInfo               `json:"agent"`
	Host         *checkin.HostInfo                `json:"host"`
	Running      *checkin.Running                 `json:"running"`
	Certificates map[string]checkin.Certificate   `json:"certificates"`
	Guard        *checkin.Guard                   `json:"guard"`
	Probes       map[string]checkin.Probe         `json:"probes" doc:"What the site's own probes found, by public name"`
	Drift        store.KeptDrift                  `json:"drift" doc:"Files that were edited on the host, by service: the last time within a day"`
}

func showAgent(now time.Time, pins map[int64]*pin) func(store.Agent) agent {
	return func(a store.Agent) agent {
		shown := agent{
			ID: a.ID, SiteID: a.SiteID, Pin: pins[a.SiteID], Hostname: a.Hostname, Status: string(a.Presence(now)),
			FirstSeenAt: a.FirstSeenAt.UTC(), LastSeenAt: a.LastSeenAt.UTC(), ChangedAt: a.ChangedAt.UTC(),
			PeerAddress: text(a.PeerAddress), ClockSkewMS: a.ClockSkewMS,
			IPv4Address: text(string(a.Report.IPv4Address)), Services: a.Report.Services,
			Agent: a.Report.Agent, Host: a.Report.Host, Running: a.Report.Running,
			Certificates: a.Report.Certificates, Guard: a.Report.Guard, Probes: a.Report.Probes,
			Drift: a.Drift.Recent(now),
		}
		if a.Report.Fault != nil {
			shown.Note = text("its last report could not be read")
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

type listAgents struct {
	Paging
	SiteID   int64  `query:"siteId" minimum:"1"`
	Hostname string `query:"hostname"`
	Status   string `query:"status" enum:"online,late,offline" doc:"By what is stored, which may lag by five seconds"`
}

func (a *API) listAgents(ctx context.Context, in *listAgents) (*page[agent], error) {
	filter := store.AgentFilter{SiteID: in.SiteID, Hostname: in.Hostname, Presence: store.Presence(in.Status)}
	rows, total, err := a.store.ListAgents(ctx, filter, in.options())
	if err != nil {
		return nil, err
	}
	pins, err := a.pins(ctx)
	if err != nil {
		return nil, err
	}
	return respondPage(rows, total, in.Paging, showAgent(time.Now(), pins)), nil
}

func (a *API) getAgent(ctx context.Context, in *ByID) (*answer[agent], error) {
	row, err := a.store.GetAgent(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	pins, err := a.pins(ctx)
	if err != nil {
		return nil, err
	}
	return respond(showAgent(time.Now(), pins)(row)), nil
}

func (a *API) deleteAgent(ctx context.Context, in *ByID) (*empty, error) {
	return nil, a.store.DeleteAgent(ctx, in.ID)
}
