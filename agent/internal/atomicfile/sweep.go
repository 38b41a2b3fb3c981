package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Sweep removes the staged files that a process killed in the middle left in
// dir, and nothing else; previous versions that are kept stay. The caller must
// be the only one who stages there. It returns what it removed. A folder that
// does not exist is clean.
func Sweep(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, explain("sweep", dir, err)
	}
	var removed []string
	var faults []error
	for _, entry := range entries {
		if !entry.Type().IsRegular() || !isStagedName(entry.Name()) {
			continue
		}
		path := filepath.Join(dir, entry.Name())
		if err := os.Remove(path); err != nil {
			faults = append(faults, explain("sweep", path, err))
			continue
		}
		removed = append(removed, path)
	}
	return removed, errors.Join(faults...)
}

// isStagedName reports whether name is one that Stage makes.
func isStagedName(name string) bool {
	at := strings.LastIndex(name, newSuffix)
	if at < 2 || name[0] != '.' {
		return false
	}
	digits := name[at+len(newSuffix):]
	return digits != "" && strings.Trim(digits, "0123456789") == ""
}
