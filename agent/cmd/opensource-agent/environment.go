package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"opensource.internal/agent/internal/config"
	"opensource.internal/agent/internal/pass"
)

// environment is all that a command has of the world around it.
type environment struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	environ        []string
	flags          config.Flags
}

func (l *commandLine) settings() config.Flags {
	return config.Flags{
		Root:           l.Root,
		LogLevel:       l.LogLevel,
		SiteID:         l.SiteID,
		ManagerURL:     l.ManagerURL,
		StateDirectory: l.StateDirectory,
	}
}

// settings loads the whole configuration. What is wrong with it is told; the
// command ends with pass.Usage then.
func (e environment) settings() (config.Config, bool) {
	settings, err := config.Load(e.flags, e.environ)
	return settings, e.usable(err)
}

// local loads what a command needs that does not speak to the manager.
func (e environment) local() (config.Local, bool) {
	settings, err := config.LoadLocal(e.flags, e.environ)
	return settings, e.usable(err)
}

// usable tells a line for each mistake, to the journal as an error.
func (e environment) usable(err error) bool {
	if err == nil {
		return true
	}
	for _, mistake := range mistakes(err) {
		if attachedToJournal(e.stderr) {
			e.logger(slog.LevelInfo).Error(mistake.Error())
			continue
		}
		fmt.Fprintln(e.stderr, "opensource-agent:", mistake)
	}
	return false
}

// fail tells why a command could not do its work.
func (e environment) fail(code pass.Code, err error) pass.Code {
	e.usable(err)
	return code
}

// failAs is fail for an error that decides about the exit status, and that
// another user may not meet.
func (e environment) failAs(command string, err error) pass.Code {
	return e.fail(pass.CodeOf(err), pass.Advised(err, command))
}

func (e environment) logger(level slog.Level) *slog.Logger { return logger(level, e.stderr) }

// printJSON prints a value for people and programs.
func printJSON(out io.Writer, value any) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

// mistakes takes a joined error apart.
func mistakes(err error) []error {
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		return joined.Unwrap()
	}
	return []error{err}
}
