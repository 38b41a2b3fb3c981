package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"reflect"
	"strconv"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"opensource.internal/manager/internal/auth"
	"opensource.internal/manager/internal/config"
	"opensource.internal/manager/internal/server"
	"opensource.internal/manager/internal/store"
)

// Exit codes.
const (
	exitOK    = 0
	exitFault = 1
	exitUsage = 2 // of the command line or the configuration
)

// commands is the command line.
type commands struct {
	config.Flags `group:"Settings (flag, then environment, then file, then default):"`

	Agents    agentsCommand    `cmd:"" help:"List the agents and how they stand."`
	Sites     sitesCommand     `cmd:"" help:"List the sites."`
	Apply     applyCommand     `cmd:"" help:"Make sites what files say."`
	Export    exportCommand    `cmd:"" help:"Print sites as files that apply takes."`
	Events    eventsCommand    `cmd:"" help:"Show what happened to the agents, the newest last."`
	Audit     auditCommand     `cmd:"" help:"Show who did what, the newest last."`
	Serve     serveCommand     `cmd:"" help:"Serve the API and the dashboard."`
	Migrate   migrateCommand   `cmd:"" help:"Bring the database to this version's schema."`
	Doctor    doctorCommand    `cmd:"" help:"Look at everything the manager depends on, and say what to do."`
	Backup    backupCommand    `cmd:"" help:"Write a copy of the SQLite database to a file, while the service runs."`
	Restore   restoreCommand   `cmd:"" help:"Put a backup in the place of the SQLite database. The service must be stopped."`
	APIKey    apiKeyCommands   `cmd:"" name:"apikey" help:"Create, list, rotate and revoke API keys."`
	Enroll    enrollCommand    `cmd:"" help:"Make a token by which a host becomes the agent of a site."`
	SetupCode setupCodeCommand `cmd:"" help:"Make the code by which the first account is made in a browser."`
	User      userCommands     `cmd:"" help:"Create, list and change users, and set passwords."`
	Notify    notifyCommands   `cmd:"" help:"Manage who is told what is wrong with agents, and silence sites."`

	Revisions revisionsCommands `cmd:"" help:"List and compare what was published."`
	Pending   pendingCommand    `cmd:"" help:"Show the changes of a site that agents do not get yet."`
	Publish   publishCommand    `cmd:"" help:"Publish the changes of a site."`
	Pin       pinCommand        `cmd:"" help:"Give a site's agents an earlier revision."`
	Unpin     unpinCommand      `cmd:"" help:"Give a site's agents the latest revision again."`
	Preview   previewCommand    `cmd:"" help:"Print the files that a site's agent writes."`

	Completion completionCommand `cmd:"" help:"Print the completion script of a shell."`
	Version    versionCommand    `cmd:"" help:"Print the version."`
}

// environmentOf is what a command works with.
type environmentOf struct {
	context.Context
	config config.Config
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer
	log    *slog.Logger

	settings []config.Setting // where the configuration comes from
	mistakes error            // in the configuration

	onOneLine bool // JSON, for what is printed again and again
}

// regardlessOfSettings is a command that runs even if the configuration is
// wrong.
type regardlessOfSettings interface{ regardlessOfSettings() }

// usageError is a mistake on the command line or in the settings.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// run executes one command line and returns the exit code.
func run(args []string, env map[string]string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	return execute(ctx, args, env, []string{config.File}, stdin, stdout, stderr)
}

// execute is run without the world: files are those with the settings of the
// service.
func execute(ctx context.Context, args []string, env map[string]string, files []string, stdin io.Reader, stdout, stderr io.Writer) int {
	var cli commands
	exited := false
	parser, err := kong.New(&cli, append(commandLine(),
		kong.Writers(stdout, stderr),
		kong.Exit(func(int) { exited = true }), // after printing help
	)...)
	if err != nil {
		return report(stderr, fmt.Errorf("set up the command line: %w", err))
	}
	command, err := parser.Parse(args)
	if exited {
		return exitOK
	}
	if err != nil {
		return report(stderr, usageError{fmt.Errorf("%w (see --help)", err)})
	}
	e := &environmentOf{Context: store.WithActor(ctx, caller(env)), stdin: stdin, stdout: stdout, stderr: stderr}
	e.config, e.settings, e.mistakes = config.Explain(cli.Flags, env, files...)
	_, regardless := command.Selected().Target.Interface().(regardlessOfSettings)
	if e.mistakes != nil && !regardless {
		return report(stderr, usageError{e.mistakes})
	}
	e.log = newLogger(stderr, env, e.config)
	return report(stderr, command.Run(e))
}

// commandLine is what the parser has to know besides the commands.
func commandLine() []kong.Option {
	return []kong.Option{
		kong.Name("opensource-manager"),
		kong.KindMapper(reflect.Int, kong.MapperFunc(wholeNumber)),
		kong.KindMapper(reflect.Int64, kong.MapperFunc(wholeNumber)),
		kong.Description("Manages the networking of Proxmox sites. `opensource-manager serve` is the service.\n\n" +
			"Settings come from flags, the environment and " + config.File + ", the first that has them."),
		kong.Vars{
			"state_directory": config.Defaults.StateDirectory, "listen": config.Defaults.Listen,
			"revisions_keep": config.Defaults.RevisionsKeep, "revisions_min": config.Defaults.RevisionsMin,
			"loopback_site": config.Defaults.LoopbackSite, "log_level": config.Defaults.LogLevel,
			"log_format": config.Defaults.LogFormat, "metrics_detail": config.Defaults.MetricsDetail,
			"notify_window": config.Defaults.NotifyWindow, "notify_remind": config.Defaults.NotifyRemind,
			"audit_keep": config.Defaults.AuditKeep, "audit_max": config.Defaults.AuditMax,
			"events_keep": config.Defaults.EventsKeep, "events_max": config.Defaults.EventsMax,
		},
	}
}

// report prints what went wrong, one line per mistake, and chooses the code.
func report(stderr io.Writer, err error) int {
	if err == nil {
		return exitOK
	}
	for line := range strings.SplitSeq(err.Error(), "\n") {
		fmt.Fprintln(stderr, "opensource-manager: "+line)
	}
	var usage usageError
	var field *auth.FieldError
	if errors.As(err, &usage) || errors.As(err, &field) {
		return exitUsage
	}
	return exitFault
}

// withStore runs work on the database, which must be there and of the current
// schema: looking at it makes nothing, and migrates nothing under a service of
// another version.
func (e *environmentOf) withStore(work func(*store.Store) error) error {
	return e.open(store.Options{}, work)
}

// withNewStore makes or migrates the database first, so that keys, users and
// sites can be made before the first start of the service.
func (e *environmentOf) withNewStore(work func(*store.Store) error) error {
	return e.open(store.Options{Migrate: true}, work)
}

func (e *environmentOf) open(o store.Options, work func(*store.Store) error) error {
	o.ReservedPorts, o.Log = ownPort(e.config.Listen), e.log
	s, err := store.Open(e, server.DatabaseOf(e.config), o)
	if err != nil {
		return err
	}
	return errors.Join(work(s), s.Close())
}

// shownAs is what show makes of each row, and a list in JSON even if there are
// none.
func shownAs[Row, Shown any](rows []Row, show func(Row) Shown) []Shown {
	list := make([]Shown, 0, len(rows))
	for _, row := range rows {
		list = append(list, show(row))
	}
	return list
}

// printJSON writes a value for scripts.
func (e *environmentOf) printJSON(value any) error {
	encoder := json.NewEncoder(e.stdout)
	if !e.onOneLine {
		encoder.SetIndent("", "  ")
	}
	return encoder.Encode(value)
}

// caller is who gave the command, as far as the environment tells: sudo names
// the person behind root. It is a note for the log, not a proof.
func caller(env map[string]string) store.Actor {
	for _, name := range []string{"SUDO_USER", "LOGNAME", "USER"} {
		if env[name] != "" {
			return store.Actor{Kind: store.ActorCommand, Name: env[name]}
		}
	}
	return store.Actor{Kind: store.ActorCommand, Name: "uid " + strconv.Itoa(os.Getuid())}
}

// environment turns KEY=VALUE lines into a map.
func environment(lines []string) map[string]string {
	env := make(map[string]string, len(lines))
	for _, line := range lines {
		if key, value, found := strings.Cut(line, "="); found {
			env[key] = value
		}
	}
	return env
}
