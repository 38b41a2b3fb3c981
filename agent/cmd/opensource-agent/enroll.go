package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"opensource.internal/agent/checkin"
	"opensource.internal/agent/internal/config"
	"opensource.internal/agent/internal/enroll"
	"opensource.internal/agent/internal/pass"
)

// enrollCommand turns a token into this host's key and settings.
type enrollCommand struct {
	Manager string `placeholder:"URL" help:"Address of the manager; MANAGER_URL if not given."`
	Token   string `placeholder:"TOKEN" help:"The token that an administrator has made on the manager, or - to read it from stdin."`
	CAFile  string `name:"ca-file" placeholder:"FILE" help:"Authority of the manager's certificate, if that is a private one; kept as MANAGER_CA_FILE."`
	Force   bool   `help:"Do it although this host is configured already: its site, manager and key are replaced."`
	NoPass  bool   `help:"Do not make a first pass: the timer will."`
}

// Help implements kong.HelpProvider.
func (*enrollCommand) Help() string {
	return `Makes this host the agent of a site. The token, good for one host and a short time, is turned into a key of this host's own, in ` + config.KeyFile + ` (mode 0600); the manager accepts it from no host of another name. SITE_ID, MANAGER_URL and API_KEY_FILE are written to ` + config.File + `, where all other lines stay as they are. Then it makes a first pass.

On the manager: opensource-manager enroll SITE, or POST /api/v1/sites/ID/enrollments; both answer with the whole command.

Examples:
  sudo opensource-agent enroll --manager https://manager.example.com --token ose_...
  sudo opensource-agent enroll --manager https://manager.example.com --token - < token

If the answer is lost on the way, give the same command again within ten minutes.

Exit status: that of the first pass; 2 usage, or this host is configured already; 3 the manager cannot be reached, or refuses the token; 1 key or settings could not be written.`
}

func (c *enrollCommand) run(ctx context.Context, env environment) pass.Code {
	if c.Manager != "" {
		env.flags.ManagerURL = c.Manager
	}
	token, err := c.token(env.stdin)
	if err != nil {
		return env.fail(pass.Usage, err)
	}
	if c.CAFile != "" {
		if c.CAFile, err = filepath.Abs(c.CAFile); err != nil {
			return env.fail(pass.Usage, err)
		}
	}
	settings, err := config.LoadEnrolling(env.flags, c.CAFile, env.environ)
	if err == nil {
		err = c.allowed(settings)
	}
	if err != nil {
		return env.fail(pass.Usage, err)
	}
	enrolled, err := c.enroll(ctx, env, settings, token)
	if err != nil {
		return env.fail(codeOfEnrollment(err), err)
	}
	fmt.Fprintf(env.stdout, "This host is the agent %s of site %d now. Key: %s. Settings: %s.\n",
		enrolled.Hostname, enrolled.SiteID, settings.Root+config.KeyFile, settings.Root+config.File)
	if c.NoPass {
		return pass.Settled
	}
	return firstPass(ctx, env)
}

// token is what was given, or the first line of stdin.
func (c *enrollCommand) token(stdin io.Reader) (string, error) {
	token := c.Token
	if token == "-" {
		line, err := bufio.NewReader(io.LimitReader(stdin, 4<<10)).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return "", fmt.Errorf("read token from stdin: %w", err)
		}
		token = line
	}
	if token = strings.TrimSpace(token); token == "" {
		return "", errors.New("--token: not given: make one on the manager with opensource-manager enroll SITE")
	}
	return token, nil
}

// allowed refuses what only root may do, and what would replace an agent unasked.
func (c *enrollCommand) allowed(settings config.Enrolling) error {
	if settings.Root == "" && os.Geteuid() != 0 {
		return errors.New("only root may write the key and the settings: sudo opensource-agent enroll")
	}
	if settings.Configured != "" && !c.Force {
		return fmt.Errorf("this host is configured already (%s): --force replaces its site, manager and key", settings.Configured)
	}
	return nil
}

func (c *enrollCommand) enroll(ctx context.Context, env environment, settings config.Enrolling, token string) (checkin.Enrolled, error) {
	transport := config.Config{ManagerURL: settings.ManagerURL, ManagerRoots: settings.ManagerRoots, Proxies: settings.Proxies}
	useProxies(transport)
	hostname := settings.Hostname
	if hostname == "" {
		var err error
		if hostname, err = os.Hostname(); err != nil {
			return checkin.Enrolled{}, fmt.Errorf("find out the host's name: %w", err)
		}
	}
	return enroll.Run(ctx, enroll.Options{
		Client: client(transport), Token: token, Hostname: hostname, File: config.File, KeyFile: config.KeyFile,
		Root: settings.Root, CAFile: c.kept(env), StateDirectory: settings.StateDirectory,
	})
}

// kept is the authority that the timer's passes need, too, and would not find: it
// was given here, or only in this shell.
func (c *enrollCommand) kept(env environment) string {
	if c.CAFile != "" {
		return c.CAFile
	}
	for _, entry := range env.environ {
		if file, found := strings.CutPrefix(entry, "MANAGER_CA_FILE="); found {
			return file
		}
	}
	return ""
}

// firstPass is one as the timer would make it: with what is in the files now.
func firstPass(ctx context.Context, env environment) pass.Code {
	env.flags.ManagerURL, env.flags.SiteID = "", ""
	env.environ = slices.DeleteFunc(slices.Clone(env.environ), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains([]string{"SITE_ID", "MANAGER_URL", "API_KEY", "API_KEY_FILE"}, name)
	})
	return new(runCommand).run(ctx, env)
}

// codeOfEnrollment tells a manager that does not answer, or refuses, from a host
// that cannot keep the answer.
func codeOfEnrollment(err error) pass.Code {
	var manager *enroll.ManagerError
	if errors.As(err, &manager) {
		return pass.ManagerAway
	}
	return pass.Unexpected
}
