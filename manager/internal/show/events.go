package show

import (
	"time"

	"opensource.internal/manager/internal/store"
)

// Event is something that happened to an agent.
type Event struct {
	ID       int64        `json:"id" example:"42"`
	At       time.Time    `json:"at"`
	SiteID   int64        `json:"siteId" example:"1"`
	AgentID  int64        `json:"agentId" doc:"The agent may be gone" example:"3"`
	Hostname string       `json:"hostname" example:"edge"`
	Kind     string       `json:"kind" example:"apply_failed"`
	Severity string       `json:"severity" enum:"info,warning,error"`
	Summary  string       `json:"summary" doc:"One line for people" example:"nginx: the new configuration was refused, the one before stays in force: nginx: [emerg] host not found in upstream"`
	Detail   store.Values `json:"detail" nullable:"true" doc:"What there is to know beyond that; depends on the kind"`
}

// EventOf shows an event.
func EventOf(e store.Event) Event {
	return Event{
		ID: e.ID, At: e.At.UTC(), SiteID: e.SiteID, AgentID: e.AgentID, Hostname: e.Hostname,
		Kind: string(e.Kind), Severity: string(e.Severity), Summary: e.Summary, Detail: e.Detail,
	}
}
