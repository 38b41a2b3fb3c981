package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"
)

// PruneRevisions deletes old revisions and returns how many. Of each site it
// keeps the latest ones, all that are younger, the pinned one, and what any
// agent tells that it runs or was given. With 0 latest it keeps all.
func (s *Store) PruneRevisions(ctx context.Context, latest int, younger time.Duration) (int64, error) {
	if latest == 0 {
		return 0, nil
	}
	sites, _, err := s.ListSites(ctx, SiteFilter{}, ListOptions{Limit: All})
	if err != nil {
		return 0, err
	}
	var pruned int64
	for _, site := range sites {
		agents, _, err := s.ListAgents(ctx, AgentFilter{SiteID: site.ID}, ListOptions{Limit: All})
		if err != nil {
			return pruned, err
		}
		n, err := s.pruneSite(ctx, site.ID, latest, now().Add(-younger), tagsOf(agents))
		if pruned += n; err != nil {
			return pruned, fmt.Errorf("delete old revisions of site %d: %w", site.ID, err)
		}
	}
	return pruned, nil
}

// tagsOf are the snapshots that agents tell of.
func tagsOf(agents []Agent) map[string]bool {
	tags := map[string]bool{}
	add := func(tag string) { tags[strings.TrimPrefix(tag, "W/")] = true }
	for _, agent := range agents {
		for _, service := range agent.Report.Services {
			add(service.ReceivedETag)
			add(service.RunningETag)
		}
		if agent.Report.Running != nil {
			add(agent.Report.Running.ETag)
		}
	}
	return tags
}

// pruneBatch is how many revisions one transaction deletes.
const pruneBatch = 500

func (s *Store) pruneSite(ctx context.Context, siteID int64, latest int, before time.Time, inUse map[string]bool) (pruned int64, err error) {
	var old []Revision
	err = s.read.WithContext(ctx).Select("id", "etag").Order("id").
		Where("site_id = ? AND created_at < ?", siteID, before).
		Where("number <= (SELECT max(number) FROM revisions WHERE site_id = ?) - ?", siteID, latest).
		Where("number NOT IN (SELECT revision FROM pins WHERE site_id = ?)", siteID).
		Find(&old).Error
	if err != nil {
		return 0, err
	}
	old = slices.DeleteFunc(old, func(r Revision) bool { return inUse[r.ETag] })
	for batch := range slices.Chunk(old, pruneBatch) {
		ids := make([]int64, 0, len(batch))
		for _, row := range batch {
			ids = append(ids, row.ID)
		}
		err := s.update(ctx, func(tx *gorm.DB) error {
			// It may have been pinned meanwhile.
			result := tx.Where("id IN ? AND number NOT IN (SELECT revision FROM pins WHERE site_id = ?)", ids, siteID).Delete(&Revision{})
			pruned += result.RowsAffected
			return result.Error
		})
		if err != nil {
			return pruned, err
		}
	}
	return pruned, nil
}
