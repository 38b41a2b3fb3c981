// Command checkins measures how many check-ins a second the manager answers
// with 304 over loopback, with sites of several sizes, side by side with a
// server that only decodes the same body. The load is made by wrk, on the same
// machine.
//
// usage: checkins -manager FILE -bare FILE [-seconds N] [-rounds N] [-sizes N,N]
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

func main() {
	var o options
	flag.StringVar(&o.manager, "manager", "", "the manager's `FILE`")
	flag.StringVar(&o.bare, "bare", "", "the `FILE` of the server that only decodes")
	flag.IntVar(&o.seconds, "seconds", 3, "how long one run lasts")
	flag.IntVar(&o.rounds, "rounds", 5, "runs of each server and size, in alternation")
	flag.StringVar(&o.sizes, "sizes", "100,1000,10000", "containers in the site")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	if err := o.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "checkins:", err)
		os.Exit(1)
	}
}

type options struct {
	manager, bare, sizes string
	seconds, rounds      int
}

func (o *options) run(ctx context.Context) error {
	fmt.Printf("%-12s %-8s %12s %10s %10s %10s   medians of %d runs of %d s, %d connections, %d agents\n",
		"containers", "server", "requests/s", "p50", "p99", "peak RSS", o.rounds, o.seconds, connections, agents)
	for size := range strings.SplitSeq(o.sizes, ",") {
		containers, err := strconv.Atoi(size)
		if err != nil {
			return fmt.Errorf("-sizes: %w", err)
		}
		if err := o.compare(ctx, containers); err != nil {
			return fmt.Errorf("%d containers: %w", containers, err)
		}
	}
	return nil
}

// compare runs both servers in alternation and prints their medians. Only one
// of them runs at a time.
func (o *options) compare(ctx context.Context, containers int) error {
	dir, err := os.MkdirTemp("", "checkins")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	site, err := newSite(ctx, o.manager, dir, containers)
	if err != nil {
		return err
	}
	var bare, manager results
	for range o.rounds {
		if err := o.load(ctx, dir, site, func() (*server, error) { return startBare(o.bare) }, &bare); err != nil {
			return err
		}
		if err := o.load(ctx, dir, site, func() (*server, error) { return startManager(o.manager, dir) }, &manager); err != nil {
			return err
		}
	}
	bare.print(containers, "bare")
	manager.print(containers, "manager")
	// The machine may be busy with other things: a ratio is that of two runs
	// that followed each other.
	fmt.Printf("%-12d %-8s %11.0f%% %10s %8.1f x\n", containers, "ratio",
		100*ratios(manager.perSecond, bare.perSecond).median(), "", ratios(manager.p99, bare.p99).median())
	return nil
}

// load starts a server, lets every agent check in once, and runs wrk.
func (o *options) load(ctx context.Context, dir string, site site, start func() (*server, error), into *results) error {
	s, err := start()
	if err != nil {
		return err
	}
	defer s.stop()
	if err := site.settle(ctx, s.url); err != nil {
		return err
	}
	if err := wrk(ctx, dir, site, s.url, 1, &results{}); err != nil { // to warm up
		return err
	}
	if err := wrk(ctx, dir, site, s.url, o.seconds, into); err != nil {
		return err
	}
	return into.addPeak(s.pid())
}
