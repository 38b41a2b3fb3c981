package auth

import (
	"fmt"

	"opensource.internal/manager/internal/store"
)

// Role is what a key or a person may do.
type Role string

// The roles. An agent may check in for its one site and nothing else; a
// viewer may read; an admin may do everything.
const (
	RoleAdmin  Role = "admin"
	RoleViewer Role = "viewer"
	RoleAgent  Role = "agent"
)

// parseRole reads the role of an API key.
func parseRole(s string) (Role, error) {
	switch role := Role(s); role {
	case RoleAdmin, RoleViewer, RoleAgent:
		return role, nil
	}
	return "", fmt.Errorf("%q is not a role: admin, viewer or agent", s)
}

// CanRead reports whether the role may read the inventory and the agents.
func (r Role) CanRead() bool { return r == RoleAdmin || r == RoleViewer }

// CanWrite reports whether the role may change anything.
func (r Role) CanWrite() bool { return r == RoleAdmin }

// Principal is somebody whose credentials were accepted.
type Principal struct {
	Role Role
	// SiteID is the one site of an agent key, else 0.
	SiteID int64
	// Hostname is the one host of an enrolled agent's key, else empty.
	Hostname string
	// Name is the key's or the person's name, for logs and pages.
	Name string
	// Kind tells persons from keys, and ID is the id of the one or the other.
	Kind store.ActorKind
	ID   int64
}
