package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
)

// revisions measures how much a change that is published adds to an SQLite file:
// the revision, and the entry of the audit log.
func (o *options) revisions(ctx context.Context) error {
	const changes = 200
	fmt.Printf("\n%-12s %14s   of %d changes, each published\n", "containers", "a change", changes)
	for _, containers := range []int{10, 100, 1000} {
		manager, _, err := o.onBoth()
		if err != nil {
			return err
		}
		site, err := newSite(ctx, manager, containers)
		if err != nil {
			return err
		}
		before, err := manager.size()
		if err != nil {
			return err
		}
		if err := manager.publish(ctx, site, changes); err != nil {
			return err
		}
		after, err := manager.size()
		if err != nil {
			return err
		}
		fmt.Printf("%-12d %8d bytes\n", containers, (after-before)/changes)
	}
	return nil
}

// publish makes changes that an agent gets one by one.
func (i installation) publish(ctx context.Context, site site, changes int) error {
	s, err := i.start()
	if err != nil {
		return err
	}
	defer s.stop()
	api := api{url: s.url + "/api/v1/", key: site.admin}
	for n := range changes {
		if err := api.send(ctx, http.MethodPatch, "containers/5", fmt.Sprintf(`{"hostname":"changed-%d"}`, n)); err != nil {
			return err
		}
		if _, err := checkIn(ctx, s.url, site.key, 1, 0, site.etag, http.StatusOK); err != nil {
			return err
		}
	}
	return nil
}

// size is that of the database of a manager that has stopped.
func (i installation) size() (int64, error) {
	info, err := os.Stat(filepath.Join(i.dir, "manager.db"))
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
