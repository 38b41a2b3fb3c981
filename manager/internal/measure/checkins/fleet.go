package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// The fleet: so many sites, of ten containers each, with so many agents each.
const (
	sites         = 200
	agentsPerSite = 100
)

// fleet measures a manager that knows 20,000 agents, before and after all have
// checked in, and how long it takes to list them.
func (o *options) fleet(ctx context.Context) error {
	sqlite, postgresql, err := o.onBoth()
	if err != nil {
		return err
	}
	fmt.Printf("\n%-12s %14s %14s %14s %14s %14s   %d agents\n", "fleet", "first ones", "started", "all seen", "one page", "all pages", sites*agentsPerSite)
	for _, on := range []struct {
		name string
		installation
	}{{"SQLite", sqlite}, {"PostgreSQL", postgresql}} {
		if err := fleetOn(ctx, on.name, on.installation); err != nil {
			return fmt.Errorf("%s: %w", on.name, err)
		}
	}
	return nil
}

func fleetOn(ctx context.Context, name string, manager installation) error {
	key, err := manager.newKey("--role", "admin")
	if err != nil {
		return err
	}
	s, err := manager.start()
	if err != nil {
		return err
	}
	api := api{url: s.url + "/api/v1/", key: key}
	for site := range sites {
		if err := api.fill(ctx, site+1, 10); err != nil {
			s.stop()
			return err
		}
	}
	began := time.Now()
	tags, err := everyone(ctx, s.url, key, nil)
	first := time.Since(began)
	s.stop()
	if err != nil {
		return err
	}
	if s, err = manager.start(); err != nil { // one that knows them from its database
		return err
	}
	defer s.stop()
	started, err := memory(s.pid(), "VmRSS")
	if err != nil {
		return err
	}
	if _, err := everyone(ctx, s.url, key, tags); err != nil {
		return err
	}
	seen, err := memory(s.pid(), "VmRSS")
	if err != nil {
		return err
	}
	page, all, err := pages(ctx, s.url, key)
	fmt.Printf("%-12s %12.0f/s %10.0f MiB %10.0f MiB %11.0f ms %11.0f ms\n", name,
		sites*agentsPerSite/first.Seconds(), started, seen, page, all)
	return err
}

// everyone lets all agents check in, with the tags of their sites if they have
// them, and returns these.
func everyone(ctx context.Context, url, key string, tags []string) ([]string, error) {
	got, faults := make([]string, sites), make([]error, sites)
	var running sync.WaitGroup
	next := make(chan int)
	for range 16 {
		running.Go(func() {
			for site := range next {
				held, want := "", http.StatusOK
				if tags != nil {
					held, want = tags[site], http.StatusNotModified
				}
				for agent := 0; agent < agentsPerSite && faults[site] == nil; agent++ {
					got[site], faults[site] = checkIn(ctx, url, key, site+1, agent, held, want)
				}
			}
		})
	}
	for site := range sites {
		next <- site
	}
	close(next)
	running.Wait()
	return got, errors.Join(faults...)
}

// pages lists all agents, and returns how long the median page and all of them
// took.
func pages(ctx context.Context, url, key string) (page, all float64, err error) {
	var each series
	for offset := 0; offset < sites*agentsPerSite; offset += 500 {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s/api/v1/agents?limit=500&offset=%d", url, offset), nil)
		if err != nil {
			return 0, 0, err
		}
		r.Header.Set("X-Api-Key", key)
		began := time.Now()
		answer, err := client.Do(r)
		if err != nil {
			return 0, 0, err
		}
		var list struct{ Data []json.RawMessage }
		err = json.NewDecoder(answer.Body).Decode(&list)
		answer.Body.Close()
		if err != nil || len(list.Data) != 500 {
			return 0, 0, fmt.Errorf("%s at %d: %d agents, %w", answer.Status, offset, len(list.Data), err)
		}
		took := milliseconds(time.Since(began))
		each, all = append(each, took), all+took
	}
	return each.median(), all, nil
}
