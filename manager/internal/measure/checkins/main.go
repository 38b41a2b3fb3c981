// Command checkins measures a manager under the check-ins of its agents, on
// SQLite and on a PostgreSQL server of its own:
//
//   - load: how many check-ins a second are answered with 304 over loopback, side
//     by side with a server that only decodes the same body; with sites of several
//     sizes, and with two managers on one database. The load is made by wrk, on
//     the same machine.
//   - changes: how long it takes from a change until an agent gets it, in a site of
//     10,000 containers.
//   - revisions: how much each change adds to the database.
//   - fleet: memory, and how long lists take, with 20,000 agents.
//
// usage: checkins -manager FILE -bare FILE [-seconds N] [-rounds N] [-sizes N,N] [load|changes|revisions|fleet ...]
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"opensource.internal/manager/internal/store/storetest"
)

func main() {
	var o options
	flag.StringVar(&o.manager, "manager", "", "the manager's `FILE`")
	flag.StringVar(&o.bare, "bare", "", "the `FILE` of the server that only decodes")
	flag.IntVar(&o.seconds, "seconds", 3, "how long one run lasts")
	flag.IntVar(&o.rounds, "rounds", 5, "runs of each server and size, in alternation")
	flag.StringVar(&o.sizes, "sizes", "100,1000,10000", "containers in the site")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM) // nothing is to stay behind
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, 20*time.Minute)
	defer cancel()
	if err := o.run(ctx, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "checkins:", err)
		os.Exit(1)
	}
}

type options struct {
	manager, bare, sizes string
	seconds, rounds      int

	dir        string
	postgresql *storetest.PostgreSQLServer
	made       int // databases
}

func (o *options) run(ctx context.Context, parts []string) (err error) {
	if o.dir, err = os.MkdirTemp("", "checkins"); err != nil {
		return err
	}
	defer os.RemoveAll(o.dir)
	if o.postgresql, err = storetest.MeasuredPostgreSQL(); err != nil {
		return err
	}
	defer o.postgresql.Remove()
	if len(parts) == 0 {
		parts = []string{"load", "changes", "revisions", "fleet"}
	}
	for _, part := range parts {
		measure, known := map[string]func(context.Context) error{
			"load": o.load, "changes": o.changes, "revisions": o.revisions, "fleet": o.fleet,
		}[part]
		if !known {
			return fmt.Errorf("there is no %q to measure", part)
		}
		if err := measure(ctx); err != nil {
			return fmt.Errorf("%s: %w", part, err)
		}
	}
	return nil
}

// onBoth are managers with an empty database of each kind.
func (o *options) onBoth() (sqlite, postgresql installation, err error) {
	o.made++
	database, err := o.postgresql.Create(fmt.Sprintf("measured_%d", o.made))
	if err != nil {
		return sqlite, postgresql, err
	}
	dirs := [2]string{}
	for n := range dirs {
		if dirs[n], err = os.MkdirTemp(o.dir, ""); err != nil {
			return sqlite, postgresql, err
		}
	}
	return installation{file: o.manager, dir: dirs[0]}, installation{file: o.manager, dir: dirs[1], url: database.URL}, nil
}

func (o *options) sizesOf() (sizes []int, err error) {
	for text := range strings.SplitSeq(o.sizes, ",") {
		size, err := strconv.Atoi(text)
		if err != nil {
			return nil, fmt.Errorf("-sizes: %w", err)
		}
		sizes = append(sizes, size)
	}
	return sizes, nil
}
