package store

import (
	"context"
	"fmt"
	"slices"

	"gorm.io/gorm"
)

// Ref names an audited record.
type Ref struct {
	Resource string
	ID       int64
}

// Recalled is how a record is called, or was when it was deleted.
type Recalled struct {
	Name        string
	Gone        bool
	ContainerID int64 // of a service or a volume
}

// recallers read the records of a kind.
var recallers = map[string]func(tx *gorm.DB, ids []int64) ([]audited, error){
	"site": recallRows[Site], "node": recallRows[Node], "container": recallRows[Container], "service": recallRows[Service],
	"volume": recallRows[Volume], "external_domain": recallRows[ExternalDomain], "agent": recallRows[Agent], "user": recallRows[User],
	"api_key": recallRows[APIKey], "enrollment": recallRows[Enrollment], "notification_target": recallRows[NotificationTarget],
	"notification_silence": recallRows[NotificationSilence],
}

// Recall tells what there is to be told of records, whether they are there or
// are known from the audit log alone. Those of which nothing is known are left
// out, and so are those of kinds that are not stored.
func (s *Store) Recall(ctx context.Context, refs []Ref) (map[Ref]Recalled, error) {
	wanted := map[string][]int64{}
	for _, ref := range refs {
		if ids := wanted[ref.Resource]; ref.ID > 0 && !slices.Contains(ids, ref.ID) {
			wanted[ref.Resource] = append(ids, ref.ID)
		}
	}
	known := map[Ref]Recalled{}
	for resource, ids := range wanted {
		read, stored := recallers[resource]
		if !stored {
			continue
		}
		rows, err := read(s.reader(ctx), ids)
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			of := row.subject()
			known[Ref{resource, of.ID}] = Recalled{Name: of.Name, ContainerID: containerOf(row)}
		}
		if err := recallGone(s.reader(ctx), resource, ids, known); err != nil {
			return nil, err
		}
	}
	return known, nil
}

func recallRows[T audited](tx *gorm.DB, ids []int64) ([]audited, error) {
	var rows []T
	if err := tx.Where("id IN ?", ids).Find(&rows).Error; err != nil {
		return nil, fmt.Errorf("recall records: %w", err)
	}
	var all []audited
	for _, row := range rows {
		all = append(all, row)
	}
	return all, nil
}

func containerOf(row audited) int64 {
	switch row := row.(type) {
	case Service:
		return row.ContainerID
	case Volume:
		return row.ContainerID
	}
	return 0
}

// recallGone adds what the log last told of those that are not there.
func recallGone(tx *gorm.DB, resource string, ids []int64, known map[Ref]Recalled) error {
	gone := slices.DeleteFunc(slices.Clone(ids), func(id int64) bool {
		_, there := known[Ref{resource, id}]
		return there
	})
	if len(gone) == 0 {
		return nil
	}
	last := tx.Model(&AuditEntry{}).Select("MAX(id)").Where("resource = ? AND resource_id IN ?", resource, gone).Group("resource_id")
	var entries []AuditEntry
	if err := tx.Where("id IN (?)", last).Find(&entries).Error; err != nil {
		return fmt.Errorf("recall deleted records: %w", err)
	}
	for _, e := range entries {
		container, _ := e.Before["containerId"].(float64) // all numbers of JSON are
		known[Ref{resource, e.ResourceID}] = Recalled{Name: e.Name, Gone: true, ContainerID: int64(container)}
	}
	return nil
}
