package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"opensource.internal/manager/internal/events"
)

// Episode is something that is wrong with an agent, from the event that began
// it to the one that ended it. There is one open episode of a family and
// subject, however many events tell of it.
type Episode struct {
	ID       int64
	AgentID  int64
	SiteID   int64
	Hostname string
	Family   string // such as "apply"
	Subject  string // such as "nginx"
	Kind     events.Kind
	Severity events.Severity
	Summary  string
	OpenedAt time.Time
	ClosedAt *time.Time
	Closing  string // how it ended
}

// TableName implements gorm's schema.Tabler.
func (Episode) TableName() string { return "notification_episodes" }

// EpisodeChange is what an event means for episodes.
type EpisodeChange struct {
	Family  string
	Subject string
	// Ends closes the episode, else it is opened.
	Ends    bool
	Summary string
}

// FollowEvents makes episodes of up to limit events that were not looked at
// yet, in their order, and returns how many there were. What it has looked at
// is committed with what it made of it: nothing is lost or counted twice.
func (s *Store) FollowEvents(ctx context.Context, limit int, mean func(Event) []EpisodeChange) (int, error) {
	var news []Event
	err := s.update(ctx, func(tx *gorm.DB) error {
		var seen int64
		if err := tx.Raw("SELECT event_id FROM notification_cursor").Scan(&seen).Error; err != nil {
			return fmt.Errorf("read the last event: %w", err)
		}
		if err := tx.Where("id > ?", seen).Order("id").Limit(limit).Find(&news).Error; err != nil {
			return fmt.Errorf("read events: %w", err)
		}
		if len(news) == 0 {
			return nil
		}
		if err := changeEpisodes(tx, news, mean); err != nil {
			return err
		}
		return tx.Exec("UPDATE notification_cursor SET event_id = ?", news[len(news)-1].ID).Error
	})
	return len(news), err
}

func changeEpisodes(tx *gorm.DB, news []Event, mean func(Event) []EpisodeChange) error {
	known, err := agentsOf(tx, news)
	if err != nil {
		return err
	}
	for _, event := range news {
		if !known[event.AgentID] {
			continue // forgotten meanwhile
		}
		for _, change := range mean(event) {
			act := openEpisode
			if change.Ends {
				act = closeEpisode
			}
			if err := act(tx, event, change); err != nil {
				return fmt.Errorf("keep what event %d means: %w", event.ID, err)
			}
		}
	}
	return nil
}

// agentsOf are the agents of events that are still there.
func agentsOf(tx *gorm.DB, news []Event) (map[int64]bool, error) {
	var wanted, found []int64
	for _, event := range news {
		wanted = append(wanted, event.AgentID)
	}
	if err := tx.Model(&Agent{}).Where("id IN ?", wanted).Pluck("id", &found).Error; err != nil {
		return nil, fmt.Errorf("look for the agents of events: %w", err)
	}
	known := map[int64]bool{}
	for _, id := range found {
		known[id] = true
	}
	return known, nil
}

// openEpisode begins an episode, or brings an open one up to date. One that has
// become something else, say an expiring certificate that has expired, is told
// anew.
func openEpisode(tx *gorm.DB, event Event, change EpisodeChange) error {
	var open []Episode
	err := tx.Where("agent_id = ? AND family = ? AND subject = ? AND closed_at IS NULL", event.AgentID, change.Family, change.Subject).Find(&open).Error
	if err != nil {
		return err
	}
	if len(open) == 0 {
		return tx.Create(&Episode{
			AgentID: event.AgentID, SiteID: event.SiteID, Hostname: event.Hostname, Family: change.Family, Subject: change.Subject,
			Kind: event.Kind, Severity: event.Severity, Summary: change.Summary, OpenedAt: event.At.UTC(),
		}).Error
	}
	episode := open[0]
	if episode.Kind != event.Kind {
		if err := tx.Exec("DELETE FROM notification_deliveries WHERE episode_id = ?", episode.ID).Error; err != nil {
			return err
		}
		episode.OpenedAt = event.At.UTC()
	}
	episode.Kind, episode.Severity, episode.Summary = event.Kind, event.Severity, change.Summary
	return tx.Select("*").Updates(&episode).Error
}

func closeEpisode(tx *gorm.DB, event Event, change EpisodeChange) error {
	return tx.Model(&Episode{}).Where("agent_id = ? AND family = ? AND subject = ? AND closed_at IS NULL", event.AgentID, change.Family, change.Subject).
		Updates(map[string]any{"closed_at": event.At.UTC(), "closing": change.Summary}).Error
}

// The families that the store itself can tell the end of.
const (
	FamilyOffline = "offline"
	FamilyVolume  = "volume" // its subject is the id of the volume
)

// CloseEpisodes ends what is over without an event that says so: volumes that
// were deleted, and what was left out when there were too many events. Episodes
// that ended long ago are forgotten, like silences that are over.
func (s *Store) CloseEpisodes(ctx context.Context, forgetBefore time.Time) error {
	return s.update(ctx, func(tx *gorm.DB) error {
		at := now()
		for _, step := range []struct {
			query string
			args  []any
		}{
			{`UPDATE notification_episodes SET closed_at = ?, closing = 'checks in again' WHERE closed_at IS NULL AND family = ?
				AND agent_id IN (SELECT id FROM agents WHERE offline_at IS NULL)`, []any{at, FamilyOffline}},
			{`UPDATE notification_episodes SET closed_at = ?, closing = 'the volume is ready or was deleted' WHERE closed_at IS NULL AND family = ?
				AND subject NOT IN (SELECT CAST(id AS TEXT) FROM volumes WHERE status = 'failed')`, []any{at, FamilyVolume}},
			{`DELETE FROM notification_episodes WHERE closed_at < ?`, []any{forgetBefore.UTC()}},
			{`DELETE FROM notification_silences WHERE until < ?`, []any{forgetBefore.UTC()}},
		} {
			if err := tx.Exec(step.query, step.args...).Error; err != nil {
				return fmt.Errorf("close episodes: %w", err)
			}
		}
		return nil
	})
}

// OpenEpisode is one that an agent's reports can tell the end of, with how often
// the agent has told something new by now.
type OpenEpisode struct {
	Episode `gorm:"embedded"`
	Told    int64
}

// OpenEpisodes lists those that are not over and are not for the store itself to
// close, by id.
func (s *Store) OpenEpisodes(ctx context.Context) ([]OpenEpisode, error) {
	var open []OpenEpisode
	err := s.read.WithContext(ctx).Raw(`SELECT e.*, a.told FROM notification_episodes e JOIN agents a ON a.id = e.agent_id
		WHERE e.closed_at IS NULL AND e.family NOT IN ? ORDER BY e.id`, []string{FamilyOffline, FamilyVolume}).Scan(&open).Error
	if err != nil {
		return nil, fmt.Errorf("list open episodes: %w", err)
	}
	return open, nil
}

// CloseByReport ends episodes in the given words, unless their agent has told
// something new since the count that goes with them.
func (s *Store) CloseByReport(ctx context.Context, over []OpenEpisode) error {
	if len(over) == 0 {
		return nil
	}
	return s.update(ctx, func(tx *gorm.DB) error {
		for _, e := range over {
			err := tx.Exec(`UPDATE notification_episodes SET closed_at = ?, closing = ? WHERE id = ? AND closed_at IS NULL
				AND agent_id IN (SELECT id FROM agents WHERE told = ?)`, now(), e.Closing, e.ID, e.Told).Error
			if err != nil {
				return fmt.Errorf("close episode %d: %w", e.ID, err)
			}
		}
		return nil
	})
}

// Due is an episode of which a target has not been told, or not that it is
// over, or not for long.
type Due struct {
	Episode  `gorm:"embedded"`
	SiteName string
	ToldAt   *time.Time // when the target was told that it began
	Silenced bool
}

// dueAtOnce is how many episodes are considered for a target at once. Those that
// do not fit into a message are told by the next one.
const dueAtOnce = 10_000

// DueEpisodes lists what there is to consider for a target, in the order in
// which it happened: of what it wants, and not what waits for the end of a
// silence. What goes on and was told before remindBefore is told again; of what
// ended before the target was enabled nobody wants to know.
func (s *Store) DueEpisodes(ctx context.Context, target NotificationTarget, remindBefore time.Time) ([]Due, error) {
	query := s.read.WithContext(ctx).Table("notification_episodes e").
		Select(`e.*, coalesce(s.name, '') AS site_name, d.told_at, CASE WHEN q.id IS NULL THEN FALSE ELSE TRUE END AS silenced`).
		Joins("LEFT JOIN notification_deliveries d ON d.episode_id = e.id AND d.target_id = ?", target.ID).
		Joins("LEFT JOIN sites s ON s.id = e.site_id").
		Joins("LEFT JOIN notification_silences q ON q.site_id = e.site_id AND q.until > ?", now()).
		Where(`d.target_id IS NULL AND (e.closed_at IS NULL OR e.closed_at > ?)
			OR d.done = FALSE AND (e.closed_at IS NOT NULL OR d.told_at < ?)`, target.EnabledSince.UTC(), remindBefore.UTC()).
		Where("q.id IS NULL OR d.target_id IS NULL AND e.closed_at IS NOT NULL")
	if len(target.Kinds) > 0 {
		query = query.Where("e.kind IN ?", []string(target.Kinds))
	}
	if len(target.SiteIDs) > 0 {
		query = query.Where("e.site_id IN ?", []int64(target.SiteIDs))
	}
	if target.Severity == events.Error {
		query = query.Where("e.severity = ?", events.Error)
	}
	var due []Due
	if err := query.Order("e.id").Limit(dueAtOnce).Scan(&due).Error; err != nil {
		return nil, fmt.Errorf("look for what to tell target %d: %w", target.ID, err)
	}
	return due, nil
}

// ToldEpisodes lists what a target was told of and goes on, the latest first.
func (s *Store) ToldEpisodes(ctx context.Context, targetID int64) ([]Due, error) {
	var told []Due
	err := s.read.WithContext(ctx).Table("notification_episodes e").
		Select("e.*, coalesce(s.name, '') AS site_name, d.told_at, FALSE AS silenced").
		Joins("JOIN notification_deliveries d ON d.episode_id = e.id AND d.target_id = ? AND d.done = FALSE", targetID).
		Joins("LEFT JOIN sites s ON s.id = e.site_id").
		Where("e.closed_at IS NULL").Order("e.id DESC").Limit(MaxLimit).Scan(&told).Error
	if err != nil {
		return nil, fmt.Errorf("list what target %d was told: %w", targetID, err)
	}
	return told, nil
}

// Delivery says what a target has been told of an episode. Done is when there
// is no more to tell.
type Delivery struct {
	TargetID  int64
	EpisodeID int64
	ToldAt    time.Time
	Done      bool
}

// TableName implements gorm's schema.Tabler.
func (Delivery) TableName() string { return "notification_deliveries" }

// deliveryBatch is how many deliveries one statement writes.
const deliveryBatch = 500

// KeepDeliveries notes what one target need not be told again.
func (s *Store) KeepDeliveries(ctx context.Context, deliveries []Delivery) error {
	if len(deliveries) == 0 {
		return nil
	}
	return s.update(ctx, func(tx *gorm.DB) error { return keepDeliveries(tx, deliveries) })
}

func keepDeliveries(tx *gorm.DB, deliveries []Delivery) error {
	for batch := range slices.Chunk(deliveries, deliveryBatch) {
		kept, err := stillThere(tx, batch)
		if err != nil {
			return err
		}
		if len(kept) == 0 {
			continue
		}
		err = tx.Clauses(clause.OnConflict{
			Columns:   []clause.Column{{Name: "target_id"}, {Name: "episode_id"}},
			DoUpdates: clause.AssignmentColumns([]string{"told_at", "done"}),
		}).Create(&kept).Error
		if err != nil {
			return fmt.Errorf("keep deliveries: %w", err)
		}
	}
	return nil
}

// stillThere leaves out what was deleted while somebody was being told of it.
func stillThere(tx *gorm.DB, batch []Delivery) ([]Delivery, error) {
	var wanted, episodes, targets []int64
	for _, d := range batch {
		wanted = append(wanted, d.EpisodeID)
	}
	err := errors.Join(
		tx.Model(&Episode{}).Where("id IN ?", wanted).Pluck("id", &episodes).Error,
		tx.Model(&NotificationTarget{}).Where("id = ?", batch[0].TargetID).Pluck("id", &targets).Error)
	if err != nil {
		return nil, fmt.Errorf("look for what was delivered: %w", err)
	}
	there := map[int64]bool{}
	for _, id := range episodes {
		there[id] = len(targets) > 0
	}
	return slices.DeleteFunc(slices.Clone(batch), func(d Delivery) bool { return !there[d.EpisodeID] }), nil
}

// NoteSent notes that a target got a message, and what it has been told by it.
func (s *Store) NoteSent(ctx context.Context, targetID int64, at time.Time, told []Delivery) error {
	return s.update(ctx, func(tx *gorm.DB) error {
		err := tx.Exec("UPDATE notification_targets SET sent_at = ?, failures = 0, last_error = '' WHERE id = ?", at.UTC(), targetID).Error
		if err != nil {
			return fmt.Errorf("note a delivery: %w", err)
		}
		if len(told) == 0 {
			return nil
		}
		return keepDeliveries(tx, told)
	})
}

// NoteFailure notes that a target could not be told, and why: without secrets.
func (s *Store) NoteFailure(ctx context.Context, targetID int64, at time.Time, reason string) error {
	return s.update(ctx, func(tx *gorm.DB) error {
		err := tx.Exec("UPDATE notification_targets SET failed_at = ?, failures = failures + 1, last_error = ? WHERE id = ?", at.UTC(), reason, targetID).Error
		if err != nil {
			return fmt.Errorf("note a failed delivery: %w", err)
		}
		return nil
	})
}
