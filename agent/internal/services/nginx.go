package services

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"opensource.internal/agent/internal/apply"
	"opensource.internal/agent/render"
)

const (
	nginxUnit = "nginx.service"
	// nginxGlobals are the global directives of Debian's unit: with them a
	// file that repeats one fails the test as it would fail the reload.
	nginxGlobals = "daemon on; master_process on;"
	// nginxTestTimeout is twice what 10,000 TLS servers take.
	nginxTestTimeout = 18 * time.Second
	// nginxHandover is how long old workers may still accept connections after
	// new ones have begun to: nginx waits 100 ms before it tells them to quit.
	nginxHandover = 200 * time.Millisecond
)

// nginx is the web server: one file, reloaded by systemd. A reload can report
// success while nginx keeps its old configuration (a port that is taken, for
// instance), so only the revision that it serves is proof.
type nginx struct {
	units    Units
	revision string // the URL that tells the revision in force
	errorLog string
	writes   []string // what nginx opens or makes, also for a test
	journal  journal
}

// NGINX returns the service that is configured by render.NGINX.
func NGINX(units Units, paths render.Paths) Service {
	n := nginx{
		units:    units,
		revision: "http://127.0.0.1:80" + render.RevisionPath,
		errorLog: paths.NGINXErrorLog,
		writes:   []string{paths.NGINXErrorLog, paths.NGINXLog, paths.NGINXPid, paths.AuthCache},
		journal:  journalSince,
	}
	return Service{Service: n.service(), Render: render.NGINX}
}

func (n nginx) service() apply.Service {
	return apply.Service{
		Name:      "nginx",
		Unit:      nginxUnit,
		Installed: func() error { return installed("nginx", "nginx") },
		Ready:     func(ctx context.Context) error { return ready(ctx, n.units, nginxUnit, "nginx") },
		Writes:    n.writes,
		Test:      n.test,
		Loaded: func(ctx context.Context, result render.Result) bool {
			return n.serves(ctx, result.Revision) == nil
		},
		Window:   func(test time.Duration) time.Duration { return max(minWindow, 3*test) },
		Steady:   steady,
		Action:   n.action,
		Activate: n.activate,
	}
}

// test runs nginx -t. It finds neither a port that is taken nor one that two
// servers of different kind share: see activate. Away from the error log, nginx
// says the same of the same fault each time: no time of day, no process number.
func (n nginx) test(ctx context.Context, candidate, live string) error {
	err := command(ctx, nginxTestTimeout, "nginx", "-t", "-q", "-e", "/dev/null", "-g", nginxGlobals, "-c", candidate)
	return blamePorts(blame(err, candidate, live), live, candidate)
}

func (n nginx) action(ctx context.Context, _ apply.Activation) string {
	if running(ctx, n.units, nginxUnit) != nil {
		return "start"
	}
	return "reload"
}

func (n nginx) activate(ctx context.Context, a apply.Activation) error {
	since, log := time.Now(), markLog(n.errorLog)
	err := n.reload(ctx, a, log)
	var short *shortLivedError
	if errors.As(err, &short) {
		err = withLines(err, n.journal(ctx, nginxUnit, allLines, since)) // nginx itself may have had no time for words
	}
	main := a.Files[len(a.Files)-1]
	return blamePorts(withLines(err, log.newLines(gravest)), main, main)
}

func (n nginx) reload(ctx context.Context, a apply.Activation, log logMark) error {
	if err := n.units.ReloadOrRestart(ctx, nginxUnit); err != nil {
		return err
	}
	if a.Revision == "" {
		return running(ctx, n.units, nginxUnit)
	}
	process, err := n.units.MainProcess(ctx, nginxUnit)
	if err != nil {
		return err
	}
	err = poll(ctx, a.Window, nginxHandover, func(ctx context.Context) error {
		err := n.serves(ctx, a.Revision)
		if err != nil && len(log.newLines(givesUp)) > 0 {
			return finalError{err}
		}
		return err
	})
	if err != nil {
		return err
	}
	return staysUp(ctx, n.units, nginxUnit, process, a.Steady)
}

// gravest selects the lines of the error log that tell why a configuration
// was not loaded; the rest is about requests. That a container may not raise
// its limits, every worker says after every reload, good or bad.
func gravest(line string) bool {
	return (strings.Contains(line, " [emerg] ") || strings.Contains(line, " [alert] ")) && !strings.Contains(line, " setrlimit(RLIMIT_NOFILE, ")
}

// givesUp selects what nginx logs when it keeps its old configuration for good,
// after it has tried for 2.5 s to bind a port.
func givesUp(line string) bool { return strings.Contains(line, "still could not bind()") }

// serves returns an error unless nginx answers with the revision. Each request
// has a connection of its own: an old one stays with an old worker.
func (n nginx) serves(ctx context.Context, revision string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, n.revision, nil)
	if err != nil {
		return err
	}
	client := http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("ask for the revision in force: %w", err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 256))
	if err != nil {
		return fmt.Errorf("read the revision in force: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the web server on port 80 does not tell its revision (%s): another configuration is in force", response.Status)
	}
	if strings.TrimSpace(string(body)) != revision {
		return errors.New("nginx keeps another configuration in force")
	}
	return nil
}
