package main

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// changes measures from the request that changes a container until an agent has
// the new snapshot: at the manager that was asked, and at another one on the same
// database.
func (o *options) changes(ctx context.Context) error {
	const containers = 10_000
	sqlite, postgresql, err := o.onBoth()
	if err != nil {
		return err
	}
	fmt.Printf("\n%-36s %12s %12s   medians of %d, %d containers\n", "a change of a container", "answered", "at an agent", 4*o.rounds, containers)
	var all []*changing
	for _, c := range []*changing{
		{name: "SQLite", installation: sqlite}, {name: "PostgreSQL", installation: postgresql}, {name: "PostgreSQL, by the other manager", installation: postgresql},
	} {
		if len(all) == 2 {
			c.site = all[1].site
		} else if c.site, err = newSite(ctx, c.installation, containers); err != nil {
			return err
		}
		if c.changed, err = c.start(); err != nil {
			return err
		}
		defer c.changed.stop()
		c.asked = c.changed
		all = append(all, c)
	}
	all[2].asked = all[1].changed
	for n := range 4*o.rounds + 1 {
		for _, c := range all {
			if err := c.change(ctx, n); err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
		}
	}
	for _, c := range all {
		fmt.Printf("%-36s %9.0f ms %9.0f ms\n", c.name, c.answered[1:].median(), c.served[1:].median())
	}
	return nil
}

// changing is where a change is made, and where an agent asks for it.
type changing struct {
	name string
	installation
	site
	changed, asked   *server
	answered, served series // in milliseconds
}

func (c *changing) change(ctx context.Context, n int) error {
	held, err := checkIn(ctx, c.asked.url, c.key, 1, 0, "", http.StatusOK)
	if err != nil {
		return err
	}
	began := time.Now()
	api := api{url: c.changed.url + "/api/v1/", key: c.admin}
	if err := api.send(ctx, http.MethodPatch, "containers/5000", fmt.Sprintf(`{"hostname":"changed-%d-%d"}`, n, began.UnixNano())); err != nil {
		return err
	}
	answered := time.Since(began)
	etag, err := checkIn(ctx, c.asked.url, c.key, 1, 0, held, http.StatusOK) // no 304: the change is there
	if err == nil && etag == held {
		err = fmt.Errorf("the tag is still %s", etag)
	}
	c.answered, c.served = append(c.answered, milliseconds(answered)), append(c.served, milliseconds(time.Since(began)))
	return err
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
