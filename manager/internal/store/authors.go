package store

import (
	"fmt"
	"slices"

	"gorm.io/gorm"
)

// siteResources are the records of the audit log that a site's snapshot is made
// of.
var siteResources = []string{"site", "node", "container", "service", "volume"}

// nameAuthors notes in a revision who has changed the site since an entry of the
// audit log. Domains are those whose changes are changes of the site.
func nameAuthors(tx *gorm.DB, row *Revision, since int64, domains []ExternalDomain) error {
	row.ChangedBy, row.Audited = []string{}, since
	ids := make([]int64, 0, len(domains))
	for _, domain := range domains {
		ids = append(ids, domain.ID)
	}
	var entries []AuditEntry
	err := tx.Select("id", "actor_kind", "actor_name").
		Where("id > ? AND action NOT IN ?", since, []Action{ActionConfirmRemovals, ActionPin, ActionUnpin, ActionPublish}).
		Where("(site_id = ? AND resource IN ?) OR (resource = 'external_domain' AND resource_id IN ?)", row.SiteID, siteResources, ids).
		Order("id").Find(&entries).Error
	if err != nil {
		return fmt.Errorf("read who has changed site %d: %w", row.SiteID, err)
	}
	for _, entry := range entries {
		if name := authorName(entry.Actor); !slices.Contains(row.ChangedBy, name) {
			row.ChangedBy = append(row.ChangedBy, name)
		}
		row.Audited = entry.ID
	}
	return nil
}

// authorName tells a person from a key of the same name.
func authorName(who Actor) string {
	switch who.Kind {
	case ActorUser, ActorSystem:
		return who.Name
	}
	return fmt.Sprintf("%s (%s)", who.Name, who.Kind)
}
