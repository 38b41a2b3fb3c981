package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"gorm.io/gorm"

	"opensource.internal/agent/checkin"
)

// siteResources are the records of the audit log that a site's snapshot is made
// of, next to external domains.
var siteResources = []string{"site", "node", "container", "service", "volume"}

// noChanges are what is done to a site without changing what is in it.
var noChanges = []Action{ActionConfirmRemovals, ActionPin, ActionUnpin, ActionPublish, ActionSetBack}

// deed is the first change of a site by somebody, at an entry of the audit log.
type deed struct {
	Entry     int64
	ActorKind ActorKind
	ActorName string
}

// nameAuthors notes in a revision who has changed the site since the revision
// before, which held was, and domains are those it has by now.
func nameAuthors(tx *gorm.DB, row *Revision, since int64, was checkin.Snapshot, domains []ExternalDomain) error {
	if err := keepGathered(tx); err != nil {
		return err
	}
	ofRecords, err := deedsInSite(tx, row.SiteID, since)
	if err != nil {
		return err
	}
	ofDomains, err := deedsOnDomains(tx, row.SiteID, since, was, domains)
	if err != nil {
		return err
	}
	deeds := append(ofRecords, ofDomains...)
	slices.SortFunc(deeds, func(a, b deed) int { return cmp.Compare(a.Entry, b.Entry) })
	row.ChangedBy = []string{}
	for _, d := range deeds {
		if name := d.author(); !slices.Contains(row.ChangedBy, name) {
			row.ChangedBy = append(row.ChangedBy, name)
		}
	}
	// All that was done until now goes with this revision, or with none.
	if err := tx.Model(&AuditEntry{}).Select("COALESCE(MAX(id), 0)").Scan(&row.Audited).Error; err != nil {
		return fmt.Errorf("read the end of the audit log: %w", err)
	}
	row.Audited = max(row.Audited, since)
	return nil
}

// deedsInSite are the first ones of everybody: a site may have had thousands of
// changes.
func deedsInSite(tx *gorm.DB, siteID, since int64) ([]deed, error) {
	var deeds []deed
	err := tx.Model(&AuditEntry{}).Select("MIN(id) AS entry", "actor_kind", "actor_name").
		Where("id > ? AND site_id = ? AND resource IN ? AND action NOT IN ?", since, siteID, siteResources, noChanges).
		Group("actor_kind, actor_name").Scan(&deeds).Error
	if err != nil {
		return nil, fmt.Errorf("read who has changed site %d: %w", siteID, err)
	}
	return deeds, nil
}

// deedsOnDomains are the changes of external domains that the site had in the
// revision before, by names, or has by now.
func deedsOnDomains(tx *gorm.DB, siteID, since int64, was checkin.Snapshot, domains []ExternalDomain) ([]deed, error) {
	var entries []AuditEntry
	err := tx.Where("id > ? AND resource = ?", since, ExternalDomain{}.subject().Resource).Order("id").Find(&entries).Error
	if err != nil {
		return nil, fmt.Errorf("read who has changed external domains: %w", err)
	}
	names, ids := map[string]bool{}, map[int64]bool{}
	for _, domain := range was.NGINX.ExternalDomains {
		names[domain.Name] = true
	}
	for _, domain := range domains {
		ids[domain.ID] = true
	}
	var deeds []deed
	for _, entry := range entries {
		ids[entry.ResourceID] = ids[entry.ResourceID] || names[entry.formerName()]
		if ids[entry.ResourceID] && !entry.onlyMoves(siteID) {
			deeds = append(deeds, deed{entry.ID, entry.Actor.Kind, entry.Actor.Name})
		}
	}
	return deeds, nil
}

// formerName is the name that the record had before.
func (e AuditEntry) formerName() string {
	if name, renamed := e.Before["name"].(string); renamed {
		return name
	}
	return e.Name
}

// onlyMoves says that an external domain got another default site, and that it
// was the default of a site neither before nor afterwards.
func (e AuditEntry) onlyMoves(siteID int64) bool {
	const field = "defaultSiteId"
	if e.Action != ActionUpdate || len(e.After) != 1 {
		return false
	}
	now, moved := e.After[field]
	// Numbers are floats in JSON that is read without a type.
	return moved && now != float64(siteID) && e.Before[field] != float64(siteID)
}

// author tells a person from a key of the same name.
func (d deed) author() string {
	switch d.ActorKind {
	case ActorUser, ActorSystem:
		return d.ActorName
	}
	return fmt.Sprintf("%s (%s)", d.ActorName, d.ActorKind)
}

// LastChange is by whom a record was changed last, and the revision that was made
// then: agents got the change with it.
type LastChange struct {
	By       string
	Revision int64 // its number
}

// LastChangeOf returns the last change of a record that a site has, nil if it is in
// no revision or not known any more.
func (s *Store) LastChangeOf(ctx context.Context, siteID int64, of Ref) (*LastChange, error) {
	var entries []AuditEntry
	err := s.reader(ctx).Where("resource = ? AND resource_id = ? AND action IN ?", of.Resource, of.ID, []Action{ActionCreate, ActionUpdate}).
		Order("id DESC").Limit(1).Find(&entries).Error
	if err != nil {
		return nil, fmt.Errorf("read who changed %s %d: %w", of.Resource, of.ID, err)
	}
	if len(entries) == 0 {
		return nil, nil
	}
	var numbers []int64
	err = s.reader(ctx).Model(&Revision{}).Where("site_id = ? AND audited >= ?", siteID, entries[0].ID).Order("number").Limit(1).Pluck("number", &numbers).Error
	if err != nil {
		return nil, fmt.Errorf("read the revision of the last change of %s %d: %w", of.Resource, of.ID, err)
	}
	if len(numbers) == 0 {
		return nil, nil
	}
	who := deed{ActorKind: entries[0].Actor.Kind, ActorName: entries[0].Actor.Name}
	return &LastChange{By: who.author(), Revision: numbers[0]}, nil
}
