package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"gorm.io/gorm"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/events"
)

// CheckIn is what there is to keep of a check-in that says something new, or is
// answered with something new.
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
	// Fetched is the tag of the snapshot that the agent is given in return; empty
	// if it has that already.
	Fetched string
}

// RecordCheckIn keeps a check-in, and what has happened since the one before, in
// one transaction, and returns the agent as it is stored now. There is one agent
// per site and host name, however many first check-ins arrive at once; of more
// than agentsPerSite those seen longest ago are forgotten. It returns
// ErrNotFound if there is no such site.
func (s *Store) RecordCheckIn(ctx context.Context, c CheckIn) (agent Agent, err error) {
	err = s.update(ctx, func(tx *gorm.DB) error {
		happened, err := recordAgent(tx, c, &agent)
		if err != nil {
			return err
		}
		if err := forgetOldest(tx, c.SiteID, agent.ID); err != nil {
			return err
		}
		toVolumes, err := recordVolumes(tx, c)
		if err != nil {
			return err
		}
		return keepEvents(tx, agent, c.At, append(happened, toVolumes...)...)
	})
	if err == nil {
		s.heartbeats.drop(agent.ID)
	}
	return agent, err
}

// recordAgent writes the agent of a check-in and says what has happened to it.
func recordAgent(tx *gorm.DB, c CheckIn, agent *Agent) ([]events.Event, error) {
	err := tx.Take(agent, "site_id = ? AND hostname = ?", c.SiteID, c.Hostname).Error
	if errors.Is(err, gorm.ErrRecordNotFound) {
		return createAgent(tx, c, agent)
	}
	if err != nil {
		return nil, fmt.Errorf("read agent: %w", err)
	}
	return changeAgent(tx, c, agent)
}

func createAgent(tx *gorm.DB, c CheckIn, agent *Agent) ([]events.Event, error) {
	*agent = Agent{
		SiteID: c.SiteID, Hostname: c.Hostname, PeerAddress: c.PeerAddress, Report: Report{Request: c.Report}, Drift: toldDrift(c),
		ClockSkewMS: c.ClockSkewMS, FirstSeenAt: c.At, LastSeenAt: c.At, ChangedAt: c.At, Told: 1,
		Summary: summaryOf(Report{Request: c.Report}, c.At),
	}
	agent.fetches(c)
	err := tx.Create(agent).Error
	if errors.Is(err, gorm.ErrForeignKeyViolated) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("record new agent: %w", err)
	}
	return append([]events.Event{events.OfNewAgent(c.Report)}, events.Between(checkin.Request{}, c.Report)...), nil
}

func changeAgent(tx *gorm.DB, c CheckIn, agent *Agent) ([]events.Event, error) {
	before, err := withFailures(tx, *agent, c.Report)
	if err != nil {
		return nil, err
	}
	happened := events.Between(before, c.Report)
	if agent.OfflineAt != nil {
		happened = append([]events.Event{events.OfReturn(agent.LastSeenAt, c.At)}, happened...)
	}
	changing := []string{"peer_address", "report", "clock_skew_ms", "last_seen_at", "changed_at", "told", "offline_at"}
	changing = append(changing, summaryColumns...)
	if agent.fetches(c) {
		changing = append(changing, "fetched_etag", "fetched_at")
	}
	if drift := toldDrift(c); len(drift) > 0 {
		agent.Drift = addedToKept(agent.Drift.Recent(c.At), drift)
		changing = append(changing, "drift")
	}
	agent.PeerAddress, agent.Report, agent.ClockSkewMS = c.PeerAddress, Report{Request: c.Report}, c.ClockSkewMS
	agent.Summary = summaryOf(agent.Report, c.At)
	agent.LastSeenAt, agent.ChangedAt, agent.OfflineAt = c.At, c.At, nil
	agent.Told++
	if err := tx.Model(agent).Select(changing).Updates(agent).Error; err != nil {
		return nil, fmt.Errorf("record agent %d: %w", agent.ID, err)
	}
	return happened, nil
}

// fetches notes which snapshot an agent is given, and reports whether it is one
// that it was not given before.
func (a *Agent) fetches(c CheckIn) bool {
	if c.Fetched == "" || c.Fetched == a.FetchedETag {
		return false
	}
	a.FetchedETag, a.FetchedAt = c.Fetched, &c.At
	return true
}

// withFailures is an agent's last report, in which the failure of a service that
// works again stands even if nothing was known of the service in between: that
// the failure is over is told where it was told that it began.
func withFailures(tx *gorm.DB, agent Agent, after checkin.Request) (checkin.Request, error) {
	before := agent.Report.Request
	var doubtful []string
	for name, is := range after.Services {
		if was := before.Services[name]; is.Working() && !was.Working() && !was.Failing() {
			doubtful = append(doubtful, name)
		}
	}
	if len(doubtful) == 0 {
		return before, nil
	}
	failed, err := failedServices(tx, agent.ID)
	if err != nil {
		return before, err
	}
	before.Services = maps.Clone(before.Services)
	if before.Services == nil {
		before.Services = map[string]checkin.ServiceReport{}
	}
	for _, name := range doubtful {
		if was := before.Services[name]; failed[name] {
			was.Outcome = checkin.OutcomeRejected
			before.Services[name] = was
		}
	}
	return before, nil
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

// recordVolumes writes what a check-in tells of volumes and says what has
// happened to them.
func recordVolumes(tx *gorm.DB, c CheckIn) ([]events.Event, error) {
	var failed, ready []events.Volume
	for _, id := range slices.Sorted(maps.Keys(c.Volumes)) {
		report, status := c.Volumes[id], VolumeFailed
		if report.Applied {
			status = VolumeReady
		}
		before, known, err := readVolume(tx, c.SiteID, id)
		if err != nil {
			return nil, err
		}
		if !known || before.Status == status && before.StatusMessage == report.Message {
			continue
		}
		err = tx.Exec(`UPDATE volumes SET status = ?, status_message = ?, reported_at = ? WHERE id = ?`,
			status, report.Message, c.At, id).Error
		if err != nil {
			return nil, fmt.Errorf("record result of volume %d: %w", id, err)
		}
		volume := events.Volume{ID: id, Name: before.Name, Container: before.Hostname, Message: report.Message}
		switch {
		case before.Status == status: // only its message is new
		case report.Applied:
			ready = append(ready, volume)
		default:
			failed = append(failed, volume)
		}
	}
	return events.OfVolumes(failed, ready), nil
}

type volumeState struct {
	Name          string
	Hostname      string
	Status        VolumeStatus
	StatusMessage string
}

func readVolume(tx *gorm.DB, siteID, id int64) (before volumeState, known bool, err error) {
	err = tx.Table("volumes").
		Select("volumes.name, containers.hostname, volumes.status, volumes.status_message").
		Joins("JOIN containers ON containers.id = volumes.container_id").
		Where("volumes.id = ? AND volumes.site_id = ?", id, siteID).Take(&before).Error
	if errors.Is(err, gorm.ErrRecordNotFound) {
		return before, false, nil
	}
	if err != nil {
		return before, false, fmt.Errorf("read volume %d: %w", id, err)
	}
	return before, true, nil
}
