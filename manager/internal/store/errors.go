package store

import (
	"errors"
	"fmt"
	"strings"

	"opensource.internal/manager/internal/inventory"
)

// ErrNotFound is returned for a record that does not exist, or whose parent
// does not.
var ErrNotFound = errors.New("not found")

// InvalidError lists the faults of a record by the JSON names of its fields.
type InvalidError = inventory.InvalidError

// ConflictError says that a value is taken or used up.
type ConflictError struct {
	Field   string   // the JSON name
	Message string   // for people, names the value
	Holders []string // the records that have it, such as `container "web"`
}

func (e *ConflictError) Error() string {
	if e.Field == "" {
		return e.Message
	}
	return e.Field + ": " + e.Message
}

// InUseError says that a record was not deleted because others depend on it.
type InUseError struct {
	Record     string   // such as `node "pve1"`
	Dependants []string // such as `container "web"`; at most maxNamed
	Total      int
}

func (e *InUseError) Error() string {
	more := ""
	if e.Total > len(e.Dependants) {
		more = fmt.Sprintf(" and %d more", e.Total-len(e.Dependants))
	}
	return fmt.Sprintf("%s is in use by %s%s", e.Record, strings.Join(e.Dependants, ", "), more)
}

// SchemaError says that a database has another schema than this program.
type SchemaError struct {
	Database   string // its name, without a password
	Have, Want int64
}

func (e *SchemaError) Error() string {
	if e.Have > e.Want {
		return fmt.Sprintf("database %s has schema %d, this program knows up to %d: a newer version has used it; install that version or restore a backup",
			e.Database, e.Have, e.Want)
	}
	return fmt.Sprintf("database %s has schema %d, this program needs %d: run opensource-manager migrate", e.Database, e.Have, e.Want)
}

// invalid returns an InvalidError of one field.
func invalid(field, format string, args ...any) error {
	return &InvalidError{Fields: map[string]string{field: fmt.Sprintf(format, args...)}}
}
