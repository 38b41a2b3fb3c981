package store

import "context"

// Migrate brings the database at path to the current schema, and creates it
// if there is none. It may be called any number of times, by several
// processes at once; what is broken off leaves the database as it was.
func Migrate(ctx context.Context, path string) error { panic("soon") }

// SchemaVersion returns the schema version of the database.
func (s *Store) SchemaVersion(ctx context.Context) (int64, error) { panic("soon") }

func requireSchema(ctx context.Context, path string) error { panic("soon") }
