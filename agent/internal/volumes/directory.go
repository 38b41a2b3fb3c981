package volumes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"

	"opensource.internal/agent/checkin"
)

// unfinished is the mode of a directory between mkdir and the moment it has
// its owner. Nobody but the agent can enter it, and it is odd enough to be
// known again by a pass that finds no record of it, since the one that made it
// was killed.
const unfinished = unix.S_ISVTX | 0o700

// parentMode is that of the folders made above a volume's directory.
const parentMode = 0o755

// host is what the volumes of one Ensure are checked against. It is not
// changed by the goroutines of single volumes.
type host struct {
	root   string
	top    dir // root, open for as long as anybody may use it
	mounts *mountTable
	ids    idMaps
	hung   map[string]bool // by mount point; used by Ensure alone
}

func readHost(root string) (*host, error) {
	mounts, err := readMounts()
	if err != nil {
		return nil, fmt.Errorf("read the mounts of this host: %w", err)
	}
	ids, err := readIDMaps()
	if err != nil {
		return nil, fmt.Errorf("read the id maps of this host: %w", err)
	}
	top, err := openRoot(root)
	if err != nil {
		return nil, err
	}
	h := &host{root: root, top: top, mounts: mounts, ids: ids, hung: map[string]bool{}}
	runtime.AddCleanup(h, dir.close, top) // one that hangs has it in use still
	return h, nil
}

// ensure carries out one order.
func (h *host) ensure(ctx context.Context, o order) outcome {
	reached, missing, err := h.reach(o.HostPath)
	if err != nil {
		return outcome{err: err}
	}
	defer reached.close()
	if err := h.mounts.check(reached, o.HostPath); err != nil {
		return outcome{err: err}
	}
	if len(missing) == 0 {
		return h.check(ctx, reached, o)
	}
	if o.lookOnly {
		return outcome{would: fmt.Sprintf("make the directory, owner %d:%d, mode %04o", o.UID, o.GID, ordered(o.Mode))}
	}

	// The table may be older than what was reached, and mount ids are used
	// again: to write takes a fresh look.
	mounts, err := readMounts()
	if err != nil {
		return outcome{err: fmt.Errorf("read the mounts of this host: %w", err)}
	}
	if err := mounts.check(reached, o.HostPath); err != nil {
		return outcome{err: err}
	}
	made, err := reached.makeAll(ctx, missing)
	if err != nil {
		return outcome{err: err}
	}
	defer made.close()
	return h.finish(ctx, made, o)
}

// check looks at a directory that exists.
func (h *host) check(ctx context.Context, d dir, o order) outcome {
	have, err := d.stat()
	if err != nil {
		return outcome{err: err}
	}
	begun, err := h.begunByUs(d, have, o)
	if err != nil {
		return outcome{err: err}
	}
	if begun && o.lookOnly {
		return outcome{would: fmt.Sprintf("finish the directory: owner %d:%d, mode %04o", o.UID, o.GID, ordered(o.Mode))}
	}
	if begun {
		return h.finish(ctx, d, o)
	}
	if err := h.ids.checkKnown(d, have); err != nil {
		return outcome{err: err}
	}
	if o.known && h.ours(have, o.before) {
		if o.lookOnly {
			return outcome{would: o.change()}
		}
		if err := h.follow(ctx, d, have, o); err != nil {
			return outcome{err: err}
		}
		if have, err = d.stat(); err != nil {
			return outcome{err: err}
		}
	}
	return outcome{record: o.record(o.before.Created, true), note: h.note(have, o)}
}

// begunByUs tells whether the directory still waits for its owner and mode.
func (h *host) begunByUs(d dir, have owner, o order) (bool, error) {
	if o.known && o.before.Created && !o.before.Finished {
		return true, nil
	}
	if have.mode != unfinished || have.uid != int64(os.Geteuid()) && have.uid != o.UID {
		return false, nil
	}
	return d.empty()
}

// ours tells whether a changed order may change the directory: the agent made
// it, or it stands exactly as the order before wanted it. Anything else is
// what a workload or a person has made of it.
func (h *host) ours(have owner, before Record) bool {
	mode, err := checkin.DirectoryMode(before.Mode)
	return before.Created ||
		err == nil && have.mode == mode && h.ids.right(have, before.UID, before.GID)
}

// follow changes what the order changed, and nothing else.
func (h *host) follow(ctx context.Context, d dir, have owner, o order) error {
	if o.UID != o.before.UID || o.GID != o.before.GID {
		if err := h.ids.give(ctx, d, have, o.UID, o.GID); err != nil {
			return err
		}
	}
	if string(o.Mode) != o.before.Mode {
		return d.chmod(ctx, ordered(o.Mode))
	}
	return nil
}

// change says what follow would do.
func (o order) change() string {
	if o.UID == o.before.UID && o.GID == o.before.GID && string(o.Mode) == o.before.Mode {
		return ""
	}
	return fmt.Sprintf("change the directory: owner %d:%d, mode %04o", o.UID, o.GID, ordered(o.Mode))
}

// finish gives a directory of ours its owner and then its mode.
func (h *host) finish(ctx context.Context, d dir, o order) outcome {
	begun := o.record(true, false)
	have, err := d.stat()
	if err != nil {
		return outcome{record: begun, err: err}
	}
	if err := h.ids.checkKnown(d, have); err != nil {
		return outcome{record: begun, err: err}
	}
	if err := h.ids.give(ctx, d, have, o.UID, o.GID); err != nil {
		return outcome{record: begun, err: err}
	}
	if err := d.chmod(ctx, ordered(o.Mode)); err != nil {
		return outcome{record: begun, err: err}
	}
	if have, err = d.stat(); err != nil {
		return outcome{record: begun, err: err}
	}
	if !h.ids.right(have, o.UID, o.GID) { // as some network storage does
		return outcome{record: begun, err: fmt.Errorf("the storage accepted the owner %d:%d for %q and yet shows %d:%d: "+
			"set the owner in its mount options", o.UID, o.GID, d, have.uid, have.gid)}
	}
	return outcome{record: o.record(true, true), note: h.note(have, o)}
}

// note says what differs from the order although the volume is all right.
func (h *host) note(have owner, o order) string {
	if !h.ids.right(have, o.UID, o.GID) || have.mode != ordered(o.Mode) {
		return fmt.Sprintf("left as it is: owner %d:%d and mode %04o, ordered were %d:%d and %04o",
			have.uid, have.gid, have.mode, o.UID, o.GID, ordered(o.Mode))
	}
	return h.ids.outsideNote(have, o.UID, o.GID)
}

// ordered returns the permission bits of a mode that was checked before.
func ordered(mode checkin.VolumeMode) uint32 {
	bits, _ := checkin.DirectoryMode(string(mode))
	return bits
}

// makeAll makes the missing directories below d and returns the last one,
// which is still unfinished.
func (d dir) makeAll(ctx context.Context, missing []string) (dir, error) {
	parent := d
	for i, name := range missing {
		last := i == len(missing)-1
		child, err := parent.makeChild(ctx, name, last)
		if i > 0 {
			parent.close()
		}
		if err != nil || last {
			return child, err
		}
		parent = child
	}
	return dir{}, errors.New("nothing to make")
}

func (d dir) makeChild(ctx context.Context, name string, last bool) (dir, error) {
	mode := uint32(parentMode)
	if last {
		mode = unfinished
	}
	path := d.path + "/" + name
	if ctx.Err() != nil { // given up meanwhile: change nothing any more
		return dir{}, fmt.Errorf("make directory %q: %w", path, ctx.Err())
	}
	err := unix.Mkdirat(d.fd, name, mode)
	switch {
	case errors.Is(err, unix.EEXIST) && !last:
		return d.child(name)
	case errors.Is(err, unix.EEXIST):
		return dir{}, fmt.Errorf("make directory %q: it appeared this moment; the next pass looks at it", path)
	case err != nil:
		return dir{}, fmt.Errorf("make directory %q: %w", path, err)
	}
	child, err := d.child(name)
	if err != nil {
		return dir{}, err
	}
	if err := child.chmod(ctx, mode); err != nil { // whatever the umask was
		child.close()
		return dir{}, err
	}
	return child, nil
}
