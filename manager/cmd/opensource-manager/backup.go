package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"opensource.internal/manager/internal/health"
	"opensource.internal/manager/internal/server"
	"opensource.internal/manager/internal/store"
)

type backupCommand struct {
	File  string `arg:"" placeholder:"FILE" help:"The new file. It appears when it is complete and checked."`
	Force bool   `help:"Replace a file of that name."`
	JSON  bool   `name:"json" help:"Print JSON."`
}

// backup is a backup as it is printed.
type backup struct {
	File          string `json:"file"`
	Bytes         int64  `json:"bytes"`
	SchemaVersion int64  `json:"schemaVersion"`
}

// Run writes a backup.
func (c backupCommand) Run(e *environmentOf) error {
	done, err := store.Backup(e, server.DatabaseOf(e.config), c.File, c.Force, e.progress("copied"))
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w (--force replaces it)", err)
	}
	if err != nil {
		return err
	}
	if c.JSON {
		return e.printJSON(backup{done.Path, done.Bytes, done.Schema})
	}
	_, err = fmt.Fprintf(e.stdout, "%s: %s, schema %d, whole\n", done.Path, health.Size(done.Bytes), done.Schema)
	return err
}

// progress tells a person at a terminal how far something is, if it takes long
// enough to be told about.
func (e *environmentOf) progress(what string) func(done, total int) {
	terminal, ok := e.stderr.(*os.File)
	if !ok || !isTerminal(terminal) {
		return nil
	}
	told := -1
	return func(done, total int) {
		percent := 100 * done / max(1, total)
		if percent == told || told < 0 && percent == 100 {
			return
		}
		told = percent
		fmt.Fprintf(terminal, "\r%s: %d %%", what, percent)
		if percent == 100 {
			fmt.Fprintln(terminal)
		}
	}
}
