package show

import (
	"time"

	"opensource.internal/manager/internal/notify"
	"opensource.internal/manager/internal/store"
)

// NotificationTarget is a target without its URL, which is a secret.
type NotificationTarget struct {
	ID        int64      `json:"id"`
	Name      string     `json:"name" example:"operators"`
	Service   string     `json:"service" doc:"The scheme of its URL; the rest is not shown" example:"ntfy"`
	Kinds     []string   `json:"kinds" nullable:"false" doc:"What is told; everything if empty" example:"[\"offline\"]"`
	SiteIDs   []int64    `json:"siteIds" nullable:"false" doc:"Of which sites; of all if empty" example:"[1]"`
	Severity  string     `json:"severity" enum:"warning,error" doc:"The least that is told"`
	Enabled   bool       `json:"enabled" example:"true"`
	URLSetAt  time.Time  `json:"urlSetAt"`
	SentAt    *time.Time `json:"sentAt" doc:"The last message that was delivered"`
	Failures  int        `json:"failures" doc:"Deliveries that failed in a row" example:"0"`
	FailedAt  *time.Time `json:"failedAt"`
	LastError *string    `json:"lastError" doc:"Why the last delivery failed; null if it did not"`
	CreatedAt time.Time  `json:"createdAt"`
	UpdatedAt time.Time  `json:"updatedAt"`
}

// NotificationTargetOf shows a target.
func NotificationTargetOf(t store.NotificationTarget) NotificationTarget {
	return NotificationTarget{
		ID: t.ID, Name: t.Name, Service: notify.ServiceName(t.URL), Kinds: append([]string{}, t.Kinds...), SiteIDs: append([]int64{}, t.SiteIDs...),
		Severity: string(t.Severity), Enabled: t.Enabled, URLSetAt: t.URLSetAt.UTC(), SentAt: UTC(t.SentAt), Failures: t.Failures,
		FailedAt: UTC(t.FailedAt), LastError: Text(t.LastError), CreatedAt: t.CreatedAt.UTC(), UpdatedAt: t.UpdatedAt.UTC(),
	}
}

// NotificationSilence is a site of which nobody is told, and until when.
type NotificationSilence struct {
	ID        int64     `json:"id"`
	SiteID    int64     `json:"siteId"`
	Until     time.Time `json:"until"`
	Reason    *string   `json:"reason" example:"moving house"`
	CreatedBy *string   `json:"createdBy"`
	CreatedAt time.Time `json:"createdAt"`
	UpdatedAt time.Time `json:"updatedAt"`
}

// NotificationSilenceOf shows a silence.
func NotificationSilenceOf(n store.NotificationSilence) NotificationSilence {
	return NotificationSilence{
		ID: n.ID, SiteID: n.SiteID, Until: n.Until.UTC(), Reason: Text(n.Reason), CreatedBy: Text(n.CreatedBy),
		CreatedAt: n.CreatedAt.UTC(), UpdatedAt: n.UpdatedAt.UTC(),
	}
}
