package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// The names we give beside a file NAME: ".NAME" and one of these.
const (
	newSuffix    = ".opensource-agent.new-" // staged, followed by random digits
	oldSuffix    = ".opensource-agent.old"  // the version that was replaced
	absentSuffix = ".opensource-agent.none" // there was no file before
)

func beside(target, suffix string) string {
	dir, base := filepath.Split(target)
	return filepath.Join(dir, "."+base+suffix)
}

// keep makes a second name for the file at target, or notes that there is
// none, unless an earlier version is kept already. A hard link costs no space,
// so that going back works on a full disk too.
func keep(target string) error {
	kept, err := keptVersion(target)
	if err != nil || kept != "" {
		return err
	}
	err = os.Link(target, beside(target, oldSuffix))
	if errors.Is(err, fs.ErrNotExist) {
		var note *os.File
		if note, err = os.OpenFile(beside(target, absentSuffix), os.O_CREATE|os.O_EXCL, 0o600); err == nil {
			err = note.Close()
		}
	}
	if err != nil {
		return err
	}
	return syncDir(filepath.Dir(target))
}

// KeepInstead makes content the version that is kept of the file at path, in the
// place of what is live: of a file that somebody has edited, the last content
// known to work is another. A version that is kept already stays. Owner and mode
// are those of the live file, or else mode.
func KeepInstead(path string, content []byte, mode fs.FileMode) error {
	target, err := resolve(path)
	if err != nil {
		return explain("keep the previous", path, err)
	}
	kept, err := keptVersion(target)
	if err != nil || kept != "" {
		return explain("keep the previous", path, err)
	}
	owner, mode, err := ownerAndMode(target, mode)
	if err != nil {
		return explain("keep the previous", path, err)
	}
	temp, err := writeBeside(target, content, owner, mode)
	if err != nil {
		return explain("keep the previous", path, err)
	}
	if err := os.Rename(temp, beside(target, oldSuffix)); err != nil {
		return errors.Join(explain("keep the previous", path, err), os.Remove(temp))
	}
	return explain("keep the previous", path, syncDir(filepath.Dir(target)))
}

// keptVersion returns the name under which the previous version of target, or
// the note that there was none, is kept, or "".
func keptVersion(target string) (string, error) {
	for _, suffix := range []string{oldSuffix, absentSuffix} {
		_, err := os.Lstat(beside(target, suffix))
		if err == nil {
			return beside(target, suffix), nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	return "", nil
}

// Pending reports whether another version of the file at path is kept: its
// replacement was committed, and neither confirmed by Forget nor undone.
func Pending(path string) (bool, error) {
	target, err := resolve(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, explain("look for the previous", path, err)
	}
	kept, err := keptVersion(target)
	if err != nil || kept == "" {
		return false, explain("look for the previous", path, err)
	}
	return !isLive(target, kept), nil
}

// isLive reports whether what is kept is also what is live: whoever kept it
// did not get as far as the commit.
func isLive(target, kept string) bool {
	live, err := os.Lstat(target)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist) && kept == beside(target, absentSuffix)
	}
	version, err := os.Lstat(kept)
	return err == nil && os.SameFile(live, version)
}

// Forget removes the version that is kept of the file at path, if any: its
// replacement is known to work. A power cut does not bring it back, which would
// make the replacement look unproven.
func Forget(path string) error {
	target, err := resolve(path)
	if err != nil {
		return explain("forget the previous", path, err)
	}
	kept, err := keptVersion(target)
	if err != nil || kept == "" {
		return explain("forget the previous", path, err)
	}
	if err = os.Remove(kept); err == nil {
		err = syncDir(filepath.Dir(target))
	}
	return explain("forget the previous", path, err)
}

// Restore makes the version that is kept of the file at path live again; where
// there was none, it removes the file. It does nothing if nothing is kept. The
// file's modification time becomes the current one, since that is when this
// content became live.
func Restore(path string) error {
	target, err := resolve(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return explain("restore", path, err)
	}
	kept, err := keptVersion(target)
	switch {
	case err != nil || kept == "":
		return explain("restore", path, err)
	case isLive(target, kept):
		err = os.Remove(kept) // renaming a file over itself would do nothing, rename(2)
	case kept == beside(target, absentSuffix):
		err = removeNoted(target, kept)
	default:
		if err = touch(kept); err == nil {
			err = os.Rename(kept, target)
		}
	}
	if err != nil {
		return explain("restore", path, err)
	}
	return explain("restore", path, syncDir(filepath.Dir(target)))
}

// removeNoted removes a file that was not there before, then the note of it.
func removeNoted(target, note string) error {
	if err := os.Remove(target); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Remove(note)
}
