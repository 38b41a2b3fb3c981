package main

import (
	"context"
	"fmt"
	"os"
	"syscall"

	"opensource.internal/agent/checkin"
	"opensource.internal/agent/internal/config"
	"opensource.internal/agent/internal/pass"
)

// runCommand does one pass.
type runCommand struct {
	DryRun          bool `help:"Check in, and print what the pass would do, but do nothing of it."`
	ConfirmRemovals bool `help:"Accept the snapshot that is held back because it removes a large share of what runs here."`
}

// Help implements kong.HelpProvider.
func (*runCommand) Help() string {
	return `Examples:
  sudo opensource-agent
  sudo opensource-agent --log-level debug
  sudo opensource-agent run --dry-run

A dry run prints the difference of each file, what would be reloaded, what the service's own test says of the candidate, records that would be left out and volumes that would be made. The manager sees a check-in as any other, and still waits for what was not told yet.

Exit status of a dry run: that of the pass, but ` + fmt.Sprintf("%d", pass.WouldChange) + ` in the place of 0 if something would change.`
}

func (c *runCommand) run(ctx context.Context, env environment) pass.Code {
	settings, ok := env.settings()
	if !ok {
		return pass.Usage
	}
	// What nginx and dnsmasq have to read must not depend on a shell's habits.
	syscall.Umask(0o022)
	useProxies(settings)
	o := options(settings, env)
	o.ConfirmRemovals = c.ConfirmRemovals
	if c.DryRun {
		return dryRun(ctx, env, o)
	}
	return pass.Run(ctx, o)
}

// useProxies puts what may come from a file, when started by hand, where
// net/http looks for it.
func useProxies(settings config.Config) {
	for name, value := range settings.Proxies {
		_ = os.Setenv(name, value)
	}
}

// client speaks to the manager.
func client(c config.Config) *checkin.Client {
	return &checkin.Client{
		URL:       c.ManagerURL,
		Key:       c.APIKey,
		UserAgent: "opensource-agent/" + version,
		Transport: transport(c),
	}
}

func options(c config.Config, env environment) pass.Options {
	return pass.Options{
		SiteID:          c.SiteID,
		Client:          client(c),
		Version:         version,
		Hostname:        c.Hostname,
		ManagerUpstream: c.LoopbackUpstream(),
		ManagerHostname: c.ManagerHostname,
		StateDirectory:  c.StateDirectory,
		Root:            c.Root,
		ByHand:          !c.BySystemd,
		RemovalGuard:    c.RemovalGuard,
		SiteProbes:      c.SiteProbes,
		Log:             env.logger(c.LogLevel),
	}
}
