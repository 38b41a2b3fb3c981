package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
)

// postgresServer is the engine of a database of a PostgreSQL server.
//
// As with SQLite one transaction writes at a time, whichever manager it is of:
// an advisory lock makes the others wait. So what a transaction has read still
// holds when it writes, there are no deadlocks and nothing has to be tried
// again, and the code above needs to know one rule for both databases.
type postgresServer struct {
	config *pgx.ConnConfig
}

// WriteLock is the advisory lock of whoever writes or migrates. Such locks are
// the database's, so other databases of the server are not concerned.
const WriteLock = 0x6f73736d // "ossm"

// What a session of ours may take, unless the URL says otherwise. Whoever
// waits longer for the write lock, or computes longer, gets an error that
// Unavailable knows; and a manager that stands still amid a transaction does
// not keep the others waiting.
var sessionDefaults = map[string]string{
	"lock_timeout":                        "5s",
	"statement_timeout":                   "15s",
	"idle_in_transaction_session_timeout": "15s",
	"application_name":                    "opensource-manager",
}

func newPostgres(databaseURL string) (*postgresServer, error) {
	config, err := pgx.ParseConfig(databaseURL)
	if err != nil {
		return nil, errors.New("the URL of the database is not one that PostgreSQL's clients understand") // the error might show the password
	}
	for name, value := range sessionDefaults {
		if _, given := config.RuntimeParams[name]; !given {
			config.RuntimeParams[name] = value
		}
	}
	// No statement stays prepared: a newer manager may migrate the tables while
	// this one runs, and what was prepared before fails then.
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = 3 * time.Second
	}
	return &postgresServer{config}, nil
}

// postgresName names a database by everything but the password.
func postgresName(databaseURL string) string {
	config, err := pgx.ParseConfig(databaseURL)
	if err != nil {
		return "postgres://(unreadable URL)"
	}
	if strings.HasPrefix(config.Host, "/") {
		return fmt.Sprintf("postgres://%s@/%s?host=%s", config.User, config.Database, config.Host)
	}
	return fmt.Sprintf("postgres://%s@%s/%s", config.User, net.JoinHostPort(config.Host, fmt.Sprint(config.Port)), config.Database)
}

func (p *postgresServer) writer() (*gorm.DB, error) { return p.open(p.config, 1) }

func (p *postgresServer) reader() (*gorm.DB, error) {
	config := p.with("default_transaction_read_only", "on")
	return p.open(config, max(8, 2*runtime.NumCPU()))
}

func (p *postgresServer) spectator() (*gorm.DB, error) { return p.reader() }

func (p *postgresServer) prober() (*gorm.DB, error) {
	config := p.with("lock_timeout", fmt.Sprint(probeWait.Milliseconds()))
	return p.open(config, 1)
}

func (p *postgresServer) with(name, value string) *pgx.ConnConfig {
	config := p.config.Copy()
	config.RuntimeParams[name] = value
	return config
}

func (p *postgresServer) open(config *pgx.ConnConfig, size int) (*gorm.DB, error) {
	db := sql.OpenDB(connector(config))
	db.SetMaxOpenConns(size)
	db.SetMaxIdleConns(size)
	db.SetConnMaxIdleTime(5 * time.Minute)
	pool, err := openGorm(postgres.New(postgres.Config{Conn: db}))
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return pool, nil
}

// connector connects as config says and reads times as UTC.
func connector(config *pgx.ConnConfig) driver.Connector {
	return stdlib.GetConnector(*config, stdlib.OptionAfterConnect(func(_ context.Context, conn *pgx.Conn) error {
		conn.TypeMap().RegisterType(&pgtype.Type{
			Name: "timestamptz", OID: pgtype.TimestamptzOID, Codec: &pgtype.TimestamptzCodec{ScanLocation: time.UTC},
		})
		return nil
	}))
}

// begin takes the write lock until the end of the transaction. A server that
// takes no writes says so here and not at the first one.
func (*postgresServer) begin(tx *gorm.DB) error {
	var readOnly string
	err := tx.Raw("SELECT current_setting('transaction_read_only') FROM pg_advisory_xact_lock(?)", WriteLock).Scan(&readOnly).Error
	if err == nil && readOnly == "on" {
		err = errReadOnly
	}
	return err
}

// noteIDs reads the sequences of ids, which go on though a transaction is taken
// back. Nobody else moves them meanwhile: whoever does has the write lock.
func (*postgresServer) noteIDs(tx *gorm.DB) (giveBack func(*gorm.DB) error, err error) {
	type sequence struct {
		Name     string
		Last     int64
		IsCalled bool
	}
	var sequences []sequence
	for _, table := range []string{"sites", "external_domains", "nodes", "containers", "services", "volumes"} {
		var of sequence
		name := table + "_id_seq"
		if err := tx.Raw("SELECT '" + name + "' AS name, last_value AS last, is_called FROM " + name).Scan(&of).Error; err != nil {
			return nil, err
		}
		sequences = append(sequences, of)
	}
	return func(tx *gorm.DB) error {
		for _, of := range sequences {
			if err := tx.Exec("SELECT setval(CAST(? AS TEXT)::regclass, ?, ?)", of.Name, of.Last, of.IsCalled).Error; err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// beat sends all of them in one statement: with one for each, the way to the
// server and back would take longer than there is time.
func (*postgresServer) beat(tx *gorm.DB, beats []Heartbeat) (map[int64]bool, error) {
	type row struct {
		ID     int64     `json:"id"`
		At     time.Time `json:"at"`
		Peer   string    `json:"peer"`
		Skew   *int64    `json:"skew"`
		Report string    `json:"report"`
		Told   int64     `json:"told"`
	}
	rows := make([]row, len(beats))
	for i, beat := range beats {
		report, err := json.Marshal(beat.Report)
		if err != nil {
			return nil, err
		}
		rows[i] = row{beat.AgentID, beat.At, beat.PeerAddress, beat.ClockSkewMS, string(report), beat.Told}
	}
	sent, err := json.Marshal(rows)
	if err != nil {
		return nil, err
	}
	var ids []int64
	err = tx.Raw(`UPDATE agents SET last_seen_at = b.at, peer_address = b.peer, clock_skew_ms = b.skew, report = b.report
		FROM json_to_recordset(CAST(? AS JSON)) AS b (id BIGINT, at TIMESTAMPTZ, peer TEXT, skew BIGINT, report TEXT, told BIGINT)
		WHERE agents.id = b.id AND agents.told = b.told RETURNING agents.id`, string(sent)).Scan(&ids).Error
	written := make(map[int64]bool, len(ids))
	for _, id := range ids {
		written[id] = true
	}
	return written, err
}

func (*postgresServer) watchFile() (func() error, error) {
	return func() error { return nil }, nil
}

var errReadOnly = errors.New("the database takes no writes: it is a standby, or set to read-only")

// listen hears what the triggers notify: see change_counters_notify.
func (p *postgresServer) listen(ctx context.Context, heard func()) error {
	conn, err := pgx.ConnectConfig(ctx, p.config)
	if err != nil {
		return err
	}
	defer func() {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookTimeout)
		defer cancel()
		_ = conn.Close(last) // nothing was written on it
	}()
	if _, err := conn.Exec(ctx, "LISTEN changes"); err != nil {
		return err
	}
	for {
		heard() // first of what was committed before it listened
		if _, err := conn.WaitForNotification(ctx); err != nil {
			return err
		}
	}
}

func (*postgresServer) size(tx *gorm.DB) (size int64, err error) {
	err = tx.Raw("SELECT pg_database_size(current_database())").Scan(&size).Error
	return size, err
}

func (p *postgresServer) schema(ctx context.Context) (int64, error) {
	db := sql.OpenDB(connector(p.config))
	defer db.Close()
	return readSchema(ctx, db, "SELECT count(*) FROM pg_class WHERE oid = to_regclass('goose_db_version')")
}

func (p *postgresServer) migrator(context.Context) (*migrator, error) {
	config := p.with("lock_timeout", fmt.Sprint(lockWait.Milliseconds()))
	config.RuntimeParams["statement_timeout"] = "0" // a large table takes its time
	config.RuntimeParams["idle_in_transaction_session_timeout"] = "60s"
	db := sql.OpenDB(&once{Connector: connector(config)})
	db.SetMaxOpenConns(1)
	return &migrator{
		db: db, dialect: goose.DialectPostgres, files: migrationsOf("postgres"),
		begin: func(ctx context.Context, db *sql.DB) error {
			// With the write lock, running managers wait until it is done.
			_, err := db.ExecContext(ctx, "BEGIN")
			if err == nil {
				_, err = db.ExecContext(ctx, fmt.Sprintf("SELECT pg_advisory_xact_lock(%d)", WriteLock))
			}
			return err
		},
		check: func(context.Context, *sql.DB) error { return nil },
		close: db.Close,
	}, nil
}

// once connects once. After a lost connection database/sql would go on with a
// new one, outside the transaction.
type once struct {
	driver.Connector
	done atomic.Bool
}

func (o *once) Connect(ctx context.Context) (driver.Conn, error) {
	if o.done.Swap(true) {
		return nil, errors.New("the connection was lost")
	}
	conn, err := o.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return inTransaction{conn.(*stdlib.Conn)}, nil
}

// inTransaction is a connection that goes back to its pool amid a transaction.
type inTransaction struct{ *stdlib.Conn }

// ResetSession implements driver.SessionResetter.
func (inTransaction) ResetSession(context.Context) error { return nil }

// lockNotAvailable is what a server says after it has waited too long for a lock.
const lockNotAvailable = "55P03"

// postgresUnavailable are the errors of a server that cannot be used at the
// moment, by their class or code (appendix A of PostgreSQL's manual).
var postgresUnavailable = map[string]bool{
	"08":             true, // connection
	"28":             true, // the role or its password are not accepted any more
	"3D":             true, // the database is gone
	"53":             true, // out of disk, memory or connections
	"57":             true, // shut down, starting up, or a statement took too long
	"58":             true, // the operating system failed it
	"XX":             true, // damaged
	"25006":          true, // read-only
	"25P03":          true, // a transaction stood still for too long
	"40001":          true, // serialization
	"40P01":          true, // deadlock
	lockNotAvailable: true,
}

// unavailableOnPostgres reports whether an error is one of the above, or of a
// connection that could not be made or was lost.
func unavailableOnPostgres(err error) bool {
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok {
		return postgresUnavailable[refused.Code] || len(refused.Code) > 2 && postgresUnavailable[refused.Code[:2]]
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return true
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return true
	}
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || pgconn.SafeToRetry(err)
}

// postgresCounters watches by what pg_current_snapshot tells: it is a list of
// the transactions in flight, and differs from the last one if any transaction
// that wrote has ended meanwhile. That reads no table.
type postgresCounters struct {
	config *pgx.ConnConfig
	conn   *pgx.Conn
}

// lookTimeout bounds a look at a server that does not answer: check-ins wait.
const lookTimeout = time.Second

func (p *postgresServer) counters() counterSource {
	return &postgresCounters{config: p.with("default_transaction_read_only", "on")}
}

func (c *postgresCounters) connect() error {
	ctx, cancel := context.WithTimeout(context.Background(), lookTimeout)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, c.config)
	if err != nil {
		return err
	}
	c.conn = conn
	return nil
}

func (c *postgresCounters) disconnect() {
	if c.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookTimeout)
	defer cancel()
	_ = c.conn.Close(ctx) // nothing was written on it
	c.conn = nil
}

func (c *postgresCounters) mark() (any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), lookTimeout)
	defer cancel()
	var snapshot string
	err := c.conn.QueryRow(ctx, "SELECT pg_current_snapshot()::text", pgx.QueryExecModeCacheStatement).Scan(&snapshot)
	return snapshot, err
}

func (c *postgresCounters) read(v *Versions) error {
	ctx, cancel := context.WithTimeout(context.Background(), lookTimeout)
	defer cancel()
	rows, err := c.conn.Query(ctx, "SELECT scope, id, version FROM change_counters")
	if err != nil {
		return err
	}
	var scope string
	var id, version int64
	_, err = pgx.ForEachRow(rows, []any{&scope, &id, &version}, func() error {
		v.count(scope, id, uint64(version))
		return nil
	})
	return err
}
