package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"opensource.internal/agent/checkin"
)

// CheckIn is what there is to keep of a check-in that says something new.
type CheckIn struct {
	SiteID      int64
	Hostname    string // folded
	At          time.Time
	PeerAddress string
	ClockSkewMS *int64
	Report      checkin.Request // without volume results
	// Volumes holds the results for volumes of the site, by volume id. Those
	// of other sites' volumes change nothing.
	Volumes map[int64]checkin.VolumeReport
}

// RecordCheckIn keeps a check-in in one transaction and returns the agent's
// id. There is one agent per site and host name, however many first check-ins
// arrive at once; of more than agentsPerSite those seen longest ago are
// forgotten. It returns ErrNotFound if there is no such site.
func (s *Store) RecordCheckIn(ctx context.Context, c CheckIn) (agentID int64, err error) {
	err = s.update(ctx, func(tx *gorm.DB) error {
		if agentID, err = recordAgent(tx, c); err != nil {
			return err
		}
		if err := forgetOldest(tx, c.SiteID, agentID); err != nil {
			return err
		}
		return recordVolumes(tx, c)
	})
	if err == nil {
		s.heartbeats.drop(agentID)
	}
	return agentID, err
}

func recordAgent(tx *gorm.DB, c CheckIn) (int64, error) {
	changing := []string{"peer_address", "report", "clock_skew_ms", "last_seen_at", "changed_at"}
	drift := toldDrift(c)
	if len(drift) > 0 {
		var err error
		if drift, err = addedToKept(tx, c, drift); err != nil {
			return 0, err
		}
		changing = append(changing, "drift")
	}
	row := Agent{
		SiteID: c.SiteID, Hostname: c.Hostname, PeerAddress: c.PeerAddress, Report: Report{Request: c.Report}, Drift: drift,
		ClockSkewMS: c.ClockSkewMS, FirstSeenAt: c.At, LastSeenAt: c.At, ChangedAt: c.At,
	}
	err := tx.Clauses(
		clause.OnConflict{
			Columns:   []clause.Column{{Name: "site_id"}, {Name: "hostname"}},
			DoUpdates: clause.AssignmentColumns(changing),
		},
		clause.Returning{Columns: []clause.Column{{Name: "id"}}},
	).Create(&row).Error
	if errors.Is(err, gorm.ErrForeignKeyViolated) {
		return 0, ErrNotFound
	}
	if err != nil {
		return 0, fmt.Errorf("record agent: %w", err)
	}
	return row.ID, nil
}

// agentsPerSite is how many agents of a site are remembered. A site has one or
// a few; but a host may have a new name after every start, as containers do,
// and whoever holds an agent's key may make up names.
const agentsPerSite = 100

// forgetOldest drops the agents of a site that were seen longest ago when there
// are too many, but never the one that has just been recorded.
func forgetOldest(tx *gorm.DB, siteID, recorded int64) error {
	err := tx.Exec(`DELETE FROM agents WHERE site_id = ? AND id <> ? AND id NOT IN
		(SELECT id FROM agents WHERE site_id = ? ORDER BY last_seen_at DESC, id DESC LIMIT ?)`,
		siteID, recorded, siteID, agentsPerSite).Error
	if err != nil {
		return fmt.Errorf("forget agents of site %d: %w", siteID, err)
	}
	return nil
}

func recordVolumes(tx *gorm.DB, c CheckIn) error {
	for id, report := range c.Volumes {
		status := VolumeFailed
		if report.Applied {
			status = VolumeReady
		}
		err := tx.Exec(`UPDATE volumes SET status = ?, status_message = ?, reported_at = ?
			WHERE id = ? AND site_id = ? AND (status <> ? OR status_message <> ?)`,
			status, report.Message, c.At, id, c.SiteID, status, report.Message).Error
		if err != nil {
			return fmt.Errorf("record result of volume %d: %w", id, err)
		}
	}
	return nil
}
