package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Preserve gives the file at path a second name, with the suffix appended, so
// that its present content stays findable after it is replaced. It does
// nothing if that name is taken or there is no file.
func Preserve(path, suffix string) error {
	target, err := resolve(path)
	if err == nil {
		err = os.Link(target, target+suffix)
	}
	if errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = syncDir(filepath.Dir(target))
	}
	return explain("preserve the original of", path, err)
}
