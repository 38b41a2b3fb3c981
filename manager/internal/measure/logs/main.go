// Command logs measures how much the audit log and the events grow: bytes for a
// row of each in an SQLite file, indexes included, and what a plausible day of
// 1,000 agents adds up to.
//
// usage: logs [-rows N]
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"opensource.internal/agent/checkin"
	"opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/store"
)

func main() {
	rows := flag.Int("rows", 4000, "rows of each log")
	flag.Parse()
	if err := run(context.Background(), *rows); err != nil {
		fmt.Fprintln(os.Stderr, "logs:", err)
		os.Exit(1)
	}
}

// A plausible day of 1,000 sites with an agent each: what people do, and what
// happens. Of a thousand agents fifty are away once, twenty have a configuration
// refused that is mended, ten have a record left out, ten a file edited, twenty a
// volume that fails, thirty a certificate that is renewed late, and every agent is
// upgraded once a month.
const (
	changesADay = 2000
	eventsADay  = 2*50 + 2*20 + 2*10 + 10 + 2*20 + 2*30 + 1000/30
)

func run(ctx context.Context, rows int) error {
	dir, err := os.MkdirTemp("", "logs")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "manager.db")
	for _, log := range []struct {
		name   string
		aDay   int
		fill   func(context.Context, *store.Store, int) error
		number func(context.Context, *store.Store) (int64, error)
	}{{"audit log", changesADay, change, audited}, {"events", eventsADay, report, happened}} {
		before, had, err := measure(ctx, file, prepare, log.number)
		if err != nil {
			return err
		}
		fill := func(ctx context.Context, s *store.Store) error { return log.fill(ctx, s, rows) }
		after, has, err := measure(ctx, file, fill, log.number)
		if err != nil {
			return err
		}
		row := float64(after-before) / float64(has-had)
		fmt.Printf("%-10s %6.0f bytes a row of %d rows, %5d rows and %6.2f MB a day\n",
			log.name, row, has-had, log.aDay, row*float64(log.aDay)/1e6)
	}
	return nil
}

// measure does something and returns the size of the file and the rows of a log.
func measure(ctx context.Context, file string, do func(context.Context, *store.Store) error, number func(context.Context, *store.Store) (int64, error)) (size, rows int64, err error) {
	s, err := store.Open(ctx, store.Database{Path: file}, store.Options{Migrate: true})
	if err != nil {
		return 0, 0, err
	}
	if err := do(ctx, s); err != nil {
		return 0, 0, err
	}
	if rows, err = number(ctx, s); err != nil {
		return 0, 0, err
	}
	if err := s.Close(); err != nil { // which puts everything into the file
		return 0, 0, err
	}
	info, err := os.Stat(file)
	if err != nil {
		return 0, 0, err
	}
	return info.Size(), rows, nil
}

func audited(ctx context.Context, s *store.Store) (int64, error) {
	_, total, err := s.ListAudit(ctx, store.AuditFilter{}, store.ListOptions{Limit: 1})
	return total, err
}

func happened(ctx context.Context, s *store.Store) (int64, error) {
	_, total, err := s.ListEvents(ctx, store.EventFilter{}, store.ListOptions{Limit: 1})
	return total, err
}

// prepare makes what is changed and reported about, once.
func prepare(ctx context.Context, s *store.Store) error {
	if _, total, err := s.ListSites(ctx, store.SiteFilter{}, store.ListOptions{}); err != nil || total > 0 {
		return err
	}
	site, err := s.CreateSite(ctx, inventory.Site{Name: "lab"})
	if err != nil {
		return err
	}
	node, err := s.CreateNode(ctx, site.ID, inventory.Node{Name: "pve1"})
	if err != nil {
		return err
	}
	_, err = s.CreateContainer(ctx, site.ID, inventory.Container{NodeID: node.ID, Hostname: "web", Owner: "alice", IPv4Address: "192.0.2.101"})
	return err
}

// change makes changes by a person: of four, one changes an address, one an
// owner, and two create and delete a service.
func change(ctx context.Context, s *store.Store, rows int) error {
	ctx = store.WithActor(ctx, store.Actor{Kind: store.ActorUser, ID: 1, Name: "ada.lovelace", Address: "198.51.100.207", RequestID: "PLQ4XZ43-2f9"})
	for i := range rows / 4 {
		_, err := s.UpdateContainer(ctx, 1, func(c *inventory.Container) error { c.IPv4Address = fmt.Sprintf("192.0.2.%d", 100+i%2); return nil })
		if err != nil {
			return err
		}
		_, err = s.UpdateContainer(ctx, 1, func(c *inventory.Container) error { c.Owner = fmt.Sprintf("team-%d", i%2); return nil })
		if err != nil {
			return err
		}
		service, err := s.CreateService(ctx, 1, inventory.Service{Type: inventory.ServiceTransport, InternalPort: 22, Protocol: "tcp"})
		if err != nil {
			return err
		}
		if err := s.DeleteService(ctx, service.ID); err != nil {
			return err
		}
	}
	return nil
}

// report has an agent tell of a refused configuration, a record that is left out,
// an edited file, and between them that all is well again: five events.
func report(ctx context.Context, s *store.Store, rows int) error {
	message := "nginx: [emerg] host not found in upstream \"auth.example.com\" in /etc/nginx/nginx.conf:120\nnginx: configuration file /etc/nginx/nginx.conf test failed"
	fine := checkin.ServiceReport{State: "active", LastApply: checkin.ApplySuccess, Outcome: checkin.OutcomeApplied}
	refused := checkin.ServiceReport{State: "active", LastApply: checkin.ApplyFailure, Outcome: checkin.OutcomeRejected, Message: message}
	leftOut := checkin.ServiceReport{
		State: "active", LastApply: checkin.ApplyFailure, Outcome: checkin.OutcomeApplied,
		Quarantined: []checkin.QuarantinedItem{{Kind: checkin.KindHTTP, ID: 3, Name: "app.example.com", Reason: message}},
	}
	edited := fine
	edited.Drift = []checkin.Drift{{Path: "/etc/nginx/nginx.conf", Diff: "--- in force\n+++ found\n@@ -1,4 +1,4 @@\n-worker_processes auto;\n+worker_processes 1;\n events {\n"}}
	at := time.Now().Add(-time.Duration(rows) * time.Hour)
	for range rows / 5 {
		for _, service := range []checkin.ServiceReport{refused, fine, leftOut, fine, edited} {
			at = at.Add(12 * time.Minute)
			_, err := s.RecordCheckIn(ctx, store.CheckIn{
				SiteID: 1, Hostname: "edge-of-the-lab", At: at.UTC(),
				Report: checkin.Request{Services: map[string]checkin.ServiceReport{"nginx": service}},
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}
