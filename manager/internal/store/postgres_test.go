package store_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"opensource.internal/manager/internal/inventory"
	"opensource.internal/manager/internal/store"
	"opensource.internal/manager/internal/store/storetest"
)

func TestPostgreSQLMigrateKilled(t *testing.T) {
	killed := 0
	for round := 0; killed < 4; round++ {
		if round == 30 {
			t.Fatalf("only %d migrations of %d were killed", killed, round)
		}
		database := storetest.EmptyPostgreSQL(t)
		cmd := migrator(t, database.URL)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		gone := make(chan error, 1)
		go func() { gone <- cmd.Wait() }()
		waitForSession(t, database)
		kill := time.AfterFunc(time.Duration(rand.Int64N(int64(60*time.Millisecond))), func() { _ = cmd.Process.Kill() })
		if <-gone != nil {
			killed++
		}
		kill.Stop()
		requireAllOrNothingOnPostgreSQL(t, database)
		if err := store.Migrate(t.Context(), database); err != nil {
			t.Fatalf("after a kill: %v", err)
		}
		storetest.NewWorld(t, storetest.OpenAt(t, database), 1)
	}
}

// otherSessions counts the connections to a database but for the one that asks.
const otherSessions = `SELECT count(*) FROM pg_stat_activity
	WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()`

// waitForSession returns as soon as somebody has connected.
func waitForSession(t *testing.T, database store.Database) {
	t.Helper()
	db := storetest.Raw(t, database)
	db.SetMaxOpenConns(1)
	sessions := 0
	for end := time.Now().Add(20 * time.Second); sessions == 0; {
		if err := db.QueryRow(otherSessions).Scan(&sessions); err != nil {
			t.Fatal(err)
		}
		if time.Now().After(end) {
			t.Fatal("nobody connects")
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// requireAllOrNothingOnPostgreSQL waits until the killed process's session has
// ended, and checks that the database has the whole schema or none.
func requireAllOrNothingOnPostgreSQL(t *testing.T, database store.Database) {
	t.Helper()
	db := storetest.Raw(t, database)
	const objects = "SELECT count(*), count(*) FILTER (WHERE relname IN ('sites', 'goose_db_version', 'confirmed_removals')) FROM pg_class WHERE relnamespace = 'public'::regnamespace"
	db.SetMaxOpenConns(1)
	for end := time.Now().Add(10 * time.Second); ; {
		var sessions, all, known int
		if err := errors.Join(db.QueryRow(otherSessions).Scan(&sessions), db.QueryRow(objects).Scan(&all, &known)); err != nil {
			t.Fatal(err)
		}
		if sessions == 0 {
			if !(all == 0 && known == 0) && !(all > 40 && known == 3) {
				t.Errorf("%d tables, indexes and the like after a kill, %d of those asked for", all, known)
			}
			return
		}
		if time.Now().After(end) {
			t.Fatal("the session of a killed process does not end")
		}
	}
}

func TestPostgreSQLMigrateThreeProcesses(t *testing.T) {
	for range 3 {
		database := storetest.EmptyPostgreSQL(t)
		var group sync.WaitGroup
		for range 3 {
			group.Go(func() {
				if out, err := migrator(t, database.URL).CombinedOutput(); err != nil {
					t.Errorf("%v: %s", err, out)
				}
			})
		}
		group.Wait()
		s := storetest.OpenAt(t, database)
		w := storetest.NewWorld(t, s, 1)
		if err := store.Migrate(t.Context(), database); err != nil { // also beside a running manager
			t.Fatal(err)
		}
		if _, err := s.GetVolume(t.Context(), w.Volume.ID); err != nil {
			t.Error(err)
		}
	}
}

func TestPostgreSQLRefusesOtherSchemas(t *testing.T) {
	database := storetest.EmptyPostgreSQL(t)
	var schema *store.SchemaError
	_, err := store.Open(t.Context(), database, store.Options{})
	if !errors.As(err, &schema) || schema.Have != 0 || !strings.Contains(err.Error(), "run opensource-manager migrate") {
		t.Errorf("empty: %v", err)
	}
	if err := store.Migrate(t.Context(), database); err != nil {
		t.Fatal(err)
	}
	if _, err := storetest.Raw(t, database).Exec("INSERT INTO goose_db_version (version_id, is_applied) VALUES (999, TRUE)"); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"open": second(store.Open(t.Context(), database, store.Options{})), "migrate": store.Migrate(t.Context(), database),
		"open and migrate": second(store.Open(t.Context(), database, store.Options{Migrate: true})),
	} {
		if !errors.As(err, &schema) || schema.Have != 999 || !strings.Contains(err.Error(), "newer version") || !strings.Contains(err.Error(), "postgres://test@") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPostgreSQLPasswordIsNotShown looks at what is said of servers that cannot
// be used.
func TestPostgreSQLPasswordIsNotShown(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	for name, url := range map[string]string{
		"nobody listens": "postgres://manager:s3cret@127.0.0.1:1/manager?sslmode=disable",
		"no answer":      "postgres://manager:s3cret@" + silent.Addr().String() + "/manager?sslmode=disable&connect_timeout=1",
		"not a URL":      "postgres://manager:s3cret@db:port/manager",
		"no such option": "postgres://manager:s3cret@127.0.0.1/manager?sslmode=s3cret",
	} {
		for _, err := range []error{
			second(store.Open(t.Context(), store.Database{URL: url}, store.Options{})),
			store.Migrate(t.Context(), store.Database{URL: url}),
		} {
			if err == nil || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// TestPostgreSQLComesBack ends the server amid use: what needs it fails as
// unavailable and at once, and works again as soon as the server does.
func TestPostgreSQLComesBack(t *testing.T) {
	server := storetest.NewPostgreSQLServer(t)
	s := storetest.OpenAt(t, server.Database(t))
	w := storetest.NewWorld(t, s, 1)
	heard := make(chan struct{}, 100)
	ctx, cancel := context.WithCancel(t.Context())
	listening := make(chan struct{})
	go func() {
		s.Listen(ctx, func() { heard <- struct{}{} })
		close(listening)
	}()
	within(t, heard, "to listen")
	defer func() { cancel(); <-listening }()

	for range 2 {
		server.Stop()
		began := time.Now()
		for name, err := range map[string]error{
			"versions": second2(s.Versions(t.Context())), "read": second2(s.GetSite(t.Context(), w.Site.ID)),
			"write":    second2(s.CreateSite(t.Context(), inventory.Site{Name: "other"})),
			"writable": s.Writable(t.Context()), "ping": s.Ping(t.Context()),
		} {
			if !store.Unavailable(err) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("without a server it takes %s to say so", took)
		}
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		before, err := s.Versions(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		within(t, heard, "to listen again")
		if _, err := s.UpdateSite(t.Context(), w.Site.ID, func(s *inventory.Site) error { s.Gateway = ""; return nil }); err != nil {
			t.Fatal(err)
		}
		within(t, heard, "to hear of a change")
		if _, err := s.UpdateSite(t.Context(), w.Site.ID, func(s *inventory.Site) error { s.Gateway = "192.0.2.1"; return nil }); err != nil {
			t.Fatal(err)
		}
		if after, err := s.Versions(t.Context()); err != nil || after.Site(w.Site.ID) != before.Site(w.Site.ID)+2 {
			t.Errorf("%+v and then %+v, %v", before, after, err)
		}
	}
}

func second2[T any](_ T, err error) error { return err }

// within waits for something to be heard.
func within(t *testing.T, heard <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-heard:
	case <-time.After(20 * time.Second):
		t.Fatalf("%s: nothing for 20 s", what)
	}
}

// TestPostgreSQLReadOnly is a standby, or a server that an administrator has set
// to read-only because its disk is full.
func TestPostgreSQLReadOnly(t *testing.T) {
	server := storetest.NewPostgreSQLServer(t)
	database := server.Database(t)
	s := storetest.OpenAt(t, database)
	administrator := storetest.Raw(t, store.Database{URL: database.URL + "&default_transaction_read_only=off"})
	set := func(value string) {
		t.Helper()
		if _, err := administrator.Exec("ALTER SYSTEM SET default_transaction_read_only = " + value); err != nil {
			t.Fatal(err)
		}
		server.Stop()
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
	}
	set("on")
	if err := s.Writable(t.Context()); !store.Unavailable(err) {
		t.Errorf("writable: %v", err)
	}
	if _, err := s.CreateSite(t.Context(), inventory.Site{Name: "lab"}); !store.Unavailable(err) {
		t.Errorf("write: %v", err)
	}
	if _, _, err := s.ListSites(t.Context(), store.SiteFilter{}, store.ListOptions{}); err != nil {
		t.Errorf("read: %v", err)
	}
	set("off")
	if _, err := s.CreateSite(t.Context(), inventory.Site{Name: "lab"}); err != nil {
		t.Errorf("write: %v", err)
	}
}

// TestPostgreSQLIsMigratedBesideARunningManager: of two managers one is upgraded
// first, and adds to tables that the other one works with.
func TestPostgreSQLIsMigratedBesideARunningManager(t *testing.T) {
	database := storetest.PostgreSQL(t)
	s := storetest.OpenAt(t, database)
	w := storetest.NewWorld(t, s, 1)
	use := func() error {
		_, read := s.GetSite(t.Context(), w.Site.ID)
		_, written := s.UpdateSite(t.Context(), w.Site.ID, func(site *inventory.Site) error { site.ExternalIP = "203.0.113.1"; return nil })
		_, listed := s.FindAgent(t.Context(), w.Site.ID, "agent")
		if errors.Is(listed, store.ErrNotFound) {
			listed = nil
		}
		return errors.Join(read, written, listed)
	}
	for range 20 { // on every connection
		if err := use(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := storetest.Raw(t, database).Exec("ALTER TABLE sites ADD COLUMN more TEXT NOT NULL DEFAULT ''; ALTER TABLE agents ADD COLUMN more TEXT"); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if err := use(); err != nil {
			t.Error(err)
		}
	}
}

// A transaction counts a site once: thousands of versions of one row would be in
// the way of each other. One that was taken back does not count.
func TestATransactionCountsOnce(t *testing.T) {
	s := storetest.OpenAt(t, storetest.PostgreSQL(t))
	w := storetest.NewWorld(t, s, 1)
	counter := func() uint64 {
		t.Helper()
		versions, err := s.Versions(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return versions.Site(w.Site.ID)
	}
	for n := range 2 {
		before := counter()
		err := s.Atomically(t.Context(), func(ctx context.Context) error {
			// Refused after it was written, which takes its count back.
			var conflict *store.ConflictError
			if _, err := s.CreateNode(ctx, w.Site.ID, inventory.Node{Name: "pve1"}); !errors.As(err, &conflict) {
				return fmt.Errorf("a name that is taken: %w", err)
			}
			for i := range 3 {
				if _, err := s.CreateNode(ctx, w.Site.ID, inventory.Node{Name: fmt.Sprintf("new%d-%d", n, i)}); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if after := counter(); after != before+1 {
			t.Errorf("counted from %d to %d", before, after)
		}
	}
	before, no := counter(), errors.New("no")
	err := s.Atomically(t.Context(), func(ctx context.Context) error {
		_, err := s.CreateNode(ctx, w.Site.ID, inventory.Node{Name: "never"})
		return errors.Join(err, no)
	})
	if !errors.Is(err, no) || counter() != before {
		t.Errorf("%v, counted from %d to %d", err, before, counter())
	}
}
