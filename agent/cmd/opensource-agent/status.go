package main

import (
	"context"

	"opensource.internal/agent/internal/pass"
	"opensource.internal/agent/internal/status"
)

// statusCommand tells how the site of this host stands.
type statusCommand struct {
	JSON bool `help:"Print JSON, in which times are RFC 3339 in UTC."`
}

// Help implements kong.HelpProvider.
func (*statusCommand) Help() string {
	return `It reads what the last passes have noted, the managed files, and what systemd says. It changes nothing, waits for no pass, and does not ask the manager.

Examples:
  sudo opensource-agent status
  sudo opensource-agent status --json

Exit status: 0 all is in force, a service that is held apart; 4 something of the snapshot is not, or none was ever accepted; 5 a rollback failed; 2 usage, or not root. Whether the manager was reached does not count; the exit status of the last pass is printed.`
}

func (c *statusCommand) run(ctx context.Context, env environment) pass.Code {
	settings, ok := env.local()
	if !ok {
		return pass.Usage
	}
	found, err := status.Gather(ctx, pass.Options{
		Version:        version,
		StateDirectory: settings.StateDirectory,
		Root:           settings.Root,
		Log:            env.logger(settings.LogLevel),
	})
	if err != nil {
		return env.fail(pass.Usage, pass.Advised(err, "status"))
	}
	if c.JSON {
		err = printJSON(env.stdout, found)
	} else {
		err = found.Write(env.stdout)
	}
	if err != nil {
		return env.fail(pass.Unexpected, err)
	}
	return found.ExitCode
}
