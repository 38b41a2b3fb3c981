package show

import (
	"time"

	"opensource.internal/manager/internal/store"
)

// APIKey is a key as it is listed: without its secret part.
type APIKey struct {
	ID         int64      `json:"id"`
	Name       string     `json:"name" example:"deploy"`
	Role       string     `json:"role" enum:"admin,viewer,agent" example:"agent"`
	SiteID     *int64     `json:"siteId"`
	Hostname   *string    `json:"hostname" doc:"The one host that may check in with the key of an enrolled agent"`
	Prefix     string     `json:"prefix"`
	CreatedAt  time.Time  `json:"createdAt"`
	CreatedBy  *string    `json:"createdBy"`
	LastUsedAt *time.Time `json:"lastUsedAt" doc:"Up to a minute old"`
	ExpiresAt  *time.Time `json:"expiresAt"`
	RevokedAt  *time.Time `json:"revokedAt"`
}

// NewAPIKey is the one answer that shows the key itself.
type NewAPIKey struct {
	APIKey
	Key string `json:"key" doc:"Shown only now"`
}

// APIKeyOf shows a key.
func APIKeyOf(k store.APIKey) APIKey {
	return APIKey{
		ID: k.ID, Name: k.Name, Role: k.Role, SiteID: k.SiteID, Hostname: Text(k.Hostname), Prefix: k.Prefix,
		CreatedAt: k.CreatedAt.UTC(), CreatedBy: Text(k.CreatedBy), LastUsedAt: UTC(k.LastUsedAt),
		ExpiresAt: UTC(k.ExpiresAt), RevokedAt: UTC(k.RevokedAt),
	}
}
