package show

import (
	"time"

	"opensource.internal/manager/internal/store"
)

// AuditEntry is something that somebody did.
type AuditEntry struct {
	ID         int64        `json:"id" example:"17"`
	At         time.Time    `json:"at"`
	Actor      AuditActor   `json:"actor"`
	Action     string       `json:"action" doc:"create, update, delete, or a better word where there is one" example:"update"`
	Resource   string       `json:"resource" doc:"The kind of record" example:"container"`
	ResourceID *int64       `json:"resourceId" doc:"The record may be gone" example:"4"`
	Name       *string      `json:"name" doc:"The record's name" example:"web"`
	SiteID     *int64       `json:"siteId" example:"1"`
	Before     store.Values `json:"before" nullable:"true" doc:"The values that changed, as they were; of a deleted record all. Never a secret"`
	After      store.Values `json:"after" nullable:"true" doc:"The values that changed, as they are; of a new record all that are set"`
	Times      int64        `json:"times" doc:"More than 1 only for failed sign-ins: those of one address to one account within a minute are one entry" example:"1"`
}

// AuditActor is who did it.
type AuditActor struct {
	Kind      string  `json:"kind" enum:"user,key,command,agent,system,unknown"`
	ID        *int64  `json:"id" doc:"Of the user or the API key" example:"2"`
	Name      *string `json:"name" example:"ada"`
	Address   *string `json:"address" doc:"Where the request came from; null on the command line" example:"192.0.2.7"`
	RequestID *string `json:"requestId" doc:"The request's id in the manager's log" example:"5LPXSGKA-2f"`
}

// AuditOf shows an entry.
func AuditOf(e store.AuditEntry) AuditEntry {
	return AuditEntry{
		ID: e.ID, At: e.At.UTC(), Action: string(e.Action), Resource: e.Resource, ResourceID: ID(e.ResourceID), Name: Text(e.Name),
		SiteID: ID(e.SiteID), Before: e.Before, After: e.After, Times: e.Times,
		Actor: AuditActor{
			Kind: string(e.Actor.Kind), ID: ID(e.Actor.ID), Name: Text(e.Actor.Name),
			Address: Text(e.Actor.Address), RequestID: Text(e.Actor.RequestID),
		},
	}
}
