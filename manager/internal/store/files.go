package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// fileMode keeps the database, with its hashes of keys and passwords, to the
// manager's user and those the administrator puts into its group.
const fileMode = 0o640

// lockWait bounds how long a migration waits for another process's.
const lockWait = time.Minute

// lockMigration takes the lock file beside the database: SQLite's own lock
// would do for the transaction, but not for creating the file.
func lockMigration(ctx context.Context, path string) (unlock func(), err error) {
	lockPath := path + ".lock"
	file, err := os.OpenFile(lockPath, os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW, fileMode)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, missingFolder(path)
	}
	if err != nil {
		return nil, fmt.Errorf("open lock file: %w", err)
	}
	if err := ownFile(file, lockPath); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	ctx, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	for {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { _ = file.Close() }, nil // closing unlocks
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", lockPath, err), file.Close())
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("lock %s: another process is migrating: %w", lockPath, ctx.Err()), file.Close())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// missingFolder says that there is no folder for a database.
func missingFolder(path string) error {
	folder := filepath.Dir(path)
	return fmt.Errorf("the folder %s of the database does not exist: set STATE_DIRECTORY or DATABASE to another place, or create it (install -d -m 0750 -o opensource-manager -g opensource-manager %s): %w", folder, folder, fs.ErrNotExist)
}

// createFile creates an empty database file if there is none. SQLite gives its
// side files the mode and, when run by root, the owner of this one.
func createFile(path string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW, fileMode)
	if err != nil {
		return fmt.Errorf("create database file: %w", err)
	}
	return errors.Join(ownFile(file, path), file.Close())
}

// ownLikeFolder gives the database and its side files to the owner of their
// folder if root runs this: the service that comes later is not root.
func ownLikeFolder(path string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	for _, suffix := range []string{"", "-wal", "-shm", ".lock"} {
		file, err := os.OpenFile(path+suffix, os.O_RDWR|unix.O_NOFOLLOW, 0)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("give %s to the owner of its folder: %w", path+suffix, err)
		}
		if err := errors.Join(ownFile(file, path+suffix), file.Close()); err != nil {
			return err
		}
	}
	return nil
}

// ownFile gives an open file to the owner of its folder if root runs this. It
// refuses what the folder's owner could have put there to be given a file of
// somebody else: a hard link (a symbolic one is not opened).
func ownFile(file *os.File, path string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	var folder, self unix.Stat_t
	if err := unix.Stat(filepath.Dir(path), &folder); err != nil {
		return fmt.Errorf("look at the folder of %s: %w", path, err)
	}
	if err := unix.Fstat(int(file.Fd()), &self); err != nil {
		return fmt.Errorf("look at %s: %w", path, err)
	}
	if self.Uid == folder.Uid && self.Gid == folder.Gid {
		return nil
	}
	if self.Nlink != 1 || self.Mode&unix.S_IFMT != unix.S_IFREG {
		return fmt.Errorf("give %s to the owner of its folder: it is not a plain file with one name", path)
	}
	if err := file.Chown(int(folder.Uid), int(folder.Gid)); err != nil {
		return fmt.Errorf("give %s to the owner of its folder: %w", path, err)
	}
	return nil
}
