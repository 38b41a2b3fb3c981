package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// SweepFor removes what a process killed in the middle has left staged for the
// file at path, and nothing else; a previous version that is kept stays. The
// caller must be the only one who stages for it. It returns what it removed. A
// folder that does not exist is clean.
func SweepFor(path string) ([]string, error) {
	target, err := resolve(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, explain("sweep for", path, err)
	}
	dir, base := filepath.Split(target)
	removed, err := sweep(dir, base)
	return removed, explain("sweep for", path, err)
}

// sweep removes the files in dir that were staged for the one of that name.
func sweep(dir, name string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var removed []string
	var faults []error
	for _, entry := range entries {
		base, staged := stagedFor(entry.Name())
		if !staged || base != name || !entry.Type().IsRegular() {
			continue
		}
		path := filepath.Join(dir, entry.Name())
		if err := os.Remove(path); err != nil {
			faults = append(faults, err)
			continue
		}
		removed = append(removed, path)
	}
	return removed, errors.Join(faults...)
}

// stagedFor returns the name of the file that Stage has given this name for,
// if it is one that Stage gives.
func stagedFor(name string) (string, bool) {
	at := strings.LastIndex(name, newSuffix)
	if at < 2 || name[0] != '.' {
		return "", false
	}
	digits := name[at+len(newSuffix):]
	return name[1:at], digits != "" && strings.Trim(digits, "0123456789") == ""
}
