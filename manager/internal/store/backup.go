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
	"regexp"
	"slices"
	"time"

	"github.com/mattn/go-sqlite3"
	"golang.org/x/sys/unix"
	"gorm.io/gorm"
)

// ErrNotSQLite is returned for what is done with SQLite files only.
var ErrNotSQLite = errors.New("the database is PostgreSQL: use pg_dump and pg_restore")

// Copied describes a complete, checked copy of a database.
type Copied struct {
	Path   string
	Bytes  int64
	Schema int64
}

// copyPages is how many pages are copied between two looks at the context: a
// few megabytes.
const copyPages = 1000

// Backup writes a copy of an SQLite database to a new file that only its owner
// may read, as it is at one moment, whoever reads and writes it meanwhile. What
// is there under that name is replaced only if replace is true. The file gets
// its name when it is complete and checked. progress, if not nil, hears how many
// of how many pages are copied.
func Backup(ctx context.Context, database Database, path string, replace bool, progress func(done, total int)) (Copied, error) {
	if database.URL != "" {
		return Copied{}, ErrNotSQLite
	}
	if _, err := os.Lstat(path); err == nil && !replace {
		return Copied{}, fmt.Errorf("write backup: %s: %w", path, fs.ErrExist)
	}
	source := sqliteFile(database.Path)
	if _, err := source.schema(ctx); err != nil { // the words for a file that is none
		return Copied{}, err
	}
	copied, err := copyBeside(ctx, source.dataSource(url.Values{"_query_only": {"1"}}), path, progress)
	if err != nil {
		return Copied{}, fmt.Errorf("write backup: %w", err)
	}
	if err := takeName(copied.Path, path, replace); err != nil {
		return Copied{}, errors.Join(fmt.Errorf("write backup: %w", err), os.Remove(copied.Path))
	}
	copied.Path = path
	return copied, nil
}

// copyBeside copies the database of a data source into a new file beside path
// and checks it. The file is gone if that fails.
func copyBeside(ctx context.Context, source, path string, progress func(done, total int)) (copied Copied, err error) {
	removeAbandoned(path)
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.part") // 0600
	if err != nil {
		return Copied{}, err
	}
	copied.Path = file.Name()
	defer func() {
		err = errors.Join(err, file.Close())
		if err != nil {
			for _, suffix := range []string{"", "-journal"} {
				_ = os.Remove(copied.Path + suffix) // the error above says more
			}
		}
	}()
	if err := copyPagesTo(ctx, copied.Path, source, progress); err != nil {
		return copied, err
	}
	if copied.Schema, err = checkCopy(ctx, copied.Path); err != nil {
		return copied, err
	}
	if err := file.Sync(); err != nil {
		return copied, err
	}
	info, err := file.Stat()
	if err != nil {
		return copied, err
	}
	copied.Bytes = info.Size()
	return copied, nil
}

// abandonedAfter is when a copy that nobody has written to is no longer in the
// making. A lock on it would tell sooner, but be in SQLite's way on NFS.
const abandonedAfter = time.Hour

// removeAbandoned removes what copies to path have left behind that were killed.
// What cannot be removed is in nobody's way.
func removeAbandoned(path string) {
	folder := filepath.Dir(path)
	copies := regexp.MustCompile(`^\.` + regexp.QuoteMeta(filepath.Base(path)) + `\.[0-9]+\.part$`)
	entries, _ := os.ReadDir(folder)
	for _, entry := range entries {
		if !copies.MatchString(entry.Name()) || !entry.Type().IsRegular() {
			continue
		}
		if info, err := entry.Info(); err == nil && time.Since(info.ModTime()) > abandonedAfter {
			_ = removeDatabase(filepath.Join(folder, entry.Name()))
		}
	}
}

// single is how a file is opened that nobody else knows: in one piece, and
// without waiting for the disk, for it is synced in the end.
func single(path string) string {
	return sqliteFile(path).dataSource(url.Values{"_journal_mode": {"DELETE"}, "_synchronous": {"OFF"}, "_foreign_keys": {"0"}})
}

// copyPagesTo copies by SQLite's backup interface (sqlite.org/backup.html).
// Within a transaction of the source it copies that moment, and does not begin
// anew whenever somebody writes.
func copyPagesTo(ctx context.Context, path, source string, progress func(done, total int)) error {
	from, err := openConn(source)
	if err != nil {
		return err
	}
	defer from.Close()
	for _, query := range []string{"BEGIN", "SELECT count(*) FROM sqlite_master"} {
		if err := execConn(ctx, from, query); err != nil {
			return fmt.Errorf("read: %w", err)
		}
	}
	to, err := openConn(single(path))
	if err != nil {
		return err
	}
	defer to.Close()
	backup, err := to.Backup("main", from, "main")
	if err != nil {
		return fmt.Errorf("copy: %w", err)
	}
	defer backup.Close()
	for done := false; !done; {
		if err := ctx.Err(); err != nil {
			return err
		}
		if done, err = backup.Step(copyPages); err != nil {
			return fmt.Errorf("copy: %w", err)
		}
		if progress != nil {
			progress(backup.PageCount()-backup.Remaining(), backup.PageCount())
		}
	}
	if err := backup.Finish(); err != nil {
		return fmt.Errorf("copy: %w", err)
	}
	// The copy says of itself that it has a write-ahead log, as the source does.
	return execConn(ctx, to, "PRAGMA journal_mode = DELETE")
}

func openConn(source string) (*sqlite3.SQLiteConn, error) {
	conn, err := (&sqlite3.SQLiteDriver{}).Open(source)
	if err != nil {
		return nil, err
	}
	return conn.(*sqlite3.SQLiteConn), nil
}

// execConn runs a query to its end.
func execConn(ctx context.Context, conn *sqlite3.SQLiteConn, query string) error {
	rows, err := conn.QueryContext(ctx, query, nil)
	if err != nil {
		return err
	}
	row := make([]driver.Value, len(rows.Columns()))
	for err == nil {
		err = rows.Next(row)
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return errors.Join(err, rows.Close())
}

// checkCopy reports whether a file is a whole database of this program, of a
// schema that it knows, and returns the schema.
func checkCopy(ctx context.Context, path string) (schema int64, err error) {
	db, err := sql.Open("sqlite3", single(path))
	if err != nil {
		return 0, err
	}
	defer db.Close()
	if schema, err = readSchema(ctx, db, "SELECT count(*) FROM sqlite_master WHERE name = 'goose_db_version'"); err != nil {
		return 0, err
	}
	var tables int
	if err := db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_master WHERE name IN ('sites', 'change_counters')").Scan(&tables); err != nil {
		return 0, err
	}
	if schema == 0 || tables != 2 {
		return 0, errForeign
	}
	newest, err := newestSchema(migrationsOf("sqlite"))
	if err != nil {
		return 0, err
	}
	if schema > newest {
		return 0, &SchemaError{Database: path, Have: schema, Want: newest}
	}
	return schema, errors.Join(checkIntegrity(ctx, db, "integrity_check"), checkForeignKeys(ctx, db))
}

// checkIntegrity runs one of SQLite's checks of a file as a whole.
func checkIntegrity(ctx context.Context, db *sql.DB, pragma string) error {
	var said string
	if err := db.QueryRowContext(ctx, "PRAGMA "+pragma+"(1)").Scan(&said); err != nil {
		return fmt.Errorf("check integrity: %w", err)
	}
	if said != "ok" {
		return fmt.Errorf("check integrity: the file is damaged: %s", said)
	}
	return nil
}

// takeName gives a file that is complete and synced its name, for good.
func takeName(file, path string, replace bool) error {
	flags := uint(0)
	if !replace {
		flags = unix.RENAME_NOREPLACE
	}
	err := unix.Renameat2(unix.AT_FDCWD, file, unix.AT_FDCWD, path, flags)
	if errors.Is(err, unix.EINVAL) { // a filesystem that does not know the flag
		err = os.Rename(file, path)
	}
	if err != nil {
		return fmt.Errorf("name it %s: %w", path, err)
	}
	return syncFolder(filepath.Dir(path))
}

func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// RunningError says that another process has a database open.
type RunningError struct {
	Path string
	PID  int32 // 0 if it is not of this PID namespace
}

func (e *RunningError) Error() string {
	by := fmt.Sprintf("process %d", e.PID)
	if e.PID <= 0 {
		by = "a process outside of this container"
	}
	return fmt.Sprintf("%s is in use by %s: stop the manager first (systemctl stop opensource-manager)", e.Path, by)
}

// Restored says what Restore has done.
type Restored struct {
	Copied
	// Former is where the database that was there before is kept; empty if
	// there was none.
	Former string
}

// Restore puts a copy of the backup in a file in the place of an SQLite
// database, at the current schema. Nothing is touched before the copy is
// complete, checked and migrated. The former database is in its place, or kept
// beside it, at every moment. No other process may have the database open.
//
// Agents have gone on meanwhile, and so have people: every volume is pending
// again, so that agents tell all of them anew; sessions are ended and tokens of
// enrollment that were open at the time of the backup are revoked.
func Restore(ctx context.Context, database Database, file string) (Restored, error) {
	if database.URL != "" {
		return Restored{}, ErrNotSQLite
	}
	path := database.Path
	unlock, err := lockMigration(ctx, path)
	if err != nil {
		return Restored{}, fmt.Errorf("restore: %w", err)
	}
	defer unlock()
	if err := requireUnopened(path); err != nil {
		return Restored{}, fmt.Errorf("restore: %w", err)
	}
	if err := requireFile(file); err != nil {
		return Restored{}, fmt.Errorf("restore: %w", err)
	}
	copied, err := copyBeside(ctx, readOnly(file), path, nil)
	if err != nil {
		return Restored{}, fmt.Errorf("restore %s: %w", file, err)
	}
	done := Restored{Copied: copied}
	if err := prepare(ctx, copied.Path); err != nil {
		return Restored{}, errors.Join(fmt.Errorf("restore %s: %w", file, err), removeDatabase(copied.Path))
	}
	if done.Former, err = replaceDatabase(ctx, path, copied.Path); err != nil {
		return done, errors.Join(fmt.Errorf("restore: %w", err), removeDatabase(copied.Path))
	}
	done.Path = path
	return done, nil
}

// requireFile tells what is no file apart from what is no database.
func requireFile(path string) error {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a file", path)
	}
	return err
}

// readOnly opens a backup without changing it, or anything beside it.
func readOnly(path string) string {
	if absolute, err := filepath.Abs(path); err == nil {
		path = absolute
	}
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?mode=ro&_query_only=1"
}

// prepare brings a copy to the current schema and makes it a new beginning.
func prepare(ctx context.Context, path string) error {
	// The migrator's lock is of the copy's own name.
	if err := Migrate(ctx, Database{Path: path}); err != nil {
		return err
	}
	s, err := Open(ctx, Database{Path: path}, Options{})
	if err != nil {
		return err
	}
	if err := errors.Join(s.beginAnew(ctx), s.Close(), os.Remove(path+".lock")); err != nil {
		return err
	}
	// What stays in its log is not in the one file that takes the name.
	return errors.Join(foldLog(ctx, path), os.Chmod(path, fileMode), ownLikeFolder(path))
}

func (s *Store) beginAnew(ctx context.Context) error {
	return s.update(ctx, func(tx *gorm.DB) error {
		err := errors.Join(
			tx.Exec("UPDATE volumes SET status = 'pending', status_message = '', reported_at = NULL").Error,
			tx.Exec("DELETE FROM sessions").Error,
			tx.Exec("UPDATE enrollments SET revoked_at = ? WHERE used_at IS NULL AND revoked_at IS NULL", now()).Error,
			auditAct(tx, ActionRestore, Subject{Resource: "database"}, nil))
		if err != nil {
			return fmt.Errorf("begin anew: %w", err)
		}
		return nil
	})
}

func removeDatabase(path string) error {
	var errs []error
	for _, suffix := range []string{"", "-wal", "-shm", "-journal", ".lock"} {
		if err := os.Remove(path + suffix); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// requireUnopened finds out whether another process has the database open:
// each keeps a lock on the file of its shared memory (sqlite.org/wal.html).
// That tells it of a damaged database, too.
func requireUnopened(path string) error {
	file, err := os.Open(path + "-shm")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	lock := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}
	if err := unix.FcntlFlock(file.Fd(), unix.F_GETLK, &lock); err != nil {
		return fmt.Errorf("look at the locks of %s: %w", path, err)
	}
	if lock.Type != unix.F_UNLCK {
		return &RunningError{Path: path, PID: lock.Pid}
	}
	return nil
}

// foldLog moves what is in the write-ahead log of a database into its file. No
// log is left.
func foldLog(ctx context.Context, path string) error {
	conn, err := openConn(sqliteFile(path).dataSource(url.Values{"_synchronous": {"FULL"}}))
	if err != nil {
		return err
	}
	// Whoever closes a database last removes its log, unless that cannot be
	// written back.
	if err := errors.Join(execConn(ctx, conn, "PRAGMA wal_checkpoint(TRUNCATE)"), conn.Close()); err != nil {
		return fmt.Errorf("write back the log of %s: %w", path, err)
	}
	if info, err := os.Stat(path + "-wal"); err == nil && info.Size() > 0 {
		return fmt.Errorf("write back the log of %s: some of it is left", path)
	}
	return nil
}

// replaceDatabase gives a complete file the name of a database, and returns the
// name under which the former database is kept. After an error that one is in
// its place, as it was.
func replaceDatabase(ctx context.Context, path, file string) (former string, err error) {
	if _, err := os.Lstat(path); err == nil {
		// One that is damaged keeps its log: there may be something in it.
		_ = foldLog(ctx, path)
	}
	kept := path + ".before-restore-" + time.Now().UTC().Format("20060102T150405.000Z")
	var undo []func() error
	for _, suffix := range []string{"", "-wal"} {
		// A second name, so that there is no moment at which it has none.
		err := os.Link(path+suffix, kept+suffix)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", errors.Join(fmt.Errorf("keep the former database: %w", err), undoAll(undo))
		}
		if suffix == "" {
			former = kept
		}
		undo = append(undo, func() error { return os.Remove(kept + suffix) })
	}
	// A log that stayed would be taken for that of the new file.
	for _, suffix := range []string{"-wal", "-shm"} {
		if err := os.Remove(path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", errors.Join(fmt.Errorf("put the log of the former database aside: %w", err), undoAll(undo))
		}
		if suffix == "-wal" {
			undo = append(undo, func() error { return linkAgain(kept+suffix, path+suffix) })
		}
	}
	if err := os.Rename(file, path); err != nil {
		return "", errors.Join(err, undoAll(undo))
	}
	if err := syncFolder(filepath.Dir(path)); err != nil {
		return former, fmt.Errorf("%s is restored (the former one is %q), but may not survive a power cut: %w", path, former, err)
	}
	return former, nil
}

// linkAgain gives a file its former name back, if it is there.
func linkAgain(from, to string) error {
	if err := os.Link(from, to); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// undoAll takes steps back, the last one first.
func undoAll(steps []func() error) error {
	var errs []error
	for _, step := range slices.Backward(steps) {
		errs = append(errs, step())
	}
	return errors.Join(errs...)
}
