package store

import (
	"errors"
	"fmt"
	"reflect"

	"gorm.io/gorm"
)

// get reads the T of an id.
func get[T any](tx *gorm.DB, id int64) (T, error) {
	var row T
	err := tx.Take(&row, "id = ?", id).Error
	if errors.Is(err, gorm.ErrRecordNotFound) {
		return row, ErrNotFound
	}
	if err != nil {
		return row, fmt.Errorf("read record %d: %w", id, err)
	}
	return row, nil
}

// unique is a rule that the database enforces, with the query that names the
// records which hold the value when it refuses a write.
type unique struct {
	field   string // the JSON name
	message string
	holders string // SELECT of one text column
	args    []any
	// anyCase says that the rule is about names in any case. The database knows
	// that of A to Z alone, so the query is asked before each write of another
	// name, too.
	anyCase bool
}

// refuse returns a *ConflictError if somebody holds the value.
func (u unique) refuse(tx *gorm.DB) error {
	var holders []string
	if err := tx.Raw(u.holders, u.args...).Scan(&holders).Error; err != nil {
		return fmt.Errorf("look for who holds %s: %w", u.field, err)
	}
	if len(holders) > 0 {
		return &ConflictError{Field: u.field, Message: u.message, Holders: holders}
	}
	return nil
}

// refuseNames asks the rules about names that differ from those of before.
func refuseNames(tx *gorm.DB, before any, rules []unique) error {
	var had []unique
	if row, ok := before.(interface{ unique() []unique }); ok {
		had = row.unique()
	}
	for i, rule := range rules {
		if !rule.anyCase || i < len(had) && reflect.DeepEqual(rule.args, had[i].args) {
			continue
		}
		if err := rule.refuse(tx); err != nil {
			return err
		}
	}
	return nil
}

// insert writes a new row. A value that is taken is a *ConflictError.
func insert[T any](tx *gorm.DB, row *T, rules ...unique) error {
	if err := refuseNames(tx, nil, rules); err != nil {
		return err
	}
	err := attempt(tx, func(tx *gorm.DB) error { return tx.Create(row).Error })
	if err := explain(tx, "create record", err, rules); err != nil {
		return err
	}
	return audit(tx, ActionCreate, nil, *row)
}

// save writes a changed row, unless nothing changed. A value that is taken is
// a *ConflictError.
func save[T any](tx *gorm.DB, before T, row *T, rules ...unique) error {
	if reflect.DeepEqual(before, *row) {
		return nil
	}
	if err := refuseNames(tx, before, rules); err != nil {
		return err
	}
	err := attempt(tx, func(tx *gorm.DB) error { return tx.Select("*").Updates(row).Error })
	if err := explain(tx, "update record", err, rules); err != nil {
		return err
	}
	return audit(tx, ActionUpdate, before, *row)
}

// write inserts a row that was not there before, else saves it.
func write[T any](tx *gorm.DB, before, row *T, rules ...unique) error {
	if before == nil {
		return insert(tx, row, rules...)
	}
	return save(tx, *before, row, rules...)
}

// remove deletes the rows of T that match.
func remove[T any](tx *gorm.DB, condition string, args ...any) error {
	if isAudited[T]() {
		var rows []T
		if err := tx.Where(condition, args...).Order("id").Find(&rows).Error; err != nil {
			return fmt.Errorf("read records to delete: %w", err)
		}
		if err := auditAll(tx, ActionDelete, rows); err != nil {
			return err
		}
	}
	if err := tx.Where(condition, args...).Delete(new(T)).Error; err != nil {
		return fmt.Errorf("delete records: %w", err)
	}
	return nil
}

// removeOne deletes the T of an id or returns ErrNotFound.
func removeOne[T any](tx *gorm.DB, id int64) error {
	if isAudited[T]() {
		row, err := get[T](tx, id)
		if err != nil {
			return err
		}
		return removeRow(tx, row, id)
	}
	return removeRow(tx, *new(T), id)
}

// removeRow is removeOne for who knows the row; it is audited as it is given.
func removeRow[T any](tx *gorm.DB, row T, id int64) error {
	if err := audit(tx, ActionDelete, row, nil); err != nil {
		return err
	}
	result := tx.Where("id = ?", id).Delete(new(T))
	if result.Error != nil {
		return fmt.Errorf("delete record %d: %w", id, result.Error)
	}
	if result.RowsAffected == 0 {
		return ErrNotFound
	}
	return nil
}

// attempt runs one write of a transaction so that, refused, it leaves the
// transaction usable: PostgreSQL gives up the rest otherwise. A savepoint is
// given back, since a transaction may make thousands of writes.
func attempt(tx *gorm.DB, write func(tx *gorm.DB) error) error {
	if tx.Name() != "postgres" {
		return write(tx)
	}
	if err := tx.Exec("SAVEPOINT attempt").Error; err != nil {
		return err
	}
	if err := write(tx); err != nil {
		if undo := tx.Exec("ROLLBACK TO SAVEPOINT attempt").Error; undo != nil {
			return errors.Join(err, undo)
		}
		return err
	}
	return tx.Exec("RELEASE SAVEPOINT attempt").Error
}

// explain finds out which rule a refused write broke.
func explain(tx *gorm.DB, act string, err error, rules []unique) error {
	if err == nil {
		return nil
	}
	if !errors.Is(err, gorm.ErrDuplicatedKey) {
		return fmt.Errorf("%s: %w", act, err)
	}
	for _, rule := range rules {
		if err := rule.refuse(tx); err != nil {
			return err
		}
	}
	return fmt.Errorf("%s: %w", act, err)
}

// maxNamed is how many dependants an InUseError names.
const maxNamed = 10

// requireUnused returns an *InUseError if the queries, each a SELECT of one
// text column, name any dependant.
func requireUnused(tx *gorm.DB, record, query string, args ...any) error {
	var names []string
	if err := tx.Raw(query, args...).Scan(&names).Error; err != nil {
		return fmt.Errorf("look for what depends on %s: %w", record, err)
	}
	if len(names) == 0 {
		return nil
	}
	return &InUseError{Record: record, Dependants: names[:min(len(names), maxNamed)], Total: len(names)}
}

// where adds a condition to a query unless its value is the zero value.
func where[V comparable](query *gorm.DB, column string, value V) *gorm.DB {
	var zero V
	if value == zero {
		return query
	}
	return query.Where(column+" = ?", value)
}
