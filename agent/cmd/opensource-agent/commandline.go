package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"opensource.internal/agent/internal/pass"
)

// commandLine is the agent's command line: what every command takes, and the
// commands.
type commandLine struct {
	Root           string           `placeholder:"DIR" help:"Write all files below this folder and leave systemd alone: for demonstrations and tests."`
	LogLevel       string           `placeholder:"LEVEL" complete:"debug,info,warn,error" help:"Log messages from this level up: debug, info, warn or error (LOG_LEVEL, default info)."`
	SiteID         string           `name:"site-id" placeholder:"N" help:"Number of the site on the manager (SITE_ID)."`
	ManagerURL     string           `name:"manager-url" placeholder:"URL" help:"Address of the manager (MANAGER_URL)."`
	StateDirectory string           `placeholder:"DIR" help:"Where the agent keeps what it knows (STATE_DIRECTORY, default /var/lib/opensource-agent)."`
	Version        kong.VersionFlag `help:"Print the version and exit."`

	Run     runCommand     `cmd:"" default:"withargs" help:"Do one pass. This is what happens without a command."`
	Enroll  enrollCommand  `cmd:"" help:"Make this host the agent of a site, with a token from the manager."`
	Status  statusCommand  `cmd:"" help:"Tell how the site of this host stands."`
	Check   checkCommand   `cmd:"" help:"Look at everything a pass depends on, and say what to do."`
	Bundle  bundleCommand  `cmd:"" help:"Write a support archive, without secrets."`
	Render  renderCommand  `cmd:"" help:"Render a snapshot into a folder, offline."`
	Hold    holdCommand    `cmd:"" help:"Leave nginx or dnsmasq alone for a while: no apply, no repair, no reload."`
	Release releaseCommand `cmd:"" help:"End a hold before its time."`
}

// description ends with the exit statuses.
const description = `Looks after the site of this host: checks in with the manager, puts the configuration of nginx, dnsmasq and volumes into force, and reports.

Settings come from these flags, the environment, /etc/opensource-agent/agent.env, /run/opensource-agent/environment and /etc/environment, the first one that has them. The API key is read from API_KEY, the file API_KEY_FILE or the systemd credential api-key.

Exit status: `

// exitStatuses lists what the exit statuses of a pass mean.
func exitStatuses() string {
	var all []string
	for code := pass.Settled; code <= pass.AnotherPassOn; code++ {
		all = append(all, fmt.Sprintf("%d %s", code, code))
	}
	return strings.Join(all, "; ") + "."
}

// command is one of the commands: a struct with its flags and arguments.
type command interface {
	run(context.Context, environment) pass.Code
}

// run does what the arguments ask for and returns the exit status.
func run(args []string, env environment) pass.Code {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The timer's pass has no arguments. It is spared the description of all
	// commands, which costs half a millisecond.
	if len(args) == 0 {
		return new(runCommand).run(ctx, env)
	}
	var line commandLine
	chosen, code := line.parse(args, env)
	if chosen == nil {
		return code
	}
	env.flags = line.settings()
	return chosen.run(ctx, env)
}

// parse returns the command that the arguments name. There is none if they are
// wrong, or ask for help or the version.
func (l *commandLine) parse(args []string, env environment) (command, pass.Code) {
	ended := false
	parser, err := kong.New(
		l,
		kong.Name("opensource-agent"),
		kong.Description(description+exitStatuses()),
		kong.Vars{"version": "opensource-agent " + version},
		kong.Writers(env.stdout, env.stderr),
		kong.Exit(func(int) { ended = true }),
	)
	if err != nil {
		fmt.Fprintln(env.stderr, "opensource-agent:", err)
		return nil, pass.Unexpected
	}
	parsed, err := parser.Parse(args)
	if ended { // --help or --version
		return nil, pass.Settled
	}
	if err != nil {
		fmt.Fprintf(env.stderr, "opensource-agent: %v (see opensource-agent --help)\n", err)
		return nil, pass.Usage
	}
	return parsed.Selected().Target.Addr().Interface().(command), pass.Settled
}
