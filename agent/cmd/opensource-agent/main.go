// Command opensource-agent does one pass for its site: it checks in with the
// manager, puts the snapshot it gets into force, and tells what happened.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/alecthomas/kong"

	"opensource.internal/agent/checkin"
	"opensource.internal/agent/internal/config"
	"opensource.internal/agent/internal/pass"
)

// version is set by the linker.
var version = "development"

func main() {
	// A pass mostly waits: for the manager, the disk, systemd. One processor
	// does, and spares it the threads that a second one would start.
	runtime.GOMAXPROCS(1)
	os.Exit(int(run(os.Args[1:], os.Environ(), os.Stdout, os.Stderr)))
}

// commandLine is the agent's command line.
type commandLine struct {
	Root           string           `placeholder:"DIR" help:"Write all files below this folder and leave systemd alone: for demonstrations and tests."`
	LogLevel       string           `placeholder:"LEVEL" help:"Log messages from this level up: debug, info, warn or error (LOG_LEVEL, default info)."`
	SiteID         string           `name:"site-id" placeholder:"N" help:"Number of the site on the manager (SITE_ID)."`
	ManagerURL     string           `name:"manager-url" placeholder:"URL" help:"Address of the manager (MANAGER_URL)."`
	StateDirectory string           `placeholder:"DIR" help:"Where the agent keeps what it knows (STATE_DIRECTORY, default /var/lib/opensource-agent)."`
	Version        kong.VersionFlag `help:"Print the version and exit."`
}

const description = `Does one pass for its site: checks in with the manager, puts the configuration of nginx, dnsmasq and volumes into force, and reports.

Settings come from these flags, the environment, /etc/opensource-agent/agent.env, /run/opensource-agent/environment and /etc/environment, the first one that has them. The API key is read from API_KEY, the file API_KEY_FILE or the systemd credential api-key.

Exit status: 0 settled, 1 unexpected, 2 usage or configuration, 3 manager unreachable or its answer refused, 4 something rejected or rolled back, 5 a rollback failed, 6 another pass is running.`

// run does one pass and returns the exit status.
func run(args, environ []string, stdout, stderr io.Writer) pass.Code {
	var line commandLine
	ended := false
	parser, err := kong.New(
		&line,
		kong.Name("opensource-agent"),
		kong.Description(description),
		kong.Vars{"version": "opensource-agent " + version},
		kong.Writers(stdout, stderr),
		kong.Exit(func(int) { ended = true }),
	)
	if err != nil {
		fmt.Fprintln(stderr, "opensource-agent:", err)
		return pass.Unexpected
	}
	_, err = parser.Parse(args)
	if ended { // --help or --version
		return pass.Settled
	}
	if err != nil {
		fmt.Fprintf(stderr, "opensource-agent: %v (see opensource-agent --help)\n", err)
		return pass.Usage
	}
	settings, err := config.Load(config.Flags{
		Root:           line.Root,
		LogLevel:       line.LogLevel,
		SiteID:         line.SiteID,
		ManagerURL:     line.ManagerURL,
		StateDirectory: line.StateDirectory,
	}, environ)
	if err != nil {
		tellMistakes(mistakes(err), stderr)
		return pass.Usage
	}
	// What nginx and dnsmasq have to read must not depend on a shell's habits.
	syscall.Umask(0o022)
	for name, value := range settings.Proxies {
		// Where net/http looks for them; by hand they may come from a file.
		_ = os.Setenv(name, value)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return pass.Run(ctx, options(settings, stderr))
}

// tellMistakes writes a line for each, to the journal as an error.
func tellMistakes(mistakes []error, stderr io.Writer) {
	for _, mistake := range mistakes {
		if attachedToJournal(stderr) {
			logger(slog.LevelInfo, stderr).Error(mistake.Error())
			continue
		}
		fmt.Fprintln(stderr, "opensource-agent:", mistake)
	}
}

// mistakes takes a joined error apart.
func mistakes(err error) []error {
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		return joined.Unwrap()
	}
	return []error{err}
}

func options(c config.Config, stderr io.Writer) pass.Options {
	return pass.Options{
		SiteID: c.SiteID,
		Client: &checkin.Client{
			URL:       c.ManagerURL,
			Key:       c.APIKey,
			UserAgent: "opensource-agent/" + version,
			Transport: transport(c),
		},
		Version:         version,
		Hostname:        c.Hostname,
		ManagerUpstream: c.LoopbackUpstream(),
		ManagerHostname: c.ManagerHostname,
		StateDirectory:  c.StateDirectory,
		Root:            c.Root,
		ByHand:          !c.BySystemd,
		Log:             logger(c.LogLevel, stderr),
	}
}
