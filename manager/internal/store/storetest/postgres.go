package storetest

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"opensource.internal/manager/internal/store"
)

// PostgreSQL returns a database of the current schema, whatever the run is for.
// It is dropped when the test ends. Without Debian's package postgresql the
// test is skipped.
func PostgreSQL(t testing.TB) store.Database {
	t.Helper()
	return shared(t).create(t, template)
}

// EmptyPostgreSQL returns a database without any table.
func EmptyPostgreSQL(t testing.TB) store.Database {
	t.Helper()
	return shared(t).create(t, "template1")
}

// template is the database of the current schema that others are copies of.
const template = "template_manager"

var (
	sharedServer    = sync.OnceValues(startShared)
	errNoPostgreSQL = errors.New("PostgreSQL is not installed (Debian: postgresql)")
	databases       atomic.Int64
)

// shared is the server of this test binary, started by the first test that
// needs it.
func shared(t testing.TB) *PostgreSQLServer {
	t.Helper()
	server, err := sharedServer()
	if errors.Is(err, errNoPostgreSQL) {
		t.Skipf("SKIPPED: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return server
}

func startShared() (*PostgreSQLServer, error) {
	p, err := newServer()
	if err != nil {
		return nil, err
	}
	if err := p.Start(); err != nil {
		return nil, err
	}
	if err := p.exec("CREATE DATABASE " + template); err != nil {
		return nil, err
	}
	return p, store.Migrate(context.Background(), p.database(template))
}

// PostgreSQLServer is a private PostgreSQL server: files in a temporary folder,
// reached by a socket in it, and gone with the process that started it, however
// that ends.
type PostgreSQLServer struct {
	folder   string
	programs string // the folder of initdb and postgres
	owner    *syscall.Credential
	durable  bool // what is answered outlives the machine

	mu       sync.Mutex
	lifeline io.Closer // closing it stops the server
	stopped  chan struct{}
}

// NewPostgreSQLServer starts a server for one test, which may stop and start it.
func NewPostgreSQLServer(t testing.TB) *PostgreSQLServer {
	t.Helper()
	p, err := newServer()
	if errors.Is(err, errNoPostgreSQL) {
		t.Skipf("SKIPPED: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Remove)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	return p
}

// Database returns an empty database of this server.
func (p *PostgreSQLServer) Database(t testing.TB) store.Database {
	t.Helper()
	return p.create(t, "template1")
}

// MeasuredPostgreSQL starts a server that writes as one in use does, for a program
// that measures. It is the caller's to remove.
func MeasuredPostgreSQL() (*PostgreSQLServer, error) {
	p, err := newServer()
	if err != nil {
		return nil, err
	}
	p.durable = true
	return p, p.Start()
}

// Create makes an empty database.
func (p *PostgreSQLServer) Create(name string) (store.Database, error) {
	return p.database(name), p.exec("CREATE DATABASE " + name)
}

// Remove stops the server for good.
func (p *PostgreSQLServer) Remove() {
	p.Stop()
	_ = os.RemoveAll(p.folder)
}

// newServer prepares the files of a server. The locale is one that sorts
// otherwise than bytes do: nothing may depend on it.
func newServer() (*PostgreSQLServer, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		return nil, errNoPostgreSQL
	}
	folder, err := os.MkdirTemp("", "postgresql-test-")
	if err != nil {
		return nil, err
	}
	p := &PostgreSQLServer{folder: folder, programs: filepath.Dir(slices.Max(found))}
	if os.Geteuid() == 0 { // which PostgreSQL refuses to run as
		account, err := user.Lookup("postgres")
		if err != nil {
			return nil, err
		}
		uid, _ := strconv.ParseUint(account.Uid, 10, 32)
		gid, _ := strconv.ParseUint(account.Gid, 10, 32)
		p.owner = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		if err := os.Chown(folder, int(uid), int(gid)); err != nil {
			return nil, err
		}
	}
	initialise := p.command(filepath.Join(p.programs, "initdb"), "--pgdata="+p.data(), "--no-sync", "--auth=trust", "--username=test",
		"--encoding=UTF8", "--locale=C.UTF-8", "--locale-provider=icu", "--icu-locale=en-US")
	if out, err := initialise.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w: %s", err, out)
	}
	return p, nil
}

func (p *PostgreSQLServer) data() string { return filepath.Join(p.folder, "data") }

func (p *PostgreSQLServer) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir = p.folder
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: p.owner, Setpgid: true}
	return cmd
}

// keeper runs a server until its standard input ends, which it does with the
// process that holds the other end, and removes the files if that is the end.
const keeper = `"$@" & read -r word; kill -QUIT $!; wait; [ "$word" = stay ] || rm -rf "$FOLDER"`

// Start starts the server and waits until it answers.
func (p *PostgreSQLServer) Start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	cmd := p.command("/bin/sh", "-c", keeper, "keeper", filepath.Join(p.programs, "postgres"), "-D", p.data(), "-k", p.folder,
		"-c", "listen_addresses=", "-c", "max_connections=400", "-c", "shared_buffers=32MB")
	if !p.durable {
		cmd.Args = append(cmd.Args, "-c", "fsync=off", "-c", "full_page_writes=off")
	}
	cmd.Env = append(os.Environ(), "FOLDER="+p.folder)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	var err error
	if p.lifeline, err = cmd.StdinPipe(); err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	p.stopped = make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(p.stopped)
	}()
	for end := time.Now().Add(30 * time.Second); ; {
		if err = p.exec("SELECT 1"); err == nil {
			return nil
		}
		select {
		case <-p.stopped:
			return fmt.Errorf("start PostgreSQL: %s", output.String())
		case <-time.After(10 * time.Millisecond):
		}
		if time.Now().After(end) {
			return fmt.Errorf("start PostgreSQL: %w", err)
		}
	}
}

// Stop ends the server at once, as a crash would; its files stay.
func (p *PostgreSQLServer) Stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = io.WriteString(p.lifeline.(io.Writer), "stay\n")
	_ = p.lifeline.Close()
	<-p.stopped
}

func (p *PostgreSQLServer) database(name string) store.Database {
	return store.Database{URL: fmt.Sprintf("postgres://test:not-shown@/%s?host=%s", name, p.folder)}
}

func (p *PostgreSQLServer) exec(statement string) error {
	db, err := sql.Open("pgx", p.database("postgres").URL)
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.Exec(statement)
	return err
}

func (p *PostgreSQLServer) create(t testing.TB, from string) store.Database {
	t.Helper()
	name := fmt.Sprintf("test_%d", databases.Add(1))
	if err := p.exec("CREATE DATABASE " + name + " TEMPLATE " + from); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.exec("DROP DATABASE IF EXISTS " + name + " WITH (FORCE)") })
	return p.database(name)
}
