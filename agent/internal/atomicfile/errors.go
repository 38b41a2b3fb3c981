package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// explain says what was done to which file and, for the faults a person can
// mend, how. The cause stays in the chain. A nil error stays nil.
func explain(act, path string, err error) error {
	if err == nil {
		return nil
	}
	// The names of temporary files that os puts into its errors help nobody.
	var at *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &at):
		err = at.Err
	case errors.As(err, &link):
		err = link.Err
	}
	if advice := adviceFor(err); advice != "" {
		return fmt.Errorf("%s %s: %w (%s)", act, path, err, advice)
	}
	return fmt.Errorf("%s %s: %w", act, path, err)
}

func adviceFor(err error) string {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "free some space on its file system"
	case errors.Is(err, syscall.EROFS):
		return "its file system is mounted read-only"
	case errors.Is(err, syscall.EACCES):
		return "run the agent as root; in an unprivileged container, have its root own the folder"
	case errors.Is(err, syscall.EPERM):
		return "it may be immutable, see lsattr(1)"
	case errors.Is(err, syscall.EBUSY), errors.Is(err, syscall.EXDEV):
		return "it is a mount point and cannot be replaced: mount its folder instead of the file"
	}
	return ""
}

// isMountPoint reports whether a file is mounted at path, as container
// runtimes do with single files. On kernels before 5.8, which cannot tell, the
// commit fails instead. (statx(2), STATX_ATTR_MOUNT_ROOT.)
func isMountPoint(path string) bool {
	var info unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BASIC_STATS, &info); err != nil {
		return false
	}
	return info.Attributes&info.Attributes_mask&unix.STATX_ATTR_MOUNT_ROOT != 0
}
