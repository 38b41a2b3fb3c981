package volumes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// dir is an open directory. It is opened by O_PATH, which needs no permission
// to read it and does not touch its access time (open(2)).
type dir struct {
	fd   int
	path string // for messages; empty for the root directory
}

// String is the path for messages.
func (d dir) String() string {
	if d.path == "" {
		return "/"
	}
	return d.path
}

// owner is the owner and mode of a directory.
type owner struct {
	uid, gid int64
	mode     uint32 // permission, set-id and sticky bits
}

// reach is the function of that name, but for a volume that is there, as most
// are: one step leads to it. What is in the way of that, the walk finds out.
func (h *host) reach(path string) (reached dir, missing []string, err error) {
	if reached, err = h.top.child(path[1:]); err == nil {
		return reached, nil, nil
	}
	return reach(h.root, path)
}

// reach walks to path below root as far as it exists. It returns the last
// directory reached, for the caller to close, and the names that are missing
// below it. Links lead nowhere, not even to where they should.
func reach(root, path string) (reached dir, missing []string, err error) {
	current, err := openRoot(root)
	if err != nil {
		return dir{}, nil, err
	}
	names := strings.Split(path[1:], "/")
	for i, name := range names {
		next, err := current.child(name)
		if errors.Is(err, unix.ENOENT) {
			return current, names[i:], nil
		}
		current.close()
		if err != nil {
			return dir{}, nil, err
		}
		current = next
	}
	return current, nil, nil
}

func openRoot(root string) (dir, error) {
	fd, err := unix.Open(root+"/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return dir{}, fmt.Errorf("open directory %q: %w", root+"/", err)
	}
	return dir{fd: fd, path: root}, nil
}

// child opens a directory below d. An error names the right component only if
// name is one.
func (d dir) child(name string) (dir, error) {
	path := d.path + "/" + name
	fd, err := unix.Openat2(d.fd, name, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_BENEATH,
	})
	switch {
	case err == nil:
		return dir{fd: fd, path: path}, nil
	case errors.Is(err, unix.ELOOP):
		return dir{}, fmt.Errorf("%q is a symbolic link, and volumes are not reached through links: "+
			"put a directory or a mount in its place (%w)", path, err)
	case errors.Is(err, unix.ENOTDIR):
		return dir{}, fmt.Errorf("%q is not a directory: move it away (%w)", path, err)
	case errors.Is(err, unix.ENOSYS):
		return dir{}, fmt.Errorf("open %q: openat2 is not available, it needs Linux 5.6 (%w)", path, err)
	}
	return dir{}, fmt.Errorf("open directory %q: %w", path, err)
}

func (d dir) close() { _ = unix.Close(d.fd) }

func (d dir) stat() (owner, error) {
	var stat unix.Stat_t
	if err := unix.Fstat(d.fd, &stat); err != nil {
		return owner{}, fmt.Errorf("look at %q: %w", d.path, err)
	}
	return owner{uid: int64(stat.Uid), gid: int64(stat.Gid), mode: stat.Mode & 0o7777}, nil
}

// mountID returns the id of the mount the directory was reached on, that of
// /proc/self/mountinfo (statx(2), Linux 5.8).
func (d dir) mountID() (int, error) {
	var stat unix.Statx_t
	err := unix.Statx(d.fd, "", unix.AT_EMPTY_PATH|unix.AT_NO_AUTOMOUNT, unix.STATX_MNT_ID, &stat)
	if err == nil && stat.Mask&unix.STATX_MNT_ID == 0 {
		err = unix.ENOSYS
	}
	if err != nil {
		return 0, fmt.Errorf("ask for the mount of %q: %w", d, err)
	}
	return int(stat.Mnt_id), nil
}

// self is the directory as a path: for what cannot be done to an O_PATH
// descriptor. It leads to the very directory that was opened (proc(5)).
func (d dir) self() string { return fmt.Sprintf("/proc/self/fd/%d", d.fd) }

func (d dir) chmod(ctx context.Context, mode uint32) error {
	if ctx.Err() != nil {
		return fmt.Errorf("set the mode of %q: %w", d.path, ctx.Err())
	}
	if err := unix.Chmod(d.self(), mode); err != nil {
		return fmt.Errorf("set the mode of %q to %04o: %w", d.path, mode, err)
	}
	return nil
}

// chown changes the owner; -1 leaves an id as it is. The error is the bare one
// of the system.
func (d dir) chown(uid, gid int64) error {
	return unix.Fchownat(d.fd, "", int(uid), int(gid), unix.AT_EMPTY_PATH)
}

func (d dir) empty() (bool, error) {
	folder, err := os.Open(d.self())
	if err != nil {
		return false, fmt.Errorf("look into %q: %w", d.path, err)
	}
	defer folder.Close()
	_, err = folder.Readdirnames(1)
	if errors.Is(err, io.EOF) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("look into %q: %w", d.path, err)
	}
	return false, nil
}
