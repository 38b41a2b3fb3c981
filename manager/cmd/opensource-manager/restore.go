package main

import (
	"fmt"

	"opensource.internal/manager/internal/server"
	"opensource.internal/manager/internal/store"
)

type restoreCommand struct {
	File string `arg:"" placeholder:"FILE" help:"A file that backup has written."`
	JSON bool   `name:"json" help:"Print JSON."`
}

// restored is what restore has done, as it is printed.
type restored struct {
	Database      string `json:"database"`
	SchemaVersion int64  `json:"schemaVersion"` // of the backup
	Former        string `json:"former"`        // empty if there was none
}

// Run restores a backup.
func (c restoreCommand) Run(e *environmentOf) error {
	done, err := store.Restore(e, server.DatabaseOf(e.config), c.File)
	if err != nil {
		return err
	}
	if c.JSON {
		return e.printJSON(restored{done.Path, done.Schema, done.Former})
	}
	fmt.Fprintf(e.stdout, "%s is that of %s now.\n", done.Path, c.File)
	if done.Former != "" {
		fmt.Fprintf(e.stdout, "The former database is %s.\n", done.Former)
	}
	_, err = fmt.Fprintln(e.stdout, "Keys that were revoked since the backup are valid again: see apikey list.\nStart the manager: systemctl start opensource-manager")
	return err
}
