// Package atomicfile replaces files so that a reader, a full disk, a crash or
// a power cut sees either the old content or the new one, whole.
//
// A new content is staged in a file of its own beside its destination, made
// durable, and renamed over it. The version it replaces can be kept beside it
// until the caller knows that the new one works: it survives the process, so a
// later run can still go back (see Pending). Symbolic links are followed: the
// file they point to is replaced and they stay links. Owner and mode of an
// existing file are kept.
//
// Names of our own begin with a dot and end in a suffix that no include
// pattern of nginx ("*.conf", where a leading dot never matches, glob(7)) or
// of dnsmasq (conf-dir skips names with a leading dot, dnsmasq(8)) loads.
package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Write replaces the content of the file at path. mode is for a file that does
// not exist yet. Errors wrap their cause (ENOSPC, EROFS, EBUSY…); the old
// content is untouched by every error but that of the last fsync.
func Write(path string, content []byte, mode fs.FileMode) error {
	staged, err := Stage(path, content, mode)
	if err != nil {
		return err
	}
	return staged.Commit()
}

// Staged is a content that is durable on disk and not live yet.
type Staged struct {
	path   string // as the caller names the file
	target string // the same with links resolved
	temp   string
}

// Stage writes content to a new file in the folder of the file that path leads
// to, with that file's owner and mode, or else with mode, and makes it durable.
func Stage(path string, content []byte, mode fs.FileMode) (*Staged, error) {
	target, err := resolve(path)
	if err != nil {
		return nil, explain("stage", path, err)
	}
	owner, mode, err := ownerAndMode(target, mode)
	if err != nil {
		return nil, explain("stage", path, err)
	}
	temp, err := writeBeside(target, content, owner, mode)
	if err != nil {
		return nil, explain("stage", path, err)
	}
	return &Staged{path: path, target: target, temp: temp}, nil
}

// Path is where the staged content lies, for a program that is to check it.
func (s *Staged) Path() string { return s.temp }

// Commit makes the staged content live. After an error other than that of
// making the rename durable, the old content is live and nothing is left over.
func (s *Staged) Commit() error {
	if err := os.Rename(s.temp, s.target); err != nil {
		return errors.Join(explain("replace", s.path, err), s.Discard())
	}
	return explain("replace", s.path, syncDir(filepath.Dir(s.target)))
}

// CommitKeeping is Commit, but keeps the version that is replaced until Forget
// or Restore. A version that is kept already stays the one that is kept: it is
// the last one known to work.
func (s *Staged) CommitKeeping() error {
	if err := keep(s.target); err != nil {
		return errors.Join(explain("keep the previous", s.path, err), s.Discard())
	}
	// A process that started before now cannot have read this content.
	if err := touch(s.temp); err != nil {
		return errors.Join(explain("replace", s.path, err), s.Discard())
	}
	return s.Commit()
}

// Discard removes the staged content. It is safe to call after Commit.
func (s *Staged) Discard() error {
	err := os.Remove(s.temp)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return explain("discard the candidate for", s.path, err)
}

// Remove removes the file at path, durably. One that is not there is none to
// remove.
func Remove(path string) error {
	err := os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = syncDir(filepath.Dir(path))
	}
	return explain("remove", path, err)
}

// writeBeside creates a file with the content in target's folder and returns
// its name. Nothing is left of it after an error.
func writeBeside(target string, content []byte, owner *owner, mode fs.FileMode) (name string, err error) {
	dir, base := filepath.Split(target)
	file, err := os.CreateTemp(dir, "."+base+newSuffix+"*")
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			_ = file.Close()
			_ = os.Remove(file.Name())
		}
	}()
	if _, err := file.Write(content); err != nil {
		return "", err
	}
	if owner != nil {
		if err := file.Chown(owner.uid, owner.gid); err != nil {
			return "", err
		}
	}
	// After chown, which clears set-id bits; and whatever the umask is.
	if err := file.Chmod(mode); err != nil {
		return "", err
	}
	if err := file.Sync(); err != nil {
		return "", err
	}
	return file.Name(), file.Close()
}

type owner struct{ uid, gid int }

// ownerAndMode returns those of the file at target. A file that does not exist
// has no owner to keep and gets the mode asked for.
func ownerAndMode(target string, mode fs.FileMode) (*owner, fs.FileMode, error) {
	info, err := os.Lstat(target)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, mode, nil
	}
	if err != nil {
		return nil, 0, err
	}
	if !info.Mode().IsRegular() {
		return nil, 0, fmt.Errorf("not a regular file but %s", info.Mode())
	}
	if isMountPoint(target) {
		return nil, 0, syscall.EBUSY
	}
	stat := info.Sys().(*syscall.Stat_t)
	return &owner{int(stat.Uid), int(stat.Gid)}, info.Mode().Perm(), nil
}

// resolve follows the symbolic links of path to the file that is to be
// replaced, whether or not it exists yet. Only the folder has to exist.
func resolve(path string) (string, error) {
	const maxLinks = 40 // as the kernel, path_resolution(7)
	for range maxLinks {
		dir, err := filepath.EvalSymlinks(filepath.Dir(path))
		if err != nil {
			return "", err
		}
		path = filepath.Join(dir, filepath.Base(path))
		link, err := os.Readlink(path)
		if errors.Is(err, syscall.EINVAL) || errors.Is(err, fs.ErrNotExist) {
			return path, nil // not a link
		}
		if err != nil {
			return "", err
		}
		if !filepath.IsAbs(link) {
			link = filepath.Join(dir, link)
		}
		path = link
	}
	return "", syscall.ELOOP
}

// syncDir makes a rename in the folder durable.
func syncDir(dir string) error {
	folder, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer folder.Close()
	return folder.Sync()
}

// touch gives the file the current time, so that a process which started
// before can be told to have read something else.
func touch(path string) error {
	now := time.Now()
	return os.Chtimes(path, now, now)
}
