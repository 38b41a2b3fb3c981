package main

import (
	"context"
	"fmt"
)

// contender is what answers the load: one server or several side by side.
type contender struct {
	name    string
	site    site
	start   func() (*server, error)
	servers int
	results
}

func (o *options) load(ctx context.Context) error {
	sizes, err := o.sizesOf()
	if err != nil {
		return err
	}
	fmt.Printf("%-12s %-16s %12s %10s %10s %10s   medians of %d runs of %d s, %d connections, %d agents\n",
		"containers", "server", "requests/s", "p50", "p99", "peak RSS", o.rounds, o.seconds, connections, agents)
	for _, containers := range sizes {
		if err := o.compare(ctx, containers); err != nil {
			return fmt.Errorf("%d containers: %w", containers, err)
		}
	}
	return nil
}

// compare runs all in alternation and prints their medians. Only one of them
// runs at a time.
func (o *options) compare(ctx context.Context, containers int) error {
	sqlite, postgresql, err := o.onBoth()
	if err != nil {
		return err
	}
	onSQLite, err := newSite(ctx, sqlite, containers)
	if err != nil {
		return err
	}
	onPostgreSQL, err := newSite(ctx, postgresql, containers)
	if err != nil {
		return err
	}
	all := []*contender{
		{name: "bare", site: onSQLite, start: func() (*server, error) { return startBare(o.bare) }, servers: 1},
		{name: "SQLite", site: onSQLite, start: sqlite.start, servers: 1},
		{name: "PostgreSQL", site: onPostgreSQL, start: postgresql.start, servers: 1},
		{name: "PostgreSQL, two", site: onPostgreSQL, start: postgresql.start, servers: 2},
	}
	for range o.rounds {
		for _, c := range all {
			if err := o.try(ctx, c); err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
		}
	}
	bare := all[0]
	for _, c := range all {
		c.print(containers, c.name)
	}
	// The machine may be busy with other things: a ratio is that of two runs
	// that followed each other.
	for _, c := range all[1:] {
		fmt.Printf("%-12d %-16s %11.0f%% %10s %8.1f x\n", containers, c.name,
			100*ratios(c.perSecond, bare.perSecond).median(), "", ratios(c.p99, bare.p99).median())
	}
	return nil
}

// try starts the servers, lets every agent check in once, and runs wrk.
func (o *options) try(ctx context.Context, c *contender) error {
	var servers []*server
	for range c.servers {
		s, err := c.start()
		if err != nil {
			return err
		}
		defer s.stop()
		if err := c.site.settle(ctx, s.url); err != nil {
			return err
		}
		servers = append(servers, s)
	}
	if err := wrk(ctx, o.dir, c.site, servers, 1, &results{}); err != nil { // to warm up
		return err
	}
	if err := wrk(ctx, o.dir, c.site, servers, o.seconds, &c.results); err != nil {
		return err
	}
	peak, err := memory(servers[0].pid(), "VmHWM")
	c.peak = append(c.peak, peak)
	return err
}
