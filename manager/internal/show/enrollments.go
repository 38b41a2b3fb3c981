package show

import (
	"time"

	"opensource.internal/manager/internal/store"
)

// Enrollment is a token as it is listed: without the token.
type Enrollment struct {
	ID        int64      `json:"id"`
	SiteID    int64      `json:"siteId"`
	Hostname  *string    `json:"hostname" doc:"The only host that may use the token; null for any"`
	Prefix    string     `json:"prefix"`
	CreatedAt time.Time  `json:"createdAt"`
	CreatedBy *string    `json:"createdBy"`
	ExpiresAt time.Time  `json:"expiresAt"`
	RevokedAt *time.Time `json:"revokedAt"`
	UsedAt    *time.Time `json:"usedAt"`
	UsedBy    *string    `json:"usedBy" doc:"The host that used the token"`
	APIKeyID  *int64     `json:"apiKeyId" doc:"The key it was turned into"`
}

// NewEnrollment is the one answer that shows the token itself.
type NewEnrollment struct {
	Enrollment
	Token   string  `json:"token" doc:"Shown only now"`
	Command *string `json:"command" doc:"What to type on the host, beside the agent's package; null without PUBLIC_URL" example:"sudo opensource-agent enroll --manager 'https://manager.example.com' --token ost_…"`
	Note    *string `json:"note" doc:"Why there is no command, and what to set; null if there is one"`
}

// EnrollmentOf shows a token.
func EnrollmentOf(e store.Enrollment) Enrollment {
	return Enrollment{
		ID: e.ID, SiteID: e.SiteID, Hostname: Text(e.Hostname), Prefix: e.Prefix, CreatedAt: e.CreatedAt.UTC(), CreatedBy: Text(e.CreatedBy),
		ExpiresAt: e.ExpiresAt.UTC(), RevokedAt: UTC(e.RevokedAt), UsedAt: UTC(e.UsedAt), UsedBy: Text(e.UsedBy), APIKeyID: e.APIKeyID,
	}
}
