package main

import (
	"context"
	"fmt"

	"opensource.internal/manager/internal/server"
	"opensource.internal/manager/internal/store"
)

// version is set when a package is built.
var version = "dev"

type serveCommand struct{}

// Run serves until a signal comes.
func (serveCommand) Run(e *environmentOf) error {
	settings := e.config
	settings.Explained = e.settings
	return server.Run(e.Context, settings, version, e.log)
}

type migrateCommand struct {
	JSON bool `name:"json" help:"Print JSON."`
}

type migrated struct {
	Database      string `json:"database"`
	SchemaVersion int64  `json:"schemaVersion"`
}

// Run migrates; doing it again changes nothing.
func (c migrateCommand) Run(e *environmentOf) error {
	return e.withNewStore(func(s *store.Store) error {
		done, err := schemaOf(e.Context, server.DatabaseOf(e.config), s)
		if err != nil {
			return err
		}
		if c.JSON {
			return e.printJSON(done)
		}
		_, err = fmt.Fprintf(e.stdout, "%s has schema %d\n", done.Database, done.SchemaVersion)
		return err
	})
}

func schemaOf(ctx context.Context, database store.Database, s *store.Store) (migrated, error) {
	schema, err := s.SchemaVersion(ctx)
	if err != nil {
		return migrated{}, fmt.Errorf("read schema version: %w", err)
	}
	return migrated{Database: database.String(), SchemaVersion: schema}, nil
}

type versionCommand struct {
	JSON bool `name:"json" help:"Print JSON."`
}

func (versionCommand) regardlessOfSettings() {}

// Run prints the version.
func (c versionCommand) Run(e *environmentOf) error {
	if c.JSON {
		return e.printJSON(map[string]string{"version": version})
	}
	_, err := fmt.Fprintln(e.stdout, version)
	return err
}
