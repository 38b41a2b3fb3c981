package volumes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// idMaps tells which ids exist in the agent's user namespace
// (user_namespaces(7)). Directories of ids that do not are shown as owned by
// the overflow ids.
type idMaps struct {
	uid, gid                 idMap
	overflowUID, overflowGID int64
}

// idMap is /proc/self/uid_map or gid_map.
type idMap []idRange

type idRange struct{ inside, outside, count int64 }

func readIDMaps() (idMaps, error) {
	uid, errUID := readIDMap("/proc/self/uid_map")
	gid, errGID := readIDMap("/proc/self/gid_map")
	return idMaps{
		uid: uid, gid: gid,
		overflowUID: readOverflow("/proc/sys/kernel/overflowuid"),
		overflowGID: readOverflow("/proc/sys/kernel/overflowgid"),
	}, errors.Join(errUID, errGID)
}

func readIDMap(path string) (idMap, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	m, err := parseIDMap(string(content))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

// parseIDMap reads lines of three numbers.
func parseIDMap(content string) (idMap, error) {
	var m idMap
	for line := range strings.Lines(content) {
		fields := strings.Fields(line)
		if len(fields) != 3 {
			return nil, fmt.Errorf("odd line %q", line)
		}
		var numbers [3]int64
		for i, field := range fields {
			n, err := strconv.ParseUint(field, 10, 32)
			if err != nil {
				return nil, fmt.Errorf("odd line %q: %w", line, err)
			}
			numbers[i] = int64(n)
		}
		m = append(m, idRange{numbers[0], numbers[1], numbers[2]})
	}
	return m, nil
}

// readOverflow returns the kernel's default where it is not told.
func readOverflow(path string) int64 {
	content, err := os.ReadFile(path)
	if err != nil {
		return 65534
	}
	id, err := strconv.ParseInt(strings.TrimSpace(string(content)), 10, 64)
	if err != nil {
		return 65534
	}
	return id
}

// outside returns the id that inside has in the parent namespace.
func (m idMap) outside(inside int64) (id int64, mapped bool) {
	for _, r := range m {
		if inside >= r.inside && inside-r.inside < r.count {
			return r.outside + inside - r.inside, true
		}
	}
	return 0, false
}

func (m idMap) has(id int64) bool {
	_, mapped := m.outside(id)
	return mapped
}

// whole is true where every id is mapped: no overflow id can occur.
func (m idMap) whole() bool { return len(m) == 1 && m[0].inside == 0 && m[0].count == 1<<32-1 }

// right tells whether a directory's owner is the wanted one. An id that the
// namespace does not know cannot be set in it; there the namespace's root
// stands for it, since the id map makes that the right owner outside.
func (ids idMaps) right(have owner, uid, gid int64) bool {
	return ids.uid.right(have.uid, uid) && ids.gid.right(have.gid, gid)
}

func (m idMap) right(have, want int64) bool {
	return have == want || !m.has(want) && have == 0
}

// outsideNote says so where the id map does not make the wanted owner of the
// namespace's root.
func (ids idMaps) outsideNote(have owner, uid, gid int64) string {
	outUID, _ := ids.uid.outside(have.uid)
	outGID, _ := ids.gid.outside(have.gid)
	if (have.uid == uid || outUID == uid) && (have.gid == gid || outGID == gid) {
		return ""
	}
	return fmt.Sprintf("the owner %d:%d does not exist in the agent's user namespace; its root owns the directory, "+
		"which is %d:%d outside", uid, gid, outUID, outGID)
}

// checkKnown refuses a directory whose owner does not exist in the agent's
// user namespace: nobody in it could make use of it.
func (ids idMaps) checkKnown(d dir, have owner) error {
	unknownUID := !ids.uid.whole() && have.uid == ids.overflowUID && (!ids.uid.has(have.uid) || !d.ownerMapped())
	unknownGID := !ids.gid.whole() && have.gid == ids.overflowGID && !ids.gid.has(have.gid)
	if unknownUID || unknownGID {
		return fmt.Errorf("the owner of %q does not exist in the agent's user namespace (it shows as %d:%d): "+
			"set its owner on the node", d.path, have.uid, have.gid)
	}
	return nil
}

// ownerMapped tells the real owner "nobody" from an owner that only shows as
// that: the privilege to open with O_NOATIME does not reach to owners outside
// the namespace (open(2), capabilities(7) on CAP_FOWNER).
func (d dir) ownerMapped() bool {
	fd, err := unix.Open(d.self(), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOATIME|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	_ = unix.Close(fd)
	return true
}

// give sets the owner of a directory, as far as it is not the right one yet.
// Storage that refuses a needless chown (NFS with root squashing) is not asked.
func (ids idMaps) give(ctx context.Context, d dir, have owner, uid, gid int64) error {
	const keep = -1
	setUID, setGID := uid, gid
	if ids.uid.right(have.uid, uid) {
		setUID = keep
	}
	if ids.gid.right(have.gid, gid) {
		setGID = keep
	}
	if setUID == keep && setGID == keep {
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("set the owner of %q: %w", d.path, ctx.Err())
	}
	if err := d.chown(setUID, setGID); err != nil {
		return fmt.Errorf("set the owner of %q to %d:%d (it is %d:%d): %w", d.path, uid, gid, have.uid, have.gid, err)
	}
	return nil
}
