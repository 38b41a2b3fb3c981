package host

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// FileID tells a file from what it was before. A changed content comes with
// another change time, which no program can set (inode(7)).
type FileID struct {
	Device uint64 `json:"dev"`
	Inode  uint64 `json:"ino"`
	Size   int64  `json:"size"`
	MTime  int64  `json:"mtime"` // nanoseconds since the epoch
	CTime  int64  `json:"ctime"` // likewise
}

// racy is how recent a change may be for a second one to go unseen: file
// systems count time in steps of up to 2 s.
const racy = 2 * time.Second

// settled is false for a file that changed so recently that it could change
// again without a new FileID, and for one that changed in the future.
func (id FileID) settled(now time.Time) bool {
	return now.Sub(time.Unix(0, id.CTime)) > racy
}

func idOf(info fs.FileInfo) FileID {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return FileID{}
	}
	return FileID{
		Device: stat.Dev, Inode: stat.Ino, Size: stat.Size,
		MTime: stat.Mtim.Nano(), CTime: stat.Ctim.Nano(),
	}
}

// identify returns the id of the file that path leads to, or the zero one if
// there is none.
func identify(path string) FileID {
	info, err := os.Stat(path)
	if err != nil {
		return FileID{}
	}
	return idOf(info)
}

// readFile reads a regular file of at most limit bytes. Proc files, which have
// no size, are read as well.
func readFile(path string, limit int64) ([]byte, FileID, error) {
	// Without O_NONBLOCK a FIFO would block for ever.
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, FileID{}, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, FileID{}, err
	}
	if !info.Mode().IsRegular() {
		return nil, FileID{}, fmt.Errorf("%s is not a regular file", path)
	}
	content, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err != nil {
		return nil, FileID{}, err
	}
	if int64(len(content)) > limit {
		return nil, FileID{}, fmt.Errorf("%s is larger than %d bytes", path, limit)
	}
	return content, idOf(info), nil
}

// isMissing is true if there is nothing at a path.
func isMissing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}
