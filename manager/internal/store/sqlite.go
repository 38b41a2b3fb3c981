package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/mattn/go-sqlite3"
	"github.com/pressly/goose/v3"
	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
)

// sqliteFile is the engine of the SQLite file at a path.
//
// One connection writes (SQLite has one writer, and a queue in Go is fairer
// than its busy handler), a pool reads, and one watches for the changes of
// other processes.
type sqliteFile string

// busyTimeout is how long SQLite waits for another process's write.
const busyTimeout = 5 * time.Second

func (f sqliteFile) writer() (*gorm.DB, error) {
	// FULL: what was answered with success survives a power cut.
	return f.open(1, url.Values{"_txlock": {"immediate"}, "_synchronous": {"FULL"}})
}

func (f sqliteFile) reader() (*gorm.DB, error) {
	return f.open(max(4, runtime.NumCPU()), url.Values{"_query_only": {"1"}})
}

func (f sqliteFile) spectator() (*gorm.DB, error) { return openPool(f.untouched(), 1) }

func (f sqliteFile) prober() (*gorm.DB, error) {
	return f.open(1, url.Values{
		"_txlock": {"immediate"}, "_synchronous": {"FULL"}, "_busy_timeout": {fmt.Sprint(probeWait.Milliseconds())},
	})
}

// errMoved is told before each write: SQLite would go on in a file that nobody
// finds again.
var errMoved = errors.New("the database file was moved away, deleted or replaced under the running manager: put it back, or stop the manager and restore a backup")

func (f sqliteFile) watchFile() (func() error, error) {
	opened, err := os.Stat(string(f))
	return func() error {
		if now, err := os.Stat(string(f)); err != nil || !os.SameFile(opened, now) {
			return errMoved
		}
		return nil
	}, err
}

// begin has nothing to do: _txlock makes every transaction begin as the writer.
func (sqliteFile) begin(*gorm.DB) error { return nil }

// noteIDs has nothing to do: ids are taken back with the transaction.
func (sqliteFile) noteIDs(*gorm.DB) (func(*gorm.DB) error, error) {
	return func(*gorm.DB) error { return nil }, nil
}

func (sqliteFile) beat(tx *gorm.DB, beats []Heartbeat) (map[int64]bool, error) {
	written := make(map[int64]bool, len(beats))
	for _, beat := range beats {
		result := tx.Exec("UPDATE agents SET last_seen_at = ?, peer_address = ?, clock_skew_ms = ?, report = ? WHERE id = ? AND told = ?",
			beat.At, beat.PeerAddress, beat.ClockSkewMS, Report{Request: *beat.Report}, beat.AgentID, beat.Told)
		if result.Error != nil {
			return nil, result.Error
		}
		written[beat.AgentID] = result.RowsAffected > 0
	}
	return written, nil
}

func (f sqliteFile) open(size int, more url.Values) (*gorm.DB, error) {
	return openPool(f.dataSource(more), size)
}

func openPool(source string, size int) (*gorm.DB, error) {
	db, err := sql.Open("sqlite3", source)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(size)
	db.SetMaxIdleConns(size)
	pool, err := openGorm(sqlite.New(sqlite.Config{Conn: db}))
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return pool, nil
}

// dataSource returns the name by which go-sqlite3 opens the database file.
func (f sqliteFile) dataSource(more url.Values) string {
	path := string(f)
	if absolute, err := filepath.Abs(path); err == nil {
		path = absolute
	}
	params := url.Values{
		"_journal_mode": {"WAL"},
		"_busy_timeout": {fmt.Sprint(busyTimeout.Milliseconds())},
		"_foreign_keys": {"1"},
		"mode":          {"rw"},
	}
	for name, values := range more {
		params[name] = values
	}
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + params.Encode()
}

// listen hears nothing: SQLite notifies nobody.
func (sqliteFile) listen(ctx context.Context, _ func()) error {
	<-ctx.Done()
	return nil
}

// size is that of the file and of what was not moved there yet from the
// write-ahead log.
func (f sqliteFile) size(*gorm.DB) (size int64, err error) {
	for _, path := range []string{string(f), string(f) + "-wal"} {
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) && path != string(f) {
			continue
		}
		if err != nil {
			return 0, err
		}
		size += info.Size()
	}
	return size, nil
}

func (f sqliteFile) schema(ctx context.Context) (int64, error) {
	if _, err := os.Stat(string(f)); errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("open database: %s does not exist: if there was one, put it back or restore a backup; for a new one run opensource-manager migrate", f)
	}
	db, err := sql.Open("sqlite3", f.untouched())
	if err != nil {
		return 0, fmt.Errorf("open database %s: %w", f, err)
	}
	defer db.Close()
	version, err := readSchema(ctx, db, "SELECT count(*) FROM sqlite_master WHERE name = 'goose_db_version'")
	if err != nil {
		return 0, fmt.Errorf("open database %s: %w", f, err)
	}
	if version > 0 {
		return version, nil
	}
	var tables int
	if err := db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_master WHERE name <> 'goose_db_version' AND name NOT LIKE 'sqlite_%'").Scan(&tables); err != nil {
		return 0, fmt.Errorf("open database %s: %w", f, err)
	}
	if tables > 0 {
		return 0, fmt.Errorf("open database %s: %w", f, errForeign)
	}
	return 0, nil
}

// errForeign is told of a database of another program.
var errForeign = errors.New("it is an SQLite database, but not one of this manager")

// untouched opens the file without changing it, or anything beside it. One that
// is written by a log, and has none, nobody has open: it is read as what cannot
// change, since SQLite would make a log to read it.
func (f sqliteFile) untouched() string {
	source := readOnly(string(f))
	if _, err := os.Stat(string(f) + "-wal"); errors.Is(err, fs.ErrNotExist) && f.journalMode() == "wal" {
		source += "&immutable=1"
	}
	return source
}

// journalMode is how the file says that it is written (sqlite.org/fileformat.html,
// 1.3.3).
func (f sqliteFile) journalMode() string {
	file, err := os.Open(string(f))
	if err != nil {
		return "unknown"
	}
	defer file.Close()
	header := make([]byte, 20)
	if _, err := io.ReadFull(file, header); err != nil || header[18] != 2 {
		return "rollback"
	}
	return "wal"
}

func (f sqliteFile) migrator(ctx context.Context) (*migrator, error) {
	unlock, err := lockMigration(ctx, string(f))
	if err != nil {
		return nil, err
	}
	if err := createFile(string(f)); err != nil {
		unlock()
		return nil, err
	}
	if _, err := f.schema(ctx); errors.Is(err, errForeign) {
		unlock()
		return nil, err
	}
	// Foreign keys are off: a migration that rebuilds a table would otherwise
	// empty those that refer to it (sqlite.org/lang_altertable.html, 7).
	db, err := sql.Open("sqlite3", f.dataSource(url.Values{"_foreign_keys": {"0"}, "_synchronous": {"FULL"}}))
	if err != nil {
		unlock()
		return nil, err
	}
	db.SetMaxOpenConns(1)
	return &migrator{
		db: db, dialect: goose.DialectSQLite3, files: migrationsOf("sqlite"),
		begin: func(ctx context.Context, db *sql.DB) error {
			_, err := db.ExecContext(ctx, "BEGIN IMMEDIATE")
			return err
		},
		check: checkForeignKeys,
		close: func() error {
			defer unlock()
			return errors.Join(ownLikeFolder(string(f)), db.Close())
		},
	}, nil
}

func checkForeignKeys(ctx context.Context, db *sql.DB) error {
	rows, err := db.QueryContext(ctx, "PRAGMA foreign_key_check")
	if err != nil {
		return fmt.Errorf("check foreign keys: %w", err)
	}
	defer rows.Close()
	if rows.Next() {
		var table, parent string
		var row sql.NullInt64
		var key int
		if err := rows.Scan(&table, &row, &parent, &key); err != nil {
			return fmt.Errorf("check foreign keys: %w", err)
		}
		return fmt.Errorf("check foreign keys: row %d of %s refers to a row of %s that does not exist", row.Int64, table, parent)
	}
	return rows.Err()
}

// sqliteUnavailable are the results of SQLite that say something about the
// database or its disk, and nothing about the request (sqlite.org/rescode.html).
var sqliteUnavailable = map[sqlite3.ErrNo]bool{
	sqlite3.ErrPerm: true, sqlite3.ErrBusy: true, sqlite3.ErrLocked: true, sqlite3.ErrNomem: true,
	sqlite3.ErrReadonly: true, sqlite3.ErrIoErr: true, sqlite3.ErrCorrupt: true, sqlite3.ErrFull: true,
	sqlite3.ErrCantOpen: true, sqlite3.ErrProtocol: true, sqlite3.ErrNotADB: true,
}

// sqliteCounters watches by `PRAGMA data_version`, which differs from its last
// value on this connection if any other one, of this process or another, has
// committed meanwhile (sqlite.org/pragma.html). That costs no disk access.
type sqliteCounters struct {
	source string

	conn        driver.Conn
	dataVersion statement
	all         statement
}

func (f sqliteFile) counters() counterSource {
	return &sqliteCounters{source: f.dataSource(url.Values{"_query_only": {"1"}, "_busy_timeout": {"1000"}})}
}

func (c *sqliteCounters) connect() (err error) {
	if c.conn, err = (&sqlite3.SQLiteDriver{}).Open(c.source); err != nil {
		return err
	}
	if c.dataVersion, err = c.prepare("PRAGMA data_version"); err != nil {
		return err
	}
	c.all, err = c.prepare("SELECT scope, id, version FROM change_counters")
	return err
}

// statement is what go-sqlite3 prepares.
type statement interface {
	driver.Stmt
	driver.StmtQueryContext
}

func (c *sqliteCounters) prepare(query string) (statement, error) {
	prepared, err := c.conn.Prepare(query)
	if err != nil {
		return nil, err
	}
	return prepared.(*sqlite3.SQLiteStmt), nil
}

// ask runs a statement without parameters. The context is one that never ends:
// with any other the driver starts a goroutine, which costs more than the query.
func ask(s statement) (driver.Rows, error) {
	return s.QueryContext(context.Background(), nil)
}

func (c *sqliteCounters) disconnect() {
	for _, closer := range []io.Closer{c.dataVersion, c.all, c.conn} {
		if closer != nil {
			_ = closer.Close() // nothing was written on it
		}
	}
	c.conn, c.dataVersion, c.all = nil, nil, nil
}

func (c *sqliteCounters) mark() (any, error) {
	row := []driver.Value{nil}
	rows, err := ask(c.dataVersion)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(rows.Next(row), rows.Close()); err != nil {
		return nil, err
	}
	return row[0], nil
}

func (c *sqliteCounters) read(v *Versions) error {
	rows, err := ask(c.all)
	if err != nil {
		return err
	}
	defer rows.Close()
	row := make([]driver.Value, 3)
	for {
		if err := rows.Next(row); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		scope, _ := row[0].(string)
		id, _ := row[1].(int64)
		version, _ := row[2].(int64)
		v.count(scope, id, uint64(version))
	}
}
